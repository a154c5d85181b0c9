// Checks the master from outside: the processes that really ran, the replies that were sent, the rows that
// became durable. Reads the core through its public accessors only.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "master/core/core.h"
#include "tests/sim/engine.h"
#include "tests/sim/memory_store.h"
#include "tests/sim/plan.h"

namespace det::sim {

/// The true state of a process, as its machine sees it.
struct ProcessTruth {
  /// The physical machine, not the agent's name: an impostor has the same name and another machine.
  std::string machine;
  std::vector<int> slots;
  TaskKey task;
  RunNumber run = 0;
  int part = 0;  ///< Index in its gang.
  int parts = 1;
};

class Checker {
 public:
  Checker(Engine& engine, const Plan& plan) : engine_(engine), plan_(plan) {}

  /// Records a failure. The first one is kept.
  void fail(const std::string& what);
  const std::string& failure() const { return failure_; }

  // Events of processes.
  void process_started(const ProcessTruth& process);
  void process_ended(const ProcessTruth& process, bool well);
  /// State of a gang as seen by one of its processes.
  enum class Gang { kGathers, kWhole, kBroken };
  Gang gang(const ProcessTruth& process) const;
  bool chief_ended_well(const ProcessTruth& process) const;
  /// A failure of the program or a foreign signal, which may consume a restart.
  void process_failed(TaskKey task) { ++failures_[task]; }
  /// Of these, the failures that the program reported as final or repeatable.
  void process_failed_for_good(TrialId trial) { ++for_good_[trial]; }
  /// The program of a trial made its run lost.
  void process_lost_itself(TrialId trial) { ++lost_[trial]; }
  void checkpoint_damaged(const CheckpointId& uuid) { damaged_.insert(uuid); }
  bool is_damaged(const CheckpointId& uuid) const { return damaged_.contains(uuid); }
  void program_finished(TrialId trial) { finished_.insert(trial); }
  int failures(TaskKey task) const;
  bool any_process() const { return !running_.empty(); }

  // Events of the master.
  void master_started(const core::Core& core, const MemoryDisk& disk);
  void master_crashes(const core::Core& core);
  void after_step(const core::Core& core);
  void appended(const core::Write& write);
  void disk_changed(const MemoryDisk& disk);
  void sent(const core::Send& send, const MemoryDisk& disk);

  /// A user extends or retries the experiment, so it may leave its terminal state.
  void may_go_on(ExperimentId id) { continued_.insert(id); }

  // Acknowledged requests.
  void acked_command(const TaskId& task, const MemoryDisk& disk);
  void acked_kill(const TaskId& task, const MemoryDisk& disk);
  void acked_submission(const RequestId& request, ExperimentId id, const MemoryDisk& disk);
  void acked_stop(ExperimentId id, const MemoryDisk& disk);
  void acked_validation(TrialId trial, RunNumber run, std::int64_t steps, const MemoryDisk& disk);
  void acked_checkpoint(const CheckpointId& uuid, const MemoryDisk& disk);

  /// Checks after the phase in which everything must finish.
  void at_end(const MemoryDisk& disk);

