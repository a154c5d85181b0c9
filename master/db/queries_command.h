// Owns reads of commands, and of tasks whichever kind they are of.
#pragma once

#include "master/core/model.h"
#include "master/db/queries.h"

namespace det::db {

struct CommandRow {
  core::Command command;
  std::string username, display_name;
  std::optional<core::AllocationState> live;  ///< of its allocation, while it has one
};
struct CommandFilter {
  enum class Sort { kId, kDescription, kStarted, kWorkspace };
  std::optional<std::vector<std::int64_t>> visible;  ///< the workspaces that may be looked into; nothing: all
  std::int64_t workspace = 0;                        ///< 0: any
  std::vector<std::string> users;                    ///< empty: anybody's
  std::vector<std::int64_t> user_ids;
  Sort sort = Sort::kStarted;
  Window window;
};
Result<Page<CommandRow>> list_commands(Pool& pool, const CommandFilter& filter);
/// kNotFound.
Result<CommandRow> get_command(Pool& pool, const TaskId& task);

/// What a follower of a task's log wants to know. kNotFound for what is neither a trial's task nor a command.
struct TaskFacts {
  TrialId holder;  ///< of its allocations: the trial, or a command as the core names it (core::is_command)
  bool ended = false;
};
Result<TaskFacts> get_task(Pool& pool, const TaskId& task);

/// Commands as they lie in the store, for the core's start: those that have not ended.
Result<std::vector<core::Command>> load_commands(Connection& connection);

}  // namespace det::db
