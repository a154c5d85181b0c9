// Owns how the operator says which pool schedules how.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/result.h"

namespace det {

struct SchedulerConfig {
  std::string type = "priority";  ///< or "fair_share", "round_robin"
  bool preemption = true;
  bool operator==(const SchedulerConfig&) const = default;
};

/// The key `scheduler`, of pools that say nothing themselves; problems are added to `problems`.
SchedulerConfig read_scheduler(const Options& options, std::vector<Problem>& problems);
/// The key `resource_pools`, by name.
std::map<std::string, SchedulerConfig> read_pools(const Options& options, const SchedulerConfig& rest,
                                                  std::vector<Problem>& problems);

}  // namespace det
