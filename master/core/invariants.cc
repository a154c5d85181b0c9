// The invariants. Each function checks one of them over the whole core and appends a sentence for each
// violation. The simulator (tests/sim) runs all of them after every step; mutants (mutant.h) prove that it
// detects violations.
#include "master/core/invariants.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "master/core/build_id.h"
#include "master/core/terminating.h"

namespace det::core {
namespace {

using Broken = std::vector<std::string>;

const Allocation* allocation_of(const Core& core, const Trial& trial) {
  auto it = core.allocations().find(allocation_id(trial.task, trial.run));
  if (it == core.allocations().end())
    it = core.allocations().find(build_allocation_id(trial.task, trial.run));
  return it == core.allocations().end() ? nullptr : &it->second;
}

const Allocation* allocation_of(const Core& core, const Command& command) {
  auto it = core.allocations().find(allocation_id(command.task, command.run));
  return it == core.allocations().end() ? nullptr : &it->second;
}

/// Returns the current allocation of a task, or null.
const Allocation* allocation_of(const Core& core, TaskKey task) {
  if (const Command* command = core.command(task)) return allocation_of(core, *command);
  const Trial* trial = core.trial(task);
  return trial ? allocation_of(core, *trial) : nullptr;
}

/// A slot belongs to at most one allocation, terminating ones included.
void slots_are_disjoint(const Core& core, Broken& broken) {
  std::set<std::pair<AgentId, int>> taken;
  for (const auto& [id, allocation] : core.allocations()) {
    for (const AllocationPart& part : allocation.parts) {
      for (int slot : part.slots) {
        if (taken.emplace(part.agent, slot).second) continue;
        broken.push_back("slot " + std::to_string(slot) + " of " + part.agent.value +
                         " belongs to two allocations");
      }
    }
  }
}

/// The token of each live part leads to its allocation, and no other token is known.
void tokens_are_those_of_live_parts(const Core& core, Broken& broken) {
  std::set<std::string> live;
  for (const auto& [id, allocation] : core.allocations()) {
    for (const AllocationPart& part : allocation.parts) {
      if (part.token_hash.empty()) continue;
      live.insert(part.token_hash);
      const auto found = core.tokens().find(part.token_hash);
      if (found == core.tokens().end() || found->second != &allocation)
        broken.push_back("a token of " + id.value + " is unknown");
    }
  }
  if (core.tokens().size() != live.size()) broken.push_back("the token of an ended allocation is known");
}

void allocations_belong_to_current_runs(const Core& core, Broken& broken) {
  for (const auto& [id, allocation] : core.allocations()) {
    if (allocation.task.as<CommandId>()) {
      const Command* command = core.command(allocation.task);
      if (!command || allocation_of(core, *command) != &allocation)
        broken.push_back(id.value + " belongs to no command");
      continue;
    }
    const Trial* trial = core.trial(allocation.task);
    if (!trial) {
      broken.push_back(id.value + " has no trial");
    } else if (trial->run != allocation.run || is_terminal(trial->state)) {
      broken.push_back(id.value + " is not of its trial's current run");
    }
  }
}

/// Ended objects leave memory in the step that ends them.
void ended_objects_are_removed(const Core& core, Broken& broken) {
  for (const auto& [id, allocation] : core.allocations()) {
    if (allocation.state == AllocationState::kTerminated)
      broken.push_back(id.value + " has ended and is still in memory");
  }
  for (const auto& [id, experiment] : core.experiments()) {
    if (is_terminal(experiment.state))
      broken.push_back(name_of(experiment.id) + " has ended and is still in memory");
  }
  for (const auto& [id, command] : core.commands()) {
    if (is_terminal(command.state))
      broken.push_back("command " + command.task.value + " has ended and is still in memory");
  }
}

/// The agent of each live part is connected or has a deadline: no allocation waits for an agent forever.
void agents_of_allocations_are_connected_or_expire(const Core& core, Broken& broken) {
  for (const auto& [id, allocation] : core.allocations()) {
    for (const AllocationPart& part : allocation.parts) {
      if (part.state == AllocationState::kTerminated) continue;
      auto agent = core.agents().find(part.agent);
      if (agent == core.agents().end()) {
        broken.push_back(id.value + " is on an unknown agent");
      } else if (agent->second.session == 0 && !agent->second.lost_at) {
        broken.push_back("agent " + agent->second.id.value + " is disconnected and has no deadline");
      }
    }
  }
}

/// A terminating allocation has a deadline, and the core reports a next deadline to the loop.
void terminating_allocations_have_deadlines(const Core& core, Broken& broken) {
  for (const auto& [id, allocation] : core.allocations()) {
    const bool asked = is_terminating(allocation);
    if (asked && !allocation.preempt_deadline && !allocation.kill_again) {
      broken.push_back(id.value + " is terminating without a deadline");
    }
    if (asked && !core.next_deadline())
      broken.push_back(id.value + " has a deadline that next_deadline() lacks");
  }
}

/// A trial has the state of its experiment, or is stopping or terminal.
void trial_states_fit_their_experiments(const Core& core, Broken& broken) {
  for (const auto& [id, trial] : core.trials()) {
    auto experiment = core.experiments().find(trial.experiment);
    if (experiment == core.experiments().end()) {
      broken.push_back(name_of(trial.id) + " outlives its experiment");
      continue;
    }
    const State state = experiment->second.state;
    const bool fits = is_terminal(trial.state) || is_stopping(trial.state) || trial.state == state;
    if (!fits) {
      broken.push_back(name_of(trial.id) + " is " + std::string(state_name(trial.state)) +
                       " in an experiment that is " + std::string(state_name(state)));
    }
  }
}

/// A stopping trial has an allocation: without one it would end at once.
void stopping_trials_have_allocations(const Core& core, Broken& broken) {
  for (const auto& [id, trial] : core.trials()) {
    if (is_stopping(trial.state) && !allocation_of(core, trial)) {
      broken.push_back(name_of(trial.id) + " is stopping and has no allocation");
    }
  }
}

/// Restarts, steps, validations and the best metric of a trial are consistent with each other.
void trial_counters_are_consistent(const Core& core, Broken& broken) {
  for (const auto& [id, trial] : core.trials()) {
    auto experiment = core.experiments().find(trial.experiment);
    const bool ended = is_terminal(trial.state);
    if (experiment != core.experiments().end() && !ended &&
        trial.restarts > experiment->second.config->max_restarts) {
      broken.push_back(name_of(trial.id) + " has more than max_restarts restarts");
    }
    if (trial.restarts > trial.run) broken.push_back(name_of(trial.id) + " has more restarts than runs");
    if (trial.best_metric && std::isnan(*trial.best_metric))
      broken.push_back(name_of(trial.id) + " has NaN as its best metric");
    if (trial.latest_steps > 0 && trial.latest_checkpoint.empty()) {
      broken.push_back(name_of(trial.id) + " has checkpoint steps and no checkpoint");
    }
    if (trial.steps_completed < trial.latest_steps)
      broken.push_back(name_of(trial.id) + " is behind its checkpoint");
    if (trial.checkpoint_validation > trial.latest_steps && trial.checkpoint_validation > 0) {
      broken.push_back(name_of(trial.id) + " has a validation of its checkpoint beyond that checkpoint");
    }
  }
}

/// A detached trial has no allocation, and fails at a deadline when its reports stop.
void detached_trials_have_deadlines_and_no_slots(const Core& core, Broken& broken) {
  for (const auto& [id, trial] : core.trials()) {
    auto experiment = core.experiments().find(trial.experiment);
    if (experiment == core.experiments().end() || !experiment->second.detached) continue;
    if (allocation_of(core, trial)) broken.push_back(name_of(trial.id) + " is detached and has slots");
    if (is_terminal(trial.state)) continue;
    if (!core.next_deadline()) broken.push_back(name_of(trial.id) + " is detached and has no deadline");
  }
}

/// A held trial gives its slots back.
void held_trials_terminate(const Core& core, Broken& broken) {
  for (const auto& [id, trial] : core.trials()) {
    if (!trial.held || is_terminal(trial.state)) continue;
    const Allocation* allocation = allocation_of(core, trial);
    if (allocation && !is_terminating(*allocation)) {
      broken.push_back(name_of(trial.id) + " is held and keeps its slots");
    }
  }
}

/// A stopping trial gives its slots back. One that rejected its hyperparameters exits by itself.
void stopping_trials_terminate(const Core& core, Broken& broken) {
  for (const auto& [id, trial] : core.trials()) {
    if (!is_stopping(trial.state) || trial.early_exit_invalid_hp) continue;
    const Allocation* allocation = allocation_of(core, trial);
    if (allocation && !is_terminating(*allocation)) {
      broken.push_back(name_of(trial.id) + " is stopping and keeps its slots");
    }
  }
}

/// An allocation has exactly the slots that its trial requires, on distinct agents; a gang has a meeting
/// port.
void gangs_are_whole(const Core& core, Broken& broken) {
  for (const auto& [id, allocation] : core.allocations()) {
    const Trial* trial = core.trial(allocation.task);
    if (!trial) continue;
    auto experiment = core.experiments().find(trial->experiment);
    if (experiment == core.experiments().end()) continue;
    const expconf::Resources& resources = experiment->second.config->resources;
    if (!is_build(id) && allocation.slot_count() != resources.slots_per_trial) {
      broken.push_back(id.value + " has " + std::to_string(allocation.slot_count()) + " slots of " +
                       std::to_string(resources.slots_per_trial));
    }
    if (resources.is_single_node && allocation.parts.size() != 1)
      broken.push_back(id.value + " is spread over agents");
    std::set<AgentId> agents;
    for (const AllocationPart& part : allocation.parts) {
      if (!agents.insert(part.agent).second)
        broken.push_back(id.value + " has two parts on " + part.agent.value);
      if (part.slots.empty() && allocation.parts.size() != 1)
        broken.push_back(id.value + " has a part without slots");
    }
    if ((allocation.parts.size() > 1) != (allocation.port != 0))
      broken.push_back(id.value + " has a wrong meeting port");
  }
}

/// An experiment has at most one build, which has no slots, and none of its trials trains meanwhile.
void builds_take_no_slots(const Core& core, Broken& broken) {
  std::set<ExperimentId> building;
  for (const auto& [id, allocation] : core.allocations()) {
    const Trial* trial = core.trial(allocation.task);
    if (!trial || !is_build(id)) continue;
    if (allocation.slot_count() != 0) broken.push_back(id.value + " builds and has slots");
    if (allocation.parts.size() != 1 || allocation.attached)
      broken.push_back(id.value + " builds and has processes");
    if (!building.insert(trial->experiment).second)
      broken.push_back(name_of(trial->experiment) + " has two builds");
  }
}

/// A live command either has a request or an allocation, never both. A killed or paused command terminates,
/// and no command is ever preempted.
void commands_wait_or_run(const Core& core, Broken& broken) {
  std::set<TaskKey> queued;
  for (const auto& [name_of_pool, pool] : core.pools()) {
    for (const scheduler::Request& request : pool.snapshot().requests) {
      if (request.task.as<CommandId>()) queued.insert(request.task);
    }
  }
  for (const auto& [id, command] : core.commands()) {
    const std::string its = "command " + command.task.value;
    const Allocation* allocation = allocation_of(core, command);
    const bool paused = command.state == State::kPaused;
    if (paused && (queued.contains(id) || (allocation && !is_terminating(*allocation))))
      broken.push_back(its + " is paused and goes on");
    if (!paused && (allocation != nullptr) == queued.contains(id))
      broken.push_back(its + " has neither a request nor an allocation, or both");
    if (command.exit) broken.push_back(its + " has an exit and is still live");
    if (is_stopping(command.state) && (!allocation || !is_terminating(*allocation)))
      broken.push_back(its + " was killed and does not terminate");
    if (!allocation) continue;
    if (allocation->preempt_requested) broken.push_back(its + " was preempted");
    if (allocation->parts.size() != 1 || allocation->slot_count() != command.config->slots) {
      broken.push_back(its + " has " + std::to_string(allocation->slot_count()) + " slots of " +
                       std::to_string(command.config->slots) + " on " +
                       std::to_string(allocation->parts.size()) + " agents");
    }
  }
}

/// After the failure of a part the other parts are being killed; an allocation without live parts has ended.
void gangs_terminate_together(const Core& core, Broken& broken) {
  for (const auto& [id, allocation] : core.allocations()) {
    bool alive = false, failed = false;
    for (const AllocationPart& part : allocation.parts) {
      alive = alive || part.state != AllocationState::kTerminated;
      failed = failed || (part.exit && part.exit->kind != ExitKind::kSucceeded);
      if ((part.state == AllocationState::kTerminated) != part.exit.has_value()) {
        broken.push_back(id.value + " has a part whose state and exit disagree");
      }
    }
    if (!alive) broken.push_back(id.value + " has no live part");
    if (failed && !allocation.kill_again)
      broken.push_back(id.value + " has lost a part and is not being killed");
  }
}

/// The schedulers' copies of agents, jobs, requests and allocations equal the state of the core.
void schedulers_equal_the_core(const Core& core, Broken& broken) {
  std::size_t running = 0;
  for (const auto& [name_of_pool, pool] : core.pools()) {
    const scheduler::Snapshot known = pool.snapshot();
    running += known.running.size();
    for (const scheduler::Running& one : known.running) {
      const Allocation* allocation = allocation_of(core, one.task);
      const bool same =
          allocation && allocation->pool == name_of_pool && one.terminating == is_terminating(*allocation) &&
          std::equal(one.parts.begin(), one.parts.end(), allocation->parts.begin(), allocation->parts.end(),
                     [](const scheduler::Part& a, const AllocationPart& b) {
                       return a.agent == b.agent && a.slots == b.slots;
                     });
      if (!same) broken.push_back("pool " + name_of_pool + " is wrong about " + name_of(one.task));
    }
    for (const scheduler::Request& request : known.requests) {
      if (request.task.as<CommandId>()) continue;  // commands_wait_or_run
      const Trial* trial = core.trial(request.task);
      const bool waits =
          trial && trial->state == State::kActive && !trial->held && !allocation_of(core, *trial);
      if (!waits) broken.push_back(name_of(request.task) + " has a request in a queue and does not wait");
    }
    for (const scheduler::Job& job : known.jobs) {
      const auto id = job.id.as<ExperimentId>();
      if (!id) continue;
      auto experiment = core.experiments().find(*id);
      if (experiment == core.experiments().end() || core.pool_of(experiment->second) != name_of_pool)
        continue;
      const QueueSettings& queue = experiment->second.queue;
      if (job.priority != queue.priority || job.position != queue.position) {
        broken.push_back("pool " + name_of_pool + " is wrong about the place of " +
                         name_of(experiment->first));
      }
    }
    for (const scheduler::Agent& agent : known.agents) {
      auto its = core.agents().find(agent.id);
      auto settings = core.agent_settings().find(agent.id);
      const bool enabled = settings == core.agent_settings().end() || settings->second.enabled;
      const bool same =
          its != core.agents().end() && its->second.pool == name_of_pool &&
          its->second.slots.size() == agent.slots.size() &&
          agent.open == (its->second.session != 0 && enabled && its->second.problem.empty() &&
                         !its->second.stopping && its->second.leftovers.empty() && core.admits(agent.id));
      if (!same) broken.push_back("pool " + name_of_pool + " is wrong about agent " + agent.id.value);
      for (std::size_t i = 0; same && i < agent.slots.size(); ++i) {
        const int slot = static_cast<int>(i);
        const bool disabled =
            settings != core.agent_settings().end() && settings->second.disabled_slots.contains(slot);
        if (agent.slots[i].enabled == (disabled || its->second.slot_problems.contains(slot)) ||
            agent.slots[i].link != its->second.slots[i].link)
          broken.push_back("pool " + name_of_pool + " is wrong about slot " + std::to_string(slot) + " of " +
                           agent.id.value);
      }
    }
  }
  if (running != core.allocations().size()) broken.push_back("the pools lack an allocation");
}

}  // namespace

std::vector<std::string> broken_invariants(const Core& core) {
  Broken broken;
  slots_are_disjoint(core, broken);
  tokens_are_those_of_live_parts(core, broken);
  allocations_belong_to_current_runs(core, broken);
  ended_objects_are_removed(core, broken);
  agents_of_allocations_are_connected_or_expire(core, broken);
  terminating_allocations_have_deadlines(core, broken);
  trial_states_fit_their_experiments(core, broken);
  stopping_trials_have_allocations(core, broken);
  trial_counters_are_consistent(core, broken);
  detached_trials_have_deadlines_and_no_slots(core, broken);
  held_trials_terminate(core, broken);
  stopping_trials_terminate(core, broken);
  gangs_are_whole(core, broken);
  commands_wait_or_run(core, broken);
  builds_take_no_slots(core, broken);
  gangs_terminate_together(core, broken);
  schedulers_equal_the_core(core, broken);
  return broken;
}

}  // namespace det::core
