// Owns reads of allocations: the attempts of one trial.
#pragma once

#include "master/db/queries.h"

namespace det::db {

struct AllocationRow {
  AllocationId id;
  std::int64_t run = 0;
  std::string state;  ///< as stored: "RUNNING" …
  std::vector<core::AllocationPart> parts;
  std::string pool;
  WallTime started;
  std::optional<WallTime> ended;
  std::optional<std::string> exit_kind, exit_message;
  std::optional<std::int64_t> exit_code;
};

/// Seconds that the last `count` allocations to end in a pool held their slots.
Result<std::vector<double>> recent_run_lengths(Pool& pool, const std::string& resource_pool, int count);

/// The trials, and the commands as core::as_trial names them, that have slots in a pool, and since when.
Result<std::vector<std::pair<TrialId, WallTime>>> live_since(Pool& pool, const std::string& resource_pool);

/// True when a part of the allocation is, or was, on that agent.
Result<bool> held_by(Pool& pool, const AllocationId& allocation, const AgentId& agent);

/// Newest run first; empty for a trial that never had slots, or that does not exist.
Result<std::vector<AllocationRow>> list_allocations(Pool& pool, TrialId trial);

}  // namespace det::db
