#include "cli/dev/dev_session.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <thread>

#include "cli/command.h"
#include "cli/dev/directory_watch.h"
#include "cli/output/print.h"
#include "cli/submit/checked_config.h"
#include "cli/submit/code_archive.h"
#include "cli/submit/local_trial.h"
#include "common/base/files.h"
#include "common/base/text.h"
#include "common/crypto/digest.h"
#include "common/expconf/entrypoint.h"

namespace det::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// Time without events after which a change counts as complete: editors write several files.
constexpr Duration kQuiet = 150ms;
constexpr Duration kPoll = 100ms;
/// Checkpoints that are kept: the newest, and two for the case that it is damaged.
constexpr std::size_t kKeptCheckpoints = 3;
/// The first signal ends the session in order, the second one at once.
volatile sig_atomic_t dev_interrupted = 0;

void on_dev_signal(int) {
  if (dev_interrupted != 0) ::_exit(3);
  dev_interrupted = 1;
}

/// Handles SIGINT and SIGTERM while it exists.
class DevSignals {
 public:
  DevSignals() {
    dev_interrupted = 0;
    struct sigaction action {};
    action.sa_handler = on_dev_signal;
    ::sigaction(SIGINT, &action, &interrupt_);
    ::sigaction(SIGTERM, &action, &terminate_);
  }
  ~DevSignals() {
    ::sigaction(SIGINT, &interrupt_, nullptr);
    ::sigaction(SIGTERM, &terminate_, nullptr);
  }
  DevSignals(const DevSignals&) = delete;
  DevSignals& operator=(const DevSignals&) = delete;

 private:
  struct sigaction interrupt_ {
  }, terminate_{};
};

/// One state of the files.
struct Version {
  TemporaryDirectory place;
  build::TrialName trial;
  std::string digest;       ///< of configuration and files
  std::string config_text;  ///< with overrides
  std::string library;      ///< "" until it is built
};

/// Returns the directory of the checkpoints of a configuration file.
Result<std::string> state_directory(const std::string& config) {
  std::string cache = environment_variable("XDG_CACHE_HOME");
  const std::string home = environment_variable("HOME");
  if (cache.empty() && home.empty())
    return fail(Code::kFailedPrecondition, "no place for checkpoints; set XDG_CACHE_HOME or HOME");
  if (cache.empty()) cache = home + "/.cache";
  std::error_code error;
  const fs::path real = fs::canonical(config, error);
  if (error) return fail(Code::kInvalidArgument, config + ": " + error.message());
  return cache + "/determinant/dev/" + sha256_hex(real.string()).substr(0, 16);
}

/// Removes all complete checkpoints but the newest. No process writes to the directory.
void trim_checkpoints(const std::string& directory) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code missing;
    const auto time = fs::last_write_time(it->path() / "manifest.json", missing);
    if (!missing) found.emplace_back(time, it->path());
  }
  std::sort(found.rbegin(), found.rend());
  for (std::size_t i = kKeptCheckpoints; i < found.size(); ++i) (void)remove_tree(found[i].second);
}

/// One call of run_dev().
class DevSession {
 public:
  DevSession(const DevInputs& inputs, std::string state, DirectoryWatch watch)
      : inputs_(inputs), state_(std::move(state)), watch_(std::move(watch)) {}

  Result<int> run() {
    TRY(begin_build());
    while (dev_interrupted == 0) {
      if (build_ && build_->poll(kPoll)) TRY(end_build());
      TRY_ASSIGN(const bool changed, watch_.changed(build_ ? Duration(0) : kPoll));
      if (changed) changed_at_ = mono_now();
      if (changed_at_ && mono_now() - *changed_at_ >= kQuiet) {
        changed_at_.reset();
        TRY(begin_build());
      }
      if (harness_ && harness_->ended()) report_end();
    }
    return finish();
  }

 private:
  /// Copies the files and starts to compile them, unless they are those of the last attempt. A mistake of the
  /// user is printed. Errors: kFailedPrecondition (det is not installed completely).
  Status begin_build() {
    auto version = copy_files();
    if (!version) {
      print_error(version.error());
      print_what_goes_on();
      return {};
    }
    if (version->digest == tried_) return {};
    tried_ = version->digest;
    build_.reset();
    next_.emplace(std::move(*version));
    TRY_ASSIGN(build_, LocalBuild::start(next_->trial, next_->place.path()));
    return {};
  }

  Result<Version> copy_files() {
    std::vector<expconf::Override> overrides;
    for (const std::string& assignment : inputs_.overrides) overrides.push_back({assignment});
    TRY_ASSIGN(CheckedConfig checked, check_config(inputs_.config, overrides));
    TRY_ASSIGN(const CodeArchive archive, pack_code_archive(inputs_.directory, {}));
    TRY(expconf::check_entrypoint(checked.config, archive.files, inputs_.config));
    TRY_ASSIGN(build::TrialName trial, local_trial_name(checked.config, "det dev"));
    TRY_ASSIGN(TemporaryDirectory place, unpack_trial(checked.text, archive.bytes));
    std::string digest = sha256_hex(sha256_hex(checked.text) + archive.bytes);
    return Version{std::move(place), std::move(trial), std::move(digest), std::move(checked.text), ""};
  }

