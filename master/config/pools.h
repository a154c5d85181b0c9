// Scheduler and provider settings of resource pools: keys `scheduler` and `resource_pools`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/base/clock.h"
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

/// Supply of a pool by jobs of Slurm, which run agents (pilots).
struct ProviderConfig {
  int max_pilots = 1;      ///< limit on jobs that wait or run
  int slots_per_node = 1;  ///< slots that det-agent finds on a node
  int max_nodes = 1;       ///< limit on the nodes of a job
  Duration idle_timeout = std::chrono::minutes(5);
  std::string agent = "det-agent";  ///< program on the nodes
  std::string agent_config;         ///< its configuration file on the nodes
  Duration walltime{};              ///< 0: the limit of the partition
  std::string partition, qos, account, constraint, gres;
  std::vector<std::string> sbatch_options;
  bool operator==(const ProviderConfig&) const = default;
};

/// Reads `scheduler`, the default of pools without settings of their own. Appends problems to `problems`.
SchedulerConfig read_scheduler(const Options& options, std::vector<Problem>& problems);
/// Reads `resource_pools`, by pool name. `rest`: defaults of unset keys. Appends problems to `problems`.
std::map<std::string, SchedulerConfig> read_pools(const Options& options, const SchedulerConfig& rest,
                                                  std::vector<Problem>& problems);

/// Reads `provider` of `resource_pools`, by pool name; pools of type `agents` are absent. Appends problems to
/// `problems`.
std::map<std::string, ProviderConfig> read_providers(const Options& options, std::vector<Problem>& problems);

}  // namespace det
