// Owns reads of usage accounting: allocations that held slots, as they are and added up.
#pragma once

#include <map>

#include "master/db/queries.h"

namespace det::db {

/// The workspaces that may be looked into; nothing: all.
using UsageScope = std::optional<std::vector<std::int64_t>>;

struct UsageEntry {
  std::int64_t experiment = 0;  ///< 0: a command
  UserId user;
  std::string username;
  std::vector<std::string> labels;
  std::string pool;
  std::int32_t slots = 0;
  WallTime started;
  std::optional<WallTime> ended;
  double seconds = 0;  ///< in the range
};
/// What held slots in [from, to), in order of its start; at most 100000. kResourceExhausted when there is
/// more.
Result<std::vector<UsageEntry>> usage_entries(Pool& pool, WallTime from, WallTime to,
                                              const UsageScope& scope);

/// Slots that an agent brought.
struct CapacityEntry {
  std::string agent, pool;
  std::int32_t slots = 0;
  WallTime started;
  std::optional<WallTime> ended;
  double seconds = 0;  ///< in the range
};
/// What was there in [from, to), in order of its start; bounded as usage_entries() is.
Result<std::vector<CapacityEntry>> capacity_entries(Pool& pool, WallTime from, WallTime to);

/// Slot-seconds of one period.
struct UsagePeriod {
  std::string start;  ///< "2026-01-31"
  double total = 0;
  std::map<std::string, double> by_user, by_label, by_pool, by_experiment;
  std::map<std::string, double> capacity;  ///< by pool: what there was to hold
};
/// A period each that has any day of [first, last] in it, also where nothing ran; days outside count nothing.
/// Dates as "2026-01-31".
Result<std::vector<UsagePeriod>> usage_periods(Pool& pool, const std::string& first, const std::string& last,
                                               bool monthly, const UsageScope& scope);

}  // namespace det::db
