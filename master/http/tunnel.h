// Owns what stands between a client and who serves it: encrypted bytes on the client's socket, plain ones on
// a socket pair whose other end is handed to gRPC or HTTP, who need not know; and a look at the frames of
// HTTP/2 on their way.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/peer.h"
#include "base/result.h"

struct ssl_ctx_st;

namespace det::http {

/// What all connections share: our certificate, and whose clients' certificates we believe.
using TlsServer = std::shared_ptr<ssl_ctx_st>;

/// All PEM. `chain` begins with the server's own certificate, for which `key` is; `clients` is the authority
/// that signs clients' certificates. TLS 1.2 and newer. kInvalidArgument says which of them is wrong.
Result<TlsServer> make_tls_server(const std::string& chain, const std::string& key,
                                  const std::string& clients);

/// Shakes hands and calls `opened` with the plain end (non-blocking) and with who is there; not at all when
/// the handshake fails or takes longer than `limit`. A client without a certificate, or with one that we do
/// not believe, is let through: who may do what is decided behind. `lease` is let go when the connection has
/// ended. Keeps itself alive; everything runs on `io`, which one thread must serve. With `server` null the
/// client speaks plainly, and is there at once. A client that floods HTTP/2 is cut off.
void open_tunnel(boost::asio::io_context& io, boost::asio::ip::tcp::socket socket, const TlsServer& server,
                 const std::string& address, std::chrono::milliseconds limit,
                 std::function<void(UniqueFd plain, const Peer& peer)> opened, std::shared_ptr<void> lease);

}  // namespace det::http
