// Owns reads of checkpoints.
#pragma once

#include "master/db/queries.h"

namespace det::db {

struct CheckpointRow {
  CheckpointId uuid;
  TrialId trial;
  ExperimentId experiment;
  RunNumber run = 0;
  TaskId task;
  AllocationId allocation;
  std::string state;  ///< "ACTIVE", "COMPLETED", "ERROR", "DELETED", "PARTIALLY_DELETED"
  std::int64_t steps_completed = 0;
  std::string resources;  ///< JSON object: path → bytes
  std::string metadata;   ///< JSON object
  std::int64_t size = 0;  ///< bytes of all resources
  WallTime reported;
  std::string hparams;  ///< of the trial, JSON object
  std::string
      validation_metrics;  ///< JSON object of the visible validation at the same steps; "" when there is none
  std::string training_metrics;  ///< likewise
  std::optional<double> searcher_metric;
};

enum class CheckpointSort { kSteps, kUuid, kTrial, kReported, kState, kSearcherMetric, kMetric };

/// Of one experiment or of one trial (give one of the two).
struct CheckpointFilter {
  std::optional<ExperimentId> experiment;
  std::optional<TrialId> trial;
  std::vector<std::string> states;  ///< empty: any
  Window window;
  CheckpointSort sort = CheckpointSort::kSteps;
  std::string metric;  ///< of kMetric: the validation's; those without come last
};

Result<Page<CheckpointRow>> list_checkpoints(Pool& pool, const CheckpointFilter& filter);
/// kNotFound.
Result<CheckpointRow> get_checkpoint(Pool& pool, const CheckpointId& uuid);

/// Where the trial can go on from when not from `uuid`: its newest sound checkpoint that is not newer.
struct OlderCheckpoint {
  CheckpointId uuid;
  std::int64_t steps_completed = 0;
  std::int64_t validation = -1;  ///< the newest visible validation at or before these steps
};
Result<std::optional<OlderCheckpoint>> older_checkpoint(Pool& pool, TrialId trial, const CheckpointId& uuid);

}  // namespace det::db
