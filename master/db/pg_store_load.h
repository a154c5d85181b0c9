// Owns reading back what a master needs to go on, at its start or with one experiment that has ended.
#pragma once

#include "master/core/core.h"
#include "master/db/pg.h"

namespace det::db {

/// Everything not ended, and the next ids. kDataLoss when a stored configuration cannot be read.
Result<core::Recovered> load_recovered(Connection& connection);

/// One experiment with all its trials and its searcher. kNotFound when there is none of that id.
Result<core::Recovered> load_ended(Connection& connection, ExperimentId id);

/// What there is to say how a search stands.
struct StoredSearch {
  std::shared_ptr<const expconf::ExperimentConfig> config;
  core::Recovered::SearcherLog log;
  std::vector<std::pair<TrialId, RequestId>> trials;  ///< by id
};
/// Read at one moment. kNotFound when there is no such experiment.
Result<StoredSearch> load_search(Connection& connection, ExperimentId id);

}  // namespace det::db
