// Agents: sessions, reconciliation of allocations at each connection, loss of an agent after its lease.
//
// Lease protocol. An agent without a connection ends its own processes after agent_lease. The master waits
// for agent_wait(), which is longer, before it ends the agent's allocations as kLost and starts their trials
// elsewhere. No trial therefore ever runs on two machines.
#include <algorithm>

#include "master/core/impl.h"
#include "master/core/leaving.h"
#include "master/core/transitions.h"

namespace det::core {

Agent& Core::Impl::add_agent(const AgentId& id) {
  Agent& agent = agents[id];
  agent_named.emplace(id, &agent);
  return agent;
}

Agent* Core::Impl::find_agent(const AgentId& id) const {
  auto it = agent_named.find(id);
  return it == agent_named.end() ? nullptr : it->second;
}

Duration Core::Impl::agent_wait() const {
  return is(Mutant::kShortAgentWait) ? options.agent_lease / 8 : options.agent_wait();
}

Status Core::Impl::check_connection(const AgentConnected& input) const {
  // The instance identifies the machine. Another one may take a name only when the core has nothing on it: no
  // session, no live part, no leftovers.
  const Agent* const there = find_agent(input.agent);
  if (!there) return {};
  const Agent& known = *there;
  const bool busy = on_agent.contains(input.agent);
  const bool in_use = busy || !known.leftovers.empty() || known.session != 0;
  if (known.instance != input.instance && in_use && !is(Mutant::kImpostorAccepted)) {
    return fail(Code::kAlreadyExists,
                "another machine is agent " + input.agent.value +
                    "; give this one a name of its own with --id, or wait until that one is given up");
  }
  if (!busy) return {};
  auto refuse = [&](const std::string& what) {
    return fail(Code::kFailedPrecondition, "agent " + input.agent.value + " came back with " + what +
                                               " while its allocations run; restore them or let these end");
  };
  const std::string& pool = input.pool.empty() ? options.default_pool : input.pool;
  if (known.pool != pool) return refuse("pool " + pool + " instead of " + known.pool);
  // After a restart of the master only the slots in use are known, not the devices behind them.
  if (!known.slots.empty() && known.slots != input.slots) return refuse("other devices");
  for (const AllocationId& id : on_agent.at(input.agent)) {
    for (int slot : allocations.at(id).part_on(input.agent)->slots) {
      if (slot >= static_cast<int>(input.slots.size())) return refuse("fewer devices");
    }
  }
  return {};
}

void Core::Impl::handle(const AgentConnected& input) {
  if (auto status = check_connection(input); !status) {
    return reply(input.reply, tl::unexpected(std::move(status).error()));
  }
  Agent& agent = add_agent(input.agent);
  if (agent.session == 0) agent.registered = now.wall;
  const std::string pool_before = agent.pool;
  const std::size_t slots_before = agent.slots.size();
  agent.id = input.agent;
  agent.instance = input.instance;
  agent.version = input.version;
  agent.address = input.address;
  agent.pool = input.pool.empty() ? options.default_pool : input.pool;
  agent.slots = input.slots;
  agent.session = input.session;
  agent.lost_at.reset();
  agent.leftovers.clear();  // reconcile adds those that the agent still holds
  timers.set({TimerKind::kAgent, agent.id.value}, std::nullopt);
  if (!pool_before.empty() && pool_before != agent.pool) pool(pool_before).remove_agent(agent.id);
  if (pool_before != agent.pool || slots_before != agent.slots.size())
    inserts.push_back(
        PutCapacity{agent.id, agent.pool, static_cast<std::int64_t>(agent.slots.size()), now.wall});
  tell_agent(agent);
  reply(input.reply, AgentAccepted{});
  reconcile(input);
}

void Core::Impl::reconcile(const AgentConnected& input) {
  Agent& agent = *find_agent(input.agent);
  // `missing`: live parts that the core has on this agent and the agent did not report.
  std::set<AllocationId> missing;
  if (auto it = on_agent.find(input.agent); it != on_agent.end()) missing = it->second;
  for (const HeldAllocation& held : input.held) {
    update(agent, held);
    missing.erase(held.id);
    auto it = allocations.find(held.id);
    if (it == allocations.end() || it->second.state == AllocationState::kTerminated) continue;
    // A kill may have been lost with the old connection.
    const AllocationPart* part = it->second.part_on(agent.id);
    if (is_killed(it->second) && part && !is(Mutant::kKillNotRepeated)) send_kill(it->second, *part);
  }
  for (const AllocationId& id : missing) {
    Allocation& allocation = allocations.at(id);
    AllocationPart& part = *allocation.part_on(agent.id);
    // A part that is only assigned: the start was lost on the way. Any later state was reported by the agent,
    // so the process existed and is gone.
    const bool never_began = part.state == AllocationState::kAssigned;
    if (allocation.kill_requested || (allocation.exit && never_began)) {
      finish(allocation, part, {ExitKind::kStopped, 0, "stopped before it started"});
    } else if (never_began) {
      if (!is(Mutant::kStartNotRepeated)) send_start(allocation, part, agent);
    } else {
      finish(allocation, part, {ExitKind::kLost, 0, "agent " + agent.id.value + " no longer has it"});
    }
  }
}

void Core::Impl::handle(const AgentDisconnected& input) {
  Agent* const known = find_agent(input.agent);
  // A late disconnect of an older session must not close the present one.
  if (!known || input.session == 0 || known->session != input.session) return;
  Agent& agent = *known;
  agent.session = 0;
  agent.lost_at = now.mono + agent_wait();
  timers.set({TimerKind::kAgent, agent.id.value}, agent.lost_at);
  tell_agent(agent);
  if (auto held = on_agent.find(agent.id); held != on_agent.end()) {
    for (const AllocationId& id : held->second) {
      Allocation& allocation = allocations.at(id);
      // The missing agent explains failures of its gang, and starts the time after which a kill is not waited
      // for.
      excuse(allocation);
      set_timer(allocation);
    }
  }
}

void Core::Impl::handle(const AllocationUpdated& input) {
  Agent* const known = find_agent(input.agent);
  if (!known || input.session == 0 || known->session != input.session) return;
  update(*known, input.allocation);
}

void Core::Impl::set_leftover(Agent& agent, const AllocationId& id, bool there) {
  const bool before = agent.leftovers.empty();
  if (there) {
    agent.leftovers.insert(id);
  } else {
    agent.leftovers.erase(id);
  }
  if (before != agent.leftovers.empty()) tell_agent(agent);
}

void Core::Impl::update(Agent& agent, const HeldAllocation& held) {
  auto it = allocations.find(held.id);
  const bool ended = held.state == AllocationState::kTerminated;
  AllocationPart* part = it == allocations.end() ? nullptr : it->second.part_on(agent.id);
  if (!part || part->state == AllocationState::kTerminated) {
    // The allocation has ended for the master or is unknown: kill the process, and keep the agent closed
    // until it is gone.
    set_leftover(agent, held.id, !ended);
    if (!ended) {
      out->sends.push_back(KillAllocation{agent.id, agent.session, held.id});
    } else if (!is(Mutant::kForgetsToForget)) {
      out->sends.push_back(AllocationForgotten{agent.id, agent.session, held.id});
    }
    return;
  }
  Allocation& allocation = it->second;
  if (!ended) {
    if (part->state < held.state) advance(allocation, *part, held.state);
    return;
  }
  finish(allocation, *part,
         held.exit.value_or(Exit{ExitKind::kLost, 0, "the agent does not know how it ended"}));
  out->sends.push_back(AllocationForgotten{agent.id, agent.session, held.id});
}

void Core::Impl::lose(Agent& agent) {
  // A copy: finishing a part removes it from `on_agent`. The timer is cleared and the agent removed last,
  // because finish looks the agent up.
  const AgentId id = agent.id;
  std::set<AllocationId> held;
  if (auto it = on_agent.find(id); it != on_agent.end()) held = it->second;
  for (const AllocationId& allocation : held) {
    Allocation& its = allocations.at(allocation);
    finish(its, *its.part_on(id), {ExitKind::kLost, 0, "agent " + id.value + " lost"});
  }
  timers.set({TimerKind::kAgent, id.value}, std::nullopt);
  inserts.push_back(PutCapacity{id, agent.pool, 0, now.wall});
  pool(agent.pool).remove_agent(id);
  agent_named.erase(id);
  agents.erase(id);
}

}  // namespace det::core
