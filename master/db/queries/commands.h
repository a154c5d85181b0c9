// Queries of commands, and of tasks of any kind.
#pragma once

#include <map>

#include "master/db/queries/page.h"

namespace det::db {

/// What makes a command an interactive task.
struct InteractiveTask {
  std::string kind;                               ///< NOTEBOOK, SHELL or TENSORBOARD; "": a plain command.
  std::int64_t idle_timeout = 0;                  ///< Seconds without use until it is killed; 0: never.
  std::vector<std::int64_t> experiments, trials;  ///< Of a TensorBoard, as requested.
  /// Private key of a shell; "": none. Queries of commands leave it empty.
  std::string ssh_key;
};
/// A command with its owner.
struct CommandRow {
  core::Command command;
  std::string username, display_name;
  std::optional<core::AllocationState> live;  ///< State of its allocation while it holds slots.
  InteractiveTask interactive;
};
/// Filter of list_commands(). A row matches when its owner is in `users` or `user_ids`.
struct CommandFilter {
  /// kStarted sorts by id, which is the order of submission.
  enum class Sort { kId, kDescription, kStarted, kWorkspace };
  Visible visible;
  std::string kind;                ///< InteractiveTask::kind.
  std::int64_t workspace = 0;      ///< 0: any.
  std::vector<std::string> users;  ///< Empty, with `user_ids`: any user.
  std::vector<std::int64_t> user_ids;
  Sort sort = Sort::kStarted;
  Window window;
};
/// Lists commands, one page at a time.
Result<Page<CommandRow>> list_commands(Pool& pool, const CommandFilter& filter);
/// Returns one command by its task. kNotFound.
Result<CommandRow> get_command(Pool& pool, const TaskId& task);

/// Records what makes a command an interactive task. Idempotent. Fails for a command that does not exist.
Status put_interactive_task(Pool& pool, const TaskId& task, const InteractiveTask& row);
/// Returns the private key of a shell. "" without one, and for a task that has ended or does not exist.
Result<std::string> find_ssh_key(Pool& pool, const TaskId& task);
/// Deletes the private keys of shells that have ended.
Status drop_ssh_keys(Pool& pool);
/// Returns the kind of each interactive task among `tasks`, by task.
Result<std::map<std::string, std::string>> interactive_kinds(Pool& pool,
                                                             const std::vector<std::string>& tasks);
/// Returns the commands that run and have an idle timeout.
Result<std::vector<CommandRow>> list_idle_timeouts(Pool& pool);

/// Submission of a generic task, which runs as a command.
struct GenericTask {
  std::string config;       ///< As submitted, YAML. Sealed in the table (at_rest.h).
  std::string forked_from;  ///< Task id; "": none.
  bool no_pause = false;    ///< Its submitter does not allow pauses.
};
/// Stores the submission of a command. Idempotent. Fails for a command that does not exist.
Status put_generic_task(Pool& pool, const TaskId& task, const GenericTask& row);
/// Returns the submission of a generic task; unset for any other task.
Result<std::optional<GenericTask>> find_generic_task(Pool& pool, const TaskId& task);

/// State of a task for readers that follow its log.
struct TaskFacts {
  TaskKey key;
  bool ended = false;
};
/// Returns the state of a task. kNotFound: neither the task of a trial nor a command.
Result<TaskFacts> get_task(Pool& pool, const TaskId& task);
/// Whether a task is a TensorBoard. False for one that does not exist.
Result<bool> is_tensorboard(Pool& pool, const TaskId& task);
/// Returns the trial of a task. kNotFound.
Result<TrialId> trial_of_task(Pool& pool, const TaskId& task);

}  // namespace det::db
