#include "common/build/precompiled.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/process.h"
#include "common/base/shared.h"
#include "common/base/text.h"
#include "common/build/cache.h"
#include "common/build/compiler.h"
#include "common/crypto/digest.h"

namespace det::build {
namespace {

using namespace std::chrono_literals;
constexpr const char* kHeaderFile = "/header.pch";

std::vector<std::string> header_command(const Recipe& recipe, const std::string& output) {
  const Precompiled& fast = *recipe.precompiled;
  std::vector<std::string> argv = compile_command(recipe, fast.compiler, fast.cxx_flags);
  argv.insert(argv.end(), fast.header_flags.begin(), fast.header_flags.end());
  argv.insert(argv.end(), {"-x", "c++-header", fast.header, "-o", output});
  return argv;
}

/// Returns path, number, size and time of change of a program's file; "" if it is not installed. Names
/// without a directory are searched in PATH.
std::string identity_of(const std::string& program) {
  std::vector<std::string> places{""};
  if (program.find('/') == std::string::npos) {
    places = split(environment_variable("PATH"), ':');
    for (std::string& place : places) place += "/";
  }
  for (const std::string& place : places) {
    struct stat status {};
    const std::string path = place + program;
    if (::access(path.c_str(), X_OK) != 0 || ::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode))
      continue;
    return path + " " + std::to_string(status.st_ino) + " " + std::to_string(status.st_size) + " " +
           std::to_string(status.st_ctim.tv_sec) + "." + std::to_string(status.st_ctim.tv_nsec);
  }
  return "";
}

/// Returns names, sizes and times of change of the files beside `header`. A precompiled header is valid for
/// files with the same content, but Clang recognizes `#pragma once` by size and time: for another
/// installation of the same files it would report every declaration as a redefinition.
std::string files_beside(const std::string& header) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(header).parent_path(), error)) {
    if (!entry.is_regular_file(error)) continue;
    files.push_back(entry.path().filename().string() + " " + std::to_string(entry.file_size(error)) + " " +
                    std::to_string(entry.last_write_time(error).time_since_epoch().count()));
  }
  std::sort(files.begin(), files.end());
  return join(files, "\n");
}

/// Returns the directory of the header in the cache; "" if there can be none.
Result<std::string> header_entry(const Recipe& recipe, const std::string& models_dir) {
  if (!recipe.precompiled) return std::string();
  TRY_ASSIGN(const std::optional<std::string> version, compiler_version(recipe.precompiled->compiler));
  if (!version) return std::string();
  Sha256 digest;
  for (const std::string& part : {*version, recipe.sdk_id, files_beside(recipe.precompiled->header)})
    digest.update(part + '\0');
  for (const std::string& word : header_command(recipe, "")) digest.update(word + '\0');
  return models_dir + "/header-" + digest.hex();
}

/// Compiles the header into `entry`. An entry without header.pch records that the compiler rejects it.
Status compile_header(const Recipe& recipe, const std::string& models_dir, const std::string& entry,
                      MonoTime deadline, const std::stop_token& stop) {
  TRY_ASSIGN(TemporaryDirectory work, TemporaryDirectory::create("building-", models_dir));
  const MonoTime begun = mono_now();
  TRY_ASSIGN(const CompilerEnd end, run_compiler({.argv = header_command(recipe, work.path() + kHeaderFile),
                                                  .cwd = work.path(),
                                                  .work_dir = work.path(),
                                                  .deadline = deadline,
                                                  .background = true},
                                                 stop));
  if (!end.status.ok()) {
    if (!rejects_source(end))
      return fail(Code::kUnavailable, recipe.precompiled->compiler + ": " + to_string(end.status) +
                                          (end.output.empty() ? "" : ": " + split(end.output, '\n')[0]));
    log::warn("trials are compiled without a precompiled header",
              {{"compiler", recipe.precompiled->compiler}, {"messages", entry + "/output.txt"}});
    TRY(remove_tree(work.path() + kHeaderFile));
  } else {
    // For an agent's administrator.
    log::debug("header precompiled",
               {{"path", entry}, {"seconds", static_cast<double>((mono_now() - begun) / 1ms) / 1000}});
  }
  return publish_entry(work, entry);
}

}  // namespace

Result<std::optional<std::string>> compiler_version(const std::string& compiler) {
  // Only a program that has changed is run again: compilers take 10 ms and more to start.
  using Versions = std::map<std::string, std::string>;
  static Shared<Versions> known;
  const std::string file = identity_of(compiler);
  if (file.empty()) return std::nullopt;
  const auto versions = known.get();
  if (versions && versions->contains(file)) return versions->at(file);
  auto version = run_process({.argv = {compiler, "--version"}}, {30s});
  if (!version && version.error().code == Code::kNotFound) return std::nullopt;
  if (!version) return tl::unexpected(version.error());
  // A compiler that fails is tried again by the next call.
  if (!version->ok()) return version->out;
  auto more = std::make_shared<Versions>(versions ? *versions : Versions());
  more->insert_or_assign(file, version->out);
  known.set(std::move(more));
  return version->out;
}

Result<std::optional<std::string>> find_precompiled_header(const Recipe& recipe,
                                                           const std::string& models_dir) {
  TRY_ASSIGN(const std::string entry, header_entry(recipe, models_dir));
  if (entry.empty()) return std::string();
  if (!path_exists(entry)) return std::nullopt;
  touch_entry(entry);
  return path_exists(entry + kHeaderFile) ? entry + kHeaderFile : std::string();
}

Status make_precompiled_header(const Recipe& recipe, const std::string& models_dir, MonoTime deadline,
                               const std::stop_token& stop) {
  TRY_ASSIGN(const std::string entry, header_entry(recipe, models_dir));
  if (entry.empty() || path_exists(entry)) return {};
  const Result<FileLock> lock = FileLock::try_lock(entry + ".lock");
  if (!lock && lock.error().code == Code::kFailedPrecondition) return {};
  if (!lock) return tl::unexpected(lock.error());
  // Its former holder may have made the header.
  if (path_exists(entry)) return {};
  Status made = compile_header(recipe, models_dir, entry, deadline, stop);
  (void)remove_tree(entry + ".lock");
  return made;
}

Status discard_precompiled_header(const std::string& path) {
  return remove_entry(path.substr(0, path.size() - std::string_view(kHeaderFile).size()));
}

}  // namespace det::build
