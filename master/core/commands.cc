// Life of commands: a request for slots like that of a trial, one allocation, the end that follows from its
// exit. A command is never started twice, even when infrastructure failed: its side effects cannot be undone.
#include "master/core/impl.h"
#include "master/core/transitions.h"

namespace det::core {
namespace {

/// Task ids of ended commands that are remembered, for repeated submissions and kills.
constexpr std::size_t kEndedCommands = 4096;

}  // namespace

void Core::Impl::handle(const SubmitCommand& input) {
  if (command_tasks.contains(input.task) && !is(Mutant::kCommandTwice)) return reply(input.reply, Done{});
  // Ids come from a generator that is seeded by the step, so a replay makes the same ones. The complement
  // keeps them apart from those of experiments.
  const CommandId id{next_command.value++};
  Random names{static_cast<std::uint64_t>(now.wall.micros), ~static_cast<std::uint64_t>(id.value)};
  const expconf::CommandConfig& config = *input.config;
  Command& command = commands[id];
  command.id = id;
  command.task =
      is(Mutant::kCommandTwice) && command_tasks.contains(input.task) ? TaskId(names.uuid()) : input.task;
  command.job_id = names.uuid();
  command.owner = input.owner;
  command.workspace = input.workspace;
  command.config = input.config;
  command.code_archive = input.code_archive;
  command.submitted = now.wall;
  command.queue = {.pool = config.resource_pool,
                   .priority = config.priority,
                   .weight = config.weight,
                   .max_slots = std::nullopt,
                   .position = scheduler::position_of(now.wall)};
  command_tasks[command.task] = id;
  touched_commands.insert(id);
  tell_job(command);
  request_slots(command);
  reply(input.reply, Done{});
}

void Core::Impl::handle(const KillCommand& input) {
  auto known = command_tasks.find(input.task);
  if (known == command_tasks.end()) {
    return reply(input.reply,
                 fail(Code::kNotFound, "command " + input.task.value + " has ended or does not exist"));
  }
  if (auto live_one = commands.find(known->second); live_one != commands.end()) kill(live_one->second);
  reply(input.reply, Done{});
}

void Core::Impl::request_slots(Command& command) {
  waiting.insert(as_trial(command.id));
  tell_request(command);
  log(command.task, 1, "scheduling the command");
}

void Core::Impl::withdraw(const Command& command) {
  if (waiting.erase(as_trial(command.id)) == 0) return;
  pool(pool_of(command)).withdraw(as_trial(command.id));
  dirty.insert(pool_of(command));
}

void Core::Impl::kill(Command& command) {
  if (!is_legal(command.state, State::kStoppingKilled)) return;
  change(command.state, State::kStoppingKilled);
  touched_commands.insert(command.id);
  withdraw(command);
  // With an allocation the command ends at its exit (`decide`), otherwise now.
  Allocation* allocation = live_allocation(as_trial(command.id));
  if (!allocation) {
    log(command.task, 1, "killed by a user before it began");
    return end(command, State::kCanceled);
  }
  if (!is(Mutant::kCommandKillLost)) kill(*allocation, "it was killed by a user");
}

void Core::Impl::decide(Command& command, const Allocation& allocation) {
  command.exit = *allocation.exit;
  touched_commands.insert(command.id);
  if (command.exit->kind == ExitKind::kLost && command.state == State::kActive &&
      is(Mutant::kCommandRunsAgain)) {
    return request_slots(command);
  }
  // After a kill the exit does not matter: the command may have succeeded just before.
  if (command.state == State::kStoppingKilled) return end(command, State::kCanceled);
  end(command, command.exit->kind == ExitKind::kSucceeded ? State::kCompleted : State::kError);
}

void Core::Impl::end(Command& command, State end) {
  change(command.state, end);
  command.ended = now.wall;
  touched_commands.insert(command.id);
}

void Core::Impl::forget_if_ended(CommandId id) {
  // The row has been built, so the command may leave memory. Its task id stays for a while.
  const Command& command = commands.at(id);
  if (!is_terminal(command.state)) return;
  pool(pool_of(command)).remove_job(as_job(id));
  dirty.insert(pool_of(command));
  ended_commands.push_back(command.task);
  commands.erase(id);
  for (; ended_commands.size() > kEndedCommands; ended_commands.pop_front())
    command_tasks.erase(ended_commands.front());
}

void Core::Impl::move_to(Command& command, const std::string& name) {
  // A command with an allocation is never moved (`check`), so only its request moves.
  pool(pool_of(command)).remove_job(as_job(command.id));
  dirty.insert(pool_of(command));
  command.queue.pool = name;
  tell_job(command);
  if (waiting.contains(as_trial(command.id))) tell_request(command);
}

// max_slots is not passed on: a command has a single allocation.
scheduler::Job Core::Impl::to_scheduler(const Command& command) const {
  return {.id = as_job(command.id),
          .user = command.owner,
          .priority = command.queue.priority,
          .position = command.queue.position,
          .weight = command.queue.weight,
          .max_slots = std::nullopt};
}

void Core::Impl::tell_job(const Command& command) {
  pool(pool_of(command)).put_job(to_scheduler(command));
  dirty.insert(pool_of(command));
}

void Core::Impl::tell_request(const Command& command) {
  pool(pool_of(command))
      .put_request({.trial = as_trial(command.id),
                    .job = as_job(command.id),
                    .slots = command.config->slots,
                    .single_node = true,
                    .preemptible = is(Mutant::kCommandPreempted)});
  dirty.insert(pool_of(command));
}

// Requests follow in `restore`, once it is known which commands have allocations.
Status Core::Impl::restore_commands(std::vector<Command> rows) {
  for (Command& row : rows) {
    const CommandId id = row.id;
    const std::string name = "the store contradicts itself: command " + row.task.value;
    if (is_terminal(row.state)) return fail(Code::kDataLoss, name + " has ended");
    if (!command_tasks.emplace(row.task, id).second) return fail(Code::kDataLoss, name + " is there twice");
    if (!commands.emplace(id, std::move(row)).second)
      return fail(Code::kDataLoss, name + " has the number of another");
    tell_job(commands.at(id));
  }
  return {};
}

Status Core::Impl::check_allocation(const Command& command, const Allocation& allocation) const {
  if (!is_terminal(command.state) && allocation.run == 1) return {};
  return fail(Code::kDataLoss, "the store contradicts itself: allocation " + allocation.id.value +
                                   " is not the one of its command");
}

}  // namespace det::core
