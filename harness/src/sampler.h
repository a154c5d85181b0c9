// Owns the order of data: a pure function of (seed, epoch, step, rank, world). Standard library only.
#pragma once

#include <cstdint>
#include <vector>

namespace det {

/// Which records make up each batch of a loader on one rank.
struct SamplerSpec {
  std::uint64_t seed = 0;
  std::int64_t records = 0;     ///< >= 1
  std::int64_t batch_size = 1;  ///< >= 1
  bool shuffle = false;
  bool drop_last = false;
  std::int64_t rank = 0;
  std::int64_t world = 1;
  /// Training: every rank has equally many steps, the first batches of the epoch filling the gap. Without it (validation)
  /// each record is seen exactly once, and ranks may differ by one step.
  bool equal_steps = false;
};

/// Shuffles records first, then cuts batches, then deals batch s * world + rank to step s.
/// One thread; keeps the order of the epoch asked last.
class Sampler {
 public:
  explicit Sampler(const SamplerSpec& spec);

  /// Batches of one epoch over all ranks.
  std::int64_t batches() const { return batches_; }
  /// Steps of one epoch on this rank.
  std::int64_t steps() const;
  /// The records of step `step` in [0, steps()) of `epoch`, in order.
  std::vector<std::int64_t> indices(std::int64_t epoch, std::int64_t step);

 private:
  void shuffle_for(std::int64_t epoch);
  SamplerSpec spec_;
  std::int64_t batches_;
  std::int64_t shuffled_epoch_ = -1;
  std::vector<std::int64_t> order_;  // of shuffled_epoch_; empty without shuffle
};

}  // namespace det
