// Owns the event stream of the web UI: GET /api/v1/events as server-sent events. Says what changed, never the
// content, and only of experiments that the reader may see.
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

class EventStream {
 public:
  /// All must outlive the streams. The streams' state lives on `serial`, which must have one thread. `rights`
  /// grows when somebody may have lost rights; null: never.
  EventStream(loop::Hub& hub, loop::Workers& serial, const Gateway& gateway,
              std::function<std::uint64_t()> rights = nullptr);
  ~EventStream();

  /// Answers 401 without a session. `Last-Event-ID` resumes; "reset" as event says that something was missed.
  void handle(Request request, std::shared_ptr<Exchange> exchange);
  /// To be called about four times a second on `serial`: heartbeats (each 15 s), and another look at the
  /// sessions, at once when rights have changed.
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
