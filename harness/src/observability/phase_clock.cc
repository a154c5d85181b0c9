#include "harness/src/observability/phase_clock.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace det {

const char* to_string(Phase phase) {
  static constexpr std::array<const char*, kPhases> kNames{
      "other", "data", "forward", "backward", "exchange", "optimizer", "validation", "checkpoint", "report"};
  return kNames[static_cast<std::size_t>(phase)];
}

Phase PhaseClock::enter(Phase phase) {
  const std::int64_t now = now_ns_();
  if (observer_) observer_(phase_, since_);
  spent_[static_cast<std::size_t>(phase_)] += now - since_;
  since_ = now;
  return std::exchange(phase_, phase);
}

Json PhaseClock::take(std::int64_t batches) {
  // Charges the time up to now to the phase that is still running.
  enter(phase_);
  Json seconds = Json::object();
  for (std::size_t i = 0; i < kPhases; ++i) {
    if (spent_[i] > 0)
      seconds[to_string(static_cast<Phase>(i))] =
          static_cast<double>(spent_[i]) * 1e-9 / static_cast<double>(batches);
  }
  spent_ = {};
  return seconds;
}

}  // namespace det
