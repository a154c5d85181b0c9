// Owns the trace profiler: which operator ran when, on which thread, in a file that chrome://tracing,
// Perfetto and TensorBoard's PyTorch plugin open.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace det {

/// The schedule of torch.profiler: `skip_first` steps once, then `repeat` times (0: for ever) `wait` steps of
/// nothing, `warmup` steps recorded and thrown away, `active` steps recorded and written.
struct ProfilerOptions {
  std::int64_t skip_first = 0, wait = 0, warmup = 0, active = 1, repeat = 0;
  bool record_shapes = false;
  /// The first part of file names, which TensorBoard shows as the worker; "" is <host>_<pid>.
  std::string output;
};

/// Records every operator of every thread of the process (backward threads too) on the CPU; CUDA kernels show
/// as their launches. Costs nothing outside warmup and active steps, and about a microsecond an operator
/// inside. Used on one thread; one active at a time in a process.
class TraceProfiler {
 public:
  /// The first step begins here. Throws std::invalid_argument when a length is negative or active is 0.
  TraceProfiler(ProfilerOptions options, std::string directory);
  /// A step has ended, the next begins. The last active step of a cycle writes
  /// <directory>/<output>.<milliseconds since 1970>.<cycle>.pt.trace.json; throws std::runtime_error when it
  /// cannot.
  void step();
  /// Writes what active steps recorded since the last file; says on stderr when it cannot.
  ~TraceProfiler();
  TraceProfiler(const TraceProfiler&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace det
