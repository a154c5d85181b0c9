// Owns what stands behind the contexts of the Core API.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "client.h"
#include "det/core.h"
#include "system_metrics.h"

namespace det::core {

class State {
 public:
  Info info;
  std::shared_ptr<const storage::Bucket>
      bucket;  ///< where checkpoints lie, if not in info.checkpoint_storage itself
  std::shared_ptr<DistributedContext> distributed;
  std::unique_ptr<Client> client;
  PreemptMode preempt_mode = PreemptMode::kWorkersAskChief;

  struct Reported {
    std::int64_t steps = -1;
    std::string metrics;
  };
  std::map<std::string, Reported> newest;  ///< by group
  std::string copy;                        ///< of a bucket's checkpoints the newest that is here as well
  std::int64_t steps_completed = 0;        ///< of the newest metrics
  std::optional<std::string> failure;      ///< detached: why the trial ends in ERROR
  bool preempted = false, acknowledged = false;
  std::unique_ptr<SystemMetrics> system_metrics;  ///< null while the profiler is off; uses client
};

}  // namespace det::core
