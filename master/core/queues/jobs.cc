#include "master/core/queues/jobs.h"

#include "master/core/owners.h"
#include "master/scheduler/position.h"

namespace det::core {

Result<Jobs::Entry> Jobs::find(JobKey job) {
  if (const auto id = job.as<CommandId>()) {
    Command* const command = owners_.commands.find(*id);
    if (!command) return fail(Code::kNotFound, "the command has ended or does not exist");
    return Entry{.name = "command " + command->task.value,
                 .command = command,
                 .queue = &command->queue,
                 .submitted = command->submitted,
                 .slots = command->config->slots};
  }
  Experiment* const experiment = owners_.experiments.find(*job.as<ExperimentId>());
  if (!experiment) return fail(Code::kNotFound, name_of(job) + " has ended or does not exist");
  return Entry{.name = name_of(job),
               .experiment = experiment,
               .queue = &experiment->queue,
               .submitted = experiment->submitted,
               .slots = experiment->config->resources.slots_per_trial,
               .detached = experiment->detached};
}

Status Jobs::check(const UpdateJob& input, const Entry& entry) {
  auto wrong = [](const std::string& what) { return fail(Code::kInvalidArgument, what); };
  if (entry.detached) return wrong(entry.name + " runs outside the cluster and is in no queue");
  if (input.priority && (*input.priority < 1 || *input.priority > 99)) {
    return wrong("priority must be from 1 to 99, not " + std::to_string(*input.priority));
  }
  if (input.weight && !(*input.weight > 0)) return wrong("weight must be above 0");
  // A smaller limit would keep every trial of the experiment waiting forever.
  if (input.max_slots && *input.max_slots != 0 && *input.max_slots < entry.slots) {
    return wrong("max_slots must be 0 (no limit) or at least the " + std::to_string(entry.slots) +
                 " slots of a trial, not " + std::to_string(*input.max_slots));
  }
  const std::string& pool = owners_.queues.pool_of(*entry.queue);
  if (entry.command && input.pool && *input.pool != pool && owners_.allocations.of(entry.command->id)) {
    return fail(Code::kFailedPrecondition,
                entry.name + " runs, and a command runs only once: it cannot be moved");
  }
  if (!input.beside) return {};
  if (input.pool && *input.pool != pool) {
    return wrong(entry.name + " cannot leave pool " + pool +
                 " and get a position ahead of or behind a job there; change the pool first");
  }
  TRY_ASSIGN(const Entry anchor, find(input.beside->anchor));
  if (owners_.queues.pool_of(*anchor.queue) != pool || anchor.detached) {
    return wrong(anchor.name + " is not in pool " + pool + ", where " + entry.name + " waits");
  }
  return {};
}

Result<ReplyValue> Jobs::handle(Step& step, const UpdateJob& input) {
  TRY_ASSIGN(const Entry entry, find(input.job));
  TRY(check(input, entry));
  const std::string pool = owners_.queues.pool_of(*entry.queue);
  // The last check: from here on the update is accepted.
  std::vector<scheduler::Job> moved;
  if (input.beside) {
    TRY_ASSIGN(moved, scheduler::move(jobs_of(pool), input.job, input.beside->side, input.beside->anchor));
  }
  QueueSettings& queue = *entry.queue;
  if (input.weight) queue.weight = *input.weight;
  if (input.max_slots) queue.max_slots = *input.max_slots == 0 ? std::nullopt : input.max_slots;
  if (input.priority && *input.priority != queue.priority) {
    queue.priority = *input.priority;
    queue.position = scheduler::position_of(entry.submitted);
  }
  if (!input.pool || *input.pool == pool) {
    put(step, entry);
    place(step, moved);
    return Done{};
  }
  // A move to another pool updates both schedulers with all settings.
  if (entry.command) {
    owners_.commands.move_to(step, *entry.command, *input.pool);
  } else {
    owners_.experiments.move_to(step, *entry.experiment, *input.pool);
  }
  return Done{};
}

void Jobs::put(Step& step, const Entry& entry) {
  if (entry.command) {
    step.touch(*entry.command);
    return owners_.commands.put_job(*entry.command);
  }
  step.touch(*entry.experiment);
  owners_.experiments.put_job(*entry.experiment);
}

std::vector<scheduler::Job> Jobs::jobs_of(const std::string& pool) const {
  const Queues& queues = owners_.queues;
  std::vector<scheduler::Job> jobs;
  for (const auto& [id, experiment] : owners_.experiments.all()) {
    if (!experiment.detached && queues.pool_of(experiment.queue) == pool)
      jobs.push_back(owners_.experiments.job_of(experiment));
  }
  for (const auto& [id, command] : owners_.commands.all()) {
    if (queues.pool_of(command.queue) == pool) jobs.push_back(Commands::job_of(command));
  }
  return jobs;
}

void Jobs::place(Step& step, const std::vector<scheduler::Job>& moved) {
  for (const scheduler::Job& job : moved) {
    // `moved` has jobs of live experiments and commands only.
    const Entry entry = *find(job.id);
    entry.queue->priority = job.priority;
    entry.queue->position = job.position;
    if (!owners_.is(Mutant::kMoveKeepsPosition)) {
      put(step, entry);
    } else if (entry.experiment) {
      step.touch(*entry.experiment);
    }
  }
}

}  // namespace det::core
