// Owns what a configuration is held against beyond itself: facts of the cluster, as values.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace det::expconf {

struct ClusterFacts {
  std::vector<std::string> pools;  ///< none: pools and slots are not checked
  /// Why a pool could never hold a trial of so many slots, and what would fit; "" when it could, or nobody
  /// knows.
  std::function<std::string(const std::string& pool, int slots, bool single_node)> unfit;
  std::string default_pool;
  /// The master's `launch_error`: refuse what no agent could run; else warn, and let it wait.
  bool launch_error = true;
  std::function<bool(const std::string& workspace, const std::string& project)>
      has_project;                      ///< that the user may see; null: not checked
  std::vector<std::string> host_paths;  ///< the directories that may be mounted, and all below; none: any
  std::function<bool(std::int64_t trial)> has_trial;  ///< as the source of a warm start; null: not checked
  std::function<bool(const std::string& uuid)> has_checkpoint;  ///< likewise
};

}  // namespace det::expconf
