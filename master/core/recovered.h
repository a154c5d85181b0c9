// Rows of the store from which the core rebuilds its state.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "master/core/model.h"
#include "master/core/queues/quota.h"

namespace det::core {

/// At start: everything that has not ended. For ContinueSearch: the rows of one ended experiment.
struct Recovered {
  /// History of a searcher: its newest snapshot and the events after it.
  struct SearcherLog {
    std::int64_t snapshot_number = 0;  ///< number of events that the snapshot includes
    std::string snapshot;              ///< JSON; "" when there is none
    std::vector<std::string> events;   ///< JSON, from snapshot_number on, in order
  };
  /// At start none of them is terminal.
  std::vector<Experiment> experiments;
  /// One for each experiment.
  std::map<ExperimentId, SearcherLog> searchers;
  /// All trials of these experiments, ended ones included.
  std::vector<Trial> trials;
  /// Commands that have not ended, and allocations that are not kTerminated.
  std::vector<Command> commands;
  std::vector<Allocation> allocations;
  std::vector<AgentSettings> agents;
  std::vector<Quota> quotas;
  std::vector<Pilot> pilots;  ///< those that have not ended
  // The smallest ids that have never been used.
  ExperimentId next_experiment{1};
  TrialId next_trial{1};
  CommandId next_command{1};
  std::int64_t next_pilot = 1;
};

}  // namespace det::core
