// Owner of commands: a request for slots like that of a trial, one allocation, the end that follows from its
// exit. A command is never started twice, even when infrastructure failed: its side effects cannot be undone.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "master/core/core.h"

namespace det::core {

struct Owners;
struct Step;

/// Live commands. An ended one leaves memory in the step that ends it.
class Commands {
 public:
  explicit Commands(Owners& owners) : owners_(owners) {}

  // Inputs; see input.h for their contracts.
  Result<ReplyValue> handle(Step& step, const SubmitCommand& input);
  Result<ReplyValue> handle(Step& step, const KillCommand& input);
  Result<ReplyValue> handle(Step& step, const PauseCommand& input);
  Result<ReplyValue> handle(Step& step, const ResumeCommand& input);

  /// Starts the allocation of a command.
  void start(Step& step, CommandId id, const std::vector<scheduler::Part>& parts);
  /// Ends a command after its allocation.
  void end_run(Step& step, const Allocation& allocation);
  /// Removes the commands that ended in the step. Runs after their rows have been built.
  void forget_ended(Step& step);
  /// Moves a command that waits for slots to another pool.
  void move_to(Step& step, Command& command, const std::string& pool);

  const std::map<CommandId, Command>& all() const { return commands_; }
  /// Returns the command, or null.
  Command* find(CommandId id);
  /// Returns the command, or null. Null for a task of another kind.
  Command* find(TaskKey task);
  Command& at(CommandId id) { return commands_.at(id); }
  static scheduler::Job job_of(const Command& command);
  /// Updates the scheduler with the queue settings of a command.
  void put_job(const Command& command);

  /// Adds stored commands. Errors: kDataLoss.
  Status restore(std::vector<Command> rows, CommandId next);
  /// Requests slots for all commands without an allocation. Errors: kDataLoss.
  Status restore_requests();

 private:
  /// Returns a live command that does not end. Errors: as PauseCommand.
  Result<Command*> changeable(const TaskId& task);
  void put_request(const Command& command);
  void request_slots(Step& step, const Command& command);
  void kill(Step& step, Command& command);
  void end(Step& step, Command& command, State end);

  Owners& owners_;
  std::map<CommandId, Command> commands_;
  std::map<TaskId, CommandId> tasks_;  ///< live commands and those in `ended_`
  /// The newest commands to end (bounded), for repeated submissions and kills.
  std::deque<TaskId> ended_;
  CommandId next_{1};  ///< the smallest id that has never been used
};

}  // namespace det::core
