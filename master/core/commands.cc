#include "master/core/commands.h"

#include "master/core/owners.h"
#include "master/core/transitions.h"
#include "master/scheduler/position.h"

namespace det::core {
namespace {

/// Task ids of ended commands that are remembered.
constexpr std::size_t kMaxEnded = 4096;

}  // namespace

Command* Commands::find(CommandId id) {
  const auto it = commands_.find(id);
  return it == commands_.end() ? nullptr : &it->second;
}

Command* Commands::find(TaskKey task) {
  const auto id = task.as<CommandId>();
  return id ? find(*id) : nullptr;
}

Result<ReplyValue> Commands::handle(Step& step, const SubmitCommand& input) {
  if (tasks_.contains(input.task)) return Done{};
  TRY(owners_.experiments.check_barred(0, input.workspace));
  // Ids come from a generator that is seeded by the step, so a replay makes the same ones. The complement
  // keeps them apart from those of experiments.
  const CommandId id{next_.value++};
  Random names{static_cast<std::uint64_t>(step.now.wall.micros), ~static_cast<std::uint64_t>(id.value)};
  const expconf::CommandConfig& config = *input.config;
  Command& command = commands_[id];
  command.id = id;
  command.task = input.task;
  command.job_id = names.uuid();
  command.owner = input.owner;
  command.workspace = input.workspace;
  command.config = input.config;
  command.code_archive = input.code_archive;
  command.submitted = step.now.wall;
  command.queue = {.pool = config.resource_pool,
                   .priority = config.priority,
                   .weight = config.weight,
                   .max_slots = std::nullopt,
                   .position = scheduler::position_of(step.now.wall)};
  tasks_[command.task] = id;
  step.touch(command);
  put_job(command);
  request_slots(step, command);
  return Done{};
}

Result<ReplyValue> Commands::handle(Step& step, const KillCommand& input) {
  const auto known = tasks_.find(input.task);
  if (known == tasks_.end()) {
    return fail(Code::kNotFound, "command " + input.task.value + " has ended or does not exist");
  }
  if (Command* const command = find(known->second)) kill(step, *command);
  return Done{};
}

Result<Command*> Commands::changeable(const TaskId& task) {
  const auto known = tasks_.find(task);
  if (known == tasks_.end())
    return fail(Code::kNotFound, "command " + task.value + " has ended or does not exist");
  Command* const command = find(known->second);
  if (!command) return fail(Code::kFailedPrecondition, "command " + task.value + " has ended");
  if (is_stopping(command->state))
    return fail(Code::kFailedPrecondition, "command " + task.value + " is ending");
  return command;
}

Result<ReplyValue> Commands::handle(Step& step, const PauseCommand& input) {
  TRY_ASSIGN(Command* const command, changeable(input.task));
  if (command->state == State::kPaused) return Done{};
  change(command->state, State::kPaused);
  step.touch(*command);
  step.log(command->task, command->run, "paused by a user");
  if (owners_.is(Mutant::kPausedCommandRuns)) return Done{};
  owners_.queues.withdraw(command->id);
  if (Allocation* const allocation = owners_.allocations.of(command->id))
    owners_.allocations.kill(step, *allocation, "it was paused by a user");
  return Done{};
}

Result<ReplyValue> Commands::handle(Step& step, const ResumeCommand& input) {
  TRY_ASSIGN(Command* const command, changeable(input.task));
  if (command->state != State::kPaused) return Done{};
  if (owners_.allocations.of(command->id))
    return fail(
        Code::kFailedPrecondition,
        "command " + input.task.value + " still has processes of before the pause; try again in a moment");
  change(command->state, State::kActive);
  ++command->run;
  step.touch(*command);
  request_slots(step, *command);
  return Done{};
}

void Commands::request_slots(Step& step, const Command& command) {
  put_request(command);
  step.log(command.task, command.run, "scheduling the command");
}

void Commands::start(Step& step, CommandId id, const std::vector<scheduler::Part>& parts) {
  const Command& command = commands_.at(id);
  owners_.allocations.start(step, id, command.task, command.run, parts);
}

void Commands::kill(Step& step, Command& command) {
  if (!is_legal(command.state, State::kStoppingKilled)) return;
  change(command.state, State::kStoppingKilled);
  step.touch(command);
  owners_.queues.withdraw(command.id);
  // With an allocation the command ends at its exit (`end_run`), otherwise now.
  Allocation* allocation = owners_.allocations.of(command.id);
  if (!allocation) {
    step.log(command.task, command.run, "killed by a user before it began");
    return end(step, command, State::kCanceled);
  }
  if (!owners_.is(Mutant::kCommandKillLost))
    owners_.allocations.kill(step, *allocation, "it was killed by a user");
}

void Commands::end_run(Step& step, const Allocation& allocation) {
  Command& command = commands_.at(*allocation.task.as<CommandId>());
  // It runs again, however these processes have ended.
  if (command.state == State::kPaused) return;
  command.exit = *allocation.exit;
  step.touch(command);
  if (command.exit->kind == ExitKind::kLost && command.state == State::kActive &&
      owners_.is(Mutant::kCommandRunsAgain)) {
    return request_slots(step, command);
  }
  // After a kill the exit does not matter: the command may have succeeded just before.
  if (command.state == State::kStoppingKilled) return end(step, command, State::kCanceled);
  end(step, command, command.exit->kind == ExitKind::kSucceeded ? State::kCompleted : State::kError);
}

void Commands::end(Step& step, Command& command, State end) {
  change(command.state, end);
  command.ended = step.now.wall;
  step.touch(command);
}

void Commands::forget_ended(Step& step) {
  for (const Command* command : step.commands.sorted()) {
    if (!is_terminal(command->state)) continue;
    const CommandId id = command->id;
    owners_.queues.remove_job(owners_.queues.pool_of(command->queue), id);
    ended_.push_back(command->task);
    commands_.erase(id);
  }
  step.commands.clear();
  for (; ended_.size() > kMaxEnded; ended_.pop_front()) tasks_.erase(ended_.front());
}

void Commands::move_to(Step& step, Command& command, const std::string& pool) {
  // A command with an allocation is never moved (Jobs::check), so only its request moves.
  const std::string before = owners_.queues.pool_of(command.queue);
  command.queue.pool = pool;
  step.touch(command);
  put_job(command);
  if (owners_.queues.has_request(command.id)) put_request(command);
  owners_.queues.remove_job(before, command.id);
}

// max_slots is not passed on: a command has a single allocation.
scheduler::Job Commands::job_of(const Command& command) {
  return {.id = command.id,
          .user = command.owner,
          .workspace = command.workspace,
          .priority = command.queue.priority,
          .position = command.queue.position,
          .weight = command.queue.weight,
          .max_slots = std::nullopt};
}

void Commands::put_job(const Command& command) {
  owners_.queues.put_job(owners_.queues.pool_of(command.queue), job_of(command));
}

void Commands::put_request(const Command& command) {
  owners_.queues.request(owners_.queues.pool_of(command.queue),
                         {.task = command.id,
                          .job = command.id,
                          .slots = command.config->slots,
                          .single_node = true,
                          .preemptible = owners_.is(Mutant::kCommandPreempted)});
}

Status Commands::restore(std::vector<Command> rows, CommandId next) {
  next_ = next;
  for (Command& row : rows) {
    const CommandId id = row.id;
    const std::string name = "command " + row.task.value;
    if (is_terminal(row.state)) return contradiction(name + " has ended");
    if (!tasks_.emplace(row.task, id).second) return contradiction(name + " is there twice");
    const auto [command, fresh] = commands_.emplace(id, std::move(row));
    if (!fresh) return contradiction(name + " has the number of another");
    put_job(command->second);
  }
  return {};
}

Status Commands::restore_requests() {
  for (const auto& [id, command] : commands_) {
    if (owners_.allocations.of(id)) continue;
    if (is_stopping(command.state))
      return contradiction("command " + command.task.value + " is stopping and has no allocation");
    if (command.state == State::kPaused) continue;
    if (!owners_.is(Mutant::kCommandForgotten)) put_request(command);
  }
  return {};
}

}  // namespace det::core
