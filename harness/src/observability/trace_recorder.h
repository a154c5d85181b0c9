// Recording of operators by LibTorch's RecordFunction callbacks, in one process-wide buffer.
#pragma once

#include <cstdint>
#include <memory>

#include "harness/src/observability/trace.h"

namespace det {

/// Records the operators of all threads while it lives; only one may live in a process. Used on one thread.
class TraceRecorder {
 public:
  /// Origin of the request: the program (TraceProfiler), or a user of the cluster.
  enum class Purpose { kProgram, kRequest };
  /// Records what `options` selects; their schedule is ignored. Returns null when another recorder lives.
  static std::unique_ptr<TraceRecorder> try_record(const ProfilerOptions& options, Purpose purpose);
  /// Whether a recorder for a request lives.
  static bool is_request_recording();
  ~TraceRecorder();
  TraceRecorder(const TraceRecorder&) = delete;

  /// Drops everything recorded so far.
  void discard();
  /// Adds a span of the calling thread that began at `begin`, as now ended.
  void add(const std::string& name, TraceEvent::Kind kind, std::int64_t begin);
  /// Number of recorded events.
  std::size_t size() const;
  /// Stops recording and returns the trace. Later calls of the other functions do nothing.
  Trace take();

 private:
  explicit TraceRecorder(const ProfilerOptions& options);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Places of stacks from debug information. Each address is looked up once, so keep it for a whole trace.
/// Blocks while addr2line runs.
StackText stack_text_of(const Trace& trace);
/// Difference between the wall clock and the clock of traces, in nanoseconds.
std::int64_t trace_wall_offset();

}  // namespace det
