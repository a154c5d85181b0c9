// One HTTP/1.1 connection: strict parsing within limits, one request at a time, replies with a length or
// chunked. Only connection.cc uses Boost.Beast.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "master/http/message.h"

namespace det::http {

/// Limits of one connection.
struct HttpLimits {
  /// Request line and header fields; exceeding any header limit is answered with 431.
  std::size_t header_bytes = 8 * 1024;
  /// Number of header fields.
  int header_fields = 64;
  /// Length of the request line.
  std::size_t line_bytes = 4 * 1024;
  /// From the first byte of a request to the end of its header; then 408.
  std::chrono::milliseconds header_time{10'000};
  /// Between requests; then the connection is closed.
  std::chrono::milliseconds idle_time{60'000};
  /// For each 256 KiB of a reply.
  std::chrono::milliseconds write_time{30'000};
  /// Slower request bodies are answered with 408, after a grace of header_time.
  std::int64_t body_bytes_per_second = 1024;
};

/// Connections between two requests, which may be closed for new ones. One thread.
class IdleConnections {
 public:
  using Place = std::list<std::function<void()>>::iterator;
  /// Adds a connection that `close` ends. `close` must not call remove().
  Place add(std::function<void()> close) { return all_.insert(all_.end(), std::move(close)); }
  void remove(Place place) { all_.erase(place); }
  /// Closes the connection that has been idle for longest. Returns false when none is idle.
  bool close_oldest() {
    if (all_.empty()) return false;
    const auto close = std::move(all_.front());
    all_.pop_front();
    close();
    return true;
  }

 private:
  std::list<std::function<void()>> all_;
};

/// Serves `socket` until it closes. The connection keeps itself alive; `handler` and `limits` must outlive
/// it, and so must `idle`. Everything runs on the socket's executor, which must be served by one thread, also
/// the end, whatever thread drops the last exchange. `closed` is called once at the end.
void serve_connection(boost::asio::generic::stream_protocol::socket socket, std::string peer,
                      const HttpLimits& limits, const Handler& handler, IdleConnections& idle,
                      std::function<void()> closed);

}  // namespace det::http
