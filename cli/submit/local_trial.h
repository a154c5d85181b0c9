// Compiles and runs a trial on this machine as an agent does, with the same build cache.
#pragma once

#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/output/progress.h"
#include "common/base/files.h"
#include "common/base/process.h"
#include "common/base/queue.h"
#include "common/base/result.h"
#include "common/build/model_build.h"
#include "common/expconf/config.h"

namespace det::cli {

/// Returns the trial class of the entrypoint. `command` is the command of the user, for the message.
/// Errors: kInvalidArgument (the entrypoint is a command line).
Result<build::TrialName> local_trial_name(const expconf::ExperimentConfig& config,
                                          const std::string& command);

/// One version of a trial in a temporary directory: config.yaml and model/, the unpacked code archive.
/// Errors: those of unpack() and write_file_atomic().
Result<TemporaryDirectory> unpack_trial(const std::string& config_text, const std::string& archive);

/// A compilation that runs in a thread of its own. Its methods belong to one other thread.
class LocalBuild {
 public:
  /// Starts the compilation of the trial in `place` (see unpack_trial()), which must outlive this object.
  /// Errors: kFailedPrecondition (the training library is not installed beside det).
  static Result<std::unique_ptr<LocalBuild>> start(const build::TrialName& trial, const std::string& place);
  /// Cancels the compilation and waits until the compiler has ended.
  ~LocalBuild();

  /// Waits up to `patience` for the end. Prints the compiler's messages and the elapsed time to stderr.
  /// Returns whether the compilation has ended.
  bool poll(Duration patience);
  /// Returns the path of the library after poll() returned true; "" if the trial does not compile. Prints the
  /// outcome to stdout. Errors: those of build_model(). Call once.
  Result<std::string> take();
  /// After take(): whether precompile() makes the next build faster.
  bool without_header() const { return without_header_; }

 private:
  explicit LocalBuild(build::BuildRequest request);
  void print_messages();

  build::BuildRequest request_;
  const std::string source_;  ///< file name, for messages
  const MonoTime begin_;
  Queue<std::string> messages_;
  StatusLine status_;
  std::stop_source stop_;
  std::future<Result<build::BuildOutcome>> outcome_;
  bool without_header_ = false;
};

/// Precompiles LibTorch's headers for later builds, at the lowest priority (10 s). Builds succeed without
/// them, so a failure is a warning on stderr. Blocks. Thread-safe.
void precompile(const std::stop_token& stop);

/// Starts det-harness on the trial in `place` with the working directory model/. `flags` precede the name of
/// the trial, `variables` are added to the environment. The process inherits stdout and stderr and ends with
/// the calling thread. Errors: kFailedPrecondition (det-harness does not exist).
Result<Child> start_harness(const std::string& place, const std::string& library,
                            const std::string& trial_class, const std::vector<std::string>& flags,
                            const std::vector<std::string>& variables = {});

}  // namespace det::cli
