// Owns the metrics of numbered batches until they become one: of a validation, and of training under virtual
// shards, where the order of every addition must not depend on who trained which batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "det/distributed.h"
#include "det/metrics.h"

namespace det {

class BatchMetrics {
 public:
  /// `source` is for messages. Every batch must give the same names.
  explicit BatchMetrics(std::string source) : source_(std::move(source)) {}

  /// `number` orders the batches of all ranks. Throws std::invalid_argument for a tensor of more than one
  /// element, a name twice, or names that are not those of the first batch.
  void add(std::int64_t number, const Metrics& metrics, std::int64_t records);
  bool empty() const { return batches_.empty(); }
  /// A name → value object for each batch of this rank.
  std::vector<Json> outputs();
  /// Every rank calls it, and has the result: one number a name, in the order of names.
  Json reduce(DistributedContext& distributed, const EvaluationReducer& reducer);
  void clear();

  /// The batches of this rank exactly. append(save()) of an empty one makes it the same.
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
  /// On a device still: values of (row, column).
  std::vector<std::pair<torch::Tensor, std::pair<std::size_t, std::size_t>>> pending_;
};

/// The one number of a metric: a plain one at once, a tensor's after a look at its shape. Throws
/// std::invalid_argument naming the metric.
void check_metric(const std::string& source, const std::string& name, const MetricValue& value);

/// Of a tensor on the CPU; the common type without a trip through the dispatcher.
double read_number(const torch::Tensor& tensor);

/// The numbers of tensors of one element, with one copy from the device.
std::vector<double> fetch_numbers(const std::vector<torch::Tensor>& tensors);

}  // namespace det
