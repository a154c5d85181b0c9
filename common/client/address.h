// Parses the master's address and selects the one that a command uses.
#pragma once

#include <string>
#include <string_view>

#include "common/base/result.h"

namespace det::cli {

/// Network address of a master.
struct Address {
  bool tls = false;  ///< true for https://
  std::string host;  ///< host name or IP address; IPv6 without brackets
  int port = 0;      ///< 1 to 65535

  /// "host:port" as gRPC expects it; an IPv6 host is put into brackets.
  std::string target() const;
  /// "http://host:port" or "https://host:port". Shown to users, and the key of stored logins.
  std::string url() const;
  bool operator==(const Address&) const = default;
};

/// Parses "host" or "host:port" (default port 8080), "http://…" (80) or "https://…" (443). Ignores one
/// trailing slash. Errors: kInvalidArgument (another scheme, a path, a query, a user name, a bad port).
Result<Address> parse_address(std::string_view text);

/// Returns the first of these that is set: `flag` (the value of -m); the environment variables DET_MASTER,
/// DETERMINED_MASTER and DET_MASTER_ADDR; `configured` (`master` in det.yaml). Without any of them returns
/// localhost:8080. Errors: those of parse_address().
Result<Address> find_master(const std::string& flag, const std::string& configured = "");

}  // namespace det::cli
