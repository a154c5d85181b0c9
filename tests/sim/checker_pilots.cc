// Rules for agents and pilots. An agent or a slot with a problem gets no work. The number of pilots is
// bounded, one that works is not canceled, one that is released or has ended gets no work, and no number is
// used twice. One for a single allocation gets no second one, shares its agents with no other work, and ends
// with it.
#include "tests/sim/checker.h"

namespace det::sim {
namespace {

/// A pilot that the engine refused is replaced after 5 s, and later after more.
constexpr Duration kLeastDelay = seconds(5);

std::string pilot_of(const AgentId& agent) { return agent.value.substr(0, agent.value.rfind('-')); }

}  // namespace

void Checker::check_service(const core::Core& core, const MemoryDisk& disk) {
  for (const auto& [id, settings] : disk.agents) {
    auto known = core.agent_settings().find(id);
    if (known == core.agent_settings().end() || known->second != settings) {
      fail("agent " + id.value + " was taken out of service, or back, and the master has forgotten it");
    }
  }
}

void Checker::check_used_pilots(const core::Core& core, const MemoryDisk& disk) {
  const auto pilots = core.pilots();
  for (const auto& [id, stored] : disk.pilots) {
    const auto known = pilots.find(stored.name);
    if (stored.used && known != pilots.end() && !known->second.used)
      fail("the master has forgotten the allocation of pilot " + stored.name);
  }
}

void Checker::check_agents(const core::Core& core) {
  for (const auto& [id, allocation] : core.allocations()) {
    if (!seen_.insert(id).second) continue;
    for (const core::AllocationPart& part : allocation.parts) {
      const auto agent = core.agents().find(part.agent);
      if (agent != core.agents().end() && !agent->second.problem.empty())
        fail(id.value + " is placed on " + part.agent.value + ", which has a problem");
      for (const int slot : part.slots) {
        if (agent != core.agents().end() && agent->second.slot_problems.contains(slot))
          fail(id.value + " is placed on slot " + std::to_string(slot) + " of " + part.agent.value +
               ", which has a problem");
      }
    }
  }
  for (const auto& [id, agent] : core.agents()) {
    auto& newest = connections_[{agent.instance, agent.boot}];
    if (agent.connection < newest) fail("an earlier connection of " + id.value + " replaces a later one");
    newest = agent.connection;
    if (agent.ephemeral) ephemeral_.insert(id);
    // After a restart of the master that is unknown.
    if (!agent.ephemeral) ephemeral_.erase(id);
  }
  std::erase_if(ephemeral_, [&](const AgentId& id) {
    if (core.agents().contains(id)) return false;
    if (core.agent_settings().contains(id)) fail("the settings of " + id.value + " stay, which has left");
    return true;
  });
}

void Checker::check_dedicated(const core::Allocation& allocation,
                              const std::map<std::string, core::Pilot>& pilots) {
  std::set<std::string> names;
  for (const core::AllocationPart& part : allocation.parts) names.insert(pilot_of(part.agent));
  for (const std::string& name : names) {
    const auto pilot = pilots.find(name);
    if (pilot == pilots.end() || !pilot->second.slots) continue;
    if (names.size() > 1 || *pilot->second.slots != allocation.slot_count())
      fail(allocation.id.value + " is placed on " + name + ", a pilot for another allocation");
    if (static_cast<int>(allocation.parts.size()) != pilot->second.nodes)
      fail(allocation.id.value + " has not all nodes of " + name);
    if (!had_.emplace(name, allocation.id).second)
      fail(allocation.id.value + " is placed on " + name + ", which was for " + had_.at(name).value);
  }
}

void Checker::check_pilots(const core::Core& core) {
  if (plan_.options.providers.empty()) return;
  const auto pilots = core.pilots();
  std::map<std::string, int> live;
  for (const auto& [name, pilot] : pilots) {
    const int most = plan_.options.providers.at(pilot.pool).max_pilots;
    if (++live[pilot.pool] > most)
      fail("pool " + pilot.pool + " has more pilots than its max_pilots " + std::to_string(most));
  }
  check_unused(core);
  check_delay(pilots, core.allocations());
  const auto too_late = [&](const core::Pilot& pilot) {
    const Duration least = plan_.options.providers.at(pilot.pool).min_time_left;
    // The wall clock of a master is one microsecond ahead.
    return least > Duration(0) && engine_.now().micros > pilot.until->micros - least.count();
  };
  for (const auto& [id, allocation] : core.allocations()) {
    if (!placed_.insert(id).second) continue;
    check_dedicated(allocation, pilots);
    for (const core::AllocationPart& part : allocation.parts) {
      if (!part.agent.value.starts_with("det-sim-")) continue;
      const auto pilot = pilots.find(pilot_of(part.agent));
      if (pilot == pilots.end() || pilot->second.phase >= core::PilotPhase::kCanceling)
        fail(id.value + " is placed on " + part.agent.value + ", whose pilot is released or has ended");
      else if (pilot->second.until && too_late(pilot->second))
        fail(id.value + " is placed on " + part.agent.value + ", whose pilot ends too soon");
    }
  }
}

void Checker::check_unused(const core::Core& core) {
  std::set<std::string> busy;
  for (const auto& [id, allocation] : core.allocations()) {
    for (const core::AllocationPart& part : allocation.parts) busy.insert(pilot_of(part.agent));
  }
  for (const auto& [name, pilot] : core.pilots()) {
    if (!had_.contains(name) || busy.contains(name) || pilot.phase >= core::PilotPhase::kCanceling) continue;
    // The release follows with the next decision, in the same moment.
    if (unused_.emplace(name, engine_.now()).first->second < engine_.now())
      fail("pilot " + name + " stays although its allocation has ended");
  }
}

void Checker::check_delay(const std::map<std::string, core::Pilot>& pilots,
                          const std::unordered_map<AllocationId, core::Allocation>& allocations) {
  for (auto& [name, refusable] : known_pilots_) {
    const auto pilot = pilots.find(name);
    const bool over = pilot == pilots.end() || pilot->second.phase == core::PilotPhase::kEnded;
    if (over && refusable && !worked_.contains(name))
      refused_[name.substr(0, name.rfind('-'))] = engine_.now();
    refusable = refusable && !over && pilot->second.phase != core::PilotPhase::kCanceling;
  }
  for (const auto& [id, allocation] : allocations) {
    for (const core::AllocationPart& part : allocation.parts) {
      const std::string name = pilot_of(part.agent);
      // The first work of a pilot ends the delay of its pool.
      if (known_pilots_.contains(name) && worked_.insert(name).second)
        refused_.erase(name.substr(0, name.rfind('-')));
    }
  }
  for (const auto& [name, pilot] : pilots) {
    if (!known_pilots_.emplace(name, pilot.phase < core::PilotPhase::kCanceling).second) continue;
    const auto last = refused_.find(name.substr(0, name.rfind('-')));
    if (last != refused_.end() && engine_.now() < last->second + kLeastDelay)
      fail("pilot " + name + " replaces one that was refused, without a delay");
  }
}

void Checker::check_stored_pilots(const MemoryDisk& disk) {
  for (const auto& [id, pilot] : disk.pilots) {
    if (pilot.ended) {
      ended_pilots_.insert(id);
    } else if (ended_pilots_.contains(id)) {
      fail("the number of the ended pilot " + std::to_string(id) + " is used again");
    }
  }
}

void Checker::sent_to_engine(const core::Send& send, const MemoryDisk& disk) {
  const auto find = [&](const std::string& name) -> const core::Pilot* {
    for (const auto& [id, pilot] : disk.pilots) {
      if (pilot.name == name) return &pilot;
    }
    return nullptr;
  };
  if (auto* submit = std::get_if<core::SubmitPilot>(&send)) {
    if (!find(submit->name)) fail("pilot " + submit->name + " is submitted before that is durable");
  }
  auto* cancel = std::get_if<core::CancelPilot>(&send);
  if (!cancel) return;
  const core::Pilot* const pilot = find(cancel->name);
  // Jobs of ended pilots are canceled whatever they do: the master cannot use them.
  if (!pilot || pilot->ended) return;
  for (const auto& [id, allocation] : disk.allocations) {
    if (allocation.state == core::AllocationState::kTerminated) continue;
    for (const core::AllocationPart& part : allocation.parts) {
      if (part.state != core::AllocationState::kTerminated && pilot_of(part.agent) == cancel->name)
        fail("pilot " + cancel->name + " is canceled while " + id.value + " runs there");
    }
  }
}

}  // namespace det::sim
