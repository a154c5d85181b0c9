// Queries of allocations.
#pragma once

#include "master/db/queries/page.h"

namespace det::db {

/// One allocation: a run of a trial or command on the slots it was given.
struct AllocationRow {
  AllocationId id;
  std::int64_t run = 0;
  std::string state;  ///< Stored name, such as "RUNNING".
  /// Parts in rank order.
  std::vector<core::AllocationPart> parts;
  std::string pool;
  WallTime started;
  std::optional<WallTime> ended;
  /// Unset until the allocation has ended.
  std::optional<std::string> exit_kind, exit_message;
  std::optional<std::int64_t> exit_code;
};

/// Returns how long (in seconds) the last `count` trial allocations that ended in a pool held their slots.
Result<std::vector<double>> recent_run_lengths(Pool& pool, const std::string& resource_pool, int count);

/// Returns the tasks that hold slots in a pool, with the start of each.
Result<std::vector<std::pair<TaskKey, WallTime>>> live_since(Pool& pool, const std::string& resource_pool);

/// True when a part of the allocation is or was on the agent.
Result<bool> held_by(Pool& pool, const AllocationId& allocation, const AgentId& agent);

/// Lists the allocations of a task, newest run first. Empty for an unknown task and before the first run.
Result<std::vector<AllocationRow>> list_allocations(Pool& pool, TaskKey task);
/// Reads the next two columns of a row, the ids of a trial and of a command, of which exactly one is set.
TaskKey next_task(Rows::Row& row);

}  // namespace det::db
