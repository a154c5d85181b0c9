// Keeps the schedulers of the pools up to date with every change of agents, jobs, requests and allocations,
// and carries out their decisions.
#include "master/core/impl.h"
#include "master/core/leaving.h"
#include "master/scheduler/position.h"

namespace det::core {
namespace {

std::vector<scheduler::Part> parts_of(const Allocation& allocation) {
  std::vector<scheduler::Part> parts;
  for (const AllocationPart& part : allocation.parts) parts.push_back({part.agent, part.slots});
  return parts;
}

/// Prefetches trials that are about to start. With 100,000 trials they are out of the caches and would cost
/// several misses each; prefetched together, the misses overlap. `tests/bench/run.sh core` measures it.
void fetch(const std::vector<const Trial*>& trials) {
  constexpr std::size_t kLine = 64;
  for (const Trial* trial : trials) {
    const char* const bytes = reinterpret_cast<const char*>(trial);
    for (std::size_t at = 0; at < sizeof(Trial); at += kLine) __builtin_prefetch(bytes + at);
  }
  // The strings come second: their addresses are in the lines fetched above.
  for (const Trial* trial : trials) {
    __builtin_prefetch(trial->request_id.value.data());
    __builtin_prefetch(trial->task.value.data());
    __builtin_prefetch(trial->hparams.data());
  }
}

}  // namespace

QueuePlace Core::Impl::place_of(const expconf::ExperimentConfig& config, WallTime submitted) {
  const expconf::Resources& resources = config.resources;
  return {.pool = resources.resource_pool,
          .priority = resources.priority,
          .weight = resources.weight,
          .max_slots = resources.max_slots,
          .position = scheduler::position_of(submitted)};
}

const std::string& Core::Impl::pool_of(const Experiment& experiment) const {
  return experiment.queue.pool.empty() ? options.default_pool : experiment.queue.pool;
}

const std::string& Core::Impl::pool_of(const Command& command) const {
  return command.queue.pool.empty() ? options.default_pool : command.queue.pool;
}

scheduler::Scheduler& Core::Impl::pool(const std::string& name) {
  if (auto known = pools.find(name); known != pools.end()) return known->second;
  const auto rules = options.pools.find(name);
  const scheduler::Rules& its = rules == options.pools.end() ? options.pool_rules : rules->second;
  return pools.emplace(name, scheduler::Scheduler(its)).first->second;
}

scheduler::Agent Core::Impl::to_scheduler(const Agent& agent) const {
  // Leftovers hold devices although their allocations have ended, so the agent is closed for new work.
  scheduler::Agent one{
      .id = agent.id,
      .slots = std::vector<scheduler::Slot>(agent.slots.size()),
      .open = agent.session != 0 && (agent.leftovers.empty() || is(Mutant::kLeftoversForgotten))};
  if (auto known = agent_settings.find(agent.id); known != agent_settings.end()) {
    one.open = one.open && (known->second.enabled || is(Mutant::kDisabledScheduled));
    for (const int slot : known->second.disabled_slots) {
      if (static_cast<std::size_t>(slot) < one.slots.size())
        one.slots[static_cast<std::size_t>(slot)].enabled = false;
    }
  }
  return one;
}

void Core::Impl::tell_agent(const Agent& agent) {
  pool(agent.pool).put_agent(to_scheduler(agent));
  dirty.insert(agent.pool);
}

scheduler::Job Core::Impl::to_scheduler(const Experiment& experiment) const {
  const QueuePlace& queue = experiment.queue;
  scheduler::Job job{.id = experiment.id,
                     .user = experiment.owner,
                     .priority = queue.priority,
                     .position = queue.position,
                     .weight = queue.weight,
                     .max_slots = queue.max_slots};
  if (is(Mutant::kMaxSlotsIgnored)) job.max_slots.reset();
  return job;
}

void Core::Impl::tell_job(const Experiment& experiment) {
  if (experiment.unmanaged && !is(Mutant::kUnmanagedScheduled)) return;
  const std::string& name = pool_of(experiment);
  pool(name).put_job(to_scheduler(experiment));
  dirty.insert(name);
}

void Core::Impl::tell_request(const Trial& trial) {
  const expconf::Resources& resources = config_of(trial).resources;
  const std::string& name = pool_of(experiments.at(trial.experiment));
  pool(name).put_request({.trial = trial.id,
                          .job = trial.experiment,
                          .slots = resources.slots_per_trial,
                          .single_node = resources.is_single_node});
  dirty.insert(name);
}

void Core::Impl::tell_running(const Allocation& allocation) {
  scheduler::Scheduler& its = pool(allocation.pool);
  if (is_command(allocation.trial)) {
    return its.started({.trial = allocation.trial,
                        .job = as_job(command_of(allocation.trial)),
                        .parts = parts_of(allocation),
                        .preemptible = is(Mutant::kCommandPreempted),
                        .leaving = allocation.kill_requested || allocation.exit});
  }
  // An experiment may have moved to another pool while its allocation was terminating. The old pool then
  // needs the job for as long as the allocation lives: the removal takes effect with its end.
  const Experiment& experiment = experiments.at(trials.at(allocation.trial).experiment);
  const bool moved = allocation.pool != pool_of(experiment);
  if (moved) its.put_job(to_scheduler(experiment));
  its.started({.trial = allocation.trial,
               .job = experiment.id,
               .parts = parts_of(allocation),
               .leaving = is_leaving(allocation)});
  if (moved) its.remove_job(experiment.id);
}

void Core::Impl::tell_leaving(const Allocation& allocation) {
  scheduler::Scheduler& its = pool(allocation.pool);
  its.leaving(allocation.trial);
  if (is(Mutant::kSlotFreedAtKill) && allocation.kill_requested) its.ended(allocation.trial);
  dirty.insert(allocation.pool);
}

void Core::Impl::tell_ended(const Allocation& allocation) {
  pool(allocation.pool).ended(allocation.trial);
  dirty.insert(allocation.pool);
}

void Core::Impl::schedule_pool(const std::string& name) {
  const scheduler::Plan plan = pool(name).decide();
  if (plan.start.size() > 1) {
    out->sends.reserve(out->sends.size() + plan.start.size());
    std::vector<const Trial*> starting;
    for (const scheduler::Placement& placement : plan.start) {
      if (!is_command(placement.trial)) starting.push_back(&trials.at(placement.trial));
    }
    fetch(starting);
  }
  for (const scheduler::Placement& placement : plan.start) {
    if (is_command(placement.trial)) {
      assign(commands.at(command_of(placement.trial)), placement.parts);
    } else {
      assign(trials.at(placement.trial), placement.parts);
    }
  }
  // Starts come first: a trial may be in both lists (Plan::preempt).
  for (TrialId id : plan.preempt) {
    if (Allocation* allocation = live_allocation(id)) {
      ask_to_leave(*allocation, "its slots go to a more important trial");
    }
  }
}

}  // namespace det::core
