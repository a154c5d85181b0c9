// Owns following the master's events (GET /api/v1/events, server-sent): what has changed, never the content.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/client.h"

namespace det::cli {

struct ChangeEvent {
  std::string kind;    ///< "experiment", "trial", "metrics", …; "reset": something was missed, look again
  int experiment = 0;  ///< 0: of none
};

/// Text of server-sent events in, events out. Pure.
class EventParser {
 public:
  /// Those that `text` completes.
  std::vector<ChangeEvent> take(std::string_view text);
  /// The id of the last event that was complete; "" before the first.
  const std::string& last_id() const { return last_id_; }

 private:
  std::string text_, last_id_;
};

/// One connection over HTTP/1.1 or HTTPS, with the trust of the command's other calls (cli/trust.h).
class EventStream {
 public:
  /// `after`: the id of the last event that is known, so that what came since is told first; "": from now on.
  /// kUnavailable when the master is away, not believed, or does not answer with events.
  static Result<EventStream> open(const Client& client, const std::string& after = "");
  EventStream(EventStream&&) noexcept;
  EventStream& operator=(EventStream&&) noexcept;
  ~EventStream();

  /// What has come; waits up to `timeout` for the first. kUnavailable when the stream has ended.
  Result<std::vector<ChangeEvent>> wait(Duration timeout);
  const std::string& last_id() const { return parser_.last_id(); }

 private:
  class Connection;
  template <typename Stream>
  class Http;
  explicit EventStream(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
  EventParser parser_;
};

}  // namespace det::cli
