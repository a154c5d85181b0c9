// Rules for pilots: their number is bounded, one that works is not canceled, one that is released or has
// ended gets no work, and no number is used twice.
#include "tests/sim/checker.h"

namespace det::sim {
namespace {

/// Pilots within a minute, unless refused ones are replaced without a delay. Each start of the master may
/// submit max_pilots at once.
constexpr std::int64_t kMaxPilotsPerMinute = 100;

std::string pilot_of(const AgentId& agent) { return agent.value.substr(0, agent.value.rfind('-')); }

}  // namespace

void Checker::check_pilots(const core::Core& core) {
  if (plan_.options.providers.empty()) return;
  const auto pilots = core.pilots();
  std::map<std::string, int> live;
  for (const auto& [name, pilot] : pilots) {
    const int most = plan_.options.providers.at(pilot.pool).max_pilots;
    if (++live[pilot.pool] > most)
      fail("pool " + pilot.pool + " has more pilots than its max_pilots " + std::to_string(most));
  }
  const auto too_late = [&](const core::Pilot& pilot) {
    const Duration least = plan_.options.providers.at(pilot.pool).min_time_left;
    // The wall clock of a master is one microsecond ahead.
    return least > Duration(0) && engine_.now().micros > pilot.until->micros - least.count();
  };
  for (const auto& [id, allocation] : core.allocations()) {
    if (!placed_.insert(id).second) continue;
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

void Checker::check_stored_pilots(const MemoryDisk& disk) {
  if (!disk.pilots.empty()) {
    const core::Pilot& newest = disk.pilots.rbegin()->second;
    const auto before = disk.pilots.find(newest.id - kMaxPilotsPerMinute);
    const auto minute = Duration(minutes(1)).count();
    if (before != disk.pilots.end() && newest.submitted.micros - before->second.submitted.micros < minute)
      fail("refused pilots are replaced without a delay");
  }
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
