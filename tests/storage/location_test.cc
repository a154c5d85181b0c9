#include "common/storage/location.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/storage/variables.h"

namespace det::storage {
TEST_CASE("keys come from the configuration, then from the environment, never from a mask") {
  const test::Variables variables({{"AWS_ACCESS_KEY_ID", "env-key"},
                                   {"AWS_SECRET_ACCESS_KEY", "env-secret"},
                                   {"AWS_SESSION_TOKEN", "env-token"},
                                   {"AWS_REGION", "eu-north-1"},
                                   {"AWS_DEFAULT_REGION", "us-west-2"}});
  const auto own =
      read_location({{"type", "s3"}, {"bucket", "abc"}, {"access_key", "k"}, {"secret_key", "s"}});
  REQUIRE(own);
  CHECK((own->access_key == "k" && own->secret_key == "s" && own->session_token.empty() &&
         own->region == "eu-north-1"));
  const auto masked =
      read_location({{"type", "s3"}, {"bucket", "abc"}, {"access_key", "****"}, {"secret_key", "****"}});
  REQUIRE(masked);
  CHECK((masked->access_key == "env-key" && masked->secret_key == "env-secret" &&
         masked->session_token == "env-token"));
}

TEST_CASE("leading and trailing slashes of a prefix are ignored") {
  for (const char* prefix : {"a/b", "/a/b", "a/b/", "//a/b//"}) {
    const auto at = read_location(
        {{"type", "s3"}, {"bucket", "abc"}, {"prefix", prefix}, {"endpoint_url", "http://h:9000/"}});
    REQUIRE(at);
    CHECK(at->name() == "s3://abc/a/b");
    CHECK(at->endpoint == "http://h:9000");
  }
  CHECK(read_location({{"type", "s3"}, {"bucket", "abc"}, {"prefix", "/"}})->name() == "s3://abc");
  CHECK(Location{.bucket = "abc", .prefix = "/a/"}.name() == "s3://abc/a");
}

TEST_CASE("an endpoint is a scheme, a host and a port only") {
  for (const char* good :
       {"http://localhost:9000", "https://s3.example.org", "https://[::1]:443", "https://h/"})
    CHECK(check_endpoint(good).empty());
  for (const char* bad : {"", "h", "ftp://h", "http://", "http://u:p@h", "http://h/path", "http://h?x",
                          "http://h#f", "http://h h"})
    CHECK_FALSE(check_endpoint(bad).empty());
  for (const char* bad : {"", "ab", "a/b", "a b", "../x",
                          "b\xc3\xa4"
                          "b"})
    CHECK_FALSE(check_bucket_name(bad).empty());
  CHECK(location_of_url("https://storage.googleapis.com/my-bucket/")->bucket == "my-bucket");
  CHECK_FALSE(location_of_url("my-bucket"));
}

}  // namespace det::storage
