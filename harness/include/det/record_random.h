// RecordRandom: random numbers for the augmentation of one record. Standard library only.
#pragma once

#include <cstdint>

namespace det {

/// A random stream determined by (seed, epoch, record). The augmentation of a record in an epoch therefore
/// does not depend on threads, batches or processes, and is the same on every machine. Copies advance
/// independently. Not thread-safe.
class RecordRandom {
 public:
  /// The start of the stream of `record` in `epoch`.
  RecordRandom(std::uint64_t seed, std::int64_t epoch, std::int64_t record);
  double uniform();  ///< uniform in [0, 1)
  /// Uniform in [low, high).
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Uniform integer in [0, bound). Throws std::invalid_argument for bound < 1.
  std::int64_t below(std::int64_t bound);

 private:
  std::uint64_t seed_, counter_ = 0;
};

}  // namespace det
