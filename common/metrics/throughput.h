// Throughput and remaining time of a training, as text.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "common/base/clock.h"

namespace det {

/// Averages over the last readings. Pure, single-threaded.
class Throughput {
 public:
  /// Adds a reading: batches trained so far and the fraction of the training, in [0, 1]. Readings without new
  /// batches are ignored. Fewer batches than before mean a restart, which discards the former readings.
  void add(std::int64_t batches, double progress, MonoTime now);
  /// Discards all readings.
  void clear() { samples_.clear(); }
  /// Returns for example ", 13.1 batches/s, 3m 25s left"; "" while fewer than two readings differ.
  std::string text(MonoTime now) const;

 private:
  struct Sample {
    MonoTime time;
    std::int64_t batches;
    double progress;
  };
  std::deque<Sample> samples_;  ///< oldest first
};

/// Formats a duration in whole seconds, such as "3m 25s". A negative one counts as 0.
std::string whole_seconds(Duration time);
/// Formats a fraction as a percentage with one digit, such as "30.0%". Not a number and values out of range
/// become the nearest bound.
std::string percentage(double fraction);

}  // namespace det
