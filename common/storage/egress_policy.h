// Egress policy for endpoints of storages and webhooks (SSRF guard). The master sends requests to endpoints
// that users configure, and services on the master's own host or link (cloud metadata, unprotected ports)
// must not be reachable that way.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

namespace det::storage {

/// Hosts that this process may contact.
struct EgressPolicy {
  bool anywhere = true;  ///< no restriction: for a process that acts on its own user's behalf
  /// Allowed hosts, at any address. If empty, every host at an outer address is allowed.
  std::vector<std::string> hosts;
  std::string own;  ///< endpoint of the operator's own storage; always allowed
  /// Hosts outside `hosts` may have addresses of private networks (RFC 1918, RFC 4193, RFC 6598).
  bool private_allowed = true;
  std::string setting = "allowed_storage_hosts";  ///< the administrator's setting of `hosts`, for messages
};

/// Sets the policy of this process, which is unrestricted by default. Call it before other threads start.
void set_egress_policy(EgressPolicy policy);
/// Returns the policy of this process.
const EgressPolicy& egress_policy();

/// Returns the host of http[s]://HOST[:PORT], in lower case and without brackets.
std::string host_of(const std::string& endpoint);

/// True if the endpoint's host is allowed at any address.
bool is_trusted(const EgressPolicy& policy, const std::string& endpoint);

/// Returns "" if the endpoint may be contacted, else the reason and remedy. Checks the text of the endpoint
/// only; names are resolved later, and open_outward in http.cc checks the result. "" (Amazon) is allowed.
std::string egress_refusal(const EgressPolicy& policy, const std::string& endpoint);

/// True for loopback, link-local, unspecified and cloud metadata addresses, and for IPv6 forms of such IPv4
/// addresses.
bool is_internal(const sockaddr& address);

/// True for addresses of private networks: RFC 1918, RFC 6598 (100.64.0.0/10), RFC 4193 (fc00::/7), and IPv6
/// forms of such IPv4 addresses.
bool is_private(const sockaddr& address);

/// Returns the error message for a connection to an internal or private address. `setting` lists exceptions.
std::string internal_address_message(const std::string& address,
                                     const std::string& setting = "allowed_storage_hosts");

}  // namespace det::storage
