// Changes of experiments that bypass the core: names, labels, notes, archiving and deletion. The core writes
// these columns only in the first row of an experiment. Thread-safe; every function blocks on the database.
#pragma once

#include "master/db/queries/queries.h"

namespace det::db {

/// Changes to an experiment. Unset members keep their value.
struct ExperimentPatch {
  std::optional<std::string> name, description, notes;
  std::optional<std::vector<std::string>> labels;
};
/// Applies a patch. Idempotent. kNotFound.
Status patch_experiment(Pool& pool, ExperimentId id, const ExperimentPatch& patch);
/// Compare-and-swap of the stored configuration. kAborted: it no longer equals `before`.
Status replace_config(Pool& pool, ExperimentId id, const std::string& before, const std::string& after);
/// Archives or unarchives an experiment. Idempotent. Errors: kNotFound; kFailedPrecondition (it has not
/// ended).
Status set_archived(Pool& pool, ExperimentId id, bool archived);
/// Adds or removes a label and returns the labels of the experiment after the change. Idempotent. kNotFound.
Result<std::vector<std::string>> change_label(Pool& pool, ExperimentId id, const std::string& label,
                                              bool add);
/// Lists labels in use, most frequent first. Unset `project`: all projects. Unset `visible`: all workspaces.
Result<std::vector<std::string>> list_labels(Pool& pool, std::optional<std::int64_t> project,
                                             const std::optional<std::vector<std::int64_t>>& visible);

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

/// Returns the metadata of a trial as JSON, "{}" when none is set. kNotFound: no such trial.
Result<std::string> get_run_metadata(Pool& pool, TrialId id);
/// Replaces the metadata of a trial. Idempotent. kNotFound.
Status set_run_metadata(Pool& pool, TrialId id, const std::string& metadata);

/// Returns the trial of a task. kNotFound.
Result<TrialId> trial_of_task(Pool& pool, const TaskId& task);
/// A log line sent by a process itself instead of by its agent.
struct SentLine {
  AllocationId allocation;
  AgentId agent;
  std::int32_t rank = -1;
  WallTime time;
  std::string level, stdtype, source, text;
};
/// Appends lines to the log of a task in the given order. Not idempotent.
Status append_lines(Pool& pool, const TaskId& task, const std::vector<SentLine>& lines);

}  // namespace det::db
