#include "common/expconf/entrypoint.h"

#include <algorithm>
#include <filesystem>

#include "common/base/text.h"

namespace det::expconf {
namespace {

tl::unexpected<Error> refuse(std::string message, const std::string& file) {
  return fail({Problem{
      .code = "E-CTX-ENTRYPOINT", .path = "entrypoint", .message = std::move(message), .file = file}});
}

bool holds(const std::vector<std::string>& files, const std::string& path) {
  return std::find(files.begin(), files.end(), path) != files.end();
}

/// Returns the program of a command line if it is a plain word, else "": a shell may expand anything else.
std::string program_of(const ExperimentConfig& config) {
  if (config.entrypoint.empty()) return "";
  if (config.entrypoint_is_list) return config.entrypoint.front();
  const std::string line(trim(config.entrypoint.front()));
  const std::string word = line.substr(0, line.find_first_of(" \t\n;&|<>"));
  return word.find_first_of("\"'\\$`*?[]{}()=~#!") == std::string::npos ? word : "";
}

/// A compiled step consists of three files with the same stem.
Status check_compiled_step(const std::string& step, const std::vector<std::string>& files,
                           const std::string& config_name) {
  const std::string stem =
      std::filesystem::path(step).lexically_normal().replace_extension().generic_string();
  std::vector<std::string> missing;
  for (const char* extension : {".pt2", ".json", ".safetensors"}) {
    if (!holds(files, stem + extension)) missing.push_back(stem + extension);
  }
  if (missing.empty() || holds(files, "startup-hook.sh")) return {};
  return refuse(join(missing, ", ") + (missing.size() == 1 ? " is" : " are") +
                    " not in the code archive; export the compiled step into the model directory",
                config_name);
}

}  // namespace

Status check_entrypoint(const ExperimentConfig& config, const std::vector<std::string>& files,
                        const std::string& config_name) {
  // "pkg.module:Class" lives in pkg/module.cpp.
  if (const auto trial_class = config.trial_class()) {
    std::string source = trial_class->first;
    std::replace(source.begin(), source.end(), '.', '/');
    source += ".cpp";
    if (holds(files, source)) return {};
    return refuse(
        source + " is not in the code archive; add it to the model directory, or name the file that holds " +
            trial_class->second,
        config_name);
  }
  if (const std::string step = config.compiled_step(); !step.empty())
    return check_compiled_step(step, files, config_name);
  const std::string program = program_of(config);
  // Absolute paths and names without a slash are resolved on the agent.
  if (program.find('/') == std::string::npos || program.starts_with('/')) return {};
  const std::string path = std::filesystem::path(program).lexically_normal().generic_string();
  if (holds(files, path) || holds(files, "startup-hook.sh")) return {};
  return refuse(
      program +
          " is not in the code archive; add it to the model directory, or let a startup-hook.sh make it",
      config_name);
}

}  // namespace det::expconf