 private:
  void check_resume(const core::Trial& trial, const MemoryDisk& disk);
  void check_retries(const core::Trial& trial);
  void check_excluded(const core::Trial& trial, const MemoryDisk& disk);
  void check_run(const char* what, TrialId trial, RunNumber run);
  void check_builds(const core::Allocation& row);
  void check_exit(const core::Allocation& row);
  /// Checks agents that come and go: those with a problem get no work, and those that have left no settings.
  void check_agents(const core::Core& core);
  void check_pilots(const core::Core& core);
  /// A new allocation on pilots that are for one allocation each.
  void check_dedicated(const core::Allocation& allocation, const std::map<std::string, core::Pilot>& pilots);
  /// A pilot for one allocation ends with it.
  void check_unused(const core::Core& core);
  /// A pilot that ended before it had work is not replaced at once.
  void check_delay(const std::map<std::string, core::Pilot>& pilots,
                   const std::unordered_map<AllocationId, core::Allocation>& allocations);
  void check_stored_pilots(const MemoryDisk& disk);
  void sent_to_engine(const core::Send& send, const MemoryDisk& disk);
  void check_service(const core::Core& core, const MemoryDisk& disk);
  void check_used_pilots(const core::Core& core, const MemoryDisk& disk);
  void check_max_slots(const core::Core& core);
  void check_quotas(const core::Core& core);
  void check_command_kills(const core::Core& core);
  void check_commands(const MemoryDisk& disk);
  void check_search(const core::Core& core);
  void check_heard(ExperimentId experiment, const std::string& event);
  void check_stored_events(const MemoryDisk& disk);
  /// How many restarts `for_good` final or repeatable failures of a trial may have consumed.
  static int restarts_for_good(const Job& job, const core::Trial& trial, int for_good,
                               const MemoryDisk& disk);
  void check_outcome(const Job& job, const core::Experiment& experiment, const MemoryDisk& disk);
  /// Decisions of a search over its whole history.
  struct Search {
    std::set<searcher::TrialNumber> stopped;  ///< trials stopped before their program finished
    std::int64_t max_time = 0;
  };
  Search replay(const core::Experiment& experiment);
  void check_outside(const core::Trial& trial, const MemoryDisk& disk);
  /// Lengths of the completed trials of an experiment.
  struct Lengths {
    std::int64_t least = 0;  ///< steps that each has completed
    bool extended = false;   ///< the steps of the job are not the last ones of all
  };
  void check_rows(const Job& job, const core::Trial& trial, const Lengths& lengths, const MemoryDisk& disk);

  Engine& engine_;
  const Plan& plan_;
  std::string failure_;
  enum class PartState { kRuns, kWell, kBroken };
  using PartKey = std::tuple<TaskKey, RunNumber, int>;
  std::map<PartKey, ProcessTruth> running_;
  std::map<PartKey, PartState> parts_;
  std::map<TaskKey, RunNumber> newest_run_;
  std::map<TaskKey, int> failures_;
  std::map<TrialId, int> for_good_;
  std::map<TrialId, int> lost_;
  std::set<TrialId> finished_;
  std::map<ExperimentId, std::vector<std::string>> events_;  ///< Appended in this life of the master.
  std::map<ExperimentId, std::set<std::string>> heard_;      ///< Events that must not repeat in this life.
  std::map<TrialId, RunNumber> appended_run_;                ///< Newest run appended in this life.
  std::map<TrialId, ExperimentId> experiment_of_;
  /// Experiments with a build that the compiler has rejected in this life of the master, or before it.
  std::set<ExperimentId> rejected_;
  std::map<AllocationId, int> exit_codes_;  ///< Of allocations with an exit, as stored or about to be.
  std::map<ExperimentId, std::int64_t> most_trials_;
  std::map<ExperimentId, std::size_t> stored_events_;  ///< Number of events already checked.
  std::set<ExperimentId> continued_;
  std::map<ExperimentId, core::State> ended_experiments_;
  std::map<TrialId, core::State> ended_trials_;
  struct Newest {
    std::string checkpoint;
    std::int64_t steps = 0;
  };
  std::map<TrialId, Newest> newest_;
  std::map<TrialId, std::pair<RunNumber, std::vector<AgentId>>> excluded_;  ///< Stored: run, agents.
  std::map<TrialId, std::pair<bool, int>> retries_;  ///< Stored: canceled, and the number of restarts.
  std::set<CheckpointId> damaged_;
  std::set<AllocationId> killed_commands_;
  std::set<AllocationId> seen_;    ///< Allocations with agents that have been checked.
  std::set<AllocationId> placed_;  ///< Allocations with pilots that have been checked.
  std::set<std::int64_t> ended_pilots_;
  std::map<std::string, AllocationId> had_;  ///< The allocation of each pilot that is for one.
  std::map<std::string, MonoTime> unused_;   ///< When the allocation of such a pilot has ended.
  /// Pilots of this life of the master: whether the engine may still refuse one, and those that have had
  /// work.
  std::map<std::string, bool> known_pilots_;
  std::set<std::string> worked_;
  /// Newest connection by instance and boot, in this life of the master.
  std::map<std::pair<std::string, std::string>, std::int64_t> connections_;
  std::map<std::string, MonoTime> refused_;  ///< By pool: when the last pilot ended without work.
  std::set<AgentId> ephemeral_;              ///< Agents that do not come back.
  /// Slots that users and workspaces held at the last check.
  std::map<scheduler::QuotaKey, int> held_;
};

}  // namespace det::sim
