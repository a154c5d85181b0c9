#include "common/build/model_build.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/process.h"
#include "common/base/text.h"
#include "common/build/cache.h"
#include "common/build/precompiled.h"
#include "common/crypto/digest.h"

namespace det::build {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Extensions that do not affect a build. A source may include any other file, whatever its name.
constexpr std::array<std::string_view, 9> kNoSources{".yaml", ".yml", ".md",  ".rst", ".ipynb",
                                                     ".py",   ".sh",  ".log", ".png"};

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

/// The source to compile, which includes the trial's. Messages about it name the entrypoint.
std::string wrapper_source(const BuildRequest& request) {
  return "#line 1 \"entrypoint\"\n" +
         replace_all(replace_all(request.recipe.wrapper, "{module}", request.trial.module), "{class}",
                     request.trial.trial_class);
}

/// The compiler reads the wrapper from standard input. `first`: the option that includes the recipe's header
/// before it, precompiled or not; empty for the recipe's own compiler.
std::vector<std::string> trial_command(const BuildRequest& request, const std::vector<std::string>& first,
                                       const std::string& output) {
  const Recipe& recipe = request.recipe;
  std::vector<std::string> argv =
      first.empty() ? compile_command(recipe, recipe.compiler, recipe.cxx_flags)
                    : compile_command(recipe, recipe.precompiled->compiler, recipe.precompiled->cxx_flags);
  argv.insert(argv.end(), first.begin(), first.end());
  argv.insert(argv.end(), {"-x", "c++", "-"});
  // Libraries that are named as files are no C++. Clang 19 warns if there are none.
  const bool has_files = std::any_of(recipe.link_flags.begin(), recipe.link_flags.end(),
                                     [](const std::string& flag) { return !flag.starts_with('-'); });
  if (has_files) argv.insert(argv.end(), {"-x", "none"});
  argv.insert(argv.end(), recipe.link_flags.begin(), recipe.link_flags.end());
  argv.insert(argv.end(), {"-o", output});
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

void pass_on(const BuildRequest& request, const std::string& output) {
  if (!request.on_line || output.empty()) return;
  const std::size_t end = output.ends_with('\n') ? output.size() - 1 : output.size();
  for (const std::string& line : split(std::string_view(output).substr(0, end), '\n')) request.on_line(line);
}

/// Returns the outcome in the cache. Errors: kDataLoss if the library is not the one that was built.
Result<BuildOutcome> cached_outcome(const BuildRequest& request, const std::string& entry) {
  BuildOutcome outcome;
  outcome.cached = true;
  TRY_ASSIGN(outcome.output, read_file(entry + "/output.txt"));
  if (path_exists(entry + "/model.so")) {
    outcome.library = entry + "/model.so";
    const auto wanted = read_file(entry + "/model.sha256");
    const auto found = sha256_file(outcome.library);
    if (!wanted || !found || *wanted != *found)
      return fail(Code::kDataLoss, outcome.library + " has another digest than the library that was built");
  }
  touch_entry(entry);
  pass_on(request, outcome.output);
  return outcome;
}

/// Returns the outcome in the cache; nothing if there is none or a damaged one, which is built again.
std::optional<BuildOutcome> reusable(const BuildRequest& request, const std::string& entry) {
  if (!path_exists(entry)) return std::nullopt;
  auto outcome = cached_outcome(request, entry);
  if (outcome) return std::move(*outcome);
  log::warn("built model is not used", {{"reason", outcome.error().message}});
  return std::nullopt;
}

/// Takes the directory of an ended compiler from its user. Makes `library`, if built, read-only and stores
/// its digest. Errors: kPermissionDenied if the library is not a plain file.
Status seal(const std::string& work, const std::string& library) {
  // The directory first: after that the file cannot be replaced.
  if (::lchown(work.c_str(), ::geteuid(), ::getegid()) != 0 || ::chmod(work.c_str(), 0755) != 0)
    return fail_errno(work);
  if (library.empty()) return {};
  const UniqueFd file(::open(library.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return fail_errno(library);
  if (!S_ISREG(status.st_mode) || status.st_nlink != 1)
    return fail(Code::kPermissionDenied, library + " is not a plain file");
  if (::fchown(file.get(), ::geteuid(), ::getegid()) != 0 || ::fchmod(file.get(), 0555) != 0)
    return fail_errno(library);
  TRY_ASSIGN(const std::string digest, sha256_file(library));
  return write_file_atomic(work + "/model.sha256", digest);
}

/// One compilation in a directory of its own.
class Compilation {
 public:
  Compilation(const BuildRequest& request, const std::string& work, const std::stop_token& stop)
      : request_(request), work_(work), stop_(stop), deadline_(mono_now() + request.timeout) {}

  /// Compiles work/wrapper.cpp to work/model.so.
  Result<CompilerEnd> run() {
    TRY(write_file_atomic(work_ + "/wrapper.cpp", wrapper_source(request_)));
    TRY_ASSIGN(const std::optional<CompilerEnd> fast, run_fast());
    if (fast) return *fast;
    return run_compiler(request_.recipe.compiler, "", {}, request_.on_line);
  }

  /// Whether there was no precompiled header to compile with.
  bool without_header() const { return without_header_; }

 private:
  /// Returns nothing if the recipe's compiler has to decide.
  Result<std::optional<CompilerEnd>> run_fast() {
    TRY_ASSIGN(const auto header, find_precompiled_header(request_.recipe, request_.models_dir));
    if (header && header->empty()) return std::nullopt;
    without_header_ = !header;
    TRY_ASSIGN(CompilerEnd end, run_with_header(header.value_or("")));
    // A header that is damaged, or older than LibTorch's headers, has to be made again.
    if (header && !end.status.ok() && rejects_header(end.output)) {
      TRY(discard_precompiled_header(*header));
      without_header_ = true;
      TRY_ASSIGN(end, run_with_header(""));
    }
    const bool certain = end.status.ok() || rejects_certainly(end.output);
    TRY_ASSIGN(const bool only, is_only_compiler());
    if (certain || only) {
      pass_on(request_, end.output);
      if (!certain && request_.on_line)
        request_.on_line("note: g++ may accept this source; it is not installed on this machine");
      return end;
    }
    if (request_.on_line)
      request_.on_line("note: " + request_.recipe.precompiled->compiler +
                       " does not accept this source; compiling it with " + request_.recipe.compiler +
                       ", which takes longer");
    return std::nullopt;
  }

  /// Whether the recipe's compiler is the one of the header, as c++ is on a Debian with Clang but without
  /// g++.
  Result<bool> is_only_compiler() const {
    TRY_ASSIGN(const std::optional<std::string> own, compiler_version(request_.recipe.compiler));
    TRY_ASSIGN(const std::optional<std::string> fast,
               compiler_version(request_.recipe.precompiled->compiler));
    return own == fast;
  }

  /// `header`: path of the precompiled header. "" compiles the text of the header, which takes 10 s in place
  /// of 3 s, but no longer than to make the header first.
  Result<CompilerEnd> run_with_header(const std::string& header) {
    const Precompiled& fast = *request_.recipe.precompiled;
    if (!header.empty()) return run_compiler(fast.compiler, header, {"-include-pch", header}, {});
    if (request_.on_line)
      request_.on_line("note: compiling with the headers of LibTorch, which are not precompiled yet (10 s)");
    return run_compiler(fast.compiler, "", {"-include", fast.header}, {});
  }

  Result<CompilerEnd> run_compiler(const std::string& compiler, const std::string& header,
                                   const std::vector<std::string>& first, const LineSink& on_line) {
    std::vector<std::string> argv = trial_command(request_, first, work_ + "/model.so");
    if (request_.enclose) {
      TRY_ASSIGN(argv, request_.enclose(argv, work_, header));
    }
    auto end = build::run_compiler({.argv = std::move(argv),
                                    .cwd = request_.source_dir,
                                    .source = work_ + "/wrapper.cpp",
                                    .work_dir = work_,
                                    .deadline = deadline_,
                                    .on_line = on_line},
                                   stop_);
    if (!end && end.error().code == Code::kDeadlineExceeded)
      return fail(Code::kDeadlineExceeded, request_.trial.module + ".cpp does not compile within " +
                                               std::to_string(request_.timeout / 1s) +
                                               " s (the agent's compile_timeout)");
    if (end && end->status.signal != 0)
      return fail(Code::kUnavailable, compiler + " ended with " + to_string(end->status) +
                                          (end->output.empty() ? "" : ": " + end->output));
    return end;
  }

  const BuildRequest& request_;
  const std::string& work_;
  const std::stop_token& stop_;
  const MonoTime deadline_;
  bool without_header_ = false;
};

Result<BuildOutcome> compile(const BuildRequest& request, const std::string& entry,
                             const std::stop_token& stop) {
  TRY_ASSIGN(TemporaryDirectory work, TemporaryDirectory::create("building-", request.models_dir));
  const std::string library = work.path() + "/model.so";
  Compilation compilation(request, work.path(), stop);
  TRY_ASSIGN(const CompilerEnd end, compilation.run());
  BuildOutcome outcome;
  outcome.output = end.output;
  outcome.without_header = compilation.without_header();
  if (!end.status.ok()) {
    // A missing header or library is not cached: it may exist the next time.
    if (!rejects_source(end)) return outcome;
    const std::string unknown =
        unknown_class(request.source_dir, request.trial.module, request.trial.trial_class);
    pass_on(request, unknown);
    outcome.output = unknown + outcome.output;
    (void)remove_tree(library);
  }
  TRY(seal(work.path(), end.status.ok() ? library : ""));
  TRY(write_file_atomic(work.path() + "/output.txt", outcome.output));
  TRY(remove_tree(work.path() + "/wrapper.cpp"));
  TRY(publish_entry(work, entry));
  if (end.status.ok()) outcome.library = entry + "/model.so";
  return outcome;
}

/// Returns nothing if no library was built elsewhere.
Result<std::optional<BuildOutcome>> take_elsewhere(const BuildRequest& request, const std::string& key,
                                                   const std::string& entry) {
  if (!request.find_elsewhere) return std::nullopt;
  const auto library = request.find_elsewhere(key);
  if (!library) return std::nullopt;
  TRY_ASSIGN(TemporaryDirectory work, TemporaryDirectory::create("building-", request.models_dir));
  TRY(write_file_atomic(work.path() + "/model.so", *library));
  TRY(seal(work.path(), work.path() + "/model.so"));
  TRY(write_file_atomic(work.path() + "/output.txt", ""));
  TRY(publish_entry(work, entry));
  BuildOutcome outcome;
  outcome.library = entry + "/model.so";
  outcome.elsewhere = true;
  return outcome;
}

}  // namespace

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
  TRY_ASSIGN(const std::optional<std::string> version, compiler_version(request.recipe.compiler));
  if (!version) return fail(Code::kUnavailable, request.recipe.compiler + " is not installed");
  add(*version);
  add(request.recipe.sdk_id);
  add(wrapper_source(request));
  for (const std::string& word : trial_command(request, {}, "model.so")) add(word);
  if (request.recipe.precompiled) {
    TRY_ASSIGN(const std::optional<std::string> fast, compiler_version(request.recipe.precompiled->compiler));
    add(fast.value_or(""));
    for (const std::string& word :
         trial_command(request, {"-include", request.recipe.precompiled->header}, "model.so"))
      add(word);
  }
  TRY_ASSIGN(const std::vector<std::string> files, source_files(request.source_dir));
  for (const std::string& file : files) {
    add(file);
    TRY_ASSIGN(const std::string content, sha256_file(request.source_dir + "/" + file));
    add(content);
  }
  return digest.hex();
}

Result<BuildOutcome> build_model(const BuildRequest& request, const std::stop_token& stop) {
  TRY_ASSIGN(const std::string key, build_key(request));
  const std::string entry = request.models_dir + "/" + key;
  if (auto outcome = reusable(request, entry)) return *outcome;
  TRY_ASSIGN(const FileLock lock, lock_entry(entry, mono_now() + request.timeout, stop));
  // The builder that held the lock may have succeeded meanwhile.
  if (auto outcome = reusable(request, entry)) return *outcome;
  TRY(remove_tree(entry));
  TRY_ASSIGN(const std::optional<BuildOutcome> found, take_elsewhere(request, key, entry));
  auto outcome = found ? Result<BuildOutcome>(*found) : compile(request, entry, stop);
  // Waiters on the unlinked lock file get the lock and find the entry. Later callers create a new file and
  // find it too.
  (void)remove_tree(entry + ".lock");
  return outcome;
}

}  // namespace det::build
