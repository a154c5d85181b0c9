#include "master/api/auth/authorize.h"

#include <google/protobuf/descriptor.h>

#include <catch2/catch.hpp>

namespace det::api {
namespace {

TEST_CASE("the access table is complete, checked at compile time") { CHECK(access_gaps().empty()); }

TEST_CASE("only login and master info are open to anyone") {
  std::vector<std::string> open;
  for (const auto* service : services()) {
    for (int i = 0; i < service->method_count(); ++i) {
      const std::string path = "/" + service->full_name() + "/" + service->method(i)->name();
      if (access(path)->requirement == Requirement::kNone) open.push_back(service->method(i)->name());
    }
  }
  CHECK(open == std::vector<std::string>{"Login", "GetMaster", "Join"});
}

TEST_CASE("a method that is not in the table is refused") {
  db::Pool pool({.url = "host=/nowhere"});
  Sessions sessions(pool);
  CHECK(access("/det.v1.AuthService/Backdoor") == nullptr);
  const auto caller = authorize("/det.v1.AuthService/Backdoor", {.user_token = "x"}, sessions);
  REQUIRE_FALSE(caller);
  CHECK(caller.error().code == Code::kPermissionDenied);
}

TEST_CASE("an address makes no agent") {
  db::Pool pool({.url = "host=/nowhere"});
  Sessions sessions(pool);
  for (const char* address : {"127.0.0.1", "::1", "10.0.0.7"}) {
    const auto caller = authorize("/det.v1.AgentService/Link", {.address = address}, sessions);
    REQUIRE_FALSE(caller);
    CHECK(caller.error().code == Code::kPermissionDenied);
  }
}

TEST_CASE("gRPC's names of peers are read") {
  CHECK(peer_address("ipv4:127.0.0.1:5000") == "127.0.0.1");
  CHECK(peer_address("ipv6:%5B::1%5D:5000") == "::1");
  CHECK(peer_address("ipv6:[::1]:5000") == "::1");
  CHECK(peer_address("ipv6:%5B::ffff:10.0.0.7%5D:5000") == "10.0.0.7");
  CHECK(peer_address("inproc") == "");
  CHECK(is_loopback("127.0.0.1"));
  CHECK(is_loopback("::1"));
  CHECK_FALSE(is_loopback("10.0.0.7"));
  CHECK_FALSE(is_loopback(""));
}

TEST_CASE("an allocation's token depends on the secret and on the allocation") {
  const AllocationId one("1.a.1"), two("1.a.2");
  const std::string secret(32, 's');
  CHECK(allocation_token(secret, one) == allocation_token(secret, one));
  CHECK(allocation_token(secret, one) != allocation_token(secret, two));
  CHECK(allocation_token(secret, one) != allocation_token(std::string(32, 't'), one));
  CHECK(allocation_token(secret, one).size() == 43);
}

}  // namespace
}  // namespace det::api
