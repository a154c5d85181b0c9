// Measures the training time spent in each phase between two reports. Training thread only.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <utility>

#include "common/base/clock.h"
#include "common/base/json.h"

namespace det {

/// A phase of the training thread. On CUDA, forward, backward and optimizer cover launching the kernels only;
/// the device's time appears in the phase in which the thread waits for it.
enum class Phase {
  kOther,
  kData,
  kForward,
  kBackward,
  kExchange,
  kOptimizer,
  kValidation,
  kCheckpoint,
  kReport
};
inline constexpr std::size_t kPhases = 9;
/// "forward", as in the metric group "timing".
const char* to_string(Phase phase);

/// Accumulates the time of each phase. One phase is active at a time. A change of phase costs one clock read.
class PhaseClock {
 public:
  /// `now_ns` returns monotonic nanoseconds.
  explicit PhaseClock(std::function<std::int64_t()> now_ns = mono_now_ns)
      : now_ns_(std::move(now_ns)), since_(now_ns_()) {}

  /// Called at the end of each phase with the time at which it began or was resumed; null: none.
  using Observer = std::function<void(Phase phase, std::int64_t begin_ns)>;
  void observe(Observer observer) { observer_ = std::move(observer); }

  /// Switches to `phase` and returns the previous one, to which the elapsed time is charged.
  Phase enter(Phase phase);
  /// Returns the seconds per batch of each phase since the last call ("data", "forward", …; "other" is the
  /// remainder) and starts over. Phases without time are omitted. `batches` is the number trained since, > 0.
  Json take(std::int64_t batches);

 private:
  std::function<std::int64_t()> now_ns_;
  Observer observer_;
  std::int64_t since_;
  Phase phase_ = Phase::kOther;
  /// Nanoseconds per phase since the last take().
  std::array<std::int64_t, kPhases> spent_{};
};

/// Enters a phase for its own lifetime, then restores the previous one. A null clock makes it a no-op.
class PhaseSpan {
 public:
  PhaseSpan(PhaseClock* clock, Phase phase) : clock_(clock), before_(clock ? clock->enter(phase) : phase) {}
  ~PhaseSpan() {
    if (clock_) clock_->enter(before_);
  }
  PhaseSpan(const PhaseSpan&) = delete;

 private:
  PhaseClock* clock_;
  Phase before_;
};

}  // namespace det
