// Owns the shape in which stored experiments come back into the core.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "master/core/model.h"

namespace det::core {

/// What the store holds of all that has not ended, as read at start; or of one experiment, to take it up
/// again.
struct Recovered {
  struct SearcherLog {
    std::int64_t snapshot_number = 0;
    std::string snapshot;             ///< "" when there is none
    std::vector<std::string> events;  ///< those from snapshot_number on, in order
  };
  std::vector<Experiment> experiments;            ///< not terminal at start
  std::map<ExperimentId, SearcherLog> searchers;  ///< one for each of them
  std::vector<Trial> trials;                      ///< all trials of those experiments, ended ones too
  std::vector<Command> commands;                  ///< not terminal
  std::vector<Allocation> allocations;            ///< not terminated
  std::vector<AgentSettings> agents;
  ExperimentId next_experiment{1};
  TrialId next_trial{1};
  CommandId next_command{1};
};

}  // namespace det::core
