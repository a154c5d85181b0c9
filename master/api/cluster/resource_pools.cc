// ClusterService::GetResourcePools: pools that agents are in, and the default pool.
#include <set>

#include "master/api/cluster/cluster.h"
#include "master/api/convert/convert.h"
#include "master/api/page.h"

namespace det::api {
namespace {

v1::ResourcePool::SchedulerType scheduler_type(scheduler::Policy policy) {
  switch (policy) {
    case scheduler::Policy::kPriority:
      return v1::ResourcePool::SCHEDULER_TYPE_PRIORITY;
    case scheduler::Policy::kFairShare:
      return v1::ResourcePool::SCHEDULER_TYPE_FAIR_SHARE;
    case scheduler::Policy::kRoundRobin:
      return v1::ResourcePool::SCHEDULER_TYPE_ROUND_ROBIN;
  }
  return v1::ResourcePool::SCHEDULER_TYPE_UNSPECIFIED;
}

/// Fields without a counterpart here get the values that clients of Determined AI expect of a static pool.
v1::ResourcePool empty_pool(const std::string& name, bool is_default) {
  v1::ResourcePool pool;
  pool.set_name(name);
  pool.set_type(v1::ResourcePool::RESOURCE_POOL_TYPE_STATIC);
  pool.set_default_compute_pool(is_default);
  pool.set_default_aux_pool(is_default);
  pool.set_preemptible(true);
  pool.set_scheduler_fitting_policy(v1::ResourcePool::FITTING_POLICY_BEST);
  pool.set_location("on-prem");
  pool.mutable_details();
  pool.mutable_stats();
  return pool;
}

void add_agent(const core::Agent& agent, const core::AgentSettings& settings, v1::ResourcePool& pool) {
  const int slots = static_cast<int>(agent.slots.size());
  pool.set_num_agents(pool.num_agents() + 1);
  pool.set_slots_per_agent(std::max(pool.slots_per_agent(), slots));
  std::set<int> out = settings.disabled_slots;
  for (const auto& [slot, problem] : agent.slot_problems) out.insert(slot);
  if (settings.enabled)
    pool.set_slots_available(pool.slots_available() + slots - static_cast<int>(out.size()));
  // The first slot decides for the agent, and the last agent for the pool.
  if (agent.slots.empty()) return;
  pool.set_slot_type(agent.slots[0].type == "CUDA" ? v1::Device::TYPE_CUDA : v1::Device::TYPE_CPU);
  if (agent.slots[0].type == "CUDA") pool.set_accelerator(agent.slots[0].brand);
}

std::vector<v1::ResourcePool> pools_of(const core::Core& core, const std::string& default_pool) {
  std::map<std::string, v1::ResourcePool> pools;
  const auto pool = [&](const std::string& name) -> v1::ResourcePool& {
    return pools.try_emplace(name, empty_pool(name, name == default_pool)).first->second;
  };
  // The default pool and those of pilots are listed even without agents.
  pool(default_pool);
  for (const auto& [name, rules] : core.providers()) {
    v1::ResourcePool& supplied = pool(name);
    supplied.set_description("pilots run the agents of this pool");
    supplied.set_max_agents(rules.max_pilots * rules.max_nodes);
    supplied.set_slots_per_agent(rules.slots_per_node);
  }
  for (const auto& [id, agent] : core.agents()) {
    const auto settings = core.agent_settings().find(id);
    add_agent(agent, settings == core.agent_settings().end() ? core::AgentSettings{} : settings->second,
              pool(agent.pool));
  }
  for (const auto& [id, allocation] : core.allocations()) {
    // Also creates pools that have allocations but no agent.
    v1::ResourcePool& used = pool(allocation.pool);
    used.set_slots_used(used.slots_used() + allocation.slot_count());
    used.mutable_stats()->set_scheduled_count(used.stats().scheduled_count() + 1);
    if (allocation.slot_count() == 0) used.set_aux_containers_running(used.aux_containers_running() + 1);
  }
  std::vector<v1::ResourcePool> list;
  for (auto& [name, one] : pools) {
    const auto known = core.pools().find(name);
    one.set_scheduler_type(scheduler_type(known == core.pools().end() ? scheduler::Rules().policy
                                                                      : known->second.rules().policy));
    one.mutable_stats()->set_queued_count(known == core.pools().end() ? 0 : known->second.queued());
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace

Status ClusterService::GetResourcePools(const Caller&, const v1::GetResourcePoolsRequest& request,
                                        v1::GetResourcePoolsResponse* response) {
  auto list = std::make_shared<std::vector<v1::ResourcePool>>();
  TRY(context_.loop.inspect([list, name = context_.settings.default_pool](const core::Core& core) {
    *list = pools_of(core, name);
  }));
  for (v1::ResourcePool& pool : page_of(std::move(*list), request, response->mutable_pagination())) {
    pool.set_cluster_name(context_.settings.cluster_name);
    *response->add_resource_pools() = std::move(pool);
  }
  return {};
}

}  // namespace det::api
