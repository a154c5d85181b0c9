// Trace profiler: records operators and their threads in a format that chrome://tracing, Perfetto and
// TensorBoard's PyTorch plugin read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace det {

/// Schedule of torch.profiler, in steps: skip `skip_first` once; then `repeat` times (0: without end) `wait`
/// idle steps, `warmup` steps that are recorded and discarded, and `active` steps that are recorded and
/// written.
struct ProfilerOptions {
  std::int64_t skip_first = 0, wait = 0, warmup = 0, active = 1, repeat = 0;
  /// Also record the shapes of operator inputs.
  bool record_shapes = false;
  /// Prefix of file names, shown as the worker by TensorBoard; "" selects <host>_<pid>.
  std::string output;
};

/// Records every operator of every thread of the process (including backward threads) on the CPU. CUDA
/// kernels appear as their launches. Overhead: none outside warm-up and active steps, about 1 µs per operator
/// inside. Used on one thread; only one profiler may be active in a process.
class TraceProfiler {
 public:
  /// Starts the first step. Traces are written to `directory`. Throws std::invalid_argument for a negative
  /// length or `active` = 0.
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
