// Queries of experiments: lists, one in full, names and labels, archiving and deletion.
#pragma once

#include <map>

#include "master/db/queries/page.h"

namespace det::db {

/// Sort keys of list_experiments().
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

/// Filter of list_experiments(). Empty members do not filter.
struct ExperimentFilter {
  std::string name;                 ///< Substring of the name, case-insensitive.
  std::string description;          ///< Substring of the description, case-insensitive.
  std::vector<std::string> labels;  ///< All of these.
  std::optional<bool> archived;
  std::vector<core::State> states;  ///< Any of these.
  std::vector<std::string> users;   ///< Any of these owners.
  std::vector<std::int64_t> user_ids;
  std::optional<std::int64_t> project;
  Visible visible;
  /// Inclusive range of ids.
  std::int64_t first_id = 0, last_id = INT64_MAX;
  std::vector<std::int64_t> ids, not_ids;  ///< Any of `ids`, none of `not_ids`.
  ExperimentSort sort = ExperimentSort::kId;
  Window window;
};

/// One experiment as listed.
struct ExperimentRow {
  ExperimentId id;
  std::string job_id;
  std::string name;
  std::string description;
  std::vector<std::string> labels;
  std::string notes;
  bool archived = false;
  core::State state = core::State::kActive;
  /// Furthest state among its live allocations. Unset while queued (when `state` is kActive). Always running
  /// for a detached experiment.
  std::optional<core::AllocationState> live;
  bool detached = false;  ///< The trial runs outside the cluster.
  /// In [0, 1].
  double progress = 0;
  WallTime submitted;
  std::optional<WallTime> ended;
  double duration = 0;  ///< Seconds from submission to the end, or until now.
  UserId owner;
  std::string username;
  std::int64_t project = 1, workspace = 1;
  std::string project_name, workspace_name;
  std::string resource_pool;  ///< "" is the default pool.
  /// Experiment that this one was forked from.
  std::optional<ExperimentId> parent;
  std::int64_t num_trials = 0;
  std::string searcher_name, searcher_metric;
  bool smaller_is_better = true;
  std::optional<TrialId> best_trial;  ///< Best searcher metric; NaN is never best.
  std::optional<double> best_metric;
  std::int64_t checkpoint_count = 0;  ///< Completed checkpoints.
  std::int64_t checkpoint_size = 0;   ///< Bytes of completed checkpoints.
  RequestId request;                  ///< Idempotency key of the submission.
  std::optional<UserId> project_owner;
  bool parent_archived = false;  ///< Its project or workspace is archived.
};

/// One experiment in full.
struct ExperimentDetail : ExperimentRow {
  std::string config;                      ///< Resolved configuration, JSON.
  std::string original_config;             ///< Configuration as submitted, YAML.
  std::vector<TrialId> trials;             ///< Ascending ids.
  std::string model_definition;            ///< SHA-256 of the context; "" when there is none.
  std::int64_t model_definition_size = 0;  ///< Compressed size in bytes.
};

/// Lists experiments, one page at a time.
Result<Page<ExperimentRow>> list_experiments(Pool& pool, const ExperimentFilter& filter);
/// Returns the experiments with these ids, in any order. Unknown ids are left out.
Result<std::vector<ExperimentRow>> experiments_by_id(Pool& pool, const std::vector<std::int64_t>& ids);
/// Name, owner and workspace of an experiment or command.
struct JobPlace {
  std::string experiment_name;  ///< as it was last renamed; empty for a command
  std::string username;
  std::int64_t workspace = 1;
};
/// Returns the places of jobs, keyed by experiment id (as decimal text) or by the task id of a command.
/// Unknown ids are left out.
Result<std::map<std::string, JobPlace>> job_places(Pool& pool, const std::vector<std::int64_t>& experiments,
                                                   const std::vector<std::string>& commands);
/// Returns one experiment in full. kNotFound.
Result<ExperimentDetail> get_experiment(Pool& pool, ExperimentId id);
/// Returns the experiment created by the submission with this request id, if any.
Result<std::optional<ExperimentId>> find_experiment(Pool& pool, const RequestId& request);

// Changes that bypass the core. The core writes these columns only in the first row of an experiment.

/// Changes to an experiment. Unset members keep their value.
struct ExperimentPatch {
  std::optional<std::string> name, description, notes;
  std::optional<std::vector<std::string>> labels;
};
/// Applies a patch. Idempotent. kNotFound.
Status patch_experiment(Pool& pool, ExperimentId id, const ExperimentPatch& patch);
/// Compare-and-swap of the stored configuration. kAborted: it no longer equals `before`.
Status replace_config(Pool& pool, ExperimentId id, const std::string& before, const std::string& after);
/// Compare-and-swap of the configuration of an ended experiment, and the hyperparameters (JSON) of its
/// trials. Errors: as replace_config(); kNotFound; kFailedPrecondition for a live experiment.
Status rewrite_experiment(Pool& pool, ExperimentId id, const std::string& before, const std::string& after,
                          const std::string& hparams);
/// Archives or unarchives an experiment. Idempotent. Errors: kNotFound; kFailedPrecondition (it has not
/// ended).
Status set_archived(Pool& pool, ExperimentId id, bool archived);
/// Adds or removes a label and returns the labels of the experiment after the change. Idempotent. kNotFound.
Result<std::vector<std::string>> change_label(Pool& pool, ExperimentId id, const std::string& label,
                                              bool add);
/// Lists labels in use, most frequent first. Unset `project`: all projects. Unset `visible`: all workspaces.
Result<std::vector<std::string>> list_labels(Pool& pool, std::optional<std::int64_t> project,
                                             const Visible& visible);

/// Deletes all rows of an experiment, including logs and metrics, in one transaction. Its usage is kept, its
/// forks lose their parent and its id is never reused. Errors: kNotFound; kFailedPrecondition (it has not
/// ended).
Status delete_experiment(Pool& pool, ExperimentId id);

/// A validation with a searcher metric, which is never NaN here.
struct Validation {
  TrialId trial;
  WallTime reported;
  double metric = 0;
};
/// Returns the validations that improved on all earlier ones of the experiment, by time.
Result<std::vector<Validation>> validation_history(Pool& pool, ExperimentId id);

}  // namespace det::db
