// Owns which checkpoints of an experiment nobody needs any more. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"

namespace det::gc {

/// `checkpoint_storage` of the experiment, as it stands now.
struct Keep {
  int experiment_best = 0;  ///< of all its trials together
  int trial_best = 1;       ///< of each trial
  int trial_latest = 1;     ///< of each trial
  bool smaller_is_better = true;
};

struct Checkpoint {
  CheckpointId uuid;
  TrialId trial;
  std::int64_t steps = 0;
  std::optional<double> metric;  ///< the searcher's, of the validation at the same steps; never NaN
  bool damaged = false;          ///< state ERROR: nothing goes on from it
};

struct Books {
  Keep keep;
  std::vector<Checkpoint> checkpoints;  ///< whose files are there
  std::set<TrialId> open;               ///< trials that have not ended
  std::set<CheckpointId> needed;        ///< from which something goes on, or may
};

/// What may go, in the order given. Kept are: what is needed; the best and the latest that the policy names
/// (ties: the one with fewer steps is better; one without a metric is never best); of an open trial the two
/// newest, since the newest may turn out damaged, and damaged ones until it ends, for who wants to look at
/// them.
std::vector<CheckpointId> superfluous(const Books& books);

}  // namespace det::gc
