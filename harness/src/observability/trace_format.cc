#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

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
    case TraceEvent::Kind::kPhase:
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

/// The text of a trace, event by event.
class TraceText {
 public:
  TraceText(std::int64_t wall_offset, std::int64_t dropped)
      : pid_(std::to_string(::getpid())), wall_offset_(wall_offset) {
    out_ = "{\"schemaVersion\": 1, \"displayTimeUnit\": \"ms\", \"deviceProperties\": [], ";
    out_ += "\"droppedEvents\": " + std::to_string(dropped) + ", \"traceEvents\": [\n";
    add_name("process_name", pid_, "0", "det");
  }

  void add_span(const TraceEvent& event, const std::string& stack) {
    threads_.insert(event.thread);
    begin("X", category(event.kind), event.name, pid_, std::to_string(event.thread), event.begin);
    out_ += ", \"dur\": " + microseconds(event.end - event.begin) +
            ", \"args\": {\"External id\": " + std::to_string(++id_);
    // TensorBoard's plugin links forward and backward operators by sequence number.
    if (event.sequence >= 0) out_ += ", \"Sequence number\": " + std::to_string(event.sequence);
    if (event.kind == TraceEvent::Kind::kBackward) out_ += ", \"Backward\": true";
    if (!event.shapes.empty()) out_ += ", \"Input Dims\": " + event.shapes;
    if (!stack.empty()) out_ += ", \"Call stack\": " + dump_json(Json(stack));
    out_ += "}}";
  }

  /// A span in the row of a GPU.
  void add_device_span(const TraceEvent& event) {
    devices_.insert(event.device);
    begin("X", "gpu_user_annotation", event.name, device_pid(event.device), "0", event.device_begin);
    out_ += ", \"dur\": " + microseconds(event.device_end - event.device_begin) + ", \"args\": {}}";
  }

  /// The instant of an allocation as PyTorch writes it, and a curve of the total.
  void add_memory(const TraceMemory& memory) {
    const std::string thread = std::to_string(memory.thread);
    const bool on_cpu = memory.device == "cpu";
    const std::size_t colon = memory.device.find(':');
    begin("i", "cpu_instant_event", "[memory]", pid_, thread, memory.time);
    out_ += ", \"s\": \"t\", \"args\": {\"Total Reserved\": " + std::to_string(memory.reserved) +
            ", \"Total Allocated\": " + std::to_string(memory.allocated) +
            ", \"Bytes\": " + std::to_string(memory.bytes) + ", \"Addr\": " + std::to_string(memory.address) +
            ", \"Device Type\": " + (on_cpu ? "0" : "1") +
            ", \"Device Id\": " + (colon == std::string::npos ? "-1" : memory.device.substr(colon + 1)) +
            "}}";
    begin("C", "memory", "allocated (" + memory.device + ")", pid_, "0", memory.time);
    out_ += ", \"args\": {\"bytes\": " + std::to_string(memory.allocated) + "}}";
  }

  std::string finish() {
    for (const std::uint64_t thread : threads_)
      add_name("thread_name", pid_, std::to_string(thread), "thread " + std::to_string(thread));
    for (const int device : devices_)
      add_name("process_name", device_pid(device), "0", "GPU " + std::to_string(device));
    return std::move(out_) + "\n]}\n";
  }

 private:
  /// A process of its own in viewers. Process ids of Linux end at 2^22.
  static std::string device_pid(int device) { return std::to_string((1 << 23) + device); }
  void add_name(const char* what, const std::string& pid, const std::string& tid, const std::string& name) {
    out_ += std::exchange(separator_, ",\n") + "{\"ph\": \"M\", \"name\": \"" + std::string(what) +
            "\", \"pid\": " + pid + ", \"tid\": " + tid + ", \"args\": {\"name\": " + dump_json(Json(name)) +
            "}}";
  }
  void begin(const char* phase, const std::string& kind, const std::string& name, const std::string& pid,
             const std::string& tid, std::int64_t time) {
    out_ += ",\n{\"ph\": \"" + std::string(phase) + "\", \"cat\": \"" + kind +
            "\", \"name\": " + dump_json(Json(name)) + ", \"pid\": " + pid + ", \"tid\": " + tid +
            ", \"ts\": " + microseconds(time + wall_offset_);
  }

  const std::string pid_;
  const std::int64_t wall_offset_;
  std::set<std::uint64_t> threads_;
  std::set<int> devices_;
  std::int64_t id_ = 0;
  std::string out_, separator_;  ///< separator_: before the next event
};

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

std::string chrome_trace(Trace trace, std::int64_t wall_offset, const StackText& stack_text) {
  // Among events that begin together the longest comes first: viewers nest events in this order.
  std::stable_sort(trace.events.begin(), trace.events.end(), [](const TraceEvent& a, const TraceEvent& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  TraceText text(wall_offset, trace.dropped);
  for (const TraceEvent& event : trace.events) {
    const bool is_step = event.kind == TraceEvent::Kind::kStep;
    if (trace.has_cpu || is_step) text.add_span(event, event.stack.empty() ? "" : stack_text(event.stack));
    if (event.device >= 0) text.add_device_span(event);
  }
  for (const TraceMemory& memory : trace.memory) text.add_memory(memory);
  return text.finish();
}

}  // namespace det
