// Owns the log of a trial on the terminal: the flags that choose lines, and following across a master's
// restarts.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "cli/session.h"
#include "det/v1/log.grpc.pb.h"
#include "det/v1/task.grpc.pb.h"

namespace det::cli {

struct LogFlags {
  bool follow = false, json = false;
  int head = 0, tail = 0;  ///< 0: all
  std::vector<std::string> agent_ids, container_ids, sources, stdtypes;
  std::vector<int> rank_ids;
  std::string level, before, after;
  void declare(CLI::App& app);
};

/// Prints the chosen lines of the trial, or of any task.
Result<int> print_logs(Client& client, int trial, const LogFlags& flags);
Result<int> print_task_logs(Client& client, const std::string& task, const LogFlags& flags);

/// Hands every line from now back to the first to `take`, in order, until the trial has ended; goes on where
/// it was after the master came back.
Status follow_log(Client& client, v1::TrialLogsRequest request,
                  const std::function<void(const v1::LogEntry&)>& take);
Status follow_task_log(Client& client, v1::TaskLogsRequest request,
                       const std::function<void(const v1::LogEntry&)>& take);

/// The line as it is printed, with its line end.
std::string log_line(const v1::LogEntry& entry);

}  // namespace det::cli
