// Parts of the trace profiler that do not need LibTorch: the step schedule and the Chrome trace format.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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
  enum class Kind { kOperator, kBackward, kUser, kStep, kPhase };
  std::string name;
  Kind kind = Kind::kOperator;
  std::int64_t begin = 0, end = 0;
  std::uint64_t thread = 0;
  std::int64_t sequence = -1;           ///< links an operator to its backward function; -1: none
  std::string shapes;                   ///< JSON list; "" when not recorded
  std::vector<const void*> stack = {};  ///< return addresses, innermost first; empty when not recorded
  /// Events of a GPU at the begin and at the end; null without one.
  std::shared_ptr<void> begin_mark = nullptr, end_mark = nullptr;
  int device = -1;                                ///< number of the GPU; -1: none
  std::int64_t device_begin = 0, device_end = 0;  ///< time on the GPU
};
/// An allocation, or with negative `bytes` a deallocation.
struct TraceMemory {
  std::int64_t time = 0, bytes = 0, allocated = 0, reserved = 0;  ///< the last two: totals of the device
  std::uint64_t address = 0, thread = 0;
  std::string device;  ///< "cpu", "cuda:0"
};
/// A recording.
struct Trace {
  std::vector<TraceEvent> events;
  std::vector<TraceMemory> memory;
  bool has_cpu = true;       ///< spans on the CPU are wanted
  std::int64_t dropped = 0;  ///< events beyond the limit
};

/// Returns the places of a stack, separated by semicolons, outermost last.
using StackText = std::function<std::string(const std::vector<const void*>&)>;
/// The trace as JSON. `traceEvents` are complete events (phase X) ordered by begin, in microseconds, followed
/// by memory. `wall_offset` (nanoseconds) is added to every time.
std::string chrome_trace(Trace trace, std::int64_t wall_offset, const StackText& stack_text);

}  // namespace det
