#include "common/client/address.h"

#include <catch2/catch.hpp>

namespace det::cli::test {

TEST_CASE("an address consists of a host, a port and a scheme") {
  const auto url = [](const char* text) {
    const auto address = parse_address(text);
    INFO(text << (address ? "" : ": " + address.error().message));
    REQUIRE(address);
    return address->url();
  };
  CHECK(url("master") == "http://master:8080");
  CHECK(url("master:9000") == "http://master:9000");
  CHECK(url("http://master") == "http://master:80");
  CHECK(url("https://master/") == "https://master:443");
  CHECK(url("HTTPS://master:8443") == "https://master:8443");
  CHECK(url("http://127.0.0.1:8080") == "http://127.0.0.1:8080");
  CHECK(url("[::1]:8081") == "http://[::1]:8081");
  CHECK(url("http://[::1]") == "http://[::1]:80");
}

TEST_CASE("an invalid address is refused with the reason") {
  for (const char* text :
       {"", "ftp://master", "http://", ":8080", "master:", "master:0", "master:65536", "master:x",
        "http://user:pass@master", "http://master/path", "master?x=1", "a b", "[::1", "[::1]x"}) {
    const auto address = parse_address(text);
    INFO(text);
    REQUIRE(!address);
    CHECK(address.error().code == Code::kInvalidArgument);
  }
}

TEST_CASE("the flag overrides the environment variables, which have a fixed order") {
  ::unsetenv("DET_MASTER");
  ::unsetenv("DETERMINED_MASTER");
  ::unsetenv("DET_MASTER_ADDR");
  CHECK(find_master("")->url() == "http://localhost:8080");
  ::setenv("DET_MASTER_ADDR", "third", 1);
  CHECK(find_master("")->host == "third");
  ::setenv("DETERMINED_MASTER", "second", 1);
  CHECK(find_master("")->host == "second");
  ::setenv("DET_MASTER", "first", 1);
  CHECK(find_master("")->host == "first");
  CHECK(find_master("flag")->host == "flag");
  ::unsetenv("DET_MASTER");
  ::unsetenv("DETERMINED_MASTER");
  ::unsetenv("DET_MASTER_ADDR");
}

}  // namespace det::cli::test
