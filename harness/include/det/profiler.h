// Trace profiler: records operators and their threads in a format that chrome://tracing, Perfetto and
// TensorBoard's PyTorch plugin read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace det {

/// A kind of recorded activity.
enum class ProfilerActivity {
  kCpu,   ///< operators on the CPU, which include launches of CUDA kernels
  kCuda,  ///< the time of each operator on the GPU; without a usable GPU it is left out
};

/// Options of torch.profiler. The schedule, in steps: skip `skip_first` once; then `repeat` times (0: without
/// end) `wait` idle steps, `warmup` steps that are recorded and discarded, and `active` steps that are
/// recorded and written.
struct ProfilerOptions {
  std::int64_t skip_first = 0, wait = 0, warmup = 0, active = 1, repeat = 0;
  /// Also record the shapes of operator inputs.
  bool record_shapes = false;
  /// Name of files, shown as the worker by TensorBoard; "" selects <host>_<pid>.
  std::string output;
  std::vector<ProfilerActivity> activities = {ProfilerActivity::kCpu};
  /// Also record allocations of tensors, on the thread of the profiler and in backward passes.
  bool profile_memory = false;
  /// Also record the lines of the program that call an operator. Costs about 20 µs per operator. Lines are
  /// read from debug information by addr2line, when the trace is written.
  bool with_stack = false;
};

/// Records every operator of every thread of the process, including backward threads. Overhead: none outside
/// warm-up and active steps, about 1 µs per operator inside. Used on one thread; only one profiler may be
/// active in a process.
class TraceProfiler {
 public:
  /// Starts the first step. Traces are written to `directory`. Throws std::invalid_argument for a negative
  /// length, `active` = 0 or no activity.
  TraceProfiler(ProfilerOptions options, std::string directory);
  /// Ends a step and starts the next. The last active step of a cycle writes
  /// <directory>/<output>.<milliseconds since 1970>.<cycle>.pt.trace.json. Throws std::runtime_error when the
  /// file cannot be written.
  void step();
  /// Writes the active steps recorded since the last file. Prints failures to stderr.
  ~TraceProfiler();
  TraceProfiler(const TraceProfiler&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace det
