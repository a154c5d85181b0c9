// Owner of agents: sessions, reconciliation of allocations at each connection, loss of an agent after its
// lease, agents and slots out of service.
//
// Lease protocol. An agent without a connection ends its own processes after agent_lease. The master waits
// for agent_wait(), which is longer, before it ends the agent's allocations as kLost and starts their trials
// elsewhere. No trial therefore ever runs on two machines.
#pragma once

#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "master/core/core.h"

namespace det::core {

struct Owners;
struct Step;

class Agents {
 public:
  explicit Agents(Owners& owners) : owners_(owners) {}

  // Inputs; see input.h for their contracts.
  Result<ReplyValue> handle(Step& step, const AgentConnected& input);
  void handle(Step& step, const AgentDisconnected& input);
  void handle(Step& step, const AgentStopping& input);
  void handle(Step& step, const AgentProblem& input);
  void handle(Step& step, const SlotProblems& input);
  void handle(Step& step, const AgentLeft& input);
  void handle(Step& step, const AllocationUpdated& input);
  Result<ReplyValue> handle(Step& step, const SetService& input);

  /// Removes an agent after its lease; its parts end as kLost.
  void lose(Step& step, const AgentId& id) { remove(step, id, "lost"); }
  /// Records that an allocation has a live part on an agent, or no longer has one.
  void hold(const AgentId& agent, const Allocation& allocation);
  void release(const AgentId& agent, const Allocation& allocation);
  /// An allocation has a live part on the agent.
  bool is_held(const AgentId& agent) const { return held_.contains(agent); }
  /// Updates the scheduler after a change of the agent's pilot. No effect on an unknown agent.
  void put_again(const AgentId& id);
  /// Adds or removes a leftover; the agent is closed for new work while it has any.
  void set_leftover(Agent& agent, const AllocationId& id, bool there);

  const std::map<AgentId, Agent>& all() const { return agents_; }
  const std::map<AgentId, AgentSettings>& settings() const { return settings_; }
  /// Returns the agent, or null.
  Agent* find(const AgentId& id) const;
  /// Returns the slot and the reason, "slot 1: Xid 79", of a fault that the agent reports for one of `slots`;
  /// "" without one. A check that only the master waits for is none.
  std::string fault(const AgentId& agent, const std::vector<int>& slots) const;
  /// Converts an agent. It is open when it is connected, enabled, not draining, not stopping, without
  /// a problem and leftovers, and not of a released pilot. Its slots are enabled without a problem.
  scheduler::Agent to_scheduler(const Agent& agent) const;

  void restore(std::vector<AgentSettings> rows);
  /// Claims the slots of a stored live part; `allocation` is in its table already. Its agent has no session
  /// yet: its wait starts. Errors: kDataLoss (a slot is in use twice).
  Status restore_part(const Allocation& allocation, const AllocationPart& part, Now now);

 private:
  /// Returns the agent, and creates it when it does not exist.
  Agent& add(const AgentId& id);
  /// Removes an agent; its parts end as kLost. `how`: "lost" or "has left".
  void remove(Step& step, const AgentId& id, const std::string& how);
  /// Updates the scheduler of the agent's pool.
  void put(const Agent& agent);
  /// Allocations with a live part on the agent.
  std::set<AllocationId> held_by(const AgentId& agent) const;
  /// Checks that the machine is the one known by this name, with unchanged devices. Errors: see
  /// AgentConnected.
  Status check_connection(const AgentConnected& input) const;
  /// Compares the allocations that an agent holds with those that are expected there.
  void reconcile(Step& step, Agent& agent, const std::vector<HeldAllocation>& held);
  /// Applies the reported state of one allocation.
  void update(Step& step, Agent& agent, const HeldAllocation& held);
  /// Sets the slots of a new session. Checks that the earlier one has not answered are repeated.
  void take_slots(Step& step, Agent& agent, const AgentConnected& input);
  /// Sends CheckSlot for a slot that returns to service, and keeps it out of service until the answer.
  void check_slot(Step& step, Agent& agent, int slot);
  /// Returns the agent of a session, or null when the session is not the current one.
  Agent* in_session(const AgentId& id, std::uint64_t session) const;

  Owners& owners_;
  std::map<AgentId, Agent> agents_;
  /// Hash index of `agents_`, which is looked up at every start and end of an allocation.
  std::unordered_map<AgentId, Agent*> by_id_;
  std::map<AgentId, AgentSettings> settings_;
  /// Allocations with a live part on the agent, never none. By address: their ids are long texts to compare.
  std::unordered_map<AgentId, std::vector<const Allocation*>> held_;
};

}  // namespace det::core
