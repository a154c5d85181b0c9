// Scheduler, provider and task defaults of resource pools: keys `scheduler` and `resource_pools`.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/options.h"
#include "common/base/result.h"
#include "common/expconf/parse.h"

namespace det {

/// Scheduling policy of a pool.
struct SchedulerConfig {
  /// "priority", "fair_share" or "round_robin".
  std::string type = "priority";
  bool preemption = true;
  bool operator==(const SchedulerConfig&) const = default;
};

/// Supported versions of slurmrestd's API. Jobs of the first, the default, have other fields than later ones.
inline constexpr const char* kRestVersions[] = {"v0.0.38", "v0.0.40", "v0.0.41", "v0.0.42"};

/// Supply of a pool by an engine: its jobs run agents (pilots).
struct ProviderConfig {
  std::string type = "slurm";   ///< "slurm" or "kubernetes"
  int max_pilots = 1;           ///< limit on jobs that wait or run
  int slots_per_node = 1;       ///< most slots that det-agent finds on a node
  int max_nodes = 1;            ///< limit on the nodes of a job
  bool per_allocation = false;  ///< key `pilot`: a job for each trial or command, instead of shared ones
  Duration idle_timeout = std::chrono::minutes(5);
  Duration min_time_left = std::chrono::minutes(2);  ///< before its end a job takes no new work for this long
  std::string agent = "det-agent";                   ///< program on the nodes, or in the image
  Duration walltime{};                               ///< 0: no limit, or that of Slurm's partition

  // Slurm.
  std::string agent_config;  ///< configuration file of the agent on the nodes
  std::string partition, qos, account, constraint, gres;
  std::vector<std::string> sbatch_options;
  std::string rest_url;         ///< of slurmrestd; "": the commands of Slurm
  std::string rest_user;        ///< user of the token
  std::string rest_token_file;  ///< file with a JSON web token, read for each call
  std::string rest_version = kRestVersions[0];
  Json rest_job;  ///< further fields, merged into the submitted job

  // Kubernetes.
  std::string kubeconfig;    ///< file on the master's machine; "": the service account of the master's pod
  std::string context;       ///< of the kubeconfig; "": its current context
  std::string name_space;    ///< key `namespace`; "": that of the context or of the service account
  std::string image;         ///< container image with det-agent
  std::string master;        ///< address of the master for the agents
  std::string token_secret;  ///< key `join_token_secret`: Secret with the join token at key `token`
  std::string priority_class, queue;  ///< `queue`: LocalQueue of Kueue, or Queue of Volcano
  std::string gang = "plain";         ///< "plain", "pod_group" or "volcano": scheduling of a pilot's pods
  std::vector<std::string> agent_arguments;
  Duration grace = std::chrono::seconds(60);          ///< from SIGTERM to SIGKILL for a pod
  Duration start_timeout = std::chrono::minutes(10);  ///< after it a partial set of nodes is released
  Json resources, node_selector, labels;              ///< maps of texts
  Json tolerations;                                   ///< list of maps
  Json pod_template;                                  ///< merged into the template of the pods
  bool operator==(const ProviderConfig&) const = default;
};

/// Reads `scheduler`, the default of pools without settings of their own. Appends problems to `problems`.
SchedulerConfig read_scheduler(const Options& options, std::vector<Problem>& problems);
/// Reads `resource_pools`, by pool name. `rest`: defaults of unset keys. Appends problems to `problems`.
std::map<std::string, SchedulerConfig> read_pools(const Options& options, const SchedulerConfig& rest,
                                                  std::vector<Problem>& problems);

/// Reads `task_container_defaults` of `resource_pools`, by pool name; pools without any are absent. Appends
/// problems to `problems` and settings without effect to `warnings`.
std::map<std::string, expconf::TaskDefaults> read_pool_task_defaults(const Options& options,
                                                                     std::vector<Problem>& warnings,
                                                                     std::vector<Problem>& problems);
/// Reads `provider` of `resource_pools`, by pool name; pools of type `agents` are absent. Appends problems to
/// `problems`.
std::map<std::string, ProviderConfig> read_providers(const Options& options, std::vector<Problem>& problems);

}  // namespace det
