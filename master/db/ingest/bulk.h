// Bulk ingestion of metrics and logs. It bypasses the core: bounded queues, and one thread and one connection
// each for metrics and logs. A thread stores everything queued in one transaction and replies after the
// commit. Every batch has a key, so a retry stores nothing twice.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/result.h"
#include "master/db/pg/pg.h"
#include "master/db/series/metric_chunk.h"

namespace det::db {

/// Checks that PostgreSQL can store and read back a JSON object. Untrusted JSON must pass this check before
/// it becomes a core input or a metric row. `limit` is in bytes, `depth` in nesting levels. Returns the keys
/// of the outermost object. kInvalidArgument: not an object, ill-formed, too long, too deep, a NUL character,
/// or a number too small for a double.
Result<std::vector<std::string>> check_json_object(std::string_view json, std::size_t limit = 1 << 20,
                                                   int depth = 32);

/// One report of metrics.
struct MetricRow {
  std::string group;  ///< "training" or any group except "validation", which the core writes.
  std::int64_t steps_completed = 0;
  std::string metrics;  ///< JSON object that passed check_json_object().
  WallTime reported;
};
/// Rows of one run of one trial. If (trial, run, group, steps) is stored already, or (trial, group, steps) is
/// visible from an earlier run, only metrics with new names are added to that row.
struct MetricBatch {
  TrialId trial;
  RunNumber run = 0;
  std::vector<MetricRow> rows;
  /// Called exactly once on the metric thread, with OK when the rows are durable. Must be quick and must not
  /// push. Errors: kAborted (the run is not the current run of the trial), kNotFound (no such trial),
  /// kInvalidArgument, kUnavailable (the outcome is unknown; send the batch again).
  std::function<void(Status)> done;
};

/// One line of output of a task.
struct LogLine {
  WallTime time;
  std::int32_t rank = -1;  ///< -1: none.
  std::string level;       ///< "INFO", "ERROR", ...; "" when the line has no level.
  std::string stdtype;     ///< "stdout", "stderr" or "".
  std::string source;      ///< "task", "agent" or "master".
  std::string text;        ///< Raw bytes without the line end.
};
/// Consecutive lines of one agent in one allocation, numbered from first_line. Lines that are stored already
/// are skipped. A gap in the numbering is accepted.
struct LogBatch {
  TaskId task;
  AllocationId allocation;
  AgentId agent;
  std::int64_t first_line = 1;
  std::vector<LogLine> lines;
  /// Called exactly once on the log thread with the number of the next line to send, or kUnavailable. Must be
  /// quick and must not push.
  std::function<void(Result<std::int64_t>)> done;
};

/// Configuration of BulkWriter.
struct BulkOptions {
  ConnectOptions connect;
  std::size_t queue = 256;  ///< Capacity of each queue, in batches.
  /// A database outage longer than this fails the batch with kUnavailable.
  Duration retry_for = std::chrono::seconds(20);
  /// Called by the log thread when a line of a trial has matched a policy with the action cancel_retries,
  /// before the batch is answered. May be called again for the same line.
  std::function<void(TrialId)> cancel_retries = [](TrialId) {};
  /// The same for the action exclude_node, with the agent of the line.
  std::function<void(TrialId, const AgentId&)> exclude_agent = [](TrialId, const AgentId&) {};
};

/// Queues batches and stores them on its own threads. Thread-safe.
class BulkWriter : public SeriesWriter {
 public:
  /// Starts the threads. They connect when the first batch arrives.
  explicit BulkWriter(const BulkOptions& options);
  /// Same as stop().
  ~BulkWriter();
  /// Completes the queued batches (stored, or kUnavailable within about 5 s of an outage) and joins the
  /// threads.
  void stop();

  /// Queues a batch. Returns false when the queue is full or the writer has stopped; `batch` is then
  /// unchanged and its `done` is not called. Never blocks.
  bool try_push(MetricBatch&& batch);
  bool try_push(LogBatch&& batch);
  /// Like try_push(), but blocks while the queue is full. Returns false when the writer has stopped.
  bool push(MetricBatch&& batch);
  bool push(LogBatch&& batch);

  void pack(TrialId trial, const std::string& group) override;
  std::uint64_t late_rows(TrialId trial) const override;

  /// Makes the threads read the triggers of webhooks again before their next batch.
  void triggers_changed();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace det::db
