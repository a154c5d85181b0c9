// Owns the short form in which durable writes are told to whoever watches the cluster (event stream, log
// followers).
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "master/core/effect.h"

namespace det::loop {

/// One thing that became durable. Fields that do not apply are zero or empty.
struct Change {
  enum class Kind { kExperiment, kTrial, kMetrics, kCheckpoint, kAllocation, kLogs, kAgent, kCommand };
  Kind kind{};
  ExperimentId experiment;
  TrialId trial;
  TaskId task;
  std::string name;  ///< state of experiment, trial, command or allocation; group; uuid of a checkpoint; id
                     ///< of an agent
  std::int64_t steps_completed = 0;
  double progress = 0;
};

/// Adds what the writes of a group from the one of number `from` tell its watchers, in order. `trials` gives
/// a trial's experiment where the write lacks it.
void add_changes(const std::vector<core::Write>& group, std::size_t from,
                 const std::unordered_map<TrialId, core::Trial>& trials, std::vector<Change>& changes);

}  // namespace det::loop
