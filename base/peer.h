// Owns the name of a connection that was not taken over as a plain socket: it says who is at the far end,
// where the socket itself can no longer tell. (The master ends TLS in front of gRPC, which then sees a Unix
// socket of this name.)
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace det {

struct Peer {
  std::string address;      ///< numeric, without port
  std::string certificate;  ///< SHA-256 of the client's certificate, hexadecimal; "": it showed none
  bool believed = false;    ///< our own authority signed it
  bool tls = false;         ///< what it says cannot be read on the way
};

/// At most 107 bytes of [A-Za-z0-9._-], so that it is a name of an abstract Unix socket; unique by its random
/// part.
std::string peer_name(const Peer& peer);
/// The opposite; nothing for other names.
std::optional<Peer> read_peer_name(std::string_view name);

}  // namespace det
