// Log lines that webhooks wait for. A trigger fires once per task: the first matching line queues an event in
// the transaction that stores the line.
#pragma once

#include <re2/re2.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "master/db/ingest/bulk.h"

namespace det::db {

/// Maximum length of a line in an event, in bytes; the rest is cut off.
inline constexpr std::size_t kMaxTriggeringLog = 2000;

/// First matching line of a task and a trigger.
struct LogMatch {
  std::string task, agent, line;
  std::int64_t trigger = 0;
};

/// The TASK_LOG triggers of all webhooks, compiled. Triggers of a workspace run on lines of its tasks only.
/// Used by the log thread, except for changed().
class LogTriggers {
 public:
  /// Makes the next load() read the triggers again. Any thread.
  void changed() { ++generation_; }
  /// Reads the triggers if they changed, and the workspaces of the tasks of `batches` while a trigger needs
  /// them.
  Status load(Connection& connection, const std::vector<LogBatch>& batches);
  /// Appends the triggers that the line matches and that `matches` does not have for this task yet. Its batch
  /// is one of the last load().
  void match(const LogBatch& batch, const LogLine& line, std::vector<LogMatch>& matches) const;
  /// Queues the events of the matches in the open transaction. Matches that fired before queue nothing.
  static Status queue(Connection& connection, const std::vector<LogMatch>& matches);

 private:
  struct Trigger {
    std::int64_t id;
    std::optional<std::int64_t> workspace;  ///< empty: the whole cluster
    std::unique_ptr<re2::RE2> pattern;
  };
  std::atomic<std::uint64_t> generation_{1};
  std::uint64_t loaded_ = 0;
  std::vector<Trigger> triggers_;
  std::map<TaskId, std::int64_t> workspaces_;  ///< of the tasks of the last load()
};

}  // namespace det::db
