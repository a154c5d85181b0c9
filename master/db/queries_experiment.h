// Owns reads of experiments: lists and one in full.
#pragma once

#include <map>

#include "master/db/queries.h"

namespace det::db {

enum class ExperimentSort {
  kId,
  kName,
  kDescription,
  kStartTime,
  kEndTime,
  kState,
  kNumTrials,
  kProgress,
  kUser,
  kResourcePool,
  kForkedFrom,
  kProject,
  kCheckpointSize,
  kCheckpointCount,
  kSearcherMetric,
};

/// Empty members do not filter.
struct ExperimentFilter {
  std::string name;                 ///< contained in the name, in any case
  std::string description;          ///< likewise
  std::vector<std::string> labels;  ///< all of them
  std::optional<bool> archived;
  std::vector<core::State> states;  ///< any of them
  std::vector<std::string> users;   ///< any of these names
  std::vector<std::int64_t> user_ids;
  std::optional<std::int64_t> project;
  std::optional<std::vector<std::int64_t>> visible;  ///< the workspaces that may be looked into; nothing: all
  std::int64_t first_id = 0, last_id = INT64_MAX;
  std::vector<std::int64_t> ids, not_ids;  ///< any of them; none of them
  ExperimentSort sort = ExperimentSort::kId;
  Window window;
};

struct ExperimentRow {
  ExperimentId id;
  std::string job_id;
  std::string name;
  std::string description;
  std::vector<std::string> labels;
  std::string notes;
  bool archived = false;
  core::State state = core::State::kActive;
  /// Furthest state of its allocations that have not ended; none: queued (when the state is kActive).
  /// Running, always, when unmanaged.
  std::optional<core::AllocationState> live;
  bool unmanaged = false;  ///< its trial runs outside the cluster
  double progress = 0;
  WallTime submitted;
  std::optional<WallTime> ended;
  double duration = 0;  ///< seconds from submission to the end, or to now
  UserId owner;
  std::string username;
  std::int64_t project = 1, workspace = 1;
  std::string project_name, workspace_name;
  std::string resource_pool;  ///< "" is the default pool
  std::optional<ExperimentId> parent;
  std::int64_t num_trials = 0;
  std::string searcher_name, searcher_metric;
  bool smaller_is_better = true;
  std::optional<TrialId> best_trial;  ///< by searcher metric; NaN never is
  std::optional<double> best_metric;
  std::int64_t checkpoint_count = 0;  ///< completed ones
  std::int64_t checkpoint_size = 0;   ///< bytes
  RequestId request;                  ///< by which its submission is known
  std::optional<UserId> project_owner;
  bool parent_archived = false;  ///< its project, or the workspace of that
};

struct ExperimentDetail : ExperimentRow {
  std::string config;                      ///< JSON, resolved
  std::string original_config;             ///< the user's YAML
  std::vector<TrialId> trials;             ///< in order
  std::string model_definition;            ///< SHA-256; "" when there is none
  std::int64_t model_definition_size = 0;  ///< bytes, packed
};

Result<Page<ExperimentRow>> list_experiments(Pool& pool, const ExperimentFilter& filter);
/// In any order; ids that do not exist are left out.
Result<std::vector<ExperimentRow>> experiments_by_id(Pool& pool, const std::vector<std::int64_t>& ids);
/// Whose an experiment or a command is, and where.
struct JobPlace {
  std::string username;
  std::int64_t workspace = 1;
};
/// Ids that do not exist are left out.
Result<std::map<std::string, JobPlace>> job_places(Pool& pool, const std::vector<std::int64_t>& experiments,
                                                   const std::vector<std::string>& commands);
/// kNotFound.
Result<ExperimentDetail> get_experiment(Pool& pool, ExperimentId id);
/// The experiment a submission with this request id made, if any.
Result<std::optional<ExperimentId>> find_experiment(Pool& pool, const RequestId& request);

}  // namespace det::db
