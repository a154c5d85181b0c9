// Reads the state that the core resumes from, at start or for one ended experiment.
#pragma once

#include "master/core/core.h"
#include "master/db/pg/pg.h"

namespace det::db {

/// Loads everything that has not ended, and the next free ids. kDataLoss: a stored configuration cannot be
/// parsed.
Result<core::Recovered> load_recovered(Connection& connection);

/// Loads one experiment with its trials and its searcher. kNotFound.
Result<core::Recovered> load_ended(Connection& connection, ExperimentId id);

/// Persistent state of one search.
struct StoredSearch {
  std::shared_ptr<const expconf::ExperimentConfig> config;
  core::Recovered::SearcherLog log;
  std::vector<std::pair<TrialId, RequestId>> trials;  ///< Trial and searcher request, by trial id.
};
/// Loads a search from one snapshot. Begins a read-only transaction and leaves it open; the pool ends it.
/// kNotFound: no such experiment.
Result<StoredSearch> load_search(Connection& connection, ExperimentId id);

}  // namespace det::db
