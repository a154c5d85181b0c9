#include "master/core/queues.h"

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
  return *pools_.emplace(name, rules == options_.pools.end() ? options_.pool_rules : rules->second).first;
}

scheduler::Scheduler& Queues::change(const std::string& name) {
  dirty_.insert(name);
  return find(name).second;
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
  Pool& its = find(pool);
  requests_.insert_or_assign(request.task, &its);
  its.second.put_request(request);
  dirty_.insert(pool);
}

void Queues::withdraw(TaskKey task) {
  const auto request = requests_.find(task);
  if (request == requests_.end()) return;
  request->second->second.withdraw(task);
  dirty_.insert(request->second->first);
  requests_.erase(request);
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

void Queues::ended(const Allocation& allocation) { change(allocation.pool).ended(allocation.task); }

}  // namespace det::core
