#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/json.h"
#include "det/distributed.h"
#include "det/metrics.h"

namespace det {

/// Averages training metrics over a window of batches, weighted by records. Sums are double precision and
/// added in batch order. Tensors on a device are kept and fetched together when the window is read, so that
/// add() does not synchronize. Training thread.
class MetricWindow {
 public:
  /// `source` is the prefix of error messages.
  explicit MetricWindow(std::string source) : source_(std::move(source)) {}

  /// Adds the metrics of a batch of `records` records. Names may differ between batches. Throws
  /// std::invalid_argument for a tensor with more than one element or a duplicate name.
  void add(const Metrics& metrics, std::int64_t records);
  bool empty() const { return batches_ == 0; }
  /// Averages over all ranks, in the order in which names first appeared; NaN is kept.
  /// Collective: every rank calls it and gets the result. With several ranks the window then
  /// holds the sums of all ranks; call clear() next.
  Json averages(DistributedContext& distributed);
  /// Starts a new window.
  void clear();

  /// The sums and weights, exactly. append(save()) on an empty window restores it.
  Json save();
  /// Adds a saved window to this one.
  void append(const Json& saved);

 private:
  struct Sum {
    std::string name;
    double sum = 0, weight = 0;
    std::int64_t batches = 0;                               ///< batches in which the name appeared
    std::vector<std::pair<torch::Tensor, double>> pending;  ///< device tensors and their weights
  };
  /// Finds or adds the sum of `name`; `hint` is its likely index.
  Sum& sum_of(const std::string& name, std::size_t hint);
  /// Reads the pending device tensors into the sum.
  void fetch(Sum& sum);

  std::string source_;
  std::int64_t batches_ = 0;
  std::vector<Sum> sums_;
};

}  // namespace det
