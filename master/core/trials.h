// Owner of trials: creation, requests for slots, restarts after the exit of an allocation, the end.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "master/core/builds.h"
#include "master/core/core.h"

namespace det::core {

struct Owners;
struct Step;

/// Trials of live experiments, ended ones included. They leave memory with their experiment.
class Trials {
 public:
  explicit Trials(Owners& owners) : owners_(owners) {}

  // Inputs; see input.h for their contracts.
  Result<ReplyValue> handle(Step& step, const KillTrial& input);
  void handle(Step& step, const CancelRetries& input);
  void handle(Step& step, const ExcludeAgent& input);
  Result<ReplyValue> handle(Step& step, const EndTrial& input);
  Result<ReplyValue> handle(Step& step, const TakeUpTrial& input);

  /// Returns the trial when `run` is its current one and it is running, and restarts the deadline of an
  /// detached one. Every report passes here first. Errors: kAborted.
  Result<std::reference_wrapper<Trial>> fence(Step& step, TrialId id, RunNumber run);

  // Actions of the searcher and of users on the experiment.

  void create(Step& step, const Experiment& experiment, const searcher::Create& create);
  /// Withdraws the request of an active trial, or preempts its allocation.
  void pause(Step& step, Trial& trial);
  /// Requests slots for a paused trial.
  void activate(Step& step, Trial& trial);
  /// Takes the slots of a trial that waits at a rung.
  void hold(Step& step, Trial& trial);
  /// Resumes a held trial, or reopens an ended one.
  void resume(Step& step, Trial& trial);
  /// Brings a trial into a stopping state. Ends it at once when it has no allocation. No effect when the
  /// change is illegal (the trial is ending more severely, or has ended).
  void stop(Step& step, Trial& trial, State stopping);
  /// Ends a trial and queues the event for its searcher.
  void end(Step& step, Trial& trial, State end);
  /// The experiment has moved to another pool: moves the request, preempts the allocation.
  void move_request(Step& step, const Trial& trial, const std::string& pool);

  // The scheduler, allocations and timers.

  /// Begins a new run on the given slots.
  void start(Step& step, TrialId id, const std::vector<scheduler::Part>& parts);
  /// Decides after the end of an allocation: end the trial, or run it again.
  void end_run(Step& step, const Allocation& allocation);
  /// The back-off has ended.
  void retry(Step& step, TrialId id);
  /// Fails a detached trial that sent no report until its deadline.
  void expire(Step& step, TrialId id);
  /// Requests what the trial needs next: its slots, a place to build, or nothing while another trial builds.
  void request_slots(Step& step, const Trial& trial);
  /// A new checkpoint ends a series of storage-full exits and of lost runs.
  void reset_failed_starts(TrialId id) {
    failed_starts_.erase(id);
    lost_runs_.erase(id);
  }

  const std::unordered_map<TrialId, Trial>& all() const { return trials_; }
  /// Returns the trial, or null.
  Trial* find(TrialId id);
  Trial& at(TrialId id) { return trials_.at(id); }
  /// Returns the trial, or null. Null for a task of another kind.
  Trial* find(TaskKey task);
  /// Returns the trial of an allocation, which must have one.
  Trial& of(const Allocation& allocation) { return *find(allocation.task); }
  void forget(TrialId id) { trials_.erase(id); }
  const expconf::ExperimentConfig& config_of(const Trial& trial) const;
  /// The trial runs outside the cluster.
  bool is_detached(const Trial& trial) const;

  /// Adds a stored trial. Returns false when its id is in use.
  bool insert(Trial row);
  void restore_next(TrialId next) { next_ = next; }
  /// Requests slots for active trials without an allocation. Errors: kDataLoss.
  Status restore_requests(Step& step);

 private:
  /// Resets a trial to its newest checkpoint for a new run; metrics beyond it are archived.
  void begin_from_checkpoint(Step& step, Trial& trial);
  Builds::Turn put_request(const Trial& trial);
  /// As put_request. When the trial was to build and the build is no longer needed, the trials that wait for
  /// it request slots, too.
  Builds::Turn put_request_and_release(Step& step, const Trial& trial);
  /// Requests slots with exponential back-off: at once after the first failure, 1 s after the second, then
  /// twice as long each time, with at most `max_doublings` doublings.
  void request_slots_later(Step& step, const Trial& trial, const std::string& why, int max_doublings);
  /// Brings an ended trial back into the state of its experiment, with its restarts reset.
  void reopen(Step& step, Trial& trial);
  /// Decides on a stopping trial after the end of its allocation.
  void end_stopping(Step& step, Trial& trial, const Allocation& allocation);
  /// Why a failed trial ends in error before it has used up its restarts; "" when a restart may succeed.
  std::string_view why_final(const Trial& trial, const Exit& exit) const;
  /// Restarts the deadline of a detached trial.
  void restart_deadline(const Step& step, const Trial& trial);

  Owners& owners_;
  // A hash table, see Allocations. The iteration order is arbitrary.
  std::unordered_map<TrialId, Trial> trials_;
  /// Consecutive allocations of a trial that were lost before they attached, or exited because the storage
  /// was full.
  std::map<TrialId, int> failed_starts_;
  /// Lost runs of a trial since its newest checkpoint and since the master started.
  std::map<TrialId, int> lost_runs_;
  TrialId next_{1};  ///< the smallest id that has never been used
};

}  // namespace det::core
