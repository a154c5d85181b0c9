// Owns reads of trials: lists, one in full, and what a trial did (workloads).
#pragma once

#include "master/db/queries.h"
#include "master/db/queries_checkpoint.h"

namespace det::db {

/// One metric row that is not archived.
struct MetricPoint {
  std::string group;
  std::int64_t steps_completed = 0;
  std::string metrics;  ///< JSON object
  WallTime reported;
  std::optional<double> searcher_metric;  ///< of a validation
};

struct TrialRow {
  core::Trial trial;
  /// State of its newest allocation when that has not ended; none: queued (when the state is kActive).
  /// Running, always, outside the cluster.
  std::optional<core::AllocationState> live;
  std::int64_t total_batches = 0;
  double wall_clock = 0;  ///< seconds its allocations have held slots, or it has run outside the cluster
  std::int64_t checkpoint_count = 0, checkpoint_size = 0;  ///< completed ones; bytes
  std::optional<MetricPoint> latest_validation;
  std::optional<MetricPoint> best_validation;    ///< by searcher metric; NaN never is
  std::optional<CheckpointRow> best_checkpoint;  ///< completed, with the best validation at its steps
};

enum class TrialSort {
  kId,
  kStartTime,
  kEndTime,
  kState,
  kBest,
  kLatest,
  kBatches,
  kDuration,
  kRestarts,
  kCheckpointSize
};

struct TrialFilter {
  ExperimentId experiment;
  std::vector<core::State> states;  ///< empty: any
  Window window;
  TrialSort sort = TrialSort::kId;
};

Result<Page<TrialRow>> list_trials(Pool& pool, const TrialFilter& filter);
/// kNotFound.
Result<TrialRow> get_trial(Pool& pool, TrialId id);

struct Workload {
  enum class Kind { kMetrics, kCheckpoint };
  Kind kind = Kind::kMetrics;
  MetricPoint metrics;
  CheckpointRow checkpoint;
};
/// In order of batches; at the same batches training, then validation, then other groups, then checkpoint.
struct WorkloadFilter {
  TrialId trial;
  std::vector<std::string> groups;  ///< of metrics; empty: none
  bool checkpoints = true;
  bool deleted_checkpoints = true;
  Window window;
};
Result<Page<Workload>> list_workloads(Pool& pool, const WorkloadFilter& filter);

}  // namespace det::db
