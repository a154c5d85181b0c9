// Owns one HTTP/1.1 connection, from the first byte to the last: strict reading within limits, one request at
// a time, answers whole or chunked. The only room that knows Boost.Beast (in connection.cc).
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "master/http/message.h"

namespace det::http {

/// Defaults are those of the product's limits (promises §5).
struct HttpLimits {
  std::size_t header_bytes = 8 * 1024;
  int header_fields = 64;
  std::size_t line_bytes = 4 * 1024;
  std::chrono::milliseconds header_time{10'000};  ///< from a request's first byte to the end of its header
  std::chrono::milliseconds idle_time{60'000};
  std::chrono::milliseconds write_time{30'000};  ///< for 256 KiB
  std::int64_t body_bytes_per_second = 1024;     ///< slower bodies are given up (after header_time more)
};

/// Serves `socket` until it closes; keeps itself alive. `handler` must outlive the connection. Everything
/// runs on the socket's executor, which one thread must serve. `closed` is called once at the end.
void serve_connection(boost::asio::generic::stream_protocol::socket socket, std::string peer,
                      const HttpLimits& limits, const Handler& handler, std::function<void()> closed);

}  // namespace det::http
