// The plan of a seed: machines, jobs, user actions and faults. Drawn before the run, so that a failure can be
// described without running it again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/random.h"
#include "master/core/core.h"
#include "tests/sim/boundary.h"

namespace det::sim {

/// The program of a job and the actions of its user.
struct Job {
  struct Action {
    enum class On { kExperiment, kTrial, kExtend, kRetry };
    Duration at{};  ///< After the start of the simulation.
    core::ExperimentAction action{};
    /// kTrial kills one trial; kExtend adds two trials, or steps if `longer` is set; kRetry retries the
    /// failed and killed ones.
    On on = On::kExperiment;
    bool ends() const { return on == On::kExperiment && action >= core::ExperimentAction::kCancel; }
  };
  RequestId id;
  Duration submit{};
  bool activate = true;
  /// The single process runs on its user's machine and is not restarted.
  bool detached = false;
  std::shared_ptr<const expconf::ExperimentConfig> config;
  std::int64_t total = 100;  ///< Steps.
  std::int64_t longer = 0;   ///< Steps after kExtend. 0: it adds trials.
  std::int64_t chunk = 10;   ///< Steps between preemption checks.
  Duration chunk_time{};
  std::int64_t validate_every = 20, checkpoint_every = 30;
  /// The first `failures` runs that reach this step fail.
  std::int64_t fail_at = 0;
  int failures = 0;
  /// How the program reports those failures: as any other, as final, or as repeatable at its step.
  enum class Failure { kPlain, kFinal, kRepeatable } failure = Failure::kPlain;
  /// Some lines of its log match a policy that cancels retries.
  bool cancels_retries = false;
  /// Some lines of its log match a policy that excludes its agent.
  bool excludes_agent = false;
  /// The program ends its own supervisor in each run, so that the run is lost.
  bool loses_itself = false;
  bool ignores_preemption = false;
  bool nan = false;  ///< Every second metric is NaN.
  /// A trial reports invalid hyperparameters; in a search every third trial, or each one with always_invalid.
  bool invalid_hp = false;
  bool always_invalid = false;
  /// Every third trial of a search reports validations without the searcher's metric.
  bool lacks_metric = false;
  /// Some of its checkpoints turn out damaged when a run loads them.
  bool damages = false;
  /// The program hangs after its last step. Drawn only if a user ends the job.
  bool hangs = false;
  /// Its entrypoint is a trial class: it is built before the first trial gets slots.
  std::string code_archive;
  enum class Build { kWorks, kRejected, kFails } build = Build::kWorks;
  std::vector<Action> actions;

  bool has_log_policy() const { return cancels_retries || excludes_agent; }
  /// No user ends the job.
  bool left_alone() const;
  /// A user extends or retries the job.
  bool continued() const;
  bool searches() const { return config->searcher.name != "single"; }
  bool has_invalid_hp(std::uint32_t trial_seed) const;
  bool has_no_metric(std::uint32_t trial_seed) const;
};

/// One command and the actions of its user.
struct CommandPlan {
  TaskId task;
  Duration submit{};
  /// After the reply to the submission; pauses last `pause_time`.
  std::optional<Duration> pause_after;
  Duration pause_time{};
  std::optional<Duration> kill_after;  ///< After the reply to the submission or to the resumption.
  std::shared_ptr<const expconf::CommandConfig> config;
  /// Runs for `chunk_time`, or forever if it `hangs`. Exits with 1 if `failures` is not 0.
  Job program;
};

struct MachinePlan {
  AgentId name;
  int slots = 1;
  bool immortal = true;  ///< Returns after every fault.
  /// A stop of its agent is its end: another machine takes its name.
  bool ephemeral = false;
};

/// Relative weights. 0 disables a fault for the whole run.
struct Faults {
  int master_crash = 0, link_cut = 0, link_stall = 0, agent_restart = 0, machine_reboot = 0,
      machine_death = 0, harness_cut = 0, process_crash = 0, impostor = 0, slow_store = 0, queue_change = 0,
      service_change = 0, agent_stop = 0, engine_outage = 0, engine_refusal = 0, pilot_preempted = 0,
      pilot_ended = 0, pilot_lost = 0, quota_change = 0, agent_problem = 0, slot_fault = 0;
  Duration every{};  ///< Mean time between faults.
  Duration until{};  ///< Everything must finish after this point.
};

struct Plan {
  std::uint64_t seed = 0;
  core::Options options;
  BoundaryMutant boundary = BoundaryMutant::kNone;
  std::vector<MachinePlan> machines;
  std::vector<Job> jobs;
  std::vector<CommandPlan> commands;
  Faults faults;
  Duration finish_within{};  ///< After faults.until.
};

/// Disabled rules and reintroduced faults.
struct Broken {
  core::Mutant rule = core::Mutant::kNone;
  BoundaryMutant boundary = BoundaryMutant::kNone;
  searcher::Fault search = searcher::Fault::kNone;
};
Plan draw_plan(std::uint64_t seed, const Broken& broken = {});
std::string describe(const Plan& plan);

/// The metric that a trial reports: a function of (seed, steps), so that repeats can be recognized.
double metric_of(const Job& job, std::uint32_t trial_seed, std::int64_t steps);

}  // namespace det::sim
