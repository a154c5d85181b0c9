// Owns the way of metric rows and log lines into the database, past the core: bounded queues, one thread and
// connection each for metrics and logs, everything queued in one transaction, an answer after the commit.
// Every batch is keyed, so sending one again changes nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "master/db/pg.h"

namespace det::db {

/// kInvalidArgument when PostgreSQL could not store or read back this JSON object (not an object, NUL as
/// \u0000, too deep, ill-formed): what a stranger wrote must pass here before it becomes a core input or a
/// metric row.
/// The keys of the object itself.
Result<std::vector<std::string>> check_json_object(std::string_view json, std::size_t limit = 1 << 20,
                                                   int depth = 32);

struct MetricRow {
  std::string group;  ///< "training" or any other but "validation", whose rows the core writes
  std::int64_t steps_completed = 0;
  std::string metrics;  ///< a JSON object that passed check_json_object
  WallTime reported;
};
/// Rows of one run of one trial. A row whose (trial, run, group, steps) is there, or whose (trial, group,
/// steps) is visible from an earlier run, is left as it is.
struct MetricBatch {
  TrialId trial;
  RunNumber run = 0;
  std::vector<MetricRow> rows;
  /// Called once on the metric thread when the rows are durable, or with kAborted (the run is not the trial's
  /// current one), kNotFound (no such trial), kInvalidArgument, or kUnavailable (not stored, as far as is
  /// known; send again). Quick, and must not push.
  std::function<void(Status)> done;
};

struct LogLine {
  WallTime time;
  std::int32_t rank = -1;  ///< -1: none
  std::string level;       ///< "INFO" …; "" when the line names none
  std::string stdtype;     ///< "stdout", "stderr", ""
  std::string source;      ///< "task", "agent", "master"
  std::string text;        ///< raw bytes without the line end
};
/// Lines first_line, first_line + 1, … of an allocation. Lines stored already are skipped; a gap is taken as
/// it is.
struct LogBatch {
  TaskId task;
  AllocationId allocation;
  AgentId agent;
  std::int64_t first_line = 1;
  std::vector<LogLine> lines;
  /// Called once on the log thread: the first line not stored yet, or kUnavailable. Quick, and must not push.
  std::function<void(Result<std::int64_t>)> done;
};

struct BulkOptions {
  ConnectOptions connect;
  std::size_t queue = 256;                      ///< batches in each queue
  Duration give_up = std::chrono::seconds(20);  ///< the database away for longer answers kUnavailable
};

/// Thread-safe.
class BulkWriter {
 public:
  explicit BulkWriter(BulkOptions options);
  /// Answers what is queued (durable, or kUnavailable), then ends.
  ~BulkWriter();
  void stop();

  /// False when the queue is full or the writer has stopped: `batch` is then untouched and its done is not
  /// called.
  bool try_push(MetricBatch&& batch);
  bool try_push(LogBatch&& batch);
  /// Waits for room; false when the writer has stopped.
  bool push(MetricBatch&& batch);
  bool push(LogBatch&& batch);

  /// Packs the group's rows (metric_chunk.h) when there is time; every kChunkRows rows that are stored ask
  /// for it too.
  void pack(TrialId trial, const std::string& group);

  /// Rises when rows of this trial were stored below ones of their group that were there already. Trials
  /// share counters, so it may rise for another's.
  std::uint64_t late_rows(TrialId trial) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace det::db
