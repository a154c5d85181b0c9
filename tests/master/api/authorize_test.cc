#include "master/api/auth/authorize.h"

#include <google/protobuf/descriptor.h>

#include <catch2/catch.hpp>

namespace det::api {
namespace {

TEST_CASE("the access table is complete, checked at compile time") { CHECK(access_gaps().empty()); }

TEST_CASE("only login, master info, join tokens and keys of shells are open to anyone") {
  std::vector<std::string> open;
  for (const auto* service : services()) {
    for (int i = 0; i < service->method_count(); ++i) {
      const std::string path = "/" + service->full_name() + "/" + service->method(i)->name();
      if (access(path)->requirement == Requirement::kNone) open.push_back(service->method(i)->name());
    }
  }
  CHECK(open == std::vector<std::string>{"Login", "GetMaster", "Join", "ConnectSsh"});
}

TEST_CASE("a method that is not in the table is refused") {
  db::Pool pool({.url = "host=/nowhere"});
  Sessions sessions(pool);
  CHECK(access("/det.v1.AuthService/Backdoor") == nullptr);
  const auto caller = authorize("/det.v1.AuthService/Backdoor", {.user_token = "x"}, sessions);
  REQUIRE_FALSE(caller);
  CHECK(caller.error().code == Code::kPermissionDenied);
}

TEST_CASE("user tokens of tasks are refused without the setting") {
  db::Pool pool({.url = "host=/nowhere"});
  const std::string token = task_user_token(AllocationId("1.a.2"), "secret");
  CHECK(token == "task-1.a.2.secret");
  Sessions off(pool), on(pool, true);
  CHECK(authorize("/det.v1.AuthService/CurrentUser", {.user_token = token}, off).error().code ==
        Code::kUnauthenticated);
  // With it the database is asked.
  CHECK(authorize("/det.v1.AuthService/CurrentUser", {.user_token = token}, on).error().code !=
        Code::kUnauthenticated);
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

TEST_CASE("an allocation of a release with derived tokens keeps its token, and later ones have none") {
  std::vector<core::Allocation> allocations(2);
  allocations[0].id = AllocationId("1.a.1");
  allocations[0].parts.resize(2);
  allocations[1].id = AllocationId("1.a.2");
  allocations[1].parts.push_back({.token_hash = token_hash("own")});
  accept_derived_tokens(std::string(32, 's'), allocations);
  // base64url(HMAC-SHA256(32 times "s", "1.a.1"))
  const std::string derived = "ysxXNX2nJ-TLKms3_e9Ibsn13ZGFMgpQinmDf_N-eDM";
  CHECK(allocations[0].has_token(token_hash(derived)));
  CHECK(allocations[0].parts[0].token_hash == allocations[0].parts[1].token_hash);
  CHECK(allocations[1].parts[0].token_hash == token_hash("own"));
}

}  // namespace
}  // namespace det::api
