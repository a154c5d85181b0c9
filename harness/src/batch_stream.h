// Owns handing out batches in order from a position: the trainer's only view of data.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "det/data.h"

namespace det {

struct StreamSpec {
  std::uint64_t seed = 0;
  std::int64_t world = 1;  ///< shards into which each step is cut
  std::int64_t first = 0;  ///< the first shard of this process
  std::int64_t count = 1;  ///< how many consecutive shards this process takes
  /// Endless, with equally many steps on every shard (the first batches of the epoch fill the gap). Without
  /// it every record comes exactly once, and shards may differ by one batch.
  bool training = false;
  torch::Device device{torch::kCPU};
};

/// Batch s * world + shard of an epoch is that of `shard` in step s. What comes out depends on the dataset,
/// the spec and the step alone, never on threads.
class BatchStream {
 public:
  /// Starts with step `step` of training: step % steps_per_epoch() of epoch step / steps_per_epoch(). A
  /// source is told the epoch and begins where it wants. Throws std::invalid_argument for a spec that cannot
  /// be.
  BatchStream(const DataLoader& loader, const StreamSpec& spec, std::int64_t step);
  ~BatchStream();

  /// Steps of an epoch, in training equally many on all shards; kEndless for a source without a size.
  std::int64_t steps_per_epoch() const;
  /// The next batch, on the device: shard after shard of a step, then the next step. nullopt at the end: of
  /// the epoch in validation, and of a source that gives no batches any more. Throws std::runtime_error that
  /// names the batch around (std::throw_with_nested) what the dataset throws, and when it gives another
  /// number of records than asked.
  std::optional<Batch> next();
  /// The number in its epoch, over all shards, of the batch given last: s * world + shard. -1 before the
  /// first.
  std::int64_t last_batch_number() const;

 private:
  class Reader;
  std::unique_ptr<Reader> reader_;
};

}  // namespace det
