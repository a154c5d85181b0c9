#include "harness/src/observability/trace_recorder.h"

#include <ATen/record_function.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <execinfo.h>

#include <atomic>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "common/base/clock.h"
#include "common/base/queue.h"
#include "harness/src/base/symbolize.h"
#include "harness/src/observability/device_events.h"

namespace det {
namespace {

/// 4 Mi events take about 500 MB; events beyond that are only counted.
constexpr std::size_t kMaxEvents = 4 << 20;
/// Frames of a stack, with those of LibTorch.
constexpr int kMaxStack = 64;

/// The destination of the callbacks, which are plain functions, so there is one per process. It is never
/// destroyed: an operator that outlives its step still calls on_end().
struct TraceBuffer {
  Queue<TraceEvent> events{kMaxEvents};
  Queue<TraceMemory> memory{kMaxEvents};
  std::atomic<std::int64_t> dropped{0};
  // on: accept events. taken: a TraceRecorder lives, for_request: of a user. The others: what to record.
  std::atomic<bool> on{false}, taken{false}, for_request{false}, shapes{false}, stacks{false}, devices{false};
};
TraceBuffer& trace_buffer() {
  static auto* const only = new TraceBuffer;
  return *only;
}

/// The state of an operator between on_begin() and on_end().
struct Observed final : at::ObserverContext {
  std::int64_t begin = 0;
  std::string shapes;
  std::vector<const void*> stack;
  std::shared_ptr<void> mark;
};

/// The shapes of the inputs as a JSON list; [] for inputs that are not tensors.
std::string shapes_of(const at::RecordFunction& function) {
  std::string text = "[";
  for (const c10::IValue& input : function.inputs()) {
    if (text.size() > 1) text += ", ";
    text += '[';
    if (input.isTensor() && input.toTensor().defined()) {
      const auto sizes = input.toTensor().sizes();
      for (std::size_t i = 0; i < sizes.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(sizes[i]);
    }
    text += ']';
  }
  return text + "]";
}

std::vector<const void*> stack_now() {
  void* frames[kMaxStack];
  const int count = ::backtrace(frames, kMaxStack);
  return std::vector<const void*>(frames, frames + count);
}

std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& function) {
  const TraceBuffer& to = trace_buffer();
  auto observed = std::make_unique<Observed>();
  if (to.shapes.load(std::memory_order_relaxed)) observed->shapes = shapes_of(function);
  if (to.stacks.load(std::memory_order_relaxed)) observed->stack = stack_now();
  if (to.devices.load(std::memory_order_relaxed)) observed->mark = mark_device().event;
  observed->begin = mono_now_ns();
  return observed;
}

void on_end(const at::RecordFunction& function, at::ObserverContext* context) {
  const std::int64_t end = mono_now_ns();
  TraceBuffer& to = trace_buffer();
  if (!to.on.load(std::memory_order_relaxed) || context == nullptr) return;
  auto& observed = static_cast<Observed&>(*context);
  TraceEvent event{.name = function.name(),
                   .begin = observed.begin,
                   .end = end,
                   .thread = function.threadId(),
                   .sequence = function.seqNr(),
                   .shapes = std::move(observed.shapes),
                   .stack = std::move(observed.stack)};
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) event.kind = TraceEvent::Kind::kBackward;
  if (function.scope() == at::RecordScope::USER_SCOPE) event.kind = TraceEvent::Kind::kUser;
  if (observed.mark) {
    DeviceMark mark = mark_device();
    event.begin_mark = std::move(observed.mark);
    event.end_mark = std::move(mark.event);
    event.device = mark.device;
  }
  // Never blocks: training must not wait for the profiler.
  if (!to.events.try_push(std::move(event))) ++to.dropped;
}

/// The type of the totals in reports of memory, which differs between versions of LibTorch.
template <typename Function>
struct MemoryTotal;
template <typename Total>
struct MemoryTotal<void (c10::MemoryReportingInfoBase::*)(void*, std::int64_t, Total, Total, c10::Device)> {
  using Type = Total;
};

/// Receives the reports of LibTorch's allocators on the threads that inherit it.
class MemoryReports final : public c10::MemoryReportingInfoBase {
 public:
  using Total = MemoryTotal<decltype(&c10::MemoryReportingInfoBase::reportMemoryUsage)>::Type;
  void reportMemoryUsage(void* address, std::int64_t bytes, Total allocated, Total reserved,
                         c10::Device device) override {
    TraceBuffer& to = trace_buffer();
    if (!to.on.load(std::memory_order_relaxed)) return;
    TraceMemory memory{.time = mono_now_ns(),
                       .bytes = bytes,
                       .allocated = static_cast<std::int64_t>(allocated),
                       .reserved = static_cast<std::int64_t>(reserved),
                       .address = reinterpret_cast<std::uintptr_t>(address),
                       .thread = at::RecordFunction::currentThreadId(),
                       .device = device.str()};
    if (!to.memory.try_push(std::move(memory))) ++to.dropped;
  }
  bool memoryProfilingEnabled() const override { return true; }
};

template <typename T>
std::vector<T> take_all(Queue<T>& queue) {
  return queue.pop_batch(kMaxEvents, Duration(0));
}

bool selects(const ProfilerOptions& options, ProfilerActivity activity) {
  for (const ProfilerActivity one : options.activities)
    if (one == activity) return true;
  return false;
}

}  // namespace

