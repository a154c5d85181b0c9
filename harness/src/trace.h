// Owns what the trace profiler is made of: the schedule of its steps, and the writing of Chrome's trace
// format. No LibTorch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "det/profiler.h"

namespace det {

enum class TraceAction { kNothing, kWarmup, kActive, kActiveLast };

/// What step `step` (from 0) does, and in which cycle (from 0).
struct TraceStep {
  TraceAction action = TraceAction::kNothing;
  std::int64_t cycle = 0;
};
TraceStep trace_step(const ProfilerOptions& options, std::int64_t step);

/// Something that took time on one thread. Times are nanoseconds of one clock.
struct TraceEvent {
  enum class Kind { kOperator, kBackward, kUser, kStep };
  std::string name;
  Kind kind = Kind::kOperator;
  std::int64_t begin = 0, end = 0;
  std::uint64_t thread = 0;
  std::int64_t sequence = -1;  ///< joins an operator and its backward function; -1 none
  std::string shapes;          ///< JSON list; "" when not recorded
};

/// The trace as JSON: `traceEvents` of phase X in order of their begin, times in microseconds. `wall_offset`
/// is added to every time.
std::string chrome_trace(std::vector<TraceEvent> events, std::int64_t wall_offset, std::int64_t dropped);

}  // namespace det
