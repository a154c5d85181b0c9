// Queries of checkpoints.
#pragma once

#include "master/db/queries/page.h"

namespace det::db {

/// One checkpoint with the metrics reported at its step.
struct CheckpointRow {
  CheckpointId uuid;
  TrialId trial;
  ExperimentId experiment;
  RunNumber run = 0;
  TaskId task;
  AllocationId allocation;
  std::string state;  ///< "ACTIVE", "COMPLETED", "ERROR", "DELETED", "PARTIALLY_DELETED"
  std::int64_t steps_completed = 0;
  std::string resources;  ///< JSON object: path to size in bytes.
  std::string metadata;   ///< JSON object.
  std::int64_t size = 0;  ///< Bytes of all resources.
  WallTime reported;
  std::string hparams;  ///< Hyperparameters of the trial, a JSON object.
  /// JSON object of the visible validation at the same step; "" when there is none.
  std::string validation_metrics;
  /// JSON object of the visible training report at the same step; "" when there is none.
  std::string training_metrics;
  /// Searcher metric of that validation.
  std::optional<double> searcher_metric;
};

/// Sort keys of list_checkpoints().
enum class CheckpointSort { kSteps, kUuid, kTrial, kReported, kState, kSearcherMetric, kMetric };

/// Filter of list_checkpoints(). Exactly one of `experiment` and `trial` is required.
struct CheckpointFilter {
  std::optional<ExperimentId> experiment;
  std::optional<TrialId> trial;
  std::vector<std::string> states;  ///< Empty: any state.
  Window window;
  CheckpointSort sort = CheckpointSort::kSteps;
  /// Validation metric to sort by for kMetric; checkpoints without it come last.
  std::string metric;
};

/// Lists checkpoints. kInvalidArgument: neither experiment nor trial is set.
Result<Page<CheckpointRow>> list_checkpoints(Pool& pool, const CheckpointFilter& filter);
/// Returns one checkpoint. kNotFound.
Result<CheckpointRow> get_checkpoint(Pool& pool, const CheckpointId& uuid);

/// A fallback checkpoint to resume from.
struct OlderCheckpoint {
  CheckpointId uuid;
  std::int64_t steps_completed = 0;
  std::int64_t validation = -1;  ///< Highest visible validation step at or below these steps; -1: none.
};
/// Returns the newest completed checkpoint of the trial that is not newer than `uuid`, if any.
Result<std::optional<OlderCheckpoint>> older_checkpoint(Pool& pool, TrialId trial, const CheckpointId& uuid);

/// Files of a checkpoint after a partial deletion.
struct CheckpointFiles {
  CheckpointId uuid;
  std::string resources;  ///< JSON object: path to size in bytes of the remaining files.
  std::string state;
};
/// Replaces the file list and state of a checkpoint and recomputes its size. Idempotent. kNotFound.
Status set_checkpoint_files(Pool& pool, const CheckpointFiles& files);
/// Replaces the metadata (a JSON object) of a checkpoint. Idempotent. kNotFound.
Status set_checkpoint_metadata(Pool& pool, const CheckpointId& uuid, const std::string& metadata);
/// Returns the unfinished trial that would resume from this checkpoint, if any.
Result<std::optional<TrialId>> needed_by(Pool& pool, const CheckpointId& uuid);

// For other queries of checkpoints.

/// Columns from checkpoint_tables().
const Columns<CheckpointRow>& checkpoint_columns();
/// FROM clause. c: the checkpoint. t: its trial. v and r: the visible validation and training report at its
/// step.
const std::string& checkpoint_tables();

}  // namespace det::db
