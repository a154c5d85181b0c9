// Workarounds for gRPC's callback threads (gRPC 1.51, CallbackAlternativeCQ in
// src/cpp/common/completion_queue_cc.cc). Target det_wire.
#pragma once

#include <thread>

#include "common/base/event.h"

namespace det {

/// Keeps gRPC's callback threads alive until the process ends. Call it before making calls with callbacks;
/// GrpcKeepAlive does. Idempotent. Thread-safe.
///
/// gRPC ends these threads with the last channel that used a callback. If a callback holds the last reference
/// to that channel, a callback thread joins itself, continues, and reads freed memory.
void keep_callback_threads();

/// While an instance exists, events for gRPC callbacks in this process are handled without delay.
///
/// A callback thread of gRPC that was idle for a second sleeps for 100 ms, and messages wait while all of
/// them sleep. This class gives them work every 450 ms: a call that fails locally, without network traffic.
/// It runs a thread of its own, which the destructor joins.
class GrpcKeepAlive {
 public:
  GrpcKeepAlive();
  ~GrpcKeepAlive();
  GrpcKeepAlive(const GrpcKeepAlive&) = delete;

 private:
  Event stop_;
  std::thread thread_;
};

}  // namespace det
