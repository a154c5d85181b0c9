// Bound of the metrics that a trial may have, so that reads of a trial stay small.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/result.h"
#include "common/base/shared.h"

namespace det::api {

/// Key of a metric: a hash of its group and name. Equal hashes count as one metric.
using MetricKey = std::uint32_t;
MetricKey metric_key(std::string_view group, std::string_view name);

/// Metrics of the trials that reported last. Thread-safe; at most 8 MiB. The count of a trial begins again
/// when the master starts, and when a trial with the same remainder of its id by 1,024 reports.
class MetricNames {
 public:
  /// Pairs of group and name of one trial.
  static constexpr std::size_t kMaxPerTrial = 2000;

  /// Adds the metrics of a report by an authorized sender. `room` is the outcome of the quota of the
  /// trial's owner: its error is returned for new metrics of a trial that has reported before, or with
  /// `fresh`. A trial of an earlier master begins again with the metrics that it had. Errors:
  /// kInvalidArgument beyond kMaxPerTrial, and those of `room`; then nothing is added. Never blocks.
  Status add(TrialId trial, const std::vector<MetricKey>& metrics, const Status& room = {},
             bool fresh = false);

 private:
  struct Known {
    TrialId trial;
    std::vector<MetricKey> metrics;  ///< sorted
  };
  std::array<Shared<Known>, 1024> known_;
};

}  // namespace det::api
