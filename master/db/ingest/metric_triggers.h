// Reports of metrics that webhooks wait for. A trigger fires once per trial: queue_metric_webhooks() queues
// the event in the transaction that stores the report.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "master/db/ingest/bulk.h"

namespace det::db {

/// The names of the metrics in METRIC_THRESHOLD_EXCEEDED triggers. Used by the metric thread, except for
/// changed().
class MetricTriggers {
 public:
  /// Makes the next load() read the triggers again. Any thread.
  void changed() { ++generation_; }
  /// Reads the triggers if they changed. Costs nothing otherwise.
  Status load(Connection& connection);
  /// Queues the events of the rows in the open transaction. Costs nothing without triggers.
  Status queue(Connection& connection, const std::vector<const MetricBatch*>& batches) const;

 private:
  bool may_match(const std::string& metrics) const;

  std::atomic<std::uint64_t> generation_{1};
  std::uint64_t loaded_ = 0;
  /// Names as they stand in JSON; "" for one that JSON can write in several ways.
  std::vector<std::string> names_;
};

}  // namespace det::db
