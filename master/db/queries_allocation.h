// Owns reads of allocations: the attempts of one trial.
#pragma once

#include "master/db/queries.h"

namespace det::db {

struct AllocationRow {
  AllocationId id;
  std::int64_t run = 0;
  std::string state;  ///< as stored: "RUNNING" …
  AgentId agent;
  std::vector<std::int64_t> slots;
  std::string pool;
  WallTime started;
  std::optional<WallTime> ended;
  std::optional<std::string> exit_kind, exit_message;
  std::optional<std::int64_t> exit_code;
};

/// Newest run first; empty for a trial that never had slots, or that does not exist.
Result<std::vector<AllocationRow>> list_allocations(Pool& pool, TrialId trial);

}  // namespace det::db
