// BatchStream: delivers the batches of a data loader in order, from any position. All data of training and
// validation passes through it.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "det/data.h"

namespace det {

/// The part of a loader's batches that a process takes.
struct StreamSpec {
  /// Seed of shuffling and augmentation.
  std::uint64_t seed = 0;
  std::int64_t world = 1;  ///< shards into which each step is divided
  std::int64_t first = 0;  ///< first shard of this process
  std::int64_t count = 1;  ///< number of consecutive shards of this process
  /// Endless, with the same number of steps on every shard; the first batches of the epoch fill the gap. When
  /// false, every record occurs exactly once, and the shards may differ by one batch.
  bool training = false;
  /// Device to which batches are delivered.
  torch::Device device{torch::kCPU};
};

/// A sequence of batches. Batch s * world + shard of an epoch belongs to `shard` in step s. The sequence
/// depends on the dataset, the spec and the step alone, not on threads. Used on one thread.
class BatchStream {
 public:
  /// Starts at step `step` of training: step % steps_per_epoch() of epoch step / steps_per_epoch(). A
  /// BatchSource receives the epoch and chooses its own position. Throws std::invalid_argument for an invalid
  /// spec or a negative step.
  BatchStream(const DataLoader& loader, const StreamSpec& spec, std::int64_t step);
  ~BatchStream();

  /// Steps per epoch; in training the same on all shards. kEndless for a source of unknown size.
  std::int64_t steps_per_epoch() const;
  /// Returns the next batch, on the device: the shards of a step in order, then the next step. Returns
  /// nullopt at the end of the epoch (validation), or when a source has ended. May block on reading. Throws
  /// std::runtime_error naming the batch, with the dataset's exception nested (std::throw_with_nested), also
  /// when the dataset returns a wrong number of records.
  std::optional<Batch> next();
  /// Index of the most recent batch in its epoch, over all shards: s * world + shard. -1 before the first
  /// batch.
  std::int64_t last_batch_number() const;
  /// Names the records of the most recent batch in reports of crashes (set_crash_records()); none for a
  /// source.
  void name_records() const;

 private:
  class Reader;
  std::unique_ptr<Reader> reader_;
};

}  // namespace det
