// Dealer: assigns the batches of a loader to the processes of a trial, step by step. Standard library only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "det/samplers.h"

namespace det {

/// The shards of a process.
struct DealSpec {
  std::int64_t world = 1;  ///< shards into which each step is divided
  std::int64_t first = 0;  ///< first shard of this process
  std::int64_t count = 1;  ///< number of consecutive shards of this process
  /// Training: endless, with the same number of steps per epoch on every shard; the first batches of the
  /// epoch fill the gap. Validation (false): one epoch with each batch dealt exactly once; shards may differ
  /// by one step.
  bool training = false;
};

/// Batch s * world + shard of an epoch is step s of `shard`. Epoch e is pass e of the batch sampler. Used on
/// one thread.
class Dealer {
 public:
  /// Throws std::invalid_argument for shards outside the world. `batches` must be finite and not empty.
  Dealer(AnyBatchSampler batches, const DealSpec& spec);

  /// Steps per epoch of the process's first shard, which has at least as many as its others.
  std::int64_t steps() const;
  /// A batch assigned to this process.
  struct Deal {
    std::int64_t epoch = 0;
    std::int64_t number = 0;  ///< s * world + shard; in training possibly beyond the last batch
    std::vector<std::int64_t> records;
  };
  /// Returns the batch at `position`, counted from the start of training over all shards of this process
  /// (step position / count). nullopt after the end of a validation. A pure function of its argument.
  std::optional<Deal> deal(std::int64_t position) const;

 private:
  AnyBatchSampler batches_;
  DealSpec spec_;
  std::int64_t epoch_batches_;
};

}  // namespace det
