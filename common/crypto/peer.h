// The remote end of a connection: its facts as the name of an abstract Unix socket, and the client behind
// trusted proxies. The master terminates TLS in front of gRPC; gRPC then sees a Unix socket and reads address
// and certificate of the peer from that name. Pure.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace det {

/// The remote end of a connection.
struct Peer {
  std::string address;      ///< numeric, without port
  std::string certificate;  ///< SHA-256 of the client certificate, hexadecimal; "" without one
  bool believed = false;    ///< the certificate is signed by the master's own authority
  bool tls = false;         ///< the connection is encrypted
};

/// Encodes a peer as an abstract socket name: at most 107 bytes of [A-Za-z0-9._-], unique by a random part.
std::string peer_name(const Peer& peer);
/// Inverse of peer_name. Returns nothing for other names.
std::optional<Peer> read_peer_name(std::string_view name);

/// A list of networks. Copyable; safe to read from several threads.
class Networks {
 public:
  /// Parses "10.0.0.0/8", "fd00::/8" or single addresses. Errors: kInvalidArgument naming the text.
  static Result<Networks> parse(const std::vector<std::string>& texts);
  /// Whether a numeric address is in a network. False for other text.
  bool contains(std::string_view address) const;
  bool empty() const { return networks_.empty(); }

 private:
  struct Network {
    std::array<unsigned char, 16> bytes{};  ///< IPv4 as ::ffff:a.b.c.d
    int bits = 0;
  };
  std::vector<Network> networks_;
};

/// Returns the address of the client of a request from `peer`. While the address is in `trusted`, it is
/// replaced by the next one of X-Forwarded-For from the right, which that proxy has added. Stops at text that
/// is no address.
std::string client_address(const Networks& trusted, const std::string& peer, std::string_view forwarded_for);

}  // namespace det
