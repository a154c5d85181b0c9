// Owns where the time of training goes: seconds of each phase between two reports.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/clock.h"
#include "base/json.h"

namespace det {

/// What a training thread does. On CUDA forward, backward and optimizer are the time to ask the device for
/// them; what it takes longer shows where the thread waits for it.
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

/// One thread is in one phase at a time. Costs a reading of the clock at each change.
class PhaseClock {
 public:
  /// `now_ns` counts nanoseconds and never goes back.
  explicit PhaseClock(std::function<std::int64_t()> now_ns = mono_now_ns)
      : now_ns_(std::move(now_ns)), since_(now_ns_()) {}

  /// What has passed was in the phase before, which is returned.
  Phase enter(Phase phase);
  /// Seconds a batch that each phase took since the last call ("data", "forward", …; "other" is what is
  /// left), without those that took none. `batches` > 0 were trained meanwhile.
  Json take(std::int64_t batches);

 private:
  static constexpr std::size_t kPhases = 9;
  std::function<std::int64_t()> now_ns_;
  std::int64_t since_;
  Phase phase_ = Phase::kOther;
  std::array<std::int64_t, kPhases> spent_{};
};

/// A phase until the end of its life; then the one before it goes on. Nothing without a clock.
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
