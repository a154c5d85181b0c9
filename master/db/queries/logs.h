// Queries of task logs.
#pragma once

#include "master/db/queries/page.h"

namespace det::db {

/// Filter of read_logs(). Empty members do not filter.
struct LogFilter {
  TaskId task;
  /// Return only lines behind this id; the id of the last line that a reader has seen.
  std::int64_t after_id = 0;
  /// Return only lines ahead of this id; 0: all.
  std::int64_t before_id = 0;
  std::int64_t limit = 1000;     ///< At most 10000.
  std::int64_t bytes = 1 << 20;  ///< Bytes of text; the line that reaches it is the last one.
  bool descending = false;       ///< Newest first: with a limit, the tail.
  std::vector<std::string> allocations, agents, levels, stdtypes, sources;
  std::vector<std::int64_t> ranks;
  /// Exclusive bounds of LogRow::time.
  std::optional<WallTime> before, after;
  /// Text to find in the line.
  std::string search;
  /// `search` is a PostgreSQL regular expression; otherwise a substring, case-sensitive.
  bool regex = false;
};
/// One stored line.
struct LogRow {
  /// Increases within a task in the order in which lines become visible: no line appears later with a lower
  /// id.
  std::int64_t id = 0;
  TaskId task;
  AllocationId allocation;
  AgentId agent;
  /// -1: none.
  std::int32_t rank = -1;
  WallTime time;
  std::string level, stdtype, source;
  std::string text;  ///< Raw bytes.
};
/// Returns lines by id. Errors: kInvalidArgument (invalid regular expression); kDeadlineExceeded (the search
/// takes longer than 5 s).
Result<std::vector<LogRow>> read_logs(Pool& pool, const LogFilter& filter);
/// Returns the id of the first one of the newest `limit` lines; 0 without lines. Errors as read_logs().
Result<std::int64_t> tail_start(Pool& pool, const LogFilter& filter);

/// Values by which the lines of a task can be filtered, each sorted.
struct LogFields {
  std::vector<std::string> allocations, agents, stdtypes, sources;
  std::vector<std::int64_t> ranks;
};
/// Returns the values that occur in the log of a task. Scans the whole log.
Result<LogFields> log_fields(Pool& pool, const TaskId& task);

/// Deletes the logs of tasks that ended longer ago than the retention of their trial (set_log_retention()) or
/// experiment (retention_policy), by default `days`. A negative number of days keeps them. Returns the number
/// of tasks that lost their logs.
Result<std::int64_t> forget_logs(Pool& pool, std::int64_t days);

/// Sets the days for which the log of a trial, or of all trials of an experiment, is kept after its end; it
/// precedes all other settings. -1: the log is kept. Idempotent.
Status set_log_retention(Pool& pool, TrialId trial, std::int64_t days);
Status set_log_retention(Pool& pool, ExperimentId experiment, std::int64_t days);
/// Returns the days until forget_logs() deletes the log of a trial; -1: never. Nothing: the trial has not
/// ended. kNotFound.
Result<std::optional<std::int64_t>> remaining_log_days(Pool& pool, TrialId trial, std::int64_t days);

/// A log line sent by a process itself instead of by its agent.
struct SentLine {
  AllocationId allocation;
  AgentId agent;
  std::int32_t rank = -1;
  WallTime time;
  std::string level, stdtype, source, text;
};
/// Appends lines to the log of a task in the given order, once even if the reply of the database is lost. Not
/// idempotent: a second call appends them again. kUnknown: see Pool::in_transaction().
Status append_lines(Pool& pool, const TaskId& task, const std::vector<SentLine>& lines);

}  // namespace det::db
