// Progress of a trial as one line of text: state, elapsed time, throughput and remaining time.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/clock.h"
#include "common/metrics/throughput.h"
#include "det/v1/common.pb.h"

namespace det::cli {

/// The state of a trial at one time.
struct TrialReading {
  v1::State state = v1::STATE_UNSPECIFIED;
  std::int64_t batches = 0;  ///< trained so far
  double progress = 0;       ///< fraction in [0, 1]; may be NaN or out of range
};

/// Derives the text from successive readings. Pure, single-threaded.
class TrialProgress {
 public:
  /// Adds a reading. A change of state restarts the elapsed time.
  void add(const TrialReading& reading, MonoTime now);
  /// Returns for example "queued 12s: REASON", "building 14s", or "running 1m 20s, batch 1200, 30.0%,
  /// 13.1 batches/s, 3m 25s left". "state unknown" before add(). `reason` is shown while the trial waits for
  /// slots.
  std::string text(MonoTime now, const std::string& reason) const;

 private:
  bool known_ = false;
  TrialReading last_;
  MonoTime entered_;       ///< time of the current state
  Throughput throughput_;  ///< in the current state
};

}  // namespace det::cli
