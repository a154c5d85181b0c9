// Queries of checkpoint garbage collection. A checkpoint is deleted in three idempotent steps: it is marked
// (and shown as PARTIALLY_DELETED), its files are removed, its state becomes DELETED.
#pragma once

#include <set>

#include "master/db/queries/page.h"

namespace det::db {

/// Returns the experiments that have checkpoints with files; the second overload only among the given ones.
Result<std::vector<ExperimentId>> experiments_with_checkpoints(Pool& pool);
Result<std::vector<ExperimentId>> experiments_with_checkpoints(Pool& pool,
                                                               const std::set<ExperimentId>& among);
/// Returns the checkpoints that unfinished experiments warm-start from, and those registered as model
/// versions.
Result<std::set<CheckpointId>> start_checkpoints(Pool& pool);

/// How many checkpoints an experiment keeps (`checkpoint_storage` of its configuration).
struct KeepRow {
  int experiment_best = 0, trial_best = 0, trial_latest = 0;
  bool smaller_is_better = true;
};
/// Errors: kNotFound.
Result<KeepRow> get_keep(Pool& pool, ExperimentId id);
/// A trial, as far as it matters to its checkpoints.
struct KeepTrial {
  TrialId id;
  CheckpointId latest;     ///< "" without a checkpoint
  bool open = false;       ///< has not ended
  bool resumable = false;  ///< open, or failed while its experiment is open
};
/// Lists the trials of an experiment. A trial that has ended gets no more checkpoints, so read the trials
/// before the checkpoints.
Result<std::vector<KeepTrial>> list_keep_trials(Pool& pool, ExperimentId id);
/// A checkpoint that has files and is not marked.
struct KeepCheckpoint {
  CheckpointId uuid;
  TrialId trial;
  std::int64_t steps = 0;
  std::optional<double> metric;  ///< of the validation at the same step; may be NaN
  bool damaged = false;
};
/// Lists the checkpoints of an experiment by trial and steps. Empty for a detached experiment: its files
/// belong to the user.
Result<std::vector<KeepCheckpoint>> list_keep_checkpoints(Pool& pool, ExperimentId id);

/// Marks checkpoints for deletion and returns those that are now marked. Skips registered ones and those that
/// an unfinished trial resumes from, or that of another experiment starts from. Idempotent. Without `whole`
/// the collector does not delete them: the caller removes some of their files.
Result<std::vector<CheckpointId>> mark_for_removal(Pool& pool, const std::vector<CheckpointId>& uuids,
                                                   bool whole = true);
/// Locks the checkpoints of an experiment until the end of the transaction, in the common lock order
/// (locks.h).
Status lock_checkpoints_of(Connection& connection, ExperimentId id);
/// Marks all checkpoints of an experiment. Idempotent. Errors: kNotFound; kFailedPrecondition (it has not
/// ended). The caller must rule out registered checkpoints.
Status mark_all_for_removal(Pool& pool, ExperimentId id);

/// A checkpoint marked for deletion.
struct Marked {
  CheckpointId uuid;
  ExperimentId experiment;
  std::string storage;  ///< checkpoint_storage of the experiment, a JSON object.
  /// Agent of the first rank of the run that wrote the files; "" when they were written outside the cluster.
  AgentId writer;
};
/// Lists marked checkpoints by uuid, beginning behind `after`, at most `limit`.
Result<std::vector<Marked>> marked_for_removal(Pool& pool, const CheckpointId& after, int limit);
/// Returns the marked ones among `uuids`.
Result<std::vector<Marked>> marked_among(Pool& pool, const std::vector<CheckpointId>& uuids);
/// Returns the marked checkpoints of an experiment.
Result<std::vector<Marked>> marked_of(Pool& pool, ExperimentId id);
/// Records that the files are gone: marked checkpoints become DELETED. Idempotent.
Status set_removed(Pool& pool, const std::vector<CheckpointId>& uuids);

/// Returns the storage of an experiment as storages_in_use() does; nothing for an experiment without one.
Result<std::optional<Marked>> storage_of(Pool& pool, ExperimentId id);
/// Returns the storages that experiments write to, each once, the `limit` most recently used. `uuid` is empty
/// and `experiment` is the newest one with this storage.
Result<std::vector<Marked>> storages_in_use(Pool& pool, int limit);
/// A complete checkpoint found in a storage. trial and run come from its manifest and are valid when `ours`
/// is set.
struct OnDisk {
  std::string name;
  bool ours = false;
  TrialId trial;
  RunNumber run = 0;
};
/// Returns the orphans among `found`: checkpoints with a DELETED row, and checkpoints without a row that the
/// run that wrote them can no longer report, because its trial has ended, was deleted, or has a later run.
Result<std::vector<std::string>> orphans_among(Pool& pool, const std::vector<OnDisk>& found);

}  // namespace det::db
