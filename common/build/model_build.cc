#include "common/build/model_build.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/process.h"
#include "common/base/text.h"
#include "common/base/wait.h"
#include "common/build/cache.h"
#include "common/crypto/digest.h"

namespace det::build {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Extensions that do not affect a build. A source may include any other file, whatever its name.
constexpr std::array<std::string_view, 9> kNoSources{".yaml", ".yml", ".md",  ".rst", ".ipynb",
                                                     ".py",   ".sh",  ".log", ".png"};
constexpr std::int64_t kOutputBytes = 1 << 20;

bool is_dotted_name(std::string_view text) {
  for (const std::string& part : split(text, '.')) {
    if (part.empty() || (part[0] >= '0' && part[0] <= '9')) return false;
    for (const char c : part) {
      const bool good =
          (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
      if (!good) return false;
    }
  }
  return true;
}

std::string replace_all(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

/// The source to compile, which includes the trial's.
std::string wrapper_source(const BuildRequest& request) {
  return replace_all(replace_all(request.recipe.wrapper, "{module}", request.trial.module), "{class}",
                     request.trial.trial_class);
}

/// Compiler command. It runs in the context's directory and reads the wrapper from standard input, so that
/// messages show paths relative to it.
std::vector<std::string> command_line(const BuildRequest& request, const std::string& output) {
  std::vector<std::string> argv{request.recipe.compiler};
  argv.insert(argv.end(), request.recipe.cxx_flags.begin(), request.recipe.cxx_flags.end());
  argv.push_back("-I.");
  // System directories: warnings in them are not the user's.
  for (const std::string& directory : request.recipe.include_dirs)
    argv.insert(argv.end(), {"-isystem", directory});
  argv.insert(argv.end(), {"-x", "c++", "-", "-x", "none", "-o", output});
  argv.insert(argv.end(), request.recipe.link_flags.begin(), request.recipe.link_flags.end());
  return argv;
}

/// Returns all files that the result may depend on, sorted.
Result<std::vector<std::string>> source_files(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (!it->is_regular_file(error)) continue;
    const std::string extension = it->path().extension();
    if (std::find(kNoSources.begin(), kNoSources.end(), extension) != kNoSources.end()) continue;
    files.push_back(it->path().lexically_relative(directory));
  }
  if (error) return fail(Code::kUnavailable, directory + ": " + error.message());
  std::sort(files.begin(), files.end());
  return files;
}

Result<BuildOutcome> cached_outcome(const std::string& entry) {
  BuildOutcome outcome;
  outcome.cached = true;
  TRY_ASSIGN(outcome.output, read_file(entry + "/output.txt"));
  if (path_exists(entry + "/model.so")) outcome.library = entry + "/model.so";
  touch_entry(entry);
  return outcome;
}

/// Whether the compiler rejected the source, as opposed to failing for another reason.
bool is_final(const ExitStatus& status, const std::string& output) {
  return status.signal == 0 && output.find(": error: ") != std::string::npos;
}

Result<BuildOutcome> compile(const BuildRequest& request, const std::string& entry, std::stop_token stop) {
  TRY_ASSIGN(TemporaryDirectory work, TemporaryDirectory::create("building-", request.models_dir));
  const std::string source = work.path() + "/wrapper.cpp", log = work.path() + "/output.txt";
  TRY(write_file_atomic(source, wrapper_source(request)));
  ProcessOptions options{.argv = command_line(request, work.path() + "/model.so"),
                         .env = environment_with({"LC_ALL=C", "TMPDIR=" + work.path()}),
                         .cwd = request.source_dir,
                         .in = Stream::file(source),
                         .out = Stream::file(log),
                         .err = Stream::file(log)};
  TRY_ASSIGN(Child compiler, Child::spawn(options));
  const MonoTime deadline = mono_now() + request.timeout;
  std::optional<ExitStatus> status;
  while (!(status = compiler.wait(100ms))) {
    if (!stop.stop_requested() && mono_now() < deadline) continue;
    compiler.stop(1s);
    if (stop.stop_requested()) return fail(Code::kCancelled, "the build was stopped");
    return fail(Code::kDeadlineExceeded, request.trial.module + ".cpp does not compile within " +
                                             std::to_string(request.timeout / 1s) +
                                             " s (the agent's compile_timeout)");
  }
  BuildOutcome outcome;
  TRY_ASSIGN(outcome.output, read_file(log));
  outcome.output = make_utf8(outcome.output.substr(0, kOutputBytes));
  if (!status->ok() && !is_final(*status, outcome.output)) {
    const std::string said = outcome.output.empty() ? "" : ": " + outcome.output;
    // A missing header or library is not cached: it may exist the next time.
    if (status->signal == 0) return outcome;
    return fail(Code::kUnavailable, "the compiler ended with " + to_string(*status) + said);
  }
  if (!status->ok()) (void)remove_tree(work.path() + "/model.so");
  TRY(write_file_atomic(log, outcome.output));
  TRY(remove_tree(source));
  // The rename publishes the entry atomically.
  std::error_code error;
  fs::rename(work.path(), entry, error);
  if (error) return fail(Code::kUnavailable, entry + ": " + error.message());
  (void)work.release();
  TRY(sync_directory(request.models_dir));
  if (status->ok()) outcome.library = entry + "/model.so";
  return outcome;
}

}  // namespace

Result<Recipe> read_recipe(const std::string& path) {
  TRY_ASSIGN(const std::string text, read_file(path));
  TRY_ASSIGN(const Json value, parse_json(text));
  try {
    Recipe recipe;
    value.at("sdk_id").get_to(recipe.sdk_id);
    value.at("compiler").get_to(recipe.compiler);
    value.at("cxx_flags").get_to(recipe.cxx_flags);
    value.at("include_dirs").get_to(recipe.include_dirs);
    value.at("link_flags").get_to(recipe.link_flags);
    value.at("wrapper").get_to(recipe.wrapper);
    // <prefix>/share/det/model_build.json: an installation can be moved as a whole.
    const std::string prefix = fs::path(path).parent_path().parent_path().parent_path().string();
    for (std::vector<std::string>* words : {&recipe.cxx_flags, &recipe.include_dirs, &recipe.link_flags})
      for (std::string& word : *words) word = replace_all(word, "{prefix}", prefix);
    // As an explicit directory, /usr/include would come before the directory of the C++ library. The headers
    // there find the C library by #include_next, which then fails.
    std::erase(recipe.include_dirs, "/usr/include");
    return recipe;
  } catch (const nlohmann::json::exception& error) {
    return fail(Code::kDataLoss, path + ": " + error.what());
  }
}

std::optional<TrialName> parse_trial_name(const std::string& entrypoint) {
  const std::size_t colon = entrypoint.find(':');
  if (colon == std::string::npos) return std::nullopt;
  const std::string module = entrypoint.substr(0, colon), name = entrypoint.substr(colon + 1);
  if (!is_dotted_name(module) || !is_dotted_name(name)) return std::nullopt;
  return TrialName{replace_all(module, ".", "/"), replace_all(name, ".", "::")};
}

Result<std::string> build_key(const BuildRequest& request) {
  Sha256 digest;
  // Length-prefixed, so that different lists of texts cannot collide.
  auto add = [&](std::string_view text) {
    digest.update(std::to_string(text.size()) + ":");
    digest.update(text);
  };
  TRY_ASSIGN(const ProcessResult version,
             run_process({.argv = {request.recipe.compiler, "--version"}}, {30s}));
  add(version.out);
  add(request.recipe.sdk_id);
  add(wrapper_source(request));
  for (const std::string& word : command_line(request, "model.so")) add(word);
  TRY_ASSIGN(const std::vector<std::string> files, source_files(request.source_dir));
  for (const std::string& file : files) {
    add(file);
    TRY_ASSIGN(const std::string content, sha256_file(request.source_dir + "/" + file));
    add(content);
  }
  return digest.hex();
}

Result<BuildOutcome> build_model(const BuildRequest& request, std::stop_token stop) {
  TRY_ASSIGN(const std::string key, build_key(request));
  const std::string entry = request.models_dir + "/" + key;
  if (path_exists(entry)) return cached_outcome(entry);
  Result<FileLock> lock = fail(Code::kFailedPrecondition, "");
  // Another process may be building it. The kernel releases the lock if that process dies.
  (void)wait_until(
      [&] {
        lock = FileLock::try_lock(entry + ".lock");
        return stop.stop_requested() || lock || lock.error().code != Code::kFailedPrecondition;
      },
      request.timeout);
  if (stop.stop_requested()) return fail(Code::kCancelled, "the build was stopped");
  if (!lock) return tl::unexpected(lock.error());
  // The builder that held the lock may have succeeded meanwhile.
  if (path_exists(entry)) return cached_outcome(entry);
  auto outcome = compile(request, entry, stop);
  // Waiters on the unlinked lock file get the lock and find the entry. Later callers create a new file and
  // find it too.
  (void)remove_tree(entry + ".lock");
  return outcome;
}

}  // namespace det::build
