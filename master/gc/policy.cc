#include "master/gc/policy.h"

#include <algorithm>
#include <map>

namespace det::gc {
namespace {

using Sound = std::vector<const Checkpoint*>;

/// Adds the uuids of the first `count` candidates in the given order to `kept`.
template <typename Before>
void keep_first(Sound candidates, int count, const Before& before, std::set<CheckpointId>& kept) {
  std::sort(candidates.begin(), candidates.end(), before);
  const auto most = std::min(candidates.size(), static_cast<std::size_t>(std::max(count, 0)));
  for (std::size_t i = 0; i < most; ++i) kept.insert(candidates[i]->uuid);
}

bool newer(const Checkpoint* a, const Checkpoint* b) {
  return a->steps != b->steps ? a->steps > b->steps : a->uuid < b->uuid;
}

struct Better {
  bool smaller_is_better;
  bool operator()(const Checkpoint* a, const Checkpoint* b) const {
    // A total order: the selection must not change between two runs over the same checkpoints.
    if (*a->metric != *b->metric)
      return smaller_is_better ? *a->metric < *b->metric : *a->metric > *b->metric;
    if (a->steps != b->steps) return a->steps < b->steps;
    return a->trial != b->trial ? a->trial < b->trial : a->uuid < b->uuid;
  }
};

Sound with_metric(const Sound& all) {
  Sound out;
  std::copy_if(all.begin(), all.end(), std::back_inserter(out),
               [](const Checkpoint* one) { return one->metric.has_value(); });
  return out;
}

}  // namespace

std::vector<CheckpointId> superfluous(const Retention& retention) {
  constexpr int kOfOpenTrials = 2;
  std::set<CheckpointId> kept = retention.needed;
  std::map<TrialId, Sound> by_trial;
  Sound all;
  for (const Checkpoint& one : retention.checkpoints) {
    // Damaged checkpoints do not count towards any quota.
    if (one.damaged) {
      if (retention.open.contains(one.trial)) kept.insert(one.uuid);
      continue;
    }
    by_trial[one.trial].push_back(&one);
    all.push_back(&one);
  }
  const Better better{retention.keep.smaller_is_better};
  // Best over all trials, then latest and best of each trial. A checkpoint may fill several quotas.
  keep_first(with_metric(all), retention.keep.experiment_best, better, kept);
  for (const auto& [trial, of_one] : by_trial) {
    const int latest = retention.open.contains(trial) ? std::max(retention.keep.trial_latest, kOfOpenTrials)
                                                      : retention.keep.trial_latest;
    keep_first(of_one, latest, newer, kept);
    keep_first(with_metric(of_one), retention.keep.trial_best, better, kept);
  }
  std::vector<CheckpointId> gone;
  for (const Checkpoint& one : retention.checkpoints) {
    if (!kept.contains(one.uuid)) gone.push_back(one.uuid);
  }
  return gone;
}

}  // namespace det::gc
