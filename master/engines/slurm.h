// Commands of Slurm: arguments, script and output of sbatch, squeue and scancel. Blocks up to kCommandLimit
// for each command; output is bounded.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/process.h"
#include "common/base/result.h"
#include "master/config/pools.h"
#include "master/engines/engine.h"

namespace det::engines {

/// Limit on the time of one command. A stop of the master waits for the one in progress, and may take 8 s.
inline constexpr auto kCommandLimit = std::chrono::seconds(5);

/// Returns the phase of a job in a state of Slurm, like "PENDING".
core::PilotPhase slurm_phase(std::string_view state);

/// Parses the lines of `squeue --format=%i|%T|%e|%j|%r` with end times in seconds since 1970. Errors:
/// kDataLoss (a line has another form).
Result<std::vector<EngineJob>> parse_squeue(std::string_view text);

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

/// The jobs of this user in Slurm.
class Slurm : public Engine {
 public:
  /// `pools`: settings by the name of the pool.
  Slurm(std::map<std::string, ProviderConfig> pools, RunCommand run)
      : pools_(std::move(pools)), run_(std::move(run)) {}

  std::string name() const override { return "Slurm"; }
  /// Also lists jobs that ended recently (MinJobAge). One call of squeue.
  Result<std::vector<EngineJob>> list() override;
  Result<std::string> submit(const core::SubmitPilot& pilot) override;
  Status cancel(const std::vector<std::string>& ids) override;
  int take_requests() override { return std::exchange(requests_, 0); }

 private:
  /// Runs a command and counts it.
  Result<ProcessResult> run(std::vector<std::string> argv, std::string_view input);

  const std::map<std::string, ProviderConfig> pools_;
  const RunCommand run_;
  int requests_ = 0;
};

}  // namespace det::engines
