// The event stream of the web UI: GET /api/v1/events as server-sent events. Events carry ids,
// state and progress of changed objects, and only of experiments that the reader may see.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "master/http/gateway.h"
#include "master/http/message.h"
#include "master/loop/hub.h"
#include "master/loop/workers.h"

namespace det::http {

/// All open event streams. State lives on the serial worker.
class EventStream {
 public:
  /// All arguments must outlive the streams. `serial` must have exactly one thread. `rights` returns a
  /// counter that increases when a user may have lost permissions; null: never.
  EventStream(loop::Hub& hub, loop::Workers& serial, const Gateway& gateway,
              std::function<std::uint64_t()> rights = nullptr);
  ~EventStream();

  /// Opens a stream. Replies 401 without a valid session. The first `id` is that of the last event before the
  /// stream. A Last-Event-ID header resumes a stream; the event "reset" reports that events were lost. Any
  /// thread.
  void handle(Request request, const std::shared_ptr<Exchange>& exchange);
  /// Call about four times a second on `serial`. Sends collected events and heartbeats and validates sessions
  /// and permissions every 15 s, and immediately after a change of `rights`.
  void tick();
  /// Ends all streams. Call on `serial`.
  void close();

 private:
  class Client;
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Formats an event with id, event type and JSON data.
std::string event_text(const loop::Event& event);

}  // namespace det::http
