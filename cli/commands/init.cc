// `det init`: a directory with a trial and a configuration that run as they are. The templates are files of
// the installation (share/det/templates).
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "cli/command.h"
#include "cli/output/print.h"
#include "common/base/files.h"
#include "common/base/text.h"

namespace det::cli {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kTemplates{"classification", "core-api", "language"};

struct InitOptions {
  std::string directory = ".", from = "classification";
  void declare(CLI::App& app) {
    app.add_option("DIR", directory, "Directory of the new files. Default: the current one.");
    app.add_option("--template", from,
                   "classification (default), language, or core-api: a program with its own loop.");
  }
};

/// Copies the files of a template. Existing files stay as they are: they make the command fail before it
/// writes any.
Status init_directory(Session&, const InitOptions& options) {
  if (std::find(kTemplates.begin(), kTemplates.end(), options.from) == kTemplates.end())
    return fail(Code::kInvalidArgument, "--template: must be " + join(kTemplates, ", ") + ", got \"" +
                                            options.from + "\"" + did_you_mean(options.from, kTemplates));
  const fs::path source =
      fs::path(program_path()).parent_path().parent_path() / "share/det/templates" / options.from;
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& item : fs::directory_iterator(source, error)) files.push_back(item.path().filename());
  if (files.empty())
    return fail(Code::kFailedPrecondition, source.string() + " does not exist; install det completely");
  std::sort(files.begin(), files.end());
  const fs::path target = options.directory;
  for (const fs::path& file : files)
    if (path_exists(target / file))
      return fail(Code::kInvalidArgument,
                  printable((target / file).string()) + " exists; give another directory");
  TRY(make_directories(target));
  for (const fs::path& file : files) {
    fs::copy_file(source / file, target / file, error);
    if (error) return fail(Code::kUnavailable, (target / file).string() + ": " + error.message());
    std::cout << "Created " << printable((target / file).lexically_normal().string()) << '\n';
  }
  const std::string there = options.directory == "." ? "" : "cd " + printable(options.directory) + " && ";
  std::cout << "Run: " << there << "det experiment create const.yaml . -f\n";
  return {};
}

}  // namespace

Command init_command() {
  return {{"init"}, "Create a trial and a configuration that run as they are.", action(init_directory)};
}

}  // namespace det::cli
