// Client of the master's event stream (GET /api/v1/events, server-sent events). An event names the object
// that has changed, never its content.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/client/client.h"

namespace det::cli {

/// Notice that an object has changed.
struct ChangeEvent {
  std::string kind;    ///< "experiment", "trial", "metrics", …; "reset": events were lost, query again
  int experiment = 0;  ///< id of the experiment; 0: the event belongs to none
};

/// Incremental parser of text/event-stream. Pure.
class EventParser {
 public:
  /// Appends `text` and returns the events that it completes. Discards an incomplete event beyond 1 MiB.
  std::vector<ChangeEvent> take(std::string_view text);
  /// Returns the id of the last complete event; "" before the first.
  const std::string& last_id() const { return last_id_; }

 private:
  std::string text_, last_id_;
};

/// One connection over HTTP/1.1 or HTTPS, with the trust of the gRPC client (common/client/trust.h).
/// Single-threaded.
class EventStream {
 public:
  /// Connects. The stream resumes after the event with id `after`; "" starts with the next event. Errors:
  /// kUnavailable (master unreachable or not trusted, or the response is no event stream),
  /// kFailedPrecondition (no libcurl). Blocks for at most 10 s for the connection and 20 s in all.
  static Result<EventStream> open(const Client& client, const std::string& after = "");
  EventStream(EventStream&&) noexcept;
  EventStream& operator=(EventStream&&) noexcept;
  ~EventStream();

  /// Waits up to `timeout` for an event. Returns all that have arrived; none when the time is over. Errors:
  /// kUnavailable (the stream has ended).
  Result<std::vector<ChangeEvent>> wait(Duration timeout);
  /// Returns the id to resume from; "" before the first event.
  const std::string& last_id() const { return parser_.last_id(); }

 private:
  class Connection;
  explicit EventStream(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
  EventParser parser_;
};

}  // namespace det::cli
