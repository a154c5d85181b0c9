#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "common/base/json.h"
#include "harness/src/observability/trace.h"

namespace det {
namespace {

/// The event category that TensorBoard's plugin expects.
const char* category(TraceEvent::Kind kind) {
  switch (kind) {
    case TraceEvent::Kind::kOperator:
    case TraceEvent::Kind::kBackward:
      return "cpu_op";
    case TraceEvent::Kind::kUser:
    case TraceEvent::Kind::kStep:
      return "user_annotation";
  }
  return "";
}

/// Formats nanoseconds as microseconds with three digits. Exact, unlike a double.
std::string microseconds(std::int64_t nanoseconds) {
  char text[40];
  std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(nanoseconds / 1000),
                static_cast<long long>(nanoseconds % 1000));
  return text;
}

}  // namespace

TraceStep trace_step(const ProfilerOptions& options, std::int64_t step) {
  step -= options.skip_first;
  const std::int64_t length = options.wait + options.warmup + options.active;
  if (step < 0) return {};
  const std::int64_t cycle = step / length, place = step % length;
  if (options.repeat > 0 && cycle >= options.repeat) return {TraceAction::kNothing, options.repeat};
  if (place < options.wait) return {TraceAction::kNothing, cycle};
  if (place < options.wait + options.warmup) return {TraceAction::kWarmup, cycle};
  return {place + 1 < length ? TraceAction::kActive : TraceAction::kActiveLast, cycle};
}

std::string chrome_trace(std::vector<TraceEvent> events, std::int64_t wall_offset, std::int64_t dropped) {
  // Among events that begin together the longest comes first: viewers nest events in this order.
  std::stable_sort(events.begin(), events.end(), [](const TraceEvent& a, const TraceEvent& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  const std::string pid = std::to_string(::getpid());
  std::string out = "{\"schemaVersion\": 1, \"displayTimeUnit\": \"ms\", \"deviceProperties\": [], ";
  out += "\"droppedEvents\": " + std::to_string(dropped) + ", \"traceEvents\": [\n";
  out += "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": " + pid +
         ", \"tid\": 0, \"args\": {\"name\": \"det\"}}";
  std::set<std::uint64_t> threads;
  std::int64_t id = 0;
  for (const TraceEvent& event : events) {
    threads.insert(event.thread);
    out += ",\n{\"ph\": \"X\", \"cat\": \"" + std::string(category(event.kind)) +
           "\", \"name\": " + dump_json(Json(event.name)) + ", \"pid\": " + pid +
           ", \"tid\": " + std::to_string(event.thread) +
           ", \"ts\": " + microseconds(event.begin + wall_offset) +
           ", \"dur\": " + microseconds(event.end - event.begin) +
           ", \"args\": {\"External id\": " + std::to_string(++id);
    // The plugin links forward and backward operators by sequence number.
    if (event.sequence >= 0) out += ", \"Sequence number\": " + std::to_string(event.sequence);
    if (event.kind == TraceEvent::Kind::kBackward) out += ", \"Backward\": true";
    if (!event.shapes.empty()) out += ", \"Input Dims\": " + event.shapes;
    out += "}}";
  }
  for (const std::uint64_t thread : threads) {
    out += ",\n{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": " + pid +
           ", \"tid\": " + std::to_string(thread) + ", \"args\": {\"name\": \"thread " +
           std::to_string(thread) + "\"}}";
  }
  return out + "\n]}\n";
}

}  // namespace det
