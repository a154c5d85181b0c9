// Owns averaging the training metrics of a window of batches, weighted by records.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "det/distributed.h"
#include "det/metrics.h"

namespace det {

/// Sums in double precision, in the order of batches. Values on a device are only remembered, and fetched
/// together when the window is read.
class MetricWindow {
 public:
  /// `source` is for messages.
  explicit MetricWindow(std::string source) : source_(std::move(source)) {}

  /// Names may differ from batch to batch. Throws std::invalid_argument for a tensor of more than one element
  /// or a name twice.
  void add(const Metrics& metrics, std::int64_t records);
  bool empty() const { return batches_ == 0; }
  /// Averages over all ranks, in the order first seen; NaN where they are. Every rank calls it, and has the
  /// result.
  Json averages(DistributedContext& distributed);
  void clear();

  /// The window as it stands: sums and weights exactly. append(save()) of an empty one makes it the same.
  Json save();
  void append(const Json& saved);

 private:
  struct Sum {
    std::string name;
    double sum = 0, weight = 0;
    std::int64_t batches = 0;                               // in which the name appeared
    std::vector<std::pair<torch::Tensor, double>> pending;  // on a device, with their weights
  };
  Sum& sum_of(const std::string& name, std::size_t hint);
  void fetch(Sum& sum);

  std::string source_;
  std::int64_t batches_ = 0;
  std::vector<Sum> sums_;
};

}  // namespace det
