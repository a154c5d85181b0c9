// Owns the life of allocations: slots given, asked to leave, killed, gone. Slots come free at the exit, never
// before.
#include <algorithm>

#include "master/core/impl.h"
#include "master/core/transitions.h"

namespace det::core {

Allocation* Core::Impl::live_allocation(TrialId trial) {
  auto it = live.find(trial);
  return it == live.end() ? nullptr : &allocations.at(it->second);
}

void Core::Impl::assign(Trial& trial, const Agent& agent, std::vector<int> slots) {
  withdraw(trial);
  ++trial.run;
  if (trial.run > 1) {
    // The new run starts from the checkpoint: what earlier runs did beyond it has not happened.
    if (!is(Mutant::kArchiveForgotten)) inserts.push_back(ArchiveMetrics{trial.id, trial.latest_steps});
    trial.steps_completed = trial.latest_steps;
    trial.last_validation = trial.checkpoint_validation;
  }
  touched_trials.insert(trial.id);

  const AllocationId id(trial.task.value + "." + std::to_string(trial.run));
  Allocation& allocation = allocations[id];
  allocation.id = id;
  allocation.trial = trial.id;
  allocation.run = trial.run;
  allocation.pool = agent.pool;
  allocation.agent = agent.id;
  allocation.agent_instance = agent.instance;
  allocation.slots = std::move(slots);
  allocation.started = now.wall;
  live[trial.id] = id;
  on_agent[agent.id].insert(id);
  touched_allocations.insert(id);
  log(trial, trial.run,
      "trial " + std::to_string(trial.id.value) + " was assigned to agent " + agent.id.value + " (" +
          std::to_string(allocation.slots.size()) + (allocation.slots.size() == 1 ? " slot)" : " slots)"));
  send_start(allocation);
}

void Core::Impl::send_start(const Allocation& allocation) {
  const Trial& trial = trials.at(allocation.trial);
  const Experiment& experiment = experiments.at(trial.experiment);
  const Agent& agent = agents.at(allocation.agent);
  if (agent.session == 0) return;
  out->sends.push_back(StartAllocation{agent.id, agent.session, allocation, trial, experiment.id,
                                       searches.at(experiment.id).config, experiment.model_definition});
}

void Core::Impl::ask_to_leave(Allocation& allocation, const std::string& why) {
  if (allocation.kill_requested || allocation.preempt_requested) return;
  if (!allocation.attached) return kill(allocation, why);
  const Trial& trial = trials.at(allocation.trial);
  allocation.preempt_requested = true;
  const Duration patience = std::chrono::seconds(config_of(trial).preemption_timeout);
  const MonoTime deadline = now.mono + patience;
  allocation.preempt_deadline = std::min(allocation.preempt_deadline.value_or(deadline), deadline);
  advance(allocation, AllocationState::kTerminating);
  set_timer(allocation);
  dirty.insert(allocation.pool);
  log(trial, allocation.run, "gracefully terminating: " + why);
  out->sends.push_back(PreemptAllocation{allocation.id});
}

void Core::Impl::kill(Allocation& allocation, const std::string& why) {
  if (allocation.kill_requested) return;
  allocation.kill_requested = true;
  allocation.preempt_deadline.reset();
  allocation.kill_again = now.mono + options.kill_repeat;
  advance(allocation, AllocationState::kTerminating);
  set_timer(allocation);
  dirty.insert(allocation.pool);
  log(trials.at(allocation.trial), allocation.run, "forcibly killing: " + why);
  send_kill(allocation);
}

void Core::Impl::send_kill(const Allocation& allocation) {
  const Agent& agent = agents.at(allocation.agent);
  if (agent.session != 0) out->sends.push_back(KillAllocation{agent.id, agent.session, allocation.id});
}

void Core::Impl::advance(Allocation& allocation, AllocationState state) {
  touched_allocations.insert(allocation.id);
  if (allocation.state < state) change(allocation.state, state);
}

void Core::Impl::finish(Allocation& allocation, Exit exit) {
  change(allocation.state, AllocationState::kTerminated);
  allocation.exit = std::move(exit);
  allocation.ended = now.wall;
  allocation.preempt_deadline.reset();
  allocation.kill_again.reset();
  set_timer(allocation);
  touched_allocations.insert(allocation.id);
  live.erase(allocation.trial);
  auto held = on_agent.find(allocation.agent);
  held->second.erase(allocation.id);
  if (held->second.empty()) on_agent.erase(held);
  dirty.insert(allocation.pool);
  Trial& trial = trials.at(allocation.trial);
  const bool ok =
      allocation.exit->kind == ExitKind::kSucceeded || allocation.exit->kind == ExitKind::kStopped;
  log(trial, allocation.run, "exited: " + allocation.exit->message, ok ? "INFO" : "ERROR");
  decide(trial, allocation);
}

void Core::Impl::look_at_deadlines(Allocation& allocation) {
  if (allocation.preempt_deadline && *allocation.preempt_deadline <= now.mono) {
    kill(allocation, "it did not leave in time");
  } else if (allocation.kill_again && *allocation.kill_again <= now.mono) {
    allocation.kill_again = now.mono + options.kill_repeat;
    set_timer(allocation);
    if (!is(Mutant::kKillNotRepeated)) send_kill(allocation);
  }
}

void Core::Impl::set_timer(const Allocation& allocation) {
  auto deadline = allocation.kill_again ? allocation.kill_again : allocation.preempt_deadline;
  if (is(Mutant::kNoPreemptDeadline)) deadline = allocation.kill_again;
  timers.set({TimerKind::kAllocation, allocation.id.value}, deadline);
}

}  // namespace det::core
