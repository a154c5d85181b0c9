// The stores that a master may contact (protection against server-side request forgery).
#include "common/storage/egress_policy.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <catch2/catch.hpp>

#include "tests/storage/store.h"

using namespace det;
using namespace det::storage;

namespace {

bool inner(const std::string& text) {
  sockaddr_in four{};
  sockaddr_in6 six{};
  four.sin_family = AF_INET;
  six.sin6_family = AF_INET6;
  if (::inet_pton(AF_INET, text.c_str(), &four.sin_addr) == 1)
    return is_internal(reinterpret_cast<const sockaddr&>(four));
  REQUIRE(::inet_pton(AF_INET6, text.c_str(), &six.sin6_addr) == 1);
  return is_internal(reinterpret_cast<const sockaddr&>(six));
}

struct Row {
  const char* hosts;  ///< allowed host; "" for none
  const char* own;
  const char* endpoint;
  const char* said;  ///< part of the refusal; "" if allowed
};

}  // namespace

TEST_CASE("loopback, link-local and cloud metadata addresses are internal") {
  for (const char* text : {"127.0.0.1", "127.9.9.9", "0.0.0.0", "0.1.2.3", "169.254.169.254", "169.254.0.1",
                           "::1", "::", "fe80::1", "febf::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254",
                           "::127.0.0.1", "64:ff9b::169.254.169.254", "fd00:ec2::254"}) {
    CAPTURE(text);
    CHECK(inner(text));
  }
  for (const char* text :
       {"10.0.0.1", "192.168.1.1", "172.16.0.1", "8.8.8.8", "169.253.0.1", "169.255.0.1", "128.0.0.1",
        "fec0::1", "fd00:ec2::253", "2001:db8::1", "::ffff:10.0.0.1", "64:ff9b::8.8.8.8"}) {
    CAPTURE(text);
    CHECK_FALSE(inner(text));
  }
}

TEST_CASE("the host is extracted from an endpoint or a bare host") {
  for (const auto& [text, host] : std::vector<std::pair<std::string, std::string>>{
           {"https://Minio.example.org:9000", "minio.example.org"},
           {"http://[FE80::1]:9000/", "fe80::1"},
           {"http://h/", "h"},
           {"h:9000", "h"},
           {"h", "h"},
           {"::1", "::1"},
           {"[::1]:80", "::1"},
           {"", ""}}) {
    CAPTURE(text);
    CHECK(host_of(text) == host);
  }
}

TEST_CASE("an endpoint is refused by its text where the text suffices") {
  const std::vector<Row> rows{
      {"", "", "", ""},
      {"", "", "https://minio.example.org:9000", ""},
      {"", "", "http://10.1.2.3", ""},
      {"", "", "http://127.0.0.1:9000", "127.0.0.1 is an address of the master's own machine or link"},
      {"", "", "http://[::1]:9000", "::1 is an address"},
      {"", "", "http://[fe80::1]/", "allowed_storage_hosts"},
      {"", "", "http://169.254.169.254", "169.254.169.254 is an address"},
      {"", "http://127.0.0.1:9000", "http://127.0.0.1:9000", ""},
      {"", "http://127.0.0.1:9000", "http://127.0.0.2:9000", "127.0.0.2 is an address"},
      {"127.0.0.1", "", "http://127.0.0.1:9000", ""},
      {"127.0.0.1", "", "", ""},
      {"minio.example.org", "", "https://MINIO.example.org:9000", ""},
      {"minio.example.org", "", "https://example.org",
       "host example.org is not among the cluster's allowed_storage_hosts: minio"},
      {"minio.example.org", "", "http://minio.example.org.evil.org", "is not among"},
      {"minio.example.org", "https://own.example.org", "https://own.example.org", ""}};
  for (const Row& row : rows) {
    CAPTURE(row.hosts, row.own, row.endpoint);
    EgressPolicy egress{.anywhere = false, .hosts = {}, .own = row.own};
    if (*row.hosts != '\0') egress.hosts = {row.hosts};
    const std::string refusal = egress_refusal(egress, row.endpoint);
    CHECK(refusal.empty() == (*row.said == '\0'));
    CHECK_THAT(refusal, Catch::Contains(row.said));
    CHECK(egress_refusal(EgressPolicy{}, row.endpoint).empty());
  }
}

TEST_CASE("a name that resolves to this machine is refused at connect, before a request is sent") {
  const test::Store store;
  const std::string port = store.endpoint().substr(store.endpoint().rfind(':'));
  // Each resolves to this machine, which its text does not show.
  for (const std::string host : {"localhost", "0x7f000001", "2130706433", "127.1"}) {
    CAPTURE(host);
    Location location = store.location();
    location.endpoint = "http://" + host + port;
    EgressPolicy egress{.anywhere = false, .hosts = {}, .own = {}};
    store.forget();
    const Status refused = Bucket(location, {.attempts = 2, .egress = &egress}).put("a", "b");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Code::kFailedPrecondition);
    CHECK_THAT(refused.error().message, Catch::Contains("allowed_storage_hosts"));
    CHECK(store.log().empty());
    egress.hosts = {host};
    const auto asked = Bucket(location, {.egress = &egress}).get("a", 1);
    REQUIRE_FALSE(asked);  // not found, or refused because the signed host differs
    CHECK_FALSE(store.log().empty());
  }
}
