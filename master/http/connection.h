// One HTTP/1.1 connection: strict parsing within limits, one request at a time, replies with a length or
// chunked. Only connection.cc uses Boost.Beast.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <chrono>
#include <functional>
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

/// Serves `socket` until it closes. The connection keeps itself alive; `handler` and `limits` must outlive
/// it. Everything runs on the socket's executor, which must be served by one thread. `closed` is called once
/// at the end.
void serve_connection(boost::asio::generic::stream_protocol::socket socket, std::string peer,
                      const HttpLimits& limits, const Handler& handler, std::function<void()> closed);

}  // namespace det::http
