// Traces of the next batches on a user's request: `det trial profile`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "harness/src/client/client.h"
#include "harness/src/observability/trace_recorder.h"
#include "harness/src/trainer/context_state.h"

namespace det {

/// Takes requests of the client and records. One per fit(), used by the training thread of the chief. Between
/// requests a batch costs one atomic read.
class ProfileOnRequest {
 public:
  /// A request installs a phase clock in `instruments` for its duration, unless there is one.
  ProfileOnRequest(Client& client, Instruments& instruments) : client_(client), instruments_(instruments) {
    client_.refuse_profiles("");
  }
  /// Refuses further requests, and joins the thread that writes the last trace.
  ~ProfileOnRequest();
  ProfileOnRequest(const ProfileOnRequest&) = delete;

  /// Called before batch `step` (from 0).
  void begin_batch(std::int64_t step);
  /// Called after a batch. The last one of a request starts the thread that writes and sends the trace.
  void end_batch();
  /// Ends training: a trace with fewer batches than requested is sent. Blocks until it is handed to the
  /// client.
  void finish();

 private:
  void start(ProfileRequest request, std::int64_t step);
  void stop_phases();
  void send_trace(std::string shortfall);
  void report(ProfileProgress::State state, std::string message = "");

  Client& client_;
  Instruments& instruments_;
  std::unique_ptr<TraceRecorder> recorder_;  ///< null between requests
  ProfileRequest request_;
  std::int64_t first_ = 0, recorded_ = 0, batch_begin_ = 0;  ///< of the request in progress
  bool owns_phases_ = false;
  std::thread writer_;
};

/// A trace of `batches` steps as gzip of at most `most` bytes: the last steps, and events after them, are
/// left out until it fits. Returns the number of steps in it; 0 when not even one fits.
struct PackedTrace {
  std::string bytes;
  std::int64_t batches = 0;
};
PackedTrace pack_trace(Trace trace, std::int64_t wall_offset, std::size_t most);

}  // namespace det
