// Prints and follows the logs of trials and tasks.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/client/session.h"
#include "det/v1/log.methods.h"
#include "det/v1/task.methods.h"

namespace det::cli {

/// Flags that select and format log lines. An empty list or "" selects all.
struct LogFlags {
  bool follow = false, json = false;
  int head = 0, tail = 0;  ///< number of lines; 0: all
  std::vector<std::string> agent_ids, container_ids, sources, stdtypes;
  std::vector<int> rank_ids;
  std::string level, before, after;  ///< least level; time limits (RFC 3339)
  void declare(CLI::App& app);
};

/// Prints the selected lines of a trial or a task, with --follow until it has ended.
/// Errors: kInvalidArgument (a time limit); those of Client::stream().
Status print_logs(Client& client, int trial, const LogFlags& flags);
Status print_task_logs(Client& client, const std::string& task, const LogFlags& flags);

/// Calls `take` for each line of the log, in order, until the trial or task has ended. Resumes after the last
/// line when the connection breaks, for as long as the client's patience, at most ten minutes. Blocks.
Status follow_log(Client& client, v1::TrialLogsRequest request,
                  const std::function<void(const v1::LogEntry&)>& take);
Status follow_task_log(Client& client, v1::TaskLogsRequest request,
                       const std::function<void(const v1::LogEntry&)>& take);

/// Returns the line as it is printed, with a line end. Control characters are kept.
std::string log_line(const v1::LogEntry& entry);
/// Returns the line for a terminal: "12:57:49 [rank=1] text", in local time, the date before it unless it is
/// that of `now`. `color` dims the time and marks errors and warnings.
std::string short_log_line(const v1::LogEntry& entry, WallTime now, bool color);
/// Returns short_log_line() when standard output is a terminal, else log_line().
std::string shown_log_line(const v1::LogEntry& entry);

}  // namespace det::cli
