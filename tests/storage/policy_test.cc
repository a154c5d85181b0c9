// Storages that experiments may name.
#include "common/storage/policy.h"

#include <catch2/catch.hpp>

namespace det::storage {
namespace {

Json shared(const std::string& path, const std::string& below = "") {
  Json storage{{"type", "shared_fs"}, {"host_path", path}};
  if (!below.empty()) storage["storage_path"] = below;
  return storage;
}
Json directory(const std::string& path) { return {{"type", "directory"}, {"container_path", path}}; }
Json bucket(const std::string& name, const std::string& prefix = "", const std::string& endpoint = "") {
  Json storage{{"type", "s3"}, {"bucket", name}};
  if (!prefix.empty()) storage["prefix"] = prefix;
  if (!endpoint.empty()) storage["endpoint_url"] = endpoint;
  return storage;
}
Json named(const std::string& name, Json storage) {
  storage["name"] = name;
  return storage;
}

StoragePolicy policy() {
  return {
      .own = shared("/var/det/checkpoints"),
      .data_dir = "/var/det",
      .directories = {"/shared", "/shared/deep/"},
      .buckets = {parse_bucket("s3://models/team").value(), parse_bucket("https://minio:9000/lab").value()},
      .named = {{.name = "archive",
                 .location = shared("/archive"),
                 .access_key = {},
                 .secret_key = {},
                 .per_workspace = true},
                {.name = "cold",
                 .location = bucket("cold", "det", "https://store"),
                 .access_key = "key",
                 .secret_key = "secret",
                 .per_workspace = false}}};
}

TEST_CASE("a policy allows the storages of administrators and what lies in them") {
  const StoragePolicy all = policy();
  for (const Json& storage :
       {shared("/var/det/checkpoints"), shared("/var/det/checkpoints", "mine"), shared("/shared"),
        shared("/shared/x/"), shared("/shared", "/shared/y"), directory("/shared/z"),
        bucket("models", "team"), bucket("models", "team/x"), bucket("lab", "", "https://MINIO:9000/"),
        bucket("cold", "det/x", "https://store")}) {
    INFO(storage.dump());
    CHECK(all.check(storage));
  }
}

TEST_CASE("a policy refuses every other storage and says what is allowed") {
  const StoragePolicy all = policy();
  for (const Json& storage :
       {shared("/etc"), shared("/"), shared("/shared2"), shared("/shared/../etc"),
        shared("/shared", "../etc"), shared("/var/det"), directory("/var/det/postgres"),
        shared("/var/det/checkpoints/../postgres"), shared("/archive"), shared("/archive/workspace-1"),
        directory("relative"), bucket("models"), bucket("models", "teams"), bucket("models", "team/../x"),
        bucket("models", "team", "https://other"), bucket("lab"), bucket("cold", "det")}) {
    INFO(storage.dump());
    const Status refused = all.check(storage);
    REQUIRE_FALSE(refused);
    if (refused.error().code == Code::kFailedPrecondition)
      CHECK_THAT(refused.error().message, Catch::Contains("archive, cold") && Catch::Contains("/shared") &&
                                              Catch::Contains("s3://models/team"));
  }
  CHECK_FALSE(StoragePolicy{}.check(shared("/tmp")));
}

TEST_CASE("nothing in the master's data directory is allowed, whatever directory contains it") {
  StoragePolicy all = policy();
  all.directories = {"/var"};
  CHECK(all.check(shared("/var/other")));
  CHECK(all.check(shared("/var/det/checkpoints/x")));
  CHECK_FALSE(all.check(shared("/var/det/postgres")));
  CHECK_FALSE(all.check(shared("/var/det")));
}

TEST_CASE("a root is divided at the longest directory of an administrator") {
  const StoragePolicy all = policy();
  CHECK(all.root_of(shared("/shared/deep/a/b")).value() == Root{"/shared/deep", "a/b"});
  CHECK(all.root_of(shared("/shared/x")).value() == Root{"/shared", "x"});
  CHECK(all.root_of(shared("/shared")).value() == Root{"/shared", ""});
}

TEST_CASE("a named storage has one directory for each workspace, reached by its name only") {
  const StoragePolicy all = policy();
  const Json section = all.section_of("archive", 3).value();
  CHECK(section.dump() ==
        R"({"type":"shared_fs","host_path":"/archive","storage_path":"workspace-3","name":"archive"})");
  CHECK(all.root_of(section).value() == Root{"/archive", "workspace-3"});
  CHECK_FALSE(all.check(named("archive", shared("/shared"))));
  CHECK_FALSE(all.check(named("gone", shared("/archive"))));
  CHECK_THAT(all.section_of("archiv", 3).error().message, Catch::Contains("did you mean \"archive\"?"));
  CHECK_THAT(all.section_of("x", 3).error().message, Catch::Contains("archive, cold"));
}

TEST_CASE("keys of a named storage reach the bucket and the training process, and no section") {
  const StoragePolicy all = policy();
  const Json section = all.section_of("cold", 1).value();
  CHECK_FALSE(section.contains("access_key"));
  CHECK(all.bucket_of(section)->access_key == "key");
  CHECK(all.bucket_of(section)->secret_key == "secret");
  const Json sent = all.for_process(section);
  CHECK(sent.at("secret_key") == "secret");
  CHECK_FALSE(sent.contains("name"));
  Json own_keys = section;
  own_keys["access_key"] = own_keys["secret_key"] = "mine";
  CHECK(all.for_process(own_keys).at("access_key") == "mine");
  // The keys of one storage do not sign for another.
  CHECK(all.for_process(bucket("models", "team")).contains("access_key") == false);
}

TEST_CASE("buckets are named by address") {
  CHECK(parse_bucket("s3://abc")->bucket == "abc");
  CHECK(parse_bucket("s3://abc/x/y/")->prefix == "x/y");
  CHECK(parse_bucket("http://h:9/abc/x")->endpoint == "http://h:9");
  for (const char* bad :
       {"", "abc", "s3://", "s3:///x", "ftp://h/abc", "https://h", "https://u@h/abc", "s3://a"}) {
    INFO(bad);
    CHECK_FALSE(parse_bucket(bad));
  }
}

}  // namespace
}  // namespace det::storage
