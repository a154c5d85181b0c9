// Owns following the master's events (GET /api/v1/events, server-sent): what has changed, never the content.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "cli/client.h"

namespace det::cli {

struct ChangeEvent {
  std::string kind;    ///< "experiment", "trial", "metrics", …; "reset": something was missed, look again
  int experiment = 0;  ///< 0: of none
};

/// Bytes of an HTTP/1.1 answer in, events out. Pure.
class EventParser {
 public:
  /// kUnavailable when the answer is no stream of events.
  Result<std::vector<ChangeEvent>> take(std::string_view bytes);

 private:
  Status read_head();
  void read_chunks();
  std::vector<ChangeEvent> read_events();
  bool in_body_ = false, chunked_ = false;
  std::string raw_, body_;
  std::size_t chunk_left_ = 0;
};

class EventStream {
 public:
  /// Over plain HTTP only: kUnimplemented for https. kUnavailable when the master is away.
  static Result<EventStream> open(const Client& client);
  /// What has come; waits up to `timeout` for the first. kUnavailable when the stream has ended.
  Result<std::vector<ChangeEvent>> wait(Duration timeout);

 private:
  explicit EventStream(UniqueFd socket) : socket_(std::move(socket)) {}
  UniqueFd socket_;
  EventParser parser_;
};

}  // namespace det::cli
