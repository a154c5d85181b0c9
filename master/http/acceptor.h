// The public port: admission of connections and detection of their protocol. gRPC must not own the listener,
// because version 1.51 stops accepting permanently after file descriptors were exhausted once.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "common/base/fd.h"
#include "common/base/result.h"
#include "common/crypto/peer.h"
#include "master/http/connection.h"
#include "master/http/tunnel.h"

namespace det::http {

/// Limits of the public port.
struct AcceptorLimits {
  /// Open connections in total.
  int connections = 2000;
  int per_address = 64;  ///< Per address_group() of the client; loopback is exempt.
  Networks exempt = {};  ///< Not limited by address.
  /// Connections that have not sent enough to detect their protocol by then are closed.
  std::chrono::milliseconds first_bytes{5'000};
};

/// Text of an address for limits: an IPv4 address, or the /64 of an IPv6 address, which is one client's.
std::string address_group(const boost::asio::ip::address& address);

/// Accepts connections and hands them over by protocol. Runs on the thread of `io`; call everything there
/// unless noted.
class Acceptor {
 public:
  /// Binds and listens. `address` is numeric; port 0 picks a free port. With `tls`, plain-text connections
  /// get an error reply and are closed. kAlreadyExists: the port is taken.
  static Result<std::unique_ptr<Acceptor>> listen(boost::asio::io_context& io, const std::string& address,
                                                  int port, const AcceptorLimits& limits,
                                                  TlsServer tls = nullptr);
  virtual ~Acceptor() = default;

  /// The bound port. Any thread.
  virtual int port() const = 0;
  /// Starts to accept. `grpc` takes over a non-blocking connected socket that began with the HTTP/2 preface.
  /// None of it has been read; behind TLS, the peer name of the socket is peer_name() of the client. `http`
  /// takes every other connection and must call `release` when the connection has ended. `evict` closes a
  /// connection that is not in use, for a new one at the limit; false: there is none.
  virtual void start(std::function<void(UniqueFd)> grpc,
                     std::function<void(boost::asio::generic::stream_protocol::socket, std::string peer,
                                        std::function<void()> release)>
                         http,
                     std::function<bool()> evict) = 0;
  /// Closes the listener and the connections that have not been handed over.
  virtual void stop() = 0;
};

}  // namespace det::http
