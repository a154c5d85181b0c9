// Encodes facts about a network peer in the name of an abstract Unix socket. The master terminates TLS in
// front of gRPC; gRPC then sees a Unix socket and reads address and certificate of the peer from that name.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

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

}  // namespace det
