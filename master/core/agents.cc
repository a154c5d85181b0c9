#include "master/core/agents.h"

#include <algorithm>
#include <utility>

#include "master/core/owners.h"

namespace det::core {
namespace {

constexpr const char* kChecked = "its device is checked before it takes work";

/// Drops slots that the agent does not have, so that its list is bounded.
std::map<int, std::string> known_slots(std::map<int, std::string> problems, const Agent& agent) {
  const int slots = static_cast<int>(agent.slots.size());
  std::erase_if(problems, [&](const auto& one) { return one.first < 0 || one.first >= slots; });
  return problems;
}

/// Whether an agent has the devices that it had before. Its links may be others: a failed NVLink splits a
/// link group.
bool same_devices(const std::vector<Device>& before, const std::vector<Device>& now) {
  return std::equal(before.begin(), before.end(), now.begin(), now.end(),
                    [](const Device& left, const Device& right) {
                      return left.type == right.type && left.brand == right.brand && left.uuid == right.uuid;
                    });
}

/// Time for trials on a disabled agent or slot to save a checkpoint. They are killed afterwards. Draining
/// waits for their end instead.
constexpr Duration kDisabledLimit = std::chrono::seconds(10);

}  // namespace

Agent& Agents::add(const AgentId& id) {
  Agent& agent = agents_[id];
  by_id_.emplace(id, &agent);
  return agent;
}

Agent* Agents::find(const AgentId& id) const {
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : it->second;
}

std::string Agents::fault(const AgentId& id, const std::vector<int>& slots) const {
  const Agent* const agent = find(id);
  if (!agent) return "";
  for (const int slot : slots) {
    const auto problem = agent->slot_problems.find(slot);
    if (problem != agent->slot_problems.end() && problem->second != kChecked)
      return "slot " + std::to_string(slot) + ": " + problem->second;
  }
  return "";
}

Agent* Agents::in_session(const AgentId& id, std::uint64_t session) const {
  Agent* const agent = find(id);
  return agent && session != 0 && agent->session == session ? agent : nullptr;
}

void Agents::hold(const AgentId& agent, const Allocation& allocation) { held_[agent].push_back(&allocation); }

void Agents::release(const AgentId& agent, const Allocation& allocation) {
  const auto held = held_.find(agent);
  std::erase(held->second, &allocation);
  if (held->second.empty()) held_.erase(held);
}

std::set<AllocationId> Agents::held_by(const AgentId& agent) const {
  std::set<AllocationId> ids;
  if (const auto held = held_.find(agent); held != held_.end()) {
    for (const Allocation* allocation : held->second) ids.insert(allocation->id);
  }
  return ids;
}

scheduler::Agent Agents::to_scheduler(const Agent& agent) const {
  // Leftovers hold devices although their allocations have ended, so the agent is closed for new work.
  scheduler::Agent one{
      .id = agent.id,
      .slots = std::vector<scheduler::Slot>(agent.slots.size()),
      .open = agent.session != 0 && (agent.problem.empty() || owners_.is(Mutant::kProblemScheduled)) &&
              (agent.leftovers.empty() || owners_.is(Mutant::kLeftoversForgotten)) &&
              (!agent.stopping || owners_.is(Mutant::kStoppingScheduled)) && owners_.pilots.admits(agent.id),
      .exclusive = owners_.pilots.exclusive(agent.id)};
  for (std::size_t i = 0; i < one.slots.size() && !owners_.is(Mutant::kLinkForgotten); ++i)
    one.slots[i].link = agent.slots[i].link;
  const auto close_slot = [&](int slot) {
    if (static_cast<std::size_t>(slot) < one.slots.size())
      one.slots[static_cast<std::size_t>(slot)].enabled = false;
  };
  for (const auto& [slot, problem] : agent.slot_problems) {
    if (!owners_.is(Mutant::kFaultScheduled)) close_slot(slot);
  }
  if (auto known = settings_.find(agent.id); known != settings_.end()) {
    one.open = one.open && (known->second.enabled || owners_.is(Mutant::kDisabledScheduled));
    for (const int slot : known->second.disabled_slots) close_slot(slot);
  }
  return one;
}

void Agents::put(const Agent& agent) { owners_.queues.put_agent(agent.pool, to_scheduler(agent)); }

void Agents::put_again(const AgentId& id) {
  if (const Agent* agent = find(id)) put(*agent);
}

Status Agents::check_connection(const AgentConnected& input) const {
  // The instance identifies the machine. Another one may take a name only when the core has nothing on it: no
  // session, no live part, no leftovers.
  const Agent* const there = find(input.agent);
  if (!there) return {};
  const Agent& known = *there;
  const auto held = held_.find(input.agent);
  const bool in_use = held != held_.end() || !known.leftovers.empty() || known.session != 0;
  if (known.instance != input.instance && in_use) {
    return fail(
        Code::kAlreadyExists,
        "another machine is agent " + input.agent.value +
            "; give this one a name of its own with --id, or wait until the lease of that one has ended");
  }
  // Its list of allocations is older than what the master has sent since.
  if (known.instance == input.instance && known.boot == input.boot && input.connection < known.connection &&
      !owners_.is(Mutant::kOldHelloAccepted))
    return fail(Code::kAborted, "a later connection of agent " + input.agent.value + " has arrived before");
  if (held == held_.end()) return {};
  auto refuse = [&](const std::string& what) {
    return fail(Code::kFailedPrecondition,
                "agent " + input.agent.value + " reconnected with " + what +
                    " while its allocations run; restore them, or wait until the allocations have ended");
  };
  const std::string& pool = input.pool.empty() ? owners_.options.default_pool : input.pool;
  if (known.pool != pool) return refuse("pool " + pool + " instead of " + known.pool);
  // After a restart of the master only the slots in use are known, not the devices behind them.
  if (!known.slots.empty() && !same_devices(known.slots, input.slots)) return refuse("other devices");
  for (const Allocation* allocation : held->second) {
    for (int slot : allocation->part_on(input.agent)->slots) {
      if (slot >= static_cast<int>(input.slots.size())) return refuse("fewer devices");
    }
  }
  return {};
}

Result<ReplyValue> Agents::handle(Step& step, const AgentConnected& input) {
  TRY(check_connection(input));
  Agent& agent = add(input.agent);
  if (agent.session == 0) agent.registered = step.now.wall;
  const std::string pool_before = agent.pool;
  const std::size_t slots_before = agent.slots.size();
  agent.id = input.agent;
  agent.instance = input.instance;
  agent.version = input.version;
  agent.address = input.address;
  agent.pool = input.pool.empty() ? owners_.options.default_pool : input.pool;
  agent.sandbox = input.sandbox;
  agent.sandbox_missing = input.sandbox_missing;
  agent.problem = input.problem;
  agent.session = input.session;
  agent.boot = input.boot;
  agent.connection = input.connection;
  take_slots(step, agent, input);
  agent.ephemeral = input.ephemeral;
  agent.stopping = false;
  agent.lost_at.reset();
  agent.leftovers.clear();  // reconcile adds those that the agent still holds
  owners_.timers.set({TimerKind::kAgent, agent.id.value}, std::nullopt);
  if (!pool_before.empty() && pool_before != agent.pool) owners_.queues.remove_agent(pool_before, agent.id);
  if (pool_before != agent.pool || slots_before != agent.slots.size()) {
    step.insert(
        PutCapacity{agent.id, agent.pool, static_cast<std::int64_t>(agent.slots.size()), step.now.wall});
  }
  owners_.pilots.agent_connected(step, agent.id);
  put(agent);
  reconcile(step, agent, input.held);
  return AgentAccepted{};
}

void Agents::reconcile(Step& step, Agent& agent, const std::vector<HeldAllocation>& held) {
  // `missing`: live parts that the core has on this agent and the agent did not report.
  std::set<AllocationId> missing = held_by(agent.id);
  for (const HeldAllocation& one : held) {
    update(step, agent, one);
    missing.erase(one.id);
    // A kill may have been lost with the old connection.
    owners_.allocations.repeat_kill(step, one.id, agent);
  }
  for (const AllocationId& id : missing) owners_.allocations.handle_missing(step, id, agent);
}

void Agents::handle(Step& step, const AgentDisconnected& input) {
  // A late disconnect of an older session must not close the present one.
  Agent* const known = in_session(input.agent, input.session);
  if (!known) return;
  Agent& agent = *known;
  agent.session = 0;
  agent.lost_at = step.now.mono + owners_.options.agent_wait();
  owners_.timers.set({TimerKind::kAgent, agent.id.value}, agent.lost_at);
  put(agent);
  for (const AllocationId& id : held_by(agent.id)) owners_.allocations.agent_disconnected(step, id);
}

void Agents::handle(Step& step, const AgentStopping& input) {
  Agent* const agent = in_session(input.agent, input.session);
  if (!agent || agent->stopping) return;
  // Closed first: the slots of the preempted allocations must not be assigned again.
  agent->stopping = true;
  put(*agent);
  for (const AllocationId& id : held_by(input.agent)) {
    owners_.allocations.preempt(step, owners_.allocations.at(id),
                                "agent " + input.agent.value + " is stopping");
  }
}

void Agents::handle(Step&, const AgentProblem& input) {
  Agent* const agent = in_session(input.agent, input.session);
  if (!agent || agent->problem == input.problem) return;
  agent->problem = input.problem;
  put(*agent);
}

void Agents::handle(Step&, const SlotProblems& input) {
  Agent* const agent = in_session(input.agent, input.session);
  if (!agent) return;
  agent->slot_problems = known_slots(input.problems, *agent);
  // The report may have been sent before the agent received the latest CheckSlot.
  std::erase_if(agent->pending_checks, [&](const auto& one) { return one.second <= input.checks; });
  for (const auto& [slot, number] : agent->pending_checks) agent->slot_problems.try_emplace(slot, kChecked);
  put(*agent);
}

void Agents::handle(Step& step, const AgentLeft& input) {
  Agent* const agent = in_session(input.agent, input.session);
  if (!agent || !agent->ephemeral) return;
  // Closed first: the slots of the allocations that end must not be assigned again.
  agent->stopping = true;
  put(*agent);
  remove(step, input.agent, "has left");
}

void Agents::handle(Step& step, const AllocationUpdated& input) {
  if (Agent* const agent = in_session(input.agent, input.session)) update(step, *agent, input.allocation);
}

void Agents::set_leftover(Agent& agent, const AllocationId& id, bool there) {
  const bool before = agent.leftovers.empty();
  if (there) {
    agent.leftovers.insert(id);
  } else {
    agent.leftovers.erase(id);
  }
  if (before != agent.leftovers.empty()) put(agent);
}

void Agents::update(Step& step, Agent& agent, const HeldAllocation& held) {
  Allocation* const allocation = owners_.allocations.find(held.id);
  AllocationPart* const part = allocation ? allocation->part_on(agent.id) : nullptr;
  const bool live = part && part->state != AllocationState::kTerminated;
  const bool ended = held.state == AllocationState::kTerminated;
  if (live) {
    owners_.allocations.update(step, *allocation, *part, held);
  } else {
    // The allocation has ended for the master or is unknown: kill the process, and keep the agent closed
    // until it is gone.
    set_leftover(agent, held.id, !ended);
    if (!ended) step.send(KillAllocation{agent.id, agent.session, held.id});
  }
  if (ended) step.send(AllocationForgotten{agent.id, agent.session, held.id});
}

void Agents::remove(Step& step, const AgentId& id, const std::string& how) {
  // The agent is removed last, because finish looks it up.
  for (const AllocationId& held : held_by(id)) {
    Allocation& allocation = owners_.allocations.at(held);
    owners_.allocations.finish(step, allocation, *allocation.part_on(id),
                               {ExitKind::kLost, 0, "agent " + id.value + " " + how});
  }
  owners_.timers.set({TimerKind::kAgent, id.value}, std::nullopt);
  const Agent& agent = agents_.at(id);
  const std::string pool = agent.pool;
  step.insert(PutCapacity{id, pool, 0, step.now.wall});
  if (agent.ephemeral) {
    if (!owners_.is(Mutant::kLeftNotForgotten)) settings_.erase(id);
    step.insert(DeleteAgent{id, agent.registered});
  }
  owners_.queues.remove_agent(pool, id);
  by_id_.erase(id);
  agents_.erase(id);
}

void Agents::take_slots(Step& step, Agent& agent, const AgentConnected& input) {
  agent.slots = input.slots;
  agent.slot_problems = known_slots(input.slot_problems, agent);
  agent.checks_slots = input.checks_slots;
  agent.checks = 0;
  for (const auto& [slot, number] : std::exchange(agent.pending_checks, {})) {
    if (agent.checks_slots && slot < static_cast<int>(agent.slots.size())) check_slot(step, agent, slot);
  }
}

void Agents::check_slot(Step& step, Agent& agent, int slot) {
  step.send(CheckSlot{agent.id, agent.session, slot, ++agent.checks});
  if (owners_.is(Mutant::kCheckSkipped)) return;
  agent.pending_checks[slot] = agent.checks;
  agent.slot_problems.try_emplace(slot, kChecked);
}

Result<ReplyValue> Agents::handle(Step& step, const SetService& input) {
  Agent* const agent = find(input.agent);
  if (!agent && !settings_.contains(input.agent)) {
    return fail(Code::kNotFound, "agent " + input.agent.value + " not found");
  }
  // Settings of an agent that is away may be changed, but its slots are unknown.
  const std::size_t slots = agent ? agent->slots.size() : 0;
  if (input.slot && (*input.slot < 0 || static_cast<std::size_t>(*input.slot) >= slots)) {
    return fail(Code::kNotFound,
                "agent " + input.agent.value + " has no slot " + std::to_string(*input.slot));
  }
  AgentSettings& settings = settings_[input.agent];
  settings.agent = input.agent;
  const bool out = input.slot && (settings.disabled_slots.contains(*input.slot) ||
                                  agent->slot_problems.contains(*input.slot));
  if (out && input.enabled && agent->checks_slots && agent->session != 0)
    check_slot(step, *agent, *input.slot);
  if (!input.slot) {
    settings.enabled = input.enabled;
    settings.draining = !input.enabled && input.drain;
  } else if (input.enabled) {
    settings.disabled_slots.erase(*input.slot);
  } else {
    settings.disabled_slots.insert(*input.slot);
  }
  step.insert(PutAgentSettings{settings});
  if (!agent) return Done{};
  // First the scheduler closes the agent or the slot, then allocations there are preempted: their slots must
  // not be assigned again.
  put(*agent);
  if (input.enabled || input.drain) return Done{};
  const std::string disabled =
      (input.slot ? "slot " + std::to_string(*input.slot) + " of agent " : "agent ") + input.agent.value;
  for (const AllocationId& id : held_by(input.agent)) {
    Allocation& allocation = owners_.allocations.at(id);
    const std::vector<int>& here = allocation.part_on(input.agent)->slots;
    const bool hit = !input.slot || std::find(here.begin(), here.end(), *input.slot) != here.end();
    if (!hit) continue;
    owners_.allocations.preempt(step, allocation, disabled + " was disabled");
    owners_.allocations.limit(allocation, step.now.mono + kDisabledLimit);
  }
  return Done{};
}

void Agents::restore(std::vector<AgentSettings> rows) {
  for (AgentSettings& row : rows) {
    const AgentId id = row.agent;
    settings_[id] = std::move(row);
  }
}

Status Agents::restore_part(const Allocation& allocation, const AllocationPart& part, Now now) {
  std::vector<const Allocation*>& held = held_[part.agent];
  for (const Allocation* other : held) {
    for (int slot : other->part_on(part.agent)->slots) {
      if (std::find(part.slots.begin(), part.slots.end(), slot) != part.slots.end()) {
        return contradiction("two allocations have slot " + std::to_string(slot) + " of agent " +
                             part.agent.value);
      }
    }
  }
  held.push_back(&allocation);

  // The deadline makes sure that an agent that never reconnects is lost, and that its slots and trials do not
  // wait for it forever.
  Agent& agent = add(part.agent);
  agent.id = part.agent;
  agent.instance = part.agent_instance;
  agent.pool = allocation.pool;
  if (!owners_.is(Mutant::kNoReconnectDeadline)) {
    agent.lost_at = now.mono + owners_.options.agent_wait();
    owners_.timers.set({TimerKind::kAgent, agent.id.value}, agent.lost_at);
  }
  return {};
}

}  // namespace det::core
