// Owns what a configuration is held against beyond itself: facts of the cluster, as values.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace det::expconf {

struct PoolFacts {
  std::string name;
  int agents = 0;   ///< that are known; of a pool without any nobody knows what fits it
  int slots = 0;    ///< of all of them
  int largest = 0;  ///< of the largest: a trial runs on one agent
};

struct ClusterFacts {
  std::vector<PoolFacts> pools;  ///< none: pools and slots are not checked
  std::string default_pool;
  /// The master's `launch_error`: refuse what no agent could run; else warn, and let it wait.
  bool launch_error = true;
  std::vector<std::pair<std::string, std::string>> projects;  ///< (workspace, project) that the user may use
  std::vector<std::string> host_paths;  ///< the directories that may be mounted, and all below; none: any
  std::function<bool(std::int64_t trial)> has_trial;  ///< as the source of a warm start; null: not checked
  std::function<bool(const std::string& uuid)> has_checkpoint;  ///< likewise
};

}  // namespace det::expconf
