// Owns how the master's address is written and found.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace det::cli {

struct Address {
  bool tls = false;
  std::string host;  ///< of IPv6 without brackets
  int port = 0;

  /// "host:port" as gRPC takes it.
  std::string target() const;
  /// "http://host:port": what people read, and the key of stored tokens.
  std::string url() const;
  bool operator==(const Address&) const = default;
};

/// "host", "host:port" (8080 when not said), "http://…" (80), "https://…" (443); a path, query or user is
/// refused.
Result<Address> parse_address(std::string_view text);

/// What the user named with -m, else the first set of DET_MASTER, DETERMINED_MASTER, DET_MASTER_ADDR, else
/// what the configuration file says, else localhost:8080.
Result<Address> find_master(const std::string& flag, const std::string& configured = "");

}  // namespace det::cli
