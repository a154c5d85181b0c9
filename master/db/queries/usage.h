// Queries of usage accounting: allocations that held slots, individually and summed up.
#pragma once

#include <map>

#include "master/db/queries/page.h"

namespace det::db {

/// An allocation that held slots.
struct UsageEntry {
  AllocationId allocation;      ///< "": of an experiment that an earlier release deleted.
  std::string workspace;        ///< Its name; "": deleted.
  std::string task_type;        ///< "TRIAL", "COMMAND", or a kind of interactive task.
  std::int64_t experiment = 0;  ///< 0: a command.
  UserId user;
  std::string username;
  /// Labels of the experiment.
  std::vector<std::string> labels;
  std::string pool;
  std::int32_t slots = 0;
  WallTime started;
  /// Unset while it runs.
  std::optional<WallTime> ended;
  double seconds = 0;  ///< Time in the queried range, not multiplied by slots.
};
/// Returns the allocations that held slots in [from, to), by start, including those of deleted experiments.
/// `without_slots`: those that held none, too. kResourceExhausted: more than 100,000.
Result<std::vector<UsageEntry>> usage_entries(Pool& pool, WallTime from, WallTime to, const Visible& visible,
                                              bool without_slots = false);

/// Slots that an agent offered during a period.
struct CapacityEntry {
  std::string agent, pool;
  std::int32_t slots = 0;
  WallTime started;
  /// Unset while it is connected.
  std::optional<WallTime> ended;
  double seconds = 0;  ///< Time in the queried range, not multiplied by slots.
};
/// Returns the slots offered in [from, to), by start. kResourceExhausted: more than 100,000 entries.
Result<std::vector<CapacityEntry>> capacity_entries(Pool& pool, WallTime from, WallTime to);

/// Slot-seconds of one day or month.
struct UsagePeriod {
  std::string start;  ///< First day, such as "2026-01-31".
  /// Sum over all allocations.
  double total = 0;
  /// An allocation counts once per label, so by_label may exceed the total.
  std::map<std::string, double> by_user, by_label, by_pool, by_experiment;
  std::map<std::string, double> capacity;  ///< Slot-seconds offered, by pool.
};
/// Returns one entry for every period (day or month, in UTC) that overlaps [first, last], including periods
/// without usage. Days outside [first, last] do not count. Dates have the form "2026-01-31".
/// kInvalidArgument: a malformed date.
Result<std::vector<UsagePeriod>> usage_periods(Pool& pool, const std::string& first, const std::string& last,
                                               bool monthly, const Visible& visible);

}  // namespace det::db
