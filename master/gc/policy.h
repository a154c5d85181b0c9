// Selects the checkpoints of an experiment that are no longer needed. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/ids.h"

namespace det::gc {

/// The current `checkpoint_storage` settings of an experiment: how many checkpoints to keep.
struct Keep {
  int experiment_best = 0;  ///< best of all trials together
  int trial_best = 1;       ///< best of each trial
  int trial_latest = 1;     ///< latest of each trial
  bool smaller_is_better = true;
};

/// A checkpoint as seen by the policy.
struct Checkpoint {
  CheckpointId uuid;
  TrialId trial;
  /// Batches trained when it was saved.
  std::int64_t steps = 0;
  /// The searcher's metric of the validation at the same step; never NaN.
  std::optional<double> metric;
  /// State ERROR: no run may start from it.
  bool damaged = false;
};

/// Input of the policy: one experiment.
struct Retention {
  Keep keep;
  std::vector<Checkpoint> checkpoints;  ///< with existing files
  std::set<TrialId> open;               ///< trials that have not ended
  /// A run starts, or may start, from them.
  std::set<CheckpointId> needed;
};

/// Returns the checkpoints that may be removed, in the order given. These are kept:
///
/// * needed ones;
/// * the best and the latest, in the numbers of `keep`; ties go to fewer steps, and a checkpoint without
///   metric is never among the best;
/// * the two newest of an open trial, since the newest may turn out to be damaged;
/// * damaged ones of an open trial, for inspection.
std::vector<CheckpointId> superfluous(const Retention& retention);

}  // namespace det::gc
