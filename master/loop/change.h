// Summary of durable writes for watchers of the cluster: the event stream and log followers.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "master/core/effect.h"

namespace det::loop {

/// One durable change. Members that do not apply are zero or empty.
struct Change {
  enum class Kind { kExperiment, kTrial, kMetrics, kCheckpoint, kAllocation, kLogs, kAgent, kCommand };
  Kind kind{};
  ExperimentId experiment;
  TrialId trial;
  TaskId task;
  /// State, metric group, checkpoint uuid or agent id, depending on `kind`. Empty for an experiment of which
  /// a user has changed the name, labels, project or archive mark, or which was deleted.
  std::string name;
  std::int64_t steps_completed = 0;
  double progress = 0;  ///< of the experiment or trial, 0..1
  /// The state is the one that was written last time, as are the queue settings of an experiment: only
  /// progress or a number has changed.
  bool same_state = false;
};

/// The newest written states of experiments, with their queue settings, and of trials. At most 200,000 each;
/// a forgotten one counts as new. Not thread-safe.
class WrittenStates {
 public:
  /// Remembers the state. Returns true if it is the one that was written last time.
  bool repeats(const core::Experiment& row);
  bool repeats(const core::Trial& row);

 private:
  std::unordered_map<ExperimentId, std::pair<core::State, core::QueueSettings>> experiments_;
  std::unordered_map<TrialId, core::State> trials_;
};

/// Appends the changes of group[from], group[from + 1], … in order. `trials` supplies the experiment and task
/// of writes that name only the trial. Writes without interest for watchers are skipped. Every write must
/// pass here once and in order, for `states`.
void add_changes(const std::vector<core::Write>& group, std::size_t from,
                 const std::unordered_map<TrialId, core::Trial>& trials, WrittenStates& states,
                 std::vector<Change>& changes);

}  // namespace det::loop
