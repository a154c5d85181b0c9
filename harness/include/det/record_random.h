// Owns RecordRandom: the random choices made for one record. Standard library only.
#pragma once

#include <cstdint>

namespace det {

/// A stream of random numbers of its own for each (seed, epoch, record): what a record becomes in an epoch
/// depends on these alone, not on threads, batches or processes. The same numbers on every machine. A copy
/// goes on by itself.
class RecordRandom {
 public:
  RecordRandom(std::uint64_t seed, std::int64_t epoch, std::int64_t record);
  double uniform();  ///< in [0, 1)
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// In [0, bound), each equally likely; bound >= 1.
  std::int64_t below(std::int64_t bound);

 private:
  std::uint64_t seed_, counter_ = 0;
};

}  // namespace det
