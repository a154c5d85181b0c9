// User changes of queues and capacity: queue settings of experiments and commands (UpdateJob), agents and
// slots in and out of service (SetService).
#include <algorithm>

#include "master/core/impl.h"
#include "master/core/transitions.h"

namespace det::core {

/// Queue settings of an experiment or a command, in a common form.
struct Core::Impl::Place {
  std::string name;  ///< for error messages
  std::string pool;
  WallTime submitted;
  QueuePlace* queue = nullptr;  ///< valid until the end of the step
  int slots = 0;                ///< slots of one trial, or of the command
  bool unmanaged = false;       ///< runs outside the cluster, so it is in no queue
};

Result<Core::Impl::Place> Core::Impl::find_place(ExperimentId job) {
  if (is_command(job)) {
    auto it = commands.find(command_of(job));
    if (it == commands.end()) return fail(Code::kNotFound, "the command has ended or does not exist");
    Command& command = it->second;
    return Place{"command " + command.task.value, pool_of(command), command.submitted, &command.queue,
                 command.config->slots};
  }
  const std::string name = "experiment " + std::to_string(job.value);
  auto it = experiments.find(job);
  if (it == experiments.end()) return fail(Code::kNotFound, name + " has ended or does not exist");
  Experiment& experiment = it->second;
  return Place{name,
               pool_of(experiment),
               experiment.submitted,
               &experiment.queue,
               experiment.config->resources.slots_per_trial,
               experiment.unmanaged};
}

Status Core::Impl::check(const UpdateJob& input, const Place& place) {
  auto wrong = [](const std::string& what) { return fail(Code::kInvalidArgument, what); };
  if (place.unmanaged) return wrong(place.name + " runs outside the cluster and stands in no queue");
  if (input.priority && (*input.priority < 1 || *input.priority > 99)) {
    return wrong("priority must be from 1 to 99, not " + std::to_string(*input.priority));
  }
  if (input.weight && !(*input.weight > 0)) return wrong("weight must be above 0");
  // A smaller limit would keep every trial of the experiment waiting forever.
  if (input.max_slots && *input.max_slots != 0 && *input.max_slots < place.slots) {
    return wrong("max_slots must be 0 (no limit) or at least the " + std::to_string(place.slots) +
                 " slots of a trial, not " + std::to_string(*input.max_slots));
  }
  if (is_command(input.experiment) && input.pool && *input.pool != place.pool &&
      live_allocation(as_trial(command_of(input.experiment)))) {
    return fail(Code::kFailedPrecondition,
                place.name + " runs, and a command runs only once: it cannot be moved");
  }
  if (!input.beside) return {};
  TRY_ASSIGN(const Place anchor, find_place(input.beside->anchor));
  if (anchor.pool != place.pool || anchor.unmanaged) {
    return wrong(anchor.name + " is not in pool " + place.pool + ", where " + place.name + " waits");
  }
  return {};
}

void Core::Impl::handle(const UpdateJob& input) {
  auto found = find_place(input.experiment);
  if (!found) return reply(input.reply, tl::unexpected(std::move(found).error()));
  if (auto checked = check(input, *found); !checked)
    return reply(input.reply, tl::unexpected(std::move(checked).error()));
  // The last check: from here on the update is accepted.
  std::vector<scheduler::Job> moved;
  if (input.beside) {
    auto result =
        scheduler::move(jobs_of(found->pool), input.experiment, input.beside->side, input.beside->anchor);
    if (!result) return reply(input.reply, tl::unexpected(std::move(result).error()));
    moved = std::move(*result);
  }
  reply(input.reply, Done{});
  QueuePlace& queue = *found->queue;
  if (input.weight) queue.weight = *input.weight;
  if (input.max_slots) queue.max_slots = *input.max_slots == 0 ? std::nullopt : input.max_slots;
  if (input.priority && *input.priority != queue.priority) {
    queue.priority = *input.priority;
    queue.position = scheduler::position_of(found->submitted);
  }
  // A move to another pool updates both schedulers with all settings. Positions next to an anchor refer to
  // the old pool and are dropped.
  const bool command = is_command(input.experiment);
  if (input.pool && *input.pool != found->pool) {
    if (!command) return move_to(experiments.at(input.experiment), *input.pool);
    touched_commands.insert(command_of(input.experiment));
    return move_to(commands.at(command_of(input.experiment)), *input.pool);
  }
  tell_place(input.experiment);
  place(moved);
}

void Core::Impl::tell_place(ExperimentId job) {
  if (is_command(job)) {
    touched_commands.insert(command_of(job));
    return tell_job(commands.at(command_of(job)));
  }
  touched_experiments.insert(job);
  tell_job(experiments.at(job));
}

std::vector<scheduler::Job> Core::Impl::jobs_of(const std::string& name) const {
  std::vector<scheduler::Job> jobs;
  for (const auto& [id, experiment] : experiments) {
    if (!experiment.unmanaged && pool_of(experiment) == name) jobs.push_back(to_scheduler(experiment));
  }
  for (const auto& [id, command] : commands) {
    if (pool_of(command) == name) jobs.push_back(to_scheduler(command));
  }
  return jobs;
}

void Core::Impl::place(const std::vector<scheduler::Job>& moved) {
  for (const scheduler::Job& job : moved) {
    QueuePlace& queue =
        is_command(job.id) ? commands.at(command_of(job.id)).queue : experiments.at(job.id).queue;
    queue.priority = job.priority;
    queue.position = job.position;
    if (!is(Mutant::kMoveKeepsPlace)) {
      tell_place(job.id);
    } else if (!is_command(job.id)) {
      touched_experiments.insert(job.id);
    }
  }
}

void Core::Impl::move_to(Experiment& experiment, const std::string& name) {
  const std::string before = pool_of(experiment);
  pool(before).remove_job(experiment.id);
  dirty.insert(before);
  experiment.queue.pool = name;
  touched_experiments.insert(experiment.id);
  tell_job(experiment);
  for (TrialId id : searches.at(experiment.id).trials) {
    auto trial = trials.find(id);
    if (trial == trials.end()) continue;
    // Removing the job from the old pool withdrew its requests there. Its allocations stay in the old pool's
    // scheduler until they have ended.
    if (waiting.contains(id)) tell_request(trial->second);
    if (Allocation* allocation = live_allocation(id)) {
      ask_to_leave(*allocation, "its experiment was moved to pool " + name);
    }
  }
}

void Core::Impl::handle(const SetService& input) {
  auto known = agents.find(input.agent);
  if (known == agents.end() && !agent_settings.contains(input.agent)) {
    return reply(input.reply, fail(Code::kNotFound, "agent " + input.agent.value + " not found"));
  }
  // Settings of an agent that is away may be changed, but its slots are unknown.
  const std::size_t slots = known == agents.end() ? 0 : known->second.slots.size();
  if (input.slot && (*input.slot < 0 || static_cast<std::size_t>(*input.slot) >= slots)) {
    return reply(input.reply, fail(Code::kNotFound, "agent " + input.agent.value + " has no slot " +
                                                        std::to_string(*input.slot)));
  }
  reply(input.reply, Done{});
  AgentSettings& settings = agent_settings[input.agent];
  settings.agent = input.agent;
  if (!input.slot) {
    settings.enabled = input.enabled;
    settings.draining = !input.enabled && input.drain;
  } else if (input.enabled) {
    settings.disabled_slots.erase(*input.slot);
  } else {
    settings.disabled_slots.insert(*input.slot);
  }
  inserts.push_back(PutAgentSettings{settings});
  if (known == agents.end()) return;
  // First the scheduler closes the agent or the slot, then allocations there are preempted: their slots must
  // not be assigned again.
  tell_agent(known->second);
  auto held = on_agent.find(input.agent);
  if (input.enabled || input.drain || held == on_agent.end()) return;
  for (const AllocationId& id : held->second) {
    Allocation& allocation = allocations.at(id);
    const std::vector<int>& here = allocation.part_on(input.agent)->slots;
    const bool hit = !input.slot || std::find(here.begin(), here.end(), *input.slot) != here.end();
    if (!hit) continue;
    ask_to_leave(allocation, input.slot ? "slot " + std::to_string(*input.slot) + " of agent " +
                                              input.agent.value + " was disabled"
                                        : "agent " + input.agent.value + " was disabled");
  }
}

}  // namespace det::core
