// Queries of trials: lists, one in full, workloads, and metadata that users attach.
#pragma once

#include "master/db/queries/checkpoints.h"

namespace det::db {

/// One metric row that is not archived.
struct MetricPoint {
  std::string group;
  std::int64_t steps_completed = 0;
  std::string metrics;  ///< JSON object.
  WallTime reported;
  std::optional<double> searcher_metric;  ///< Only for validations.
};

/// A trial with data from its related tables.
struct TrialRow {
  core::Trial trial;
  /// State of its newest allocation, unless that has ended. Unset while queued (when `state` is kActive).
  /// Always running for a detached trial.
  std::optional<core::AllocationState> live;
  std::optional<WallTime> building_since;  ///< begin of `live` while the agent prepares or builds
  /// Highest step reported or checkpointed.
  std::int64_t total_batches = 0;
  /// Seconds during which its allocations trained (builds do not count), or during which it ran outside the
  /// cluster.
  double wall_clock = 0;
  std::int64_t checkpoint_count = 0, checkpoint_size = 0;  ///< Completed ones; bytes.
  std::string source_checkpoint;                           ///< That its first run starts from; "": none.
  std::optional<std::string> log_policy;                   ///< First named log policy that a line matched.
  std::optional<MetricPoint> latest_validation;
  std::optional<MetricPoint> best_validation;  ///< By searcher metric; NaN is never best.
  /// Completed checkpoint with the best validation at its step.
  std::optional<CheckpointRow> best_checkpoint;
};

/// Sort keys of list_trials().
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

/// Filter of list_trials().
struct TrialFilter {
  ExperimentId experiment;
  std::vector<core::State> states;  ///< Empty: any state.
  Window window;
  TrialSort sort = TrialSort::kId;
};

/// Lists the trials of an experiment, one page at a time.
Result<Page<TrialRow>> list_trials(Pool& pool, const TrialFilter& filter);
/// Returns the trials with these ids, in any order, without best_checkpoint. Unknown ids are left out.
Result<std::vector<TrialRow>> trials_by_id(Pool& pool, const std::vector<std::int64_t>& ids);
/// Returns one trial. kNotFound.
Result<TrialRow> get_trial(Pool& pool, TrialId id);

/// A metric row that is not archived, and the run that reported it.
struct MetricReport {
  MetricPoint point;
  RunNumber run = 0;
};
/// A page of list_reports(): the reports after (after_group, after_steps).
struct ReportFilter {
  TrialId trial;
  std::string group;  ///< "": all groups
  std::string after_group;
  std::int64_t after_steps = -1;
  std::int64_t limit = 0;  ///< rows
  std::int64_t bytes = 0;  ///< stored (compressed) size of the metrics, after which no further row begins
};
/// Lists metric reports by group, then by step. Returns at least one if there is one.
Result<std::vector<MetricReport>> list_reports(Pool& pool, const ReportFilter& filter);

/// A report of metrics or a checkpoint of a trial; `kind` selects the valid member.
struct Workload {
  enum class Kind { kMetrics, kCheckpoint };
  Kind kind = Kind::kMetrics;
  MetricPoint metrics;
  CheckpointRow checkpoint;
};
/// Filter of list_workloads().
struct WorkloadFilter {
  TrialId trial;
  std::vector<std::string> groups;  ///< Groups of metrics; empty: none.
  /// Include checkpoints, and among them deleted and partially deleted ones.
  bool checkpoints = true;
  bool deleted_checkpoints = true;
  Window window;
};
/// Lists workloads by step; at equal steps training, validation, other groups, then checkpoints.
Result<Page<Workload>> list_workloads(Pool& pool, const WorkloadFilter& filter);

/// Returns the metadata of a trial as JSON, "{}" when none is set. kNotFound: no such trial.
Result<std::string> get_run_metadata(Pool& pool, TrialId id);
/// Replaces the metadata of a trial. Idempotent. kNotFound.
Status set_run_metadata(Pool& pool, TrialId id, const std::string& metadata);

}  // namespace det::db
