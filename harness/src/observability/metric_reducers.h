// Runs the MetricReducers that a trial wrapped, over one window of batches. Training thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/json.h"
#include "det/distributed.h"
#include "det/metrics.h"

namespace det {

/// Divides the values of each rank, which computes `shards` consecutive shards of every batch in turn, into
/// one list per shard, in the order of all shards.
std::vector<Json> values_by_shard(const std::vector<Json>& per_slot, std::int64_t shards);

/// The reducers of a trial, in the order of wrapping. That order is equal on all ranks, as the collectives
/// require.
class MetricReducers {
 public:
  enum class Kind { kTraining, kValidation };

  /// Adds a reducer of one or both kinds. A reducer without a name yields an object of metrics.
  void add(std::shared_ptr<MetricReducer> reducer, std::string name, bool for_training, bool for_validation) {
    wrapped_.push_back({std::move(reducer), std::move(name), for_training, for_validation});
  }
  bool empty() const { return wrapped_.empty(); }
  /// True when there is a reducer of the kind.
  bool has(Kind kind) const;
  /// Starts a new window: resets every reducer of the kind.
  void reset(Kind kind);
  /// Adds the results of the reducers of the kind to `metrics`. `shards` is the number of consecutive shards
  /// of a batch on each rank. Collective: every rank calls it, and all get the same result. Throws
  /// std::invalid_argument when a result has the wrong form or a metric of that name exists.
  void reduce_into(Json& metrics, Kind kind, DistributedContext& distributed, std::int64_t shards);

 private:
  struct Wrapped {
    std::shared_ptr<MetricReducer> reducer;
    std::string name;
    bool for_training, for_validation;
    bool applies(Kind kind) const { return kind == Kind::kTraining ? for_training : for_validation; }
  };
  std::vector<Wrapped> wrapped_;
};

}  // namespace det
