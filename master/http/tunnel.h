// Tunnel in front of gRPC and HTTP: decrypts TLS from the client's socket into a socket pair, hands on the
// other end of the pair, and inspects the HTTP/2 frames that pass.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "common/base/fd.h"
#include "common/base/result.h"
#include "common/crypto/peer.h"

struct ssl_ctx_st;

namespace det::http {

/// TLS context shared by all connections: the server certificate and the authority of client certificates.
using TlsServer = std::shared_ptr<ssl_ctx_st>;

/// Creates a TLS context (TLS 1.2 or newer) from PEM texts. `chain` begins with the server's certificate, to
/// which `key` belongs; `clients` is the authority that signs client certificates. Errors: kInvalidArgument
/// (names the invalid certificate or key); kInternal (invalid authority).
Result<TlsServer> make_tls_server(const std::string& chain, const std::string& key,
                                  const std::string& clients);

/// Performs the handshake and calls `opened` with the plain-text end (non-blocking) and the identity of the
/// client. Does not call it when the handshake fails or takes longer than `limit`. A client without a
/// certificate, or with an untrusted one, is let through; authorization happens later. With a null `server`
/// the client speaks plain text and there is no handshake. Clients that flood HTTP/2 are disconnected.
///
/// The tunnel keeps itself alive and releases `lease` when the connection has ended. Everything runs on `io`,
/// which must be served by one thread.
void open_tunnel(boost::asio::io_context& io, boost::asio::ip::tcp::socket socket, const TlsServer& server,
                 const std::string& address, std::chrono::milliseconds limit,
                 std::function<void(UniqueFd plain, const Peer& peer)> opened, std::shared_ptr<void> lease);

}  // namespace det::http
