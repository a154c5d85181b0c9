// Owner of allocations: assignment, preemption, kill, exit. Slots are free at the exit of the process (or the
// loss of its agent), never before: otherwise two processes could use one device.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "master/core/core.h"

namespace det::core {

struct Owners;
struct Step;

/// Live allocations. An ended one leaves memory with its last row.
class Allocations {
 public:
  explicit Allocations(Owners& owners) : owners_(owners) {}

  /// Starts an allocation of a task on the given slots. `id` is the public id of the task. `build`: the
  /// allocation builds the trial class.
  void start(Step& step, TaskKey task, const TaskId& id, RunNumber run,
             const std::vector<scheduler::Part>& parts, bool build = false);
  /// The harness of rank 0 has opened its session.
  void attach(Step& step, Allocation& allocation);
  /// Requests a checkpoint and an exit within preemption_timeout. Kills when no harness is attached.
  void preempt(Step& step, Allocation& allocation, const std::string& why);
  /// Kills all parts, now and again every kill_repeat until they have exited.
  void kill(Step& step, Allocation& allocation, const std::string& why);
  /// Kills the allocation at `deadline`, or at an earlier one that it has. No effect when it is being killed.
  void limit(Allocation& allocation, MonoTime deadline);
  /// Applies the state of a live part that its agent reports.
  void update(Step& step, Allocation& allocation, AllocationPart& part, const HeldAllocation& held);
  /// Repeats the kill of a part on an agent that has reconnected, if the allocation is being killed.
  void repeat_kill(Step& step, const AllocationId& id, const Agent& agent);
  /// Handles a live part that its reconnected agent does not hold: starts it again, or ends it.
  void handle_missing(Step& step, const AllocationId& id, const Agent& agent);
  /// Follows the disconnect of the agent of a live part.
  void agent_disconnected(Step& step, const AllocationId& id);
  /// Ends a part. Kills the other parts when it failed, and ends the allocation after the last part.
  void finish(Step& step, Allocation& allocation, AllocationPart& part, Exit exit);
  /// Handles the timer of an allocation. No effect when an earlier timer of the same step has ended it.
  void on_deadline(Step& step, const AllocationId& id);
  /// Sets the timer to the earliest deadline of an allocation. Must follow a change of its trial's state.
  void set_timer(const Allocation& allocation);

  const std::unordered_map<AllocationId, Allocation>& all() const { return allocations_; }
  /// Returns the allocation, or null.
  Allocation* find(const AllocationId& id);
  Allocation& at(const AllocationId& id) { return allocations_.at(id); }
  /// Returns the allocation of a task, or null.
  Allocation* of(TaskKey task) const;
  /// The allocation of each token, by the hash of the token.
  const std::unordered_map<std::string, const Allocation*>& by_token() const { return by_token_; }
  /// Removes an ended allocation from memory and returns it.
  Allocation extract(const AllocationId& id);
  /// Adds a stored allocation. Errors: kDataLoss.
  Status restore(Step& step, Allocation row);

 private:
  /// Returns the meeting port of a gang; 0 for an allocation of one part.
  std::int64_t workspace_of(TaskKey task) const;
  int port_for(const Allocation& allocation) const;
  void log(Step& step, const Allocation& allocation, std::string text, std::string level = "INFO") const;
  /// Sends the start of a part with a fresh token and stores its hash.
  void send_start(Step& step, Allocation& allocation, AllocationPart& part, const Agent& agent);
  /// Replaces the hash of a part's token.
  void set_token(const Allocation& allocation, AllocationPart& part, std::string hash);
  /// Returns an unpredictable token that no other call returns.
  std::string mint_token();
  void send_kill(Step& step, const Allocation& allocation);
  void send_kill(Step& step, const Allocation& allocation, const AllocationPart& part);
  // Both advance a state; an earlier state than the current one is ignored.
  static void advance(Step& step, Allocation& allocation, AllocationState state);
  static void advance(Step& step, Allocation& allocation, AllocationPart& part, AllocationState state);
  /// Ends an allocation: frees its slots and decides what follows for its trial or command.
  void finish(Step& step, Allocation& allocation);
  /// Kills the live parts of an allocation that has lost a part or has only daemons left.
  void kill_rest(Step& step, Allocation& allocation, const std::string& why, const std::string& level);
  /// Reclassifies a failure as kLost when its cause is an agent that is lost or disconnected, or a slot with
  /// a fault.
  void excuse(Step& step, Allocation& allocation);
  /// Returns the agent of a gang that is lost or disconnected, for people; "" when there is none.
  std::string lost_peer(const Allocation& allocation) const;
  /// Returns the agent and the slot with a fault, for people; "" when there is none.
  std::string faulty_slot(const Allocation& allocation) const;
  /// Refines the exit by what the harness reported: kInvalidHp, kPreempted.
  void classify_exit(Allocation& allocation) const;
  /// Returns when parts on disconnected agents are no longer waited for; empty unless a user canceled or
  /// killed the trial or command.
  std::optional<MonoTime> abandoned_at(const Allocation& allocation) const;
  /// Ends the parts on disconnected agents without their exits.
  void abandon(Step& step, Allocation& allocation);
  /// Adds a stored allocation to the scheduler of its pool.
  void restore_running(const Allocation& allocation);
  /// Checks that a stored allocation belongs to the current run of a live trial or command.
  Status check_stored(const Allocation& allocation) const;

  Owners& owners_;
  // A hash table: with 100,000 objects the way down a tree costs a cache miss at every second level. The
  // iteration order is arbitrary, so no decision and no effect may depend on it.
  std::unordered_map<AllocationId, Allocation> allocations_;
  /// The allocation of each task that has one.
  std::unordered_map<TaskKey, Allocation*> by_task_;
  std::unordered_map<std::string, const Allocation*> by_token_;
  std::set<int> ports_;       ///< ports of live gangs
  std::uint64_t minted_ = 0;  ///< number of tokens
};

}  // namespace det::core
