// Owns the one public port: who may connect, how many, and which protocol a connection speaks. gRPC never
// owns the listener (version 1.51 stops accepting for ever after one exhaustion of file descriptors).
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "master/http/connection.h"
#include "master/http/tunnel.h"

namespace det::http {

/// Defaults are those of the product's limits (promises §5).
struct AcceptorLimits {
  int connections = 2000;
  int per_address = 64;  ///< loopback is exempt
  std::chrono::milliseconds first_bytes{
      5'000};  ///< a connection that has not said what it speaks by then is closed
};

/// Lives on one thread: that of `io`. Everything is called there, except where said.
class Acceptor {
 public:
  /// Binds and listens. `address` is numeric, port 0 picks a free one. kAlreadyExists when the port is taken.
  /// With `tls` plain connections are told so and closed.
  static Result<std::unique_ptr<Acceptor>> listen(boost::asio::io_context& io, const std::string& address,
                                                  int port, const AcceptorLimits& limits,
                                                  TlsServer tls = nullptr);
  virtual ~Acceptor() = default;

  /// The port in use. Any thread.
  virtual int port() const = 0;
  /// Starts to accept. `grpc` takes over a non-blocking connected socket that opened with HTTP/2's preface
  /// (nothing of it has been read; behind TLS the far end has the name peer_name() of its client); `http`
  /// takes any other, and its `release` is to be called when the connection has ended.
  virtual void start(std::function<void(UniqueFd)> grpc,
                     std::function<void(boost::asio::generic::stream_protocol::socket, std::string peer,
                                        std::function<void()> release)>
                         http) = 0;
  /// Closes the listener and connections that have not been handed over.
  virtual void stop() = 0;
};

}  // namespace det::http
