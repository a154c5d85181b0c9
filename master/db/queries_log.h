// Owns reads of task logs.
#pragma once

#include "master/db/queries.h"

namespace det::db {

/// Empty members do not filter.
struct LogFilter {
  TaskId task;
  std::int64_t after_id = 0;
  std::int64_t limit = 1000;  ///< at most 10000
  bool descending = false;    ///< newest first: with a limit, the tail
  std::vector<std::string> allocations, agents, levels, stdtypes, sources;
  std::vector<std::int64_t> ranks;
  std::optional<WallTime> before, after;
  std::string search;
  bool regex = false;  ///< `search` is PostgreSQL's regular expression; else contained as it is
};
struct LogRow {
  std::int64_t id = 0;  ///< within a task grows with the order in which lines become visible: nothing appears
                        ///< before it later
  TaskId task;
  AllocationId allocation;
  AgentId agent;
  std::int32_t rank = -1;
  WallTime time;
  std::string level, stdtype, source;
  std::string text;  ///< raw bytes
};
/// kInvalidArgument for a bad expression, kDeadlineExceeded when the search takes longer than 5 s.
Result<std::vector<LogRow>> read_logs(Pool& pool, const LogFilter& filter);

/// What the lines of a task can be filtered by, each in order.
struct LogFields {
  std::vector<std::string> allocations, agents, stdtypes, sources;
  std::vector<std::int64_t> ranks;
};
Result<LogFields> log_fields(Pool& pool, const TaskId& task);

/// Removes the logs of tasks that have ended so many days ago as their configuration says (retention_policy),
/// else as `days` says; below zero is never. How many tasks lost theirs.
Result<std::int64_t> forget_logs(Pool& pool, std::int64_t days);

}  // namespace det::db
