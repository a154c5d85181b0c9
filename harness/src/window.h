// Owns averaging metrics over a window of batches, weighted by records.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "det/metrics.h"

namespace det {

/// Sums in double precision, in the order of batches. Values on a device are only remembered, and fetched together when
/// the window is read.
class MetricWindow {
 public:
  /// Validation wants the same names in every batch, training does not. `source` is for messages.
  MetricWindow(std::string source, bool same_names) : source_(std::move(source)), same_names_(same_names) {}

  /// Throws std::invalid_argument for a tensor of more than one element, a name twice, or names that change.
  void add(const Metrics& metrics, std::int64_t records);
  bool empty() const { return batches_ == 0; }
  /// Averages, in the order first seen; NaN where they are.
  Json averages();
  void clear();

  /// The window as it stands: sums and weights exactly. restore(save()) changes nothing.
  Json save();
  void restore(const Json& saved);

 private:
  struct Sum {
    std::string name;
    double sum = 0, weight = 0;
    std::int64_t batches = 0;  // in which the name appeared
    std::vector<std::pair<torch::Tensor, double>> pending;  // on a device, with their weights
  };
  Sum& sum_of(const std::string& name, std::size_t hint);
  void fetch(Sum& sum);

  std::string source_;
  bool same_names_;
  std::int64_t batches_ = 0;
  std::vector<Sum> sums_;
};

}  // namespace det
