// Owns what the API itself changes of experiments, past the core: names, labels, notes, the archive, and the
// rows of what is deleted. The core writes none of these columns after an experiment's first row.
#pragma once

#include "master/db/queries.h"

namespace det::db {

/// What is absent stays.
struct ExperimentPatch {
  std::optional<std::string> name, description, notes;
  std::optional<std::vector<std::string>> labels;
};
/// kNotFound. Repeats safely.
Status patch_experiment(Pool& pool, ExperimentId id, const ExperimentPatch& patch);
/// The stored configuration, when it still is `before`. kAborted when it has changed meanwhile.
Status replace_config(Pool& pool, ExperimentId id, const std::string& before, const std::string& after);
/// kNotFound; kFailedPrecondition while it lives. Repeats safely.
Status set_archived(Pool& pool, ExperimentId id, bool archived);
/// What the experiment has then. kNotFound. Repeats safely.
Result<std::vector<std::string>> change_label(Pool& pool, ExperimentId id, const std::string& label,
                                              bool add);
/// Labels in use, of one project or of all, in the workspaces that may be looked into (nothing: all), the
/// most used first.
Result<std::vector<std::string>> list_labels(Pool& pool, std::optional<std::int64_t> project,
                                             const std::optional<std::vector<std::int64_t>>& visible);

/// All rows of an experiment that has ended, logs and metrics among them; forks of it become orphans, and its
/// id is never used again. kNotFound; kFailedPrecondition while it lives.
Status delete_experiment(Pool& pool, ExperimentId id);

/// A validation that has a searcher metric (never NaN).
struct Validation {
  TrialId trial;
  WallTime reported;
  double metric = 0;
};
/// In order of time, each better than all before it.
Result<std::vector<Validation>> validation_history(Pool& pool, ExperimentId id);

struct CheckpointFiles {
  CheckpointId uuid;
  std::string resources;  ///< JSON object: path → bytes, of what is left
  std::string state;
};
/// kNotFound. Repeats safely.
Status set_checkpoint_files(Pool& pool, const CheckpointFiles& files);
Status set_checkpoint_metadata(Pool& pool, const CheckpointId& uuid, const std::string& metadata);
/// The trial that has not ended and would go on from this checkpoint, if any.
Result<std::optional<TrialId>> needed_by(Pool& pool, const CheckpointId& uuid);

/// "{}" when nothing was noted. kNotFound without such a trial.
Result<std::string> get_run_metadata(Pool& pool, TrialId id);
/// kNotFound. Repeats safely.
Status set_run_metadata(Pool& pool, TrialId id, const std::string& metadata);

/// kNotFound.
Result<TrialId> trial_of_task(Pool& pool, const TaskId& task);
/// A line that a process sent itself.
struct SentLine {
  AllocationId allocation;
  AgentId agent;
  std::int32_t rank = -1;
  WallTime time;
  std::string level, stdtype, source, text;
};
/// In order, behind all that is stored of the task.
Status append_lines(Pool& pool, const TaskId& task, const std::vector<SentLine>& lines);

}  // namespace det::db
