#include "common/crypto/peer.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

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

using Address = std::array<unsigned char, 16>;

/// IPv4 addresses are mapped into IPv6.
std::optional<Address> read_address(const std::string& text) {
  Address bytes{};
  if (::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return bytes;
  bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (::inet_pton(AF_INET, text.c_str(), bytes.data() + 12) == 1) return bytes;
  return std::nullopt;
}

/// Number of leading bits of `text`, "" for all. Negative for text that is no such number.
int read_bits(const std::string& text, int most) {
  if (text.empty()) return most;
  if (text.size() > 3 || text.find_first_not_of("0123456789") != std::string::npos) return -1;
  const int bits = std::stoi(text);
  return bits <= most ? bits : -1;
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

Result<Networks> Networks::parse(const std::vector<std::string>& texts) {
  Networks out;
  for (const std::string& text : texts) {
    const std::size_t slash = text.find('/');
    const std::string address = text.substr(0, slash);
    const auto bytes = read_address(address);
    const bool v6 = address.find(':') != std::string::npos;
    const int bits = read_bits(slash == std::string::npos ? "" : text.substr(slash + 1), v6 ? 128 : 32);
    if (!bytes || bits < 0 || text.ends_with('/'))
      return fail(Code::kInvalidArgument,
                  "\"" + text + "\" is no network; write it as 10.0.0.0/8, fd00::/8 or an address");
    out.networks_.push_back({*bytes, v6 ? bits : bits + 96});
  }
  return out;
}

bool Networks::contains(std::string_view text) const {
  const auto address = read_address(std::string(text));
  if (!address) return false;
  return std::any_of(networks_.begin(), networks_.end(), [&](const Network& network) {
    const auto whole = static_cast<std::size_t>(network.bits / 8);
    if (std::memcmp(network.bytes.data(), address->data(), whole) != 0) return false;
    const int rest = network.bits % 8;
    return rest == 0 || (network.bytes[whole] ^ (*address)[whole]) >> (8 - rest) == 0;
  });
}

std::string client_address(const Networks& trusted, const std::string& peer, std::string_view forwarded_for) {
  std::string address = peer;
  if (trusted.empty()) return address;
  const std::vector<std::string> hops = split(forwarded_for, ',');
  for (auto hop = hops.rbegin(); hop != hops.rend() && trusted.contains(address); ++hop) {
    const std::string next(trim(*hop));
    if (!read_address(next)) break;
    address = next;
  }
  return address;
}

}  // namespace det
