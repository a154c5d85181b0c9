// Owns what one seed stands for: machines, jobs, users' actions and faults, drawn before the run so that a
// failure can be read without running it again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "master/core/core.h"

namespace det::sim {

/// Rules outside the core, switched off like core::Mutant.
enum class LoopMutant { kNone, kReplyBeforeDurable, kSendBeforeDurable };

/// What a job's program does, and what its user does to it.
struct Job {
  struct Action {
    enum class On { kExperiment, kTrial, kExtend, kRetry };
    Duration at{};  ///< after the start of the simulation
    core::ExperimentAction action{};
    On on = On::kExperiment;  ///< kTrial: kills one; kExtend: two more trials; kRetry: those that failed
    bool ends() const { return on == On::kExperiment && action >= core::ExperimentAction::kCancel; }
  };
  RequestId id;
  Duration submit{};
  bool activate = true;
  bool unmanaged = false;  ///< its one process runs where its user is, and is not started again
  std::shared_ptr<const expconf::ExperimentConfig> config;
  std::int64_t total = 100;  ///< steps
  std::int64_t chunk = 10;   ///< steps between looks at pre-emption
  Duration chunk_time{};
  std::int64_t validate_every = 20, checkpoint_every = 30;
  std::int64_t fail_at = 0;  ///< its first `failures` runs to come this far exit 1
  int failures = 0;
  bool ignores_preemption = false;
  bool nan = false;         ///< every second metric is NaN
  bool invalid_hp = false;  ///< says a trial; of a search every third, or each
  bool always_invalid = false;
  bool lacks_metric =
      false;             ///< every third trial of a search reports validations without the searcher's metric
  bool damages = false;  ///< some of its checkpoints turn out damaged when a run wants to start from them
  bool hangs = false;    ///< at the end of its steps; only where a user will end it
  std::vector<Action> actions;

  /// No user ends it.
  bool left_alone() const;
  /// A user takes it up again.
  bool continued() const;
  bool searches() const { return config->searcher.name != "single"; }
  bool has_invalid_hp(std::uint32_t trial_seed) const;
  bool has_no_metric(std::uint32_t trial_seed) const;
};

/// One command, and what its user does to it.
struct CommandPlan {
  TaskId task;
  Duration submit{};
  std::optional<Duration> kill_after;  ///< the answer to the submission
  std::shared_ptr<const expconf::CommandConfig> config;
  Job program;  ///< runs for `chunk_time`, unless it `hangs`; exits 1 when `failures` is not 0
};

struct MachinePlan {
  AgentId name;
  int slots = 1;
  bool immortal = true;  ///< comes back from every fault
};

/// Weights; 0 switches a kind of fault off for the whole run.
struct Faults {
  int master_crash = 0, link_cut = 0, link_stall = 0, agent_restart = 0, machine_reboot = 0,
      machine_death = 0, harness_cut = 0, process_crash = 0, impostor = 0, slow_store = 0, queue_change = 0,
      service_change = 0;
  Duration every{};  ///< mean time between faults
  Duration until{};  ///< then everything must finish
};

struct Plan {
  std::uint64_t seed = 0;
  core::Options options;
  LoopMutant loop_mutant = LoopMutant::kNone;
  std::vector<MachinePlan> machines;
  std::vector<Job> jobs;
  std::vector<CommandPlan> commands;
  Faults faults;
  Duration finish_within{};  ///< after faults.until
};

/// What is switched off, or wrong again.
struct Broken {
  core::Mutant rule = core::Mutant::kNone;
  LoopMutant loop = LoopMutant::kNone;
  searcher::Fault search = searcher::Fault::kNone;
};
Plan draw_plan(std::uint64_t seed, const Broken& broken = {});
std::string describe(const Plan& plan);

/// The metric that the program of a trial reports: a function of (seed, steps), so that a repeat is
/// recognized.
double metric_of(const Job& job, std::uint32_t trial_seed, std::int64_t steps);

}  // namespace det::sim
