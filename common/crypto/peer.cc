#include "common/crypto/peer.h"

#include <algorithm>

#include "common/base/secret.h"
#include "common/base/text.h"

namespace det {
namespace {

// Format: det.<t: TLS | p: plain><b: believed | n: not>.<random>.<certificate>.<address>
// The certificate digest is base64url; the address has '_' in place of ':'.
constexpr std::string_view kPrefix = "det.";
constexpr std::size_t kRandomBytes = 8, kMaxAddress = 39, kDigestBytes = 32;

std::string bytes_of(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(digit(hex[i]) << 4 | digit(hex[i + 1]));
  return bytes;
}

}  // namespace

std::string peer_name(const Peer& peer) {
  // The zone of a link-local address ("%eth0") is meaningful on its own host only.
  std::string address = peer.address.substr(0, peer.address.find('%')).substr(0, kMaxAddress);
  std::replace(address.begin(), address.end(), ':', '_');
  return std::string(kPrefix) + (peer.tls ? "t" : "p") + (peer.believed ? "b" : "n") + "." +
         to_base64url(random_bytes(kRandomBytes)) + "." + to_base64url(bytes_of(peer.certificate)) + "." +
         address;
}

std::optional<Peer> read_peer_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto parts = split(name, '.');
  if (parts.size() < 5 || parts[1].size() != 2) return std::nullopt;
  const auto digest = from_base64(parts[3]);
  if (!digest || (!digest->empty() && digest->size() != kDigestBytes)) return std::nullopt;
  Peer peer{.certificate = to_hex(*digest), .believed = parts[1][1] == 'b', .tls = parts[1][0] == 't'};
  // An IPv4 address contains dots itself, so it spans several parts.
  peer.address = join({parts.begin() + 4, parts.end()}, ".");
  std::replace(peer.address.begin(), peer.address.end(), '_', ':');
  return peer;
}

}  // namespace det
