#include "master/api/cluster/pilot.h"

#include <algorithm>
#include <set>

#include "common/base/text.h"
#include "det/v1/pilot.methods.h"
#include "master/api/convert/convert.h"

namespace det::api {
namespace {

/// The use of one pilot.
struct PilotUse {
  int agents = 0;
  std::set<AllocationId> allocations;
};

/// Returns the use of each pilot, by name. Agents of a pilot are named "NAME-NODE".
std::map<std::string, PilotUse> use_in(const core::Core& core,
                                       const std::map<std::string, core::Pilot>& pilots) {
  std::map<std::string, PilotUse> use;
  const auto of = [&](const AgentId& agent) -> PilotUse* {
    const std::string name = agent.value.substr(0, agent.value.rfind('-'));
    return pilots.contains(name) ? &use[name] : nullptr;
  };
  for (const auto& [id, agent] : core.agents()) {
    if (PilotUse* const its = of(id)) its->agents += agent.session != 0 ? 1 : 0;
  }
  for (const auto& [id, allocation] : core.allocations()) {
    for (const core::AllocationPart& part : allocation.parts) {
      if (PilotUse* const its = of(part.agent)) its->allocations.insert(id);
    }
  }
  return use;
}

void describe_pilot(const core::Pilot& pilot, const PilotUse& use, v1::Pilot* out) {
  out->set_name(pilot.name);
  out->set_resource_pool(pilot.pool);
  out->set_state(std::string(core::pilot_phase_name(pilot.phase)));
  out->set_job(pilot.job);
  out->set_reason(make_utf8(pilot.reason));
  out->set_nodes(pilot.nodes);
  out->set_agents(use.agents);
  out->set_allocations(static_cast<int>(use.allocations.size()));
  if (pilot.slots) out->set_slots(*pilot.slots);
  to_proto(pilot.submitted, out->mutable_submitted_time());
  if (pilot.until) to_proto(*pilot.until, out->mutable_end_time());
}

void list_pilots(const core::Core& core, v1::GetPilotsResponse& out) {
  const auto pilots = core.pilots();
  auto use = use_in(core, pilots);
  std::vector<const core::Pilot*> sorted;
  for (const auto& [name, pilot] : pilots) sorted.push_back(&pilot);
  std::sort(sorted.begin(), sorted.end(), [](const core::Pilot* a, const core::Pilot* b) {
    return std::tie(a->pool, a->id) < std::tie(b->pool, b->id);
  });
  for (const core::Pilot* pilot : sorted) describe_pilot(*pilot, use[pilot->name], out.add_pilots());
  for (const auto& [name, rules] : core.providers()) {
    v1::PilotPool* const pool = out.add_pools();
    pool->set_name(name);
    pool->set_engine(rules.engine);
    pool->set_max_pilots(rules.max_pilots);
    pool->set_per_allocation(rules.per_allocation);
    pool->set_problem(make_utf8(core.provider_problem(name)));
  }
}

}  // namespace

PilotService::PilotService(const Context& context) : Service(context, v1::PilotService::full_name) {
  unary(v1::PilotService::GetPilots, &PilotService::GetPilots);
}

Status PilotService::GetPilots(const Caller&, const v1::GetPilotsRequest&, v1::GetPilotsResponse* response) {
  auto list = std::make_shared<v1::GetPilotsResponse>();
  TRY(context_.loop.inspect([list](const core::Core& core) { list_pilots(core, *list); }));
  *response = std::move(*list);
  return {};
}

}  // namespace det::api
