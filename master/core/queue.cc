// Owns what people change of the queues and of what they are served with: places of experiments, agents and slots in
// and out of service.
#include <algorithm>

#include "master/core/impl.h"
#include "master/core/transitions.h"

namespace det::core {

Status Core::Impl::check(const UpdateJob& input) const {
  const std::string name = "experiment " + std::to_string(input.experiment.value);
  auto it = experiments.find(input.experiment);
  if (it == experiments.end()) return fail(Code::kNotFound, name + " has ended or does not exist");
  const Experiment& experiment = it->second;
  auto wrong = [](const std::string& what) { return fail(Code::kInvalidArgument, what); };
  if (experiment.unmanaged) return wrong(name + " runs outside the cluster and stands in no queue");
  if (input.priority && (*input.priority < 1 || *input.priority > 99)) {
    return wrong("priority must be from 1 to 99, not " + std::to_string(*input.priority));
  }
  if (input.weight && !(*input.weight > 0)) return wrong("weight must be above 0");
  const int slots = experiment.config->resources.slots_per_trial;
  if (input.max_slots && *input.max_slots != 0 && *input.max_slots < slots) {
    return wrong("max_slots must be 0 (no limit) or at least the " + std::to_string(slots) + " slots of a trial, not " +
                 std::to_string(*input.max_slots));
  }
  if (!input.beside) return {};
  auto anchor = experiments.find(input.beside->anchor);
  if (anchor == experiments.end()) {
    return fail(Code::kNotFound, "experiment " + std::to_string(input.beside->anchor.value) +
                                     " has ended or does not exist");
  }
  if (pool_of(anchor->second) != pool_of(experiment) || anchor->second.unmanaged) {
    return wrong("experiment " + std::to_string(anchor->first.value) + " is not in pool " + pool_of(experiment) +
                 ", where " + name + " waits");
  }
  return {};
}

void Core::Impl::handle(const UpdateJob& input) {
  if (auto checked = check(input); !checked) return reply(input.reply, tl::unexpected(std::move(checked).error()));
  Experiment& experiment = experiments.at(input.experiment);
  std::vector<scheduler::Job> moved;
  if (input.beside) {
    auto result = scheduler::move(jobs_of(pool_of(experiment)), experiment.id, input.beside->side, input.beside->anchor);
    if (!result) return reply(input.reply, tl::unexpected(std::move(result).error()));
    moved = std::move(*result);
  }
  reply(input.reply, Done{});
  QueuePlace& queue = experiment.queue;
  if (input.weight) queue.weight = *input.weight;
  if (input.max_slots) queue.max_slots = *input.max_slots == 0 ? std::nullopt : input.max_slots;
  if (input.priority && *input.priority != queue.priority) {
    queue.priority = *input.priority;
    queue.position = scheduler::position_of(experiment.submitted);
  }
  touched_experiments.insert(experiment.id);
  if (input.pool && *input.pool != pool_of(experiment)) return move_to(experiment, *input.pool);
  tell_job(experiment);
  place(moved);
}

std::vector<scheduler::Job> Core::Impl::jobs_of(const std::string& name) const {
  std::vector<scheduler::Job> jobs;
  for (const auto& [id, experiment] : experiments) {
    if (!experiment.unmanaged && pool_of(experiment) == name) jobs.push_back(to_scheduler(experiment));
  }
  return jobs;
}

void Core::Impl::place(const std::vector<scheduler::Job>& moved) {
  for (const scheduler::Job& job : moved) {
    Experiment& experiment = experiments.at(job.id);
    experiment.queue.priority = job.priority;
    experiment.queue.position = job.position;
    touched_experiments.insert(job.id);
    if (!is(Mutant::kMoveKeepsPlace)) tell_job(experiment);
  }
}

void Core::Impl::move_to(Experiment& experiment, const std::string& name) {
  const std::string before = pool_of(experiment);
  pool(before).remove_job(experiment.id);
  dirty.insert(before);
  experiment.queue.pool = name;
  tell_job(experiment);
  for (TrialId id : searches.at(experiment.id).trials) {
    auto trial = trials.find(id);
    if (trial == trials.end()) continue;
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
  tell_agent(known->second);
  auto held = on_agent.find(input.agent);
  if (input.enabled || input.drain || held == on_agent.end()) return;
  for (const AllocationId& id : held->second) {
    Allocation& allocation = allocations.at(id);
    const std::vector<int>& here = allocation.part_on(input.agent)->slots;
    const bool hit = !input.slot || std::find(here.begin(), here.end(), *input.slot) != here.end();
    if (!hit) continue;
    ask_to_leave(allocation, input.slot ? "slot " + std::to_string(*input.slot) + " of agent " + input.agent.value +
                                              " was disabled"
                                        : "agent " + input.agent.value + " was disabled");
  }
}

}  // namespace det::core
