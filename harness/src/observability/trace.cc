// The trace profiler of programs: a schedule, and a file for each cycle.
#include "harness/src/observability/trace.h"

#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <utility>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "harness/src/observability/trace_recorder.h"

namespace det {
namespace {

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
  std::unique_ptr<TraceRecorder> recorder;  ///< null outside warm-up and active steps
  bool has_active_steps = false;            ///< since the last file
  bool told_skipped = false;
  std::int64_t wall_offset = trace_wall_offset();

  bool is_active() const {
    return now.action == TraceAction::kActive || now.action == TraceAction::kActiveLast;
  }

  /// Starts or stops recording as the schedule of the new step requires.
  void begin_step() {
    now = trace_step(options, step);
    const bool wanted = now.action != TraceAction::kNothing;
    if (!wanted) recorder.reset();
    if (wanted && !recorder) start();
    step_begin = mono_now_ns();
  }

  void start() {
    recorder = TraceRecorder::try_record(options, TraceRecorder::Purpose::kProgram);
    if (recorder) return;
    if (!TraceRecorder::is_request_recording())
      throw std::logic_error("TraceProfiler: another one is recording in this process");
    // A user's request must not end the program.
    if (!std::exchange(told_skipped, true))
      std::fprintf(stderr, "warning: the profiler skips steps while a requested trace is recorded\n");
  }

  void end_step() {
    if (!recorder) return;
    // The warm-up ends: drop the events recorded so far.
    if (now.action == TraceAction::kWarmup && trace_step(options, step + 1).action != TraceAction::kWarmup)
      recorder->discard();
    if (!is_active()) return;
    recorder->add("ProfilerStep#" + std::to_string(step), TraceEvent::Kind::kStep, step_begin);
    has_active_steps = true;
  }

  /// Stops recording, and writes the events to the file of this cycle.
  Status write() {
    Trace trace = recorder->take();
    recorder.reset();
    has_active_steps = false;
    TRY(make_directories(directory));
    const std::string path = directory + "/" + (options.output.empty() ? worker_name() : options.output) +
                             "." + std::to_string(wall_now().micros / 1000) + "." +
                             std::to_string(now.cycle) + ".pt.trace.json";
    const StackText stacks = stack_text_of(trace);
    return write_file_atomic(path, chrome_trace(std::move(trace), wall_offset, stacks));
  }
};

TraceProfiler::TraceProfiler(ProfilerOptions options, std::string directory)
    : impl_(std::make_unique<Impl>()) {
  if (options.skip_first < 0 || options.wait < 0 || options.warmup < 0 || options.active < 1 ||
      options.repeat < 0) {
    throw std::invalid_argument(
        "ProfilerOptions: skip_first, wait, warmup and repeat must be >= 0, active >= 1");
  }
  if (options.activities.empty())
    throw std::invalid_argument("ProfilerOptions: activities needs kCpu, kCuda or both");
  impl_->options = std::move(options);
  impl_->directory = std::move(directory);
  impl_->begin_step();
}

void TraceProfiler::step() {
  impl_->end_step();
  // The next step begins even when the file cannot be written, so a caller may
  // catch the exception and continue.
  Status written;
  if (impl_->now.action == TraceAction::kActiveLast && impl_->recorder) written = impl_->write();
  ++impl_->step;
  impl_->begin_step();
  if (!written) throw std::runtime_error("the trace cannot be written: " + written.error().message);
}

TraceProfiler::~TraceProfiler() {
  if (!impl_->has_active_steps) return;
  if (const Status written = impl_->write(); !written) {
    std::fprintf(stderr, "warning: the trace cannot be written: %s\n", written.error().message.c_str());
  }
}

}  // namespace det
