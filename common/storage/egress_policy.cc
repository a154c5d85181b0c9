#include "common/storage/egress_policy.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "common/base/text.h"

namespace det::storage {
namespace {

/// 0.0.0.0/8, 127.0.0.0/8 and 169.254.0.0/16 (link-local, includes the metadata service at 169.254.169.254).
bool is_internal4(std::uint32_t address) {
  const std::uint32_t first = address >> 24, two = address >> 16;
  return first == 0 || first == 127 || two == 0xa9fe;
}

bool is_private4(std::uint32_t address) {
  return address >> 24 == 10 || address >> 20 == 0xac1 || address >> 16 == 0xc0a8 || address >> 22 == 0x191;
}

/// The IPv4 address in the last four bytes of an IPv6 address that embeds one.
std::optional<std::uint32_t> embedded4(const in6_addr& address) {
  const auto* bytes = address.s6_addr;
  static constexpr std::uint8_t kTranslated[12] = {0, 0x64, 0xff, 0x9b};  // 64:ff9b::/96 (NAT64, RFC 6052)
  if (!IN6_IS_ADDR_V4MAPPED(&address) && !IN6_IS_ADDR_V4COMPAT(&address) &&
      std::memcmp(bytes, kTranslated, 12) != 0)
    return std::nullopt;
  return std::uint32_t{bytes[12]} << 24 | std::uint32_t{bytes[13]} << 16 | std::uint32_t{bytes[14]} << 8 |
         bytes[15];
}

bool is_internal6(const in6_addr& address) {
  // fd00:ec2::254, the metadata service of AWS.
  static constexpr std::uint8_t kMetadata[16] = {0xfd, 0, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0x54};
  if (const auto four = embedded4(address)) return is_internal4(*four);
  return IN6_IS_ADDR_LOOPBACK(&address) || IN6_IS_ADDR_UNSPECIFIED(&address) ||
         IN6_IS_ADDR_LINKLOCAL(&address) || std::memcmp(address.s6_addr, kMetadata, 16) == 0;
}

EgressPolicy& process_policy() {
  static EgressPolicy policy;
  return policy;
}

}  // namespace

void set_egress_policy(EgressPolicy policy) { process_policy() = std::move(policy); }
const EgressPolicy& egress_policy() { return process_policy(); }

std::string host_of(const std::string& endpoint) {
  const std::size_t scheme = endpoint.find("://");
  std::string host = endpoint.substr(scheme == endpoint.npos ? 0 : scheme + 3);
  host.resize(std::min(host.find('/'), host.size()));
  if (host.starts_with('[')) return to_lower(host.substr(1, host.find(']') - 1));
  const bool six = std::count(host.begin(), host.end(), ':') > 1;  // an IPv6 address without brackets
  return to_lower(six ? host : host.substr(0, host.find(':')));
}

bool is_trusted(const EgressPolicy& policy, const std::string& endpoint) {
  return policy.anywhere || (!policy.own.empty() && host_of(policy.own) == host_of(endpoint)) ||
         std::find(policy.hosts.begin(), policy.hosts.end(), host_of(endpoint)) != policy.hosts.end();
}

std::string internal_address_message(const std::string& address, const std::string& setting) {
  return address +
         " is an address of the master's own machine or link, or of a private network; an administrator can "
         "name the host in " +
         setting;
}

std::string egress_refusal(const EgressPolicy& policy, const std::string& endpoint) {
  if (endpoint.empty() || is_trusted(policy, endpoint)) return "";
  const std::string host = host_of(endpoint);
  if (!policy.hosts.empty())
    return "host " + host + " is not among the cluster's " + policy.setting + ": " + join(policy.hosts, ", ");
  // A literal address is checked here, which gives an error before any connection.
  sockaddr_in four{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {}, .sin_zero = {}};
  sockaddr_in6 six{
      .sin6_family = AF_INET6, .sin6_port = 0, .sin6_flowinfo = 0, .sin6_addr = {}, .sin6_scope_id = 0};
  const auto refused = [&](const sockaddr& address) {
    return is_internal(address) || (!policy.private_allowed && is_private(address));
  };
  const bool inner = (::inet_pton(AF_INET, host.c_str(), &four.sin_addr) == 1 &&
                      refused(reinterpret_cast<const sockaddr&>(four))) ||
                     (::inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) == 1 &&
                      refused(reinterpret_cast<const sockaddr&>(six)));
  return inner ? internal_address_message(host, policy.setting) : "";
}

bool is_internal(const sockaddr& address) {
  if (address.sa_family == AF_INET)
    return is_internal4(ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr));
  // Families other than IPv4 and IPv6 are rejected.
  return address.sa_family != AF_INET6 ||
         is_internal6(reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

bool is_private(const sockaddr& address) {
  if (address.sa_family == AF_INET)
    return is_private4(ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr));
  if (address.sa_family != AF_INET6) return false;
  const in6_addr& six = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  if (const auto four = embedded4(six)) return is_private4(*four);
  return (six.s6_addr[0] & 0xfe) == 0xfc;
}

}  // namespace det::storage
