// Scheduler settings of resource pools: keys `scheduler` and `resource_pools`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/base/options.h"
#include "common/base/result.h"

namespace det {

/// Scheduling policy of a pool.
struct SchedulerConfig {
  /// "priority", "fair_share" or "round_robin".
  std::string type = "priority";
  bool preemption = true;
  bool operator==(const SchedulerConfig&) const = default;
};

/// Reads `scheduler`, the default of pools without settings of their own. Appends problems to `problems`.
SchedulerConfig read_scheduler(const Options& options, std::vector<Problem>& problems);
/// Reads `resource_pools`, by pool name. `rest`: defaults of unset keys. Appends problems to `problems`.
std::map<std::string, SchedulerConfig> read_pools(const Options& options, const SchedulerConfig& rest,
                                                  std::vector<Problem>& problems);

}  // namespace det
