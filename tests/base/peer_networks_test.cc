#include "common/crypto/peer.h"
#include "need.h"

using namespace det;

TEST_CASE("an address is in a network if the leading bits agree", "[networks]") {
  const Networks networks = need(Networks::parse({"10.4.0.0/14", "192.168.7.9", "fd00::/8", "::1"}));
  for (const char* in : {"10.4.0.0", "10.7.255.255", "192.168.7.9", "fd12::7", "::1", "::ffff:192.168.7.9"})
    CHECK(networks.contains(in));
  for (const char* out :
       {"10.8.0.0", "10.3.255.255", "192.168.7.8", "fe00::1", "::2", "", "host", "10.4.0.0/14"})
    CHECK_FALSE(networks.contains(out));
  CHECK(need(Networks::parse({"0.0.0.0/0"})).contains("8.8.8.8"));
  CHECK_FALSE(need(Networks::parse({"0.0.0.0/0"})).contains("2001:db8::1"));
  CHECK_FALSE(need(Networks::parse({})).contains("10.0.0.1"));
}

TEST_CASE("text that is no network is refused by name", "[networks]") {
  for (const char* bad :
       {"", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "fd00::/129", "proxy", "10.0.0/8", "1.2.3.4/8x"}) {
    const auto got = Networks::parse({"127.0.0.1", bad});
    REQUIRE_FALSE(got);
    CHECK(got.error().message.find("\"" + std::string(bad) + "\"") != std::string::npos);
  }
}

TEST_CASE("the client's address is believed only as far as trusted proxies vouch for it", "[networks]") {
  const Networks trusted = need(Networks::parse({"10.0.0.0/8", "127.0.0.1"}));
  CHECK(client_address(trusted, "127.0.0.1", "203.0.113.7") == "203.0.113.7");
  CHECK(client_address(trusted, "127.0.0.1", "203.0.113.7, 10.0.0.9") == "203.0.113.7");
  // The leftmost entries come from the client itself.
  CHECK(client_address(trusted, "127.0.0.1", "198.51.100.1, 203.0.113.7") == "203.0.113.7");
  CHECK(client_address(trusted, "203.0.113.5", "198.51.100.1") == "203.0.113.5");
  CHECK(client_address(trusted, "127.0.0.1", "") == "127.0.0.1");
  CHECK(client_address(trusted, "127.0.0.1", "unknown") == "127.0.0.1");
  CHECK(client_address(trusted, "127.0.0.1", "203.0.113.7, nonsense") == "127.0.0.1");
  CHECK(client_address(need(Networks::parse({})), "127.0.0.1", "203.0.113.7") == "127.0.0.1");
}
