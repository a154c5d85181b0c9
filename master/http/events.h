// Owns the event stream of the web UI: GET /api/v1/events as server-sent events. Says what changed, never the
// content.
#pragma once

#include <memory>
#include <string>

#include "master/http/gateway.h"
#include "master/http/message.h"
#include "master/loop/hub.h"
#include "master/loop/workers.h"

namespace det::http {

class EventStream {
 public:
  /// All must outlive the streams. The streams' state lives on `serial`, which must have one thread.
  EventStream(loop::Hub& hub, loop::Workers& serial, const Gateway& gateway);
  ~EventStream();

  /// Answers 401 without a session. `Last-Event-ID` resumes; "reset" as event says that something was missed.
  void handle(Request request, std::shared_ptr<Exchange> exchange);
  /// To be called about every second on `serial`: heartbeats (each 15 s, with another look at the session).
  void tick();
  /// Ends all streams. On `serial`.
  void close();

 private:
  class Client;
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// One event in the stream's format: id, event and JSON data; "" for changes nobody is told of.
std::string event_text(const loop::Event& event);

}  // namespace det::http
