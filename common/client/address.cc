#include "common/client/address.h"

#include <charconv>

#include "common/base/process.h"
#include "common/base/text.h"

namespace det::cli {
namespace {

/// Parses 1 to 65535. `whole` is the address for the error message.
Result<int> parse_port(std::string_view text, std::string_view whole) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error == std::errc() && end == text.data() + text.size() && port >= 1 && port <= 65535) return port;
  return fail(Code::kInvalidArgument,
              "\"" + std::string(whole) + "\": \"" + std::string(text) + "\" is no port");
}

}  // namespace

std::string Address::target() const {
  // Only an IPv6 address contains a colon: the port was split off by parse_address().
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}
std::string Address::url() const { return (tls ? "https://" : "http://") + target(); }

Result<Address> parse_address(std::string_view text) {
  const auto bad = [&](const std::string& why) {
    return fail(Code::kInvalidArgument, "\"" + std::string(text) + "\" is no master's address: " + why +
                                            "; write it like http://localhost:8080");
  };
  Address address{false, "", 8080};
  std::string_view rest = trim(text);
  if (const std::size_t at = rest.find("://"); at != std::string_view::npos) {
    const std::string scheme = to_lower(rest.substr(0, at));
    if (scheme != "http" && scheme != "https") return bad("the scheme must be http or https");
    address.tls = scheme == "https";
    address.port = address.tls ? 443 : 80;
    rest.remove_prefix(at + 3);
  }
  // Addresses copied from a browser end with a slash.
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find('@') != std::string_view::npos) return bad("it must not hold a user name or password");
  if (rest.find_first_of("?#/ ") != std::string_view::npos) return bad("only host and port belong there");
  if (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos) return bad("the bracket is not closed");
    address.host = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    if (!rest.empty() && !rest.starts_with(':')) return bad("a colon must follow the bracket");
  } else {
    const std::size_t colon = rest.find(':');
    address.host = rest.substr(0, colon);
    rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon);
  }
  if (address.host.empty()) return bad("the host is missing");
  if (!rest.empty()) {
    TRY_ASSIGN(address.port, parse_port(rest.substr(1), text));
  }
  return address;
}

Result<Address> find_master(const std::string& flag, const std::string& configured) {
  if (!flag.empty()) return parse_address(flag);
  for (const char* name : {"DET_MASTER", "DETERMINED_MASTER", "DET_MASTER_ADDR"}) {
    if (const std::string value = environment_variable(name); !value.empty()) return parse_address(value);
  }
  if (!configured.empty()) return parse_address(configured);
  return Address{false, "localhost", 8080};
}

}  // namespace det::cli
