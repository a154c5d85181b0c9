#include "master/core/queues/queues.h"

#include <algorithm>

#include "master/scheduler/position.h"

namespace det::core {

QueueSettings queue_settings(const expconf::ExperimentConfig& config, WallTime submitted) {
  const expconf::Resources& resources = config.resources;
  return {.pool = resources.resource_pool,
          .priority = resources.priority,
          .weight = resources.weight,
          .max_slots = resources.max_slots,
          .position = scheduler::position_of(submitted)};
}

Queues::Pool& Queues::find(const std::string& name) {
  if (auto known = pools_.find(name); known != pools_.end()) return *known;
  const auto rules = options_.pools.find(name);
  Pool& pool =
      *pools_.emplace(name, rules == options_.pools.end() ? options_.pool_rules : rules->second).first;
  for (const auto& [key, slots] : quotas_) pool.second.put_quota({key, slots, 0});
  return pool;
}

scheduler::Scheduler& Queues::change(const std::string& name) {
  dirty_.insert(name);
  return find(name).second;
}

void Queues::put_quota(const scheduler::QuotaKey& key, std::optional<int> slots) {
  if (slots) {
    quotas_[key] = *slots;
  } else {
    quotas_.erase(key);
  }
  for (auto& [name, pool] : pools_) {
    if (slots) {
      pool.put_quota({key, *slots, 0});  // share_quotas sets `elsewhere` before the next decision
    } else {
      pool.remove_quota(key);
    }
    dirty_.insert(name);
  }
}

void Queues::share_quotas(const std::string& pool) {
  scheduler::Scheduler& its = find(pool).second;
  for (const auto& [key, slots] : quotas_) {
    int elsewhere = 0;
    for (const auto& [name, other] : pools_) elsewhere += name == pool ? 0 : other.held(key);
    its.put_quota({key, slots, elsewhere});
  }
}

void Queues::put_agent(const std::string& pool, scheduler::Agent agent) {
  change(pool).put_agent(std::move(agent));
}

void Queues::remove_agent(const std::string& pool, const AgentId& agent) {
  find(pool).second.remove_agent(agent);
}

void Queues::put_job(const std::string& pool, const scheduler::Job& job) { change(pool).put_job(job); }

void Queues::remove_job(const std::string& pool, JobKey job) { change(pool).remove_job(job); }

void Queues::request(const std::string& pool, const scheduler::Request& request) {
  withdraw(request.task);
  change(pool).put_request(request);
}

bool Queues::has_request(TaskKey task) const {
  return std::any_of(pools_.begin(), pools_.end(), [&](const Pool& pool) { return pool.second.waits(task); });
}

void Queues::withdraw(TaskKey task) {
  for (auto& [name, pool] : pools_) {
    if (!pool.waits(task)) continue;
    pool.withdraw(task);
    dirty_.insert(name);
  }
}

void Queues::restore(const std::string& pool, const scheduler::Running& running, const scheduler::Job* job) {
  scheduler::Scheduler& its = find(pool).second;
  if (job) its.put_job(*job);
  its.started(running);
  if (job) its.remove_job(job->id);
}

void Queues::terminating(const Allocation& allocation) {
  scheduler::Scheduler& its = change(allocation.pool);
  its.terminating(allocation.task);
  if (options_.mutant == Mutant::kSlotFreedAtKill && allocation.kill_requested) its.ended(allocation.task);
}

void Queues::ended(const Allocation& allocation) {
  change(allocation.pool).ended(allocation.task);
  mark_waiting();
}

void Queues::mark_waiting() {
  if (quotas_.empty()) return;
  for (const auto& [name, pool] : pools_) {
    if (pool.queued() > 0) dirty_.insert(name);
  }
}

}  // namespace det::core
