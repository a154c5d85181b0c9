// Commands of Slurm: arguments, script and output of sbatch, squeue and scancel. Blocks up to kCommandLimit
// for each command; output is bounded.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/process.h"
#include "common/base/result.h"
#include "master/config/pools.h"
#include "master/core/model.h"

namespace det::engines {

/// Limit on the time of one command. A stop of the master waits for the one in progress, and may take 8 s.
inline constexpr auto kCommandLimit = std::chrono::seconds(5);

/// A job as squeue lists it.
struct SlurmJob {
  std::string id;
  std::string name;
  core::PilotPhase phase = core::PilotPhase::kPending;  ///< kPending, kRunning or kEnded
  std::string reason;                                   ///< why it is pending or has ended
  std::optional<WallTime> until;                        ///< expected end; absent while it is pending
  bool operator==(const SlurmJob&) const = default;
};

/// Parses the lines of `squeue --format=%i|%T|%e|%j|%r` with end times in seconds since 1970. Errors:
/// kDataLoss (a line has another form).
Result<std::vector<SlurmJob>> parse_squeue(std::string_view text);

/// Returns the arguments of sbatch for a pilot; the script is its standard input.
std::vector<std::string> sbatch_arguments(const ProviderConfig& config, const std::string& name, int nodes);
/// Returns the script of a pilot: one agent for each node. An agent ends itself when the master has not used
/// or released it for a long time.
std::string batch_script(const ProviderConfig& config, const std::string& pool, const std::string& name);

/// Runs a command with arguments and standard input.
using RunCommand =
    std::function<Result<ProcessResult>(std::vector<std::string> argv, std::string_view input)>;
/// Runs commands as child processes. Their environment is PATH, HOME, USER, LOGNAME, SLURM_CONF and the
/// format of times: jobs inherit the environment of sbatch, and that of the master has secrets.
RunCommand child_commands();

/// The jobs of this user. Thread-safe as far as `RunCommand` is.
class Slurm {
 public:
  explicit Slurm(RunCommand run) : run_(std::move(run)) {}

  /// Lists the jobs of this user, also those that ended recently (MinJobAge). One call of squeue.
  /// Errors: kUnavailable (with the first line of its error), kDataLoss (its output is no list of jobs).
  Result<std::vector<SlurmJob>> list() const;
  /// Submits a pilot and returns its job id. Errors: kInvalidArgument (Slurm refuses it), kUnavailable (Slurm
  /// does not reply; the job may exist).
  Result<std::string> submit(const ProviderConfig& config, const std::string& pool, const std::string& name,
                             int nodes) const;
  /// Cancels jobs. Succeeds when they have ended. Errors: kUnavailable.
  Status cancel(const std::vector<std::string>& ids) const;

 private:
  RunCommand run_;
};

}  // namespace det::engines
