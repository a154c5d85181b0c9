// Recording for the trace profiler, by LibTorch's RecordFunction callbacks. The callbacks are registered only
// during warm-up and active steps.
#include "harness/src/observability/trace.h"

#include <ATen/record_function.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/queue.h"

namespace det {
namespace {

/// 4 Mi events take about 500 MB; events beyond that are only counted.
constexpr std::size_t kMaxEvents = 4 << 20;

/// The destination of the callbacks, which are plain functions, so there is one per process. It is never
/// destroyed: an operator that outlives its step still calls on_end().
struct Recorder {
  Queue<TraceEvent> events{kMaxEvents};
  std::atomic<std::int64_t> dropped{0};
  // on: accept events. taken: a TraceProfiler is recording. shapes: record input shapes.
  std::atomic<bool> on{false}, taken{false}, shapes{false};
};
Recorder& recorder() {
  static auto* const only = new Recorder;
  return *only;
}

/// The state of an operator between on_begin() and on_end().
struct Observed final : at::ObserverContext {
  std::int64_t begin = 0;
  std::string shapes;
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

std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& function) {
  auto observed = std::make_unique<Observed>();
  if (recorder().shapes.load(std::memory_order_relaxed)) observed->shapes = shapes_of(function);
  observed->begin = mono_now_ns();
  return observed;
}

void on_end(const at::RecordFunction& function, at::ObserverContext* context) {
  const std::int64_t end = mono_now_ns();
  Recorder& to = recorder();
  if (!to.on.load(std::memory_order_relaxed) || context == nullptr) return;
  auto& observed = static_cast<Observed&>(*context);
  TraceEvent event{.name = function.name(),
                   .begin = observed.begin,
                   .end = end,
                   .thread = function.threadId(),
                   .sequence = function.seqNr(),
                   .shapes = std::move(observed.shapes)};
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) event.kind = TraceEvent::Kind::kBackward;
  if (function.scope() == at::RecordScope::USER_SCOPE) event.kind = TraceEvent::Kind::kUser;
  // Never blocks: training must not wait for the profiler.
  if (!to.events.try_push(std::move(event))) ++to.dropped;
}

std::vector<TraceEvent> take_events() { return recorder().events.pop_batch(kMaxEvents, Duration(0)); }

std::string worker_name() {
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  return std::string(host) + "_" + std::to_string(::getpid());
}

}  // namespace

struct TraceProfiler::Impl {
  ProfilerOptions options;
  std::string directory;
  std::int64_t step = 0, step_begin = 0;
  TraceStep now;
  at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
  std::vector<TraceEvent> steps;  ///< one event per step of this cycle
  std::int64_t wall_offset = wall_now().micros * 1000 - mono_now_ns();

  bool recording() const { return handle != at::INVALID_CALLBACK_HANDLE; }

  /// Starts or stops recording as the schedule of the new step requires.
  void begin_step() {
    now = trace_step(options, step);
    const bool wanted = now.action != TraceAction::kNothing;
    if (wanted && !recording()) start();
    if (!wanted && recording()) stop();
    step_begin = mono_now_ns();
  }

  void start() {
    Recorder& to = recorder();
    if (to.taken.exchange(true))
      throw std::logic_error("TraceProfiler: another one is recording in this process");
    (void)take_events();
    to.dropped = 0;
    to.shapes = options.record_shapes;
    to.on = true;
    handle = at::addGlobalCallback(at::RecordFunctionCallback(on_begin, on_end)
                                       .needsInputs(options.record_shapes)
                                       .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION,
                                                at::RecordScope::USER_SCOPE}));
  }
  void stop() {
    at::removeCallback(std::exchange(handle, at::INVALID_CALLBACK_HANDLE));
    recorder().on = false;
    recorder().taken = false;
  }

  void end_step() {
    // The warm-up ends: discard the events recorded so far.
    if (now.action == TraceAction::kWarmup && trace_step(options, step + 1).action != TraceAction::kWarmup) {
      (void)take_events();
      recorder().dropped = 0;
    }
    if (now.action != TraceAction::kActive && now.action != TraceAction::kActiveLast) return;
    steps.push_back({.name = "ProfilerStep#" + std::to_string(step),
                     .kind = TraceEvent::Kind::kStep,
                     .begin = step_begin,
                     .end = mono_now_ns(),
                     .thread = at::RecordFunction::currentThreadId()});
  }

  /// Writes the recorded events to the file of this cycle.
  Status write() {
    std::vector<TraceEvent> events = take_events();
    for (TraceEvent& event : std::exchange(steps, {})) events.push_back(std::move(event));
    TRY(make_directories(directory));
    const std::string path = directory + "/" + (options.output.empty() ? worker_name() : options.output) +
                             "." + std::to_string(wall_now().micros / 1000) + "." +
                             std::to_string(now.cycle) + ".pt.trace.json";
    return write_file_atomic(path,
                             chrome_trace(std::move(events), wall_offset, recorder().dropped.exchange(0)));
  }
};

TraceProfiler::TraceProfiler(ProfilerOptions options, std::string directory)
    : impl_(std::make_unique<Impl>()) {
  if (options.skip_first < 0 || options.wait < 0 || options.warmup < 0 || options.active < 1 ||
      options.repeat < 0) {
    throw std::invalid_argument(
        "ProfilerOptions: skip_first, wait, warmup and repeat must be >= 0, active >= 1");
  }
  impl_->options = std::move(options);
  impl_->directory = std::move(directory);
  impl_->begin_step();
}

void TraceProfiler::step() {
  impl_->end_step();
  // The next step begins even when the file cannot be written, so a caller may
  // catch the exception and continue.
  Status written;
  if (impl_->now.action == TraceAction::kActiveLast) {
    impl_->stop();
    written = impl_->write();
  }
  ++impl_->step;
  impl_->begin_step();
  if (!written) throw std::runtime_error("the trace cannot be written: " + written.error().message);
}

TraceProfiler::~TraceProfiler() {
  if (!impl_->recording()) return;
  impl_->stop();
  if (impl_->steps.empty()) return;
  if (const Status written = impl_->write(); !written) {
    std::fprintf(stderr, "warning: the trace cannot be written: %s\n", written.error().message.c_str());
  }
}

}  // namespace det
