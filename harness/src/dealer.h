// Owns dealing the batches of a loader to the processes of a trial, step by step. Standard library only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "det/samplers.h"

namespace det {

struct DealSpec {
  std::int64_t world = 1;  ///< shards into which each step is cut
  std::int64_t first = 0;  ///< the first shard of this process
  std::int64_t count = 1;  ///< how many consecutive shards it takes
  /// Training: endless, every shard has equally many steps an epoch, the first batches of the epoch filling
  /// the gap. Without it (validation) one epoch in which each batch is dealt exactly once, and shards may
  /// differ by one step.
  bool training = false;
};

/// Batch s * world + shard of an epoch goes to step s of `shard`. Epoch e is pass e of the batch sampler. One
/// thread.
class Dealer {
 public:
  /// Throws std::invalid_argument for shards that are not in the world. `batches` has at least one and an
  /// end.
  Dealer(AnyBatchSampler batches, const DealSpec& spec);

  /// Steps of one epoch on the first shard of this process, which has no fewer than its others.
  std::int64_t steps() const;
  struct Deal {
    std::int64_t epoch = 0;
    std::int64_t number = 0;  ///< s * world + shard; in training perhaps beyond the batches there are
    std::vector<std::int64_t> records;
  };
  /// What this process takes as its batch `position`, counted from the start of training over all its shards:
  /// step position / count. nullopt after the last of a validation.
  std::optional<Deal> deal(std::int64_t position) const;

 private:
  AnyBatchSampler batches_;
  DealSpec spec_;
  std::int64_t epoch_batches_;
};

}  // namespace det
