// Parts of the trace profiler that do not need LibTorch: the step schedule and the Chrome trace format.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "det/profiler.h"

namespace det {

/// The action of a step. kActiveLast also writes the file.
enum class TraceAction { kNothing, kWarmup, kActive, kActiveLast };

/// A position in the schedule; `cycle` counts from 0.
struct TraceStep {
  TraceAction action = TraceAction::kNothing;
  std::int64_t cycle = 0;
};
/// The schedule at step `step` (from 0).
TraceStep trace_step(const ProfilerOptions& options, std::int64_t step);

/// A time span on one thread. Times are nanoseconds of one clock.
struct TraceEvent {
  enum class Kind { kOperator, kBackward, kUser, kStep };
  std::string name;
  Kind kind = Kind::kOperator;
  std::int64_t begin = 0, end = 0;
  std::uint64_t thread = 0;
  std::int64_t sequence = -1;  ///< links an operator to its backward function; -1: none
  std::string shapes;          ///< JSON list; "" when not recorded
};

/// The trace as JSON. `traceEvents` are complete events (phase X) ordered by begin, in microseconds.
/// `wall_offset` (nanoseconds) is added to every time.
std::string chrome_trace(std::vector<TraceEvent> events, std::int64_t wall_offset, std::int64_t dropped);

}  // namespace det
