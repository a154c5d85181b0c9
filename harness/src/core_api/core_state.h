// Internal state of the Core API's contexts. Used on the context's thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "det/core.h"
#include "harness/src/client/client.h"
#include "harness/src/observability/system_metrics.h"

namespace det {

/// State shared by the contexts of one CoreContext.
class CoreState {
 public:
  /// Result of CoreContext::info().
  CoreInfo info;
  /// Storage of checkpoints, unless info.checkpoint_storage.
  std::shared_ptr<const storage::Bucket> bucket;
  /// The ranks; never null.
  std::shared_ptr<DistributedContext> distributed;
  /// Reports to the master (chief), or discards reports.
  std::unique_ptr<Client> client;
  /// How should_preempt() coordinates the ranks.
  PreemptMode preempt_mode = PreemptMode::kWorkersAskChief;

  /// The most recent report of a metric group, to detect conflicting reports.
  struct Reported {
    /// Step and metrics (as sent) of the report.
    std::int64_t steps = -1;
    std::string metrics;
  };
  std::map<std::string, Reported> newest;  ///< by group
  std::string copy;                        ///< with a bucket: path of the newest checkpoint's local copy
  std::int64_t steps_completed = 0;        ///< step of the newest metrics
  std::optional<std::string> failure;      ///< detached: reason why the trial ends in ERROR
  /// A preemption was seen, and acknowledged.
  bool preempted = false, acknowledged = false;
  std::unique_ptr<SystemMetrics> system_metrics;  ///< null while the machine is not sampled; uses client
  bool profiler_on = false;                       ///< by the program
};

}  // namespace det
