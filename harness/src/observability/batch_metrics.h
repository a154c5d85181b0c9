// Metrics of numbered batches until they are reduced: of a validation, and of training with virtual shards,
// where the order of additions must not depend on the rank that processed a batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/json.h"
#include "det/distributed.h"
#include "det/metrics.h"

namespace det {

/// Collects the metrics of this rank's batches. Used on the training thread.
class BatchMetrics {
 public:
  /// `source` names the origin in error messages. All batches must have the same metric names.
  explicit BatchMetrics(std::string source) : source_(std::move(source)) {}

  /// Adds the metrics of a batch with `records` records. `number` orders the batches of all ranks. Throws
  /// std::invalid_argument for a tensor of more than one element, a duplicate name, or names that differ from
  /// those of the first batch. Does not synchronize with a device.
  void add(std::int64_t number, const Metrics& metrics, std::int64_t records);
  bool empty() const { return batches_.empty(); }
  /// One object of name → value for each batch of this rank.
  std::vector<Json> outputs();
  /// Reduces the batches of all ranks to one number per name and returns the same object on every rank.
  /// Collective. Throws std::invalid_argument when ranks have different names.
  Json reduce(DistributedContext& distributed, const EvaluationReducer& reducer);
  void clear();

  /// State of this rank's batches. append() on an empty object restores it exactly.
  Json save();
  void append(const Json& saved);

 private:
  struct Row {
    std::int64_t number = 0;
    double records = 0;
    std::vector<double> values;
  };
  void fetch();

  std::string source_;
  std::vector<std::string> names_;
  std::vector<Row> batches_;
  /// Values that are still on a device, with their (row, column).
  std::vector<std::pair<torch::Tensor, std::pair<std::size_t, std::size_t>>> pending_;
};

/// Throws std::invalid_argument naming the metric unless the value is a number or a tensor of one element.
void check_metric(const std::string& source, const std::string& name, const MetricValue& value);

/// The value of a one-element tensor on the CPU.
double read_number(const torch::Tensor& tensor);

/// The values of one-element tensors, with a single copy from the device.
std::vector<double> fetch_numbers(const std::vector<torch::Tensor>& tensors);

}  // namespace det