  /// Takes the result of the build. A new library replaces the one that trains.
  Status end_build() {
    auto library = build_->take();
    // Beside the training; the first build does not wait for it.
    if (build_->without_header() && !header_job_.joinable()) header_job_ = std::jthread(precompile);
    build_.reset();
    if (!library) print_error(library.error());
    if (!library || library->empty()) {
      print_what_goes_on();
      return {};
    }
    next_->library = *library;
    // Files that are not compiled, such as README.md, do not interrupt the training. After a crash they may
    // be its repair.
    if (current_ && current_->library == next_->library && current_->config_text == next_->config_text &&
        (harness_ || complete_))
      return {};
    TRY(stop_harness());
    if (dev_interrupted != 0) return {};
    trim_checkpoints(state_);
    current_ = std::move(next_);
    next_.reset();
    TRY_ASSIGN(Child child,
               start_harness(current_->place.path(), current_->library, current_->trial.trial_class,
                             {"--checkpoint-dir", state_, "--resume"}, {"DET_DEV_SESSION=1"}));
    harness_.emplace(std::move(child));
    return {};
  }

  /// Makes the training save its state and end. Waits for the current batch and the checkpoint. Errors:
  /// kAborted (it ended otherwise).
  Status stop_harness() {
    if (!harness_) return {};
    TRY(harness_->signal(SIGTERM));
    std::optional<ExitStatus> status;
    while (!status) status = harness_->wait(1h);
    harness_.reset();
    if (status->ok()) return {};
    // The next run continues from the checkpoint before.
    std::cerr << "det: the training ended with " << to_string(*status) << " instead of saving\n";
    lost_ = true;
    return {};
  }

  /// Prints the end of a training that was not stopped.
  void report_end() {
    const std::optional<ExitStatus> status = harness_->wait(1h);
    if (!status) return;
    harness_.reset();
    complete_ = status->ok();
    if (complete_) {
      std::cout << "Training is complete. Waiting for a change of " << shown()
                << ". From the beginning: " << inputs_.resume_command << " --fresh" << std::endl;
    } else {
      std::cerr
          << "det: the trial ended with " << to_string(*status)
          << "; its last lines say why. If the saved state does not fit the changed model: Ctrl-C, then "
          << inputs_.resume_command << " --fresh\n";
      std::cout << "Waiting for a change of " << shown() << std::endl;
    }
  }

  void print_what_goes_on() const {
    if (harness_)
      std::cout << "The previous library keeps training" << std::endl;
    else
      std::cout << "Waiting for a change of " << shown() << std::endl;
  }

  Result<int> finish() {
    build_.reset();
    lost_ = false;
    const bool trained = current_.has_value();
    TRY(stop_harness());
    if (lost_)
      return fail(Code::kAborted, "the last batches are not saved; go on with: " + inputs_.resume_command);
    if (trained) std::cout << "The state is saved in " << printable(state_) << '\n';
    std::cout << "Go on with: " << inputs_.resume_command << std::endl;
    return 0;
  }

  std::string shown() const { return printable(inputs_.directory); }

  const DevInputs& inputs_;
  const std::string state_;  ///< directory of the checkpoints
  DirectoryWatch watch_;
  std::string tried_;  ///< digest of the last version that was compiled
  std::optional<MonoTime> changed_at_;
  std::optional<Version> current_, next_;  ///< the version that trains, and the one that is compiled
  std::unique_ptr<LocalBuild> build_;      ///< of next_; destroyed first
  std::optional<Child> harness_;
  bool lost_ = false;      ///< the last training could not save
  bool complete_ = false;  ///< the last training that was not stopped has succeeded
  std::jthread header_job_;
};

}  // namespace

Result<DevInputs> find_dev_inputs(const std::string& target) {
  std::error_code error;
  DevInputs inputs;
  if (!fs::is_directory(target, error)) {
    if (!path_exists(target)) return fail(Code::kInvalidArgument, target + " does not exist");
    const std::string parent = fs::path(target).parent_path().string();
    inputs.directory = parent.empty() ? "." : parent;
    inputs.config = target;
    return inputs;
  }
  inputs.directory = target;
  std::vector<std::string> found;
  for (fs::directory_iterator it(target, error), end; !error && it != end; it.increment(error)) {
    const fs::path& path = it->path();
    if (path.extension() == ".yaml" || path.extension() == ".yml") found.push_back(path.filename());
  }
  std::sort(found.begin(), found.end());
  const bool usual = std::find(found.begin(), found.end(), "const.yaml") != found.end();
  if (!usual && found.size() != 1)
    return fail(
        Code::kInvalidArgument,
        target +
            (found.empty() ? " has no configuration" : " has several configurations: " + join(found, ", ")) +
            "; name a YAML file: det dev DIR/CONFIG.yaml");
  inputs.config = target + "/" + (usual ? "const.yaml" : found.front());
  return inputs;
}

Result<int> run_dev(const DevInputs& inputs) {
  TRY_ASSIGN(const std::string state, state_directory(inputs.config));
  TRY(make_directories(state, 0700));
  // One session at a time trains with a state.
  const auto lock = FileLock::try_lock(state + ".lock");
  if (!lock)
    return fail(Code::kFailedPrecondition, "another det dev trains with " + inputs.config + "; end it first");
  if (inputs.fresh) {
    TRY(remove_tree(state));
    TRY(make_directories(state, 0700));
  }
  // Before the files are read, so that no change is missed.
  TRY_ASSIGN(DirectoryWatch watch, DirectoryWatch::create(inputs.directory));
  const DevSignals signals;
  return DevSession(inputs, state, std::move(watch)).run();
}

}  // namespace det::cli
