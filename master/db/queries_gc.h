// Owns what the removal of checkpoints reads and writes. A checkpoint goes in three steps, each safe to
// repeat: it is marked (and from then on shown as PARTIALLY_DELETED), its files are removed, it becomes
// DELETED.
#pragma once

#include <set>

#include "master/db/queries.h"
#include "master/gc/policy.h"

namespace det::db {

/// What the policy decides on; nothing of an experiment outside the cluster, whose files are its user's.
/// kNotFound.
Result<gc::Books> load_books(Pool& pool, ExperimentId id);
/// Those with checkpoints whose files are there.
Result<std::vector<ExperimentId>> experiments_with_checkpoints(Pool& pool);
Result<std::vector<ExperimentId>> experiments_with_checkpoints(Pool& pool,
                                                               const std::set<ExperimentId>& among);
/// From which experiments that have not ended start their trials, and those that are versions of models.
Result<std::set<CheckpointId>> start_checkpoints(Pool& pool);

/// Marks them, but for those from which a trial that has not ended goes on and versions of models. Says which
/// are marked now.
Result<std::vector<CheckpointId>> mark_for_removal(Pool& pool, const std::vector<CheckpointId>& uuids);
/// Of an experiment, for the transaction, in the order that all keep.
Status lock_checkpoints_of(Connection& connection, ExperimentId id);
/// Marks all of an experiment that has ended. kFailedPrecondition otherwise.
Status mark_all_for_removal(Pool& pool, ExperimentId id);

struct Marked {
  CheckpointId uuid;
  ExperimentId experiment;
  std::string storage;  ///< the experiment's checkpoint_storage, a JSON object
  AgentId writer;       ///< whose files they are; "" when it was written outside the cluster
};
/// In the order of uuids, behind `after`, at most `limit`.
Result<std::vector<Marked>> marked_for_removal(Pool& pool, const CheckpointId& after, int limit);
/// Of these, what is marked.
Result<std::vector<Marked>> marked_among(Pool& pool, const std::vector<CheckpointId>& uuids);
Result<std::vector<Marked>> marked_of(Pool& pool, ExperimentId id);
/// Their files are gone. Repeats safely.
Status set_removed(Pool& pool, const std::vector<CheckpointId>& uuids);

/// The storages that experiments write to, each once: the newest `limit`.
Result<std::vector<Marked>> storages_in_use(Pool& pool, int limit);
/// A complete checkpoint in a storage, by whom its manifest says.
struct OnDisk {
  std::string name;
  bool ours = false;
  TrialId trial;
  RunNumber run = 0;
};
/// Those that nobody can know of any more: their row says DELETED; or they have none and the run that wrote
/// them cannot report them, because its trial has ended, is gone, or runs as a later run.
Result<std::vector<std::string>> orphans_among(Pool& pool, const std::vector<OnDisk>& found);

}  // namespace det::db