struct TraceRecorder::Impl {
  at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
  std::optional<c10::DebugInfoGuard> memory;
  bool has_cpu = true;
  DeviceMark origin;
  std::int64_t origin_time = 0;  ///< of `origin`, on the clock of traces

  bool recording() const { return handle != at::INVALID_CALLBACK_HANDLE; }
  void stop() {
    if (!recording()) return;
    at::removeCallback(std::exchange(handle, at::INVALID_CALLBACK_HANDLE));
    memory.reset();
    trace_buffer().on = false;
    trace_buffer().taken = false;
  }
};

bool TraceRecorder::is_request_recording() { return trace_buffer().taken && trace_buffer().for_request; }

std::unique_ptr<TraceRecorder> TraceRecorder::try_record(const ProfilerOptions& options, Purpose purpose) {
  if (trace_buffer().taken.exchange(true)) return nullptr;
  trace_buffer().for_request = purpose == Purpose::kRequest;
  return std::unique_ptr<TraceRecorder>(new TraceRecorder(options));
}

TraceRecorder::TraceRecorder(const ProfilerOptions& options) : impl_(std::make_unique<Impl>()) {
  TraceBuffer& to = trace_buffer();
  discard();
  impl_->has_cpu = selects(options, ProfilerActivity::kCpu);
  to.shapes = options.record_shapes;
  to.stacks = options.with_stack;
  to.devices = selects(options, ProfilerActivity::kCuda) && has_device_events();
  if (to.devices) {
    synchronize_devices();
    impl_->origin = mark_device();
    impl_->origin_time = mono_now_ns();
  }
  if (options.profile_memory)
    impl_->memory.emplace(c10::DebugInfoKind::PROFILER_STATE, std::make_shared<MemoryReports>());
  to.on = true;
  impl_->handle =
      at::addGlobalCallback(at::RecordFunctionCallback(on_begin, on_end)
                                .needsInputs(options.record_shapes)
                                .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION,
                                         at::RecordScope::USER_SCOPE}));
}

TraceRecorder::~TraceRecorder() { impl_->stop(); }

void TraceRecorder::discard() {
  (void)take_all(trace_buffer().events);
  (void)take_all(trace_buffer().memory);
  trace_buffer().dropped = 0;
}

void TraceRecorder::add(const std::string& name, TraceEvent::Kind kind, std::int64_t begin) {
  if (!impl_->recording()) return;
  TraceEvent event{.name = name,
                   .kind = kind,
                   .begin = begin,
                   .end = mono_now_ns(),
                   .thread = at::RecordFunction::currentThreadId()};
  if (!trace_buffer().events.try_push(std::move(event))) ++trace_buffer().dropped;
}

std::size_t TraceRecorder::size() const {
  return impl_->recording() ? trace_buffer().events.size() + trace_buffer().memory.size() : 0;
}

Trace TraceRecorder::take() {
  if (!impl_->recording()) return {};
  const bool devices = trace_buffer().devices;
  impl_->stop();
  Trace trace{.events = take_all(trace_buffer().events),
              .memory = take_all(trace_buffer().memory),
              .has_cpu = impl_->has_cpu,
              .dropped = trace_buffer().dropped.exchange(0)};
  if (devices) synchronize_devices();
  for (TraceEvent& event : trace.events) {
    if (event.begin_mark && event.end_mark) {
      event.device_begin = impl_->origin_time + device_time_between(impl_->origin.event, event.begin_mark);
      event.device_end = event.device_begin + device_time_between(event.begin_mark, event.end_mark);
    }
    event.begin_mark = event.end_mark = nullptr;
  }
  return trace;
}

StackText stack_text_of(const Trace& trace) {
  std::vector<const void*> addresses;
  for (const TraceEvent& event : trace.events)
    addresses.insert(addresses.end(), event.stack.begin(), event.stack.end());
  return [lines = source_lines(std::move(addresses))](const std::vector<const void*>& stack) {
    std::string text;
    for (const void* const address : stack) {
      const auto found = lines.find(address);
      if (found != lines.end()) text += (text.empty() ? "" : ";") + found->second;
    }
    return text;
  };
}

std::int64_t trace_wall_offset() { return wall_now().micros * 1000 - mono_now_ns(); }

}  // namespace det
