// The client of buckets, against a store that checks signatures and injects faults (s3_server.py).
#include "common/storage/bucket.h"

#include "tests/storage/store.h"

namespace det::storage {
namespace {

using test::Store;

std::string content_of(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>((i * 2654435761u) >> 13);
  return text;
}

struct Files {
  TemporaryDirectory directory = TemporaryDirectory::create("files").value();
  std::string make(const std::string& name, const std::string& content) const {
    const std::string path = directory.path() + "/" + name;
    REQUIRE(write_file_atomic(path, content));
    return path;
  }
};

const char* const kOddKeys[] = {
    "plain",      "with space",   "a+b=c&d",    "per%cent", "q?m#h", "\xc3\xa4\xe2\x82\xac",
    "~tilde_-.x", "deep/er/file", "'quote\"<>", "(1)*!"};

}  // namespace

TEST_CASE("objects with any name can be put, fetched, listed page by page and removed") {
  const Store store;
  const Bucket bucket = store.bucket();
  std::vector<std::string> keys;
  for (const char* key : kOddKeys) {
    REQUIRE(bucket.put(key, std::string("of ") + key));
    keys.emplace_back(key);
  }
  for (const std::string& key : keys) CHECK(bucket.get(key, 100).value() == "of " + key);
  CHECK(bucket.get_range("plain", 3, 5).value() == "plain");
  auto listing = bucket.list("", false);
  REQUIRE(listing);
  std::vector<std::string> listed;
  for (const Object& object : listing->objects) listed.push_back(object.key);
  std::sort(keys.begin(), keys.end());
  CHECK(listed == keys);
  const auto flat = bucket.list("", true);
  REQUIRE(flat);
  CHECK(flat->folders == std::vector<std::string>{"deep/"});
  CHECK(flat->objects.size() == keys.size() - 1);
  REQUIRE(bucket.remove(keys));
  CHECK(store.count() == 0);
  CHECK(bucket.remove(keys));  // removal is idempotent
  CHECK(bucket.get("plain", 10).error().code == Code::kNotFound);
}

TEST_CASE("large files transfer in parts, small and empty ones in one request") {
  const Store store;
  const Bucket bucket = store.bucket();
  const Files files;
  std::map<std::string, std::string> sent;
  std::vector<Bucket::Wanted> wanted;
  const std::map<std::string, std::size_t> sizes{
      {"empty", 0}, {"one", 1}, {"part", 1 << 16}, {"more", (1 << 16) + 1}, {"large", 700'001}};
  for (const auto& [name, size] : sizes) {
    sent["d/" + name] = files.make(name, content_of(size));
    wanted.push_back(
        {"d/" + name, files.directory.path() + "/back/" + name, static_cast<std::int64_t>(size)});
  }
  store.forget();
  REQUIRE(bucket.put_files(sent));
  const auto log = store.log();
  CHECK(std::count_if(log.begin(), log.end(),
                      [](const auto& line) { return line.find("partNumber") != line.npos; }) == 2 + 11);
  CHECK(store.open_uploads() == 0);
  REQUIRE(bucket.get_files(wanted));
  for (const auto& [name, size] : sizes) {
    INFO(name);
    CHECK(read_file(files.directory.path() + "/back/" + name).value() == content_of(size));
  }
}

TEST_CASE("transient failures of every kind are retried in every request") {
  const Store store;
  const Bucket bucket = store.bucket();
  const Files files;
  const std::string path = files.make("large", content_of(300'000));
  const std::string kind = GENERATE("500", "slow_down", "cut", "slow");
  INFO(kind);
  store.order(Json::array({{{"method", "POST"}, {"kind", kind}, {"count", 1}},
                           {{"method", "PUT"}, {"kind", kind}, {"count", 3}},
                           {{"method", "GET"}, {"kind", kind}, {"count", 2}},
                           {{"method", "POST"}, {"match", "uploadId"}, {"kind", kind}, {"count", 1}}}));
  REQUIRE(bucket.put_files({{"large", path}}));
  REQUIRE(bucket.get_files({{"large", path + ".back", 300'000}}));
  CHECK(read_file(path + ".back").value() == content_of(300'000));
}

TEST_CASE("a truncated answer is fetched again") {
  const Store store;
  const Bucket bucket = store.bucket();
  const Files files;
  const std::string path = files.make("large", content_of(200'000));
  REQUIRE(bucket.put_files({{"large", path}}));
  store.order(Json::array({{{"method", "GET"}, {"kind", "truncate"}, {"count", 3}}}));
  REQUIRE(bucket.get_files({{"large", path + ".back", 200'000}}));
  CHECK(read_file(path + ".back").value() == content_of(200'000));
}

TEST_CASE("a multipart upload completes once, even if the reply is lost or reports an error") {
  const Store store;
  const Bucket bucket = store.bucket();
  const Files files;
  const std::string path = files.make("large", content_of(200'000)), kind = GENERATE("lost", "late");
  INFO(kind);
  store.order(Json::array({{{"method", "POST"}, {"match", "uploadId"}, {"kind", kind}, {"count", 1}}}));
  REQUIRE(bucket.put_files({{"large", path}}));
  CHECK(read_file(store.file("large")).value() == content_of(200'000));
  CHECK(store.open_uploads() == 0);
}

TEST_CASE("a failed upload is aborted, and its error names the object, the store and the reason") {
  const Store store;
  const Bucket bucket = store.bucket();
  const Files files;
  const std::string path = files.make("large", content_of(300'000));
  store.order(Json::array({{{"method", "PUT"}, {"match", "partNumber=3"}, {"kind", "500"}, {"count", 99}}}));
  const Status done = bucket.put_files({{"large", path}});
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Code::kUnavailable);
  CHECK(done.error().message == "s3://checkpoints/of tests/large at " + store.endpoint() +
                                    ": the store is not ready (InternalError); tried 4 times");
  CHECK(store.open_uploads() == 0);
  CHECK(store.count() == 0);
}

TEST_CASE("abandoned uploads under a prefix are aborted") {
  const Store store;
  const Bucket bucket = store.bucket();
  const Files files;
  const std::string path = files.make("large", content_of(300'000));
  // Neither the parts nor the abort of the upload succeed.
  store.order(Json::array({{{"method", "PUT"}, {"kind", "403"}, {"count", 99}},
                           {{"method", "DELETE"}, {"kind", "403"}, {"count", 99}}}));
  REQUIRE_FALSE(bucket.put_files({{"here/large", path}}));
  store.order(Json::array());
  REQUIRE(store.open_uploads() == 1);
  REQUIRE(bucket.abort_uploads("there/"));
  CHECK(store.open_uploads() == 1);
  REQUIRE(bucket.abort_uploads("here/"));
  CHECK(store.open_uploads() == 0);
}

TEST_CASE("a permanent error is reported without a retry, with a remedy") {
  const Store store;
  storage::Location location = store.location();
  Code code{};
  std::string part, kind;
  SECTION("wrong secret key") {
    location.secret_key = "x", code = Code::kPermissionDenied, part = "SignatureDoesNotMatch";
  }
  SECTION("wrong access key") {
    location.access_key = "x", code = Code::kPermissionDenied, part = "check the keys";
  }
  SECTION("no keys") {
    location.access_key = "", code = Code::kPermissionDenied, part = "give access_key and secret_key";
  }
  SECTION("no such bucket") {
    location.bucket = "none", code = Code::kFailedPrecondition, part = "there is no bucket \"none\"; make it";
  }
  SECTION("wrong region") {
    location.region = "eu-9", code = Code::kFailedPrecondition, part = "set AWS_REGION";
  }
  SECTION("redirect to another region") {
    kind = "region", code = Code::kFailedPrecondition, part = "set AWS_REGION to eu-west-9";
  }
  SECTION("store full") { kind = "507", code = Code::kResourceExhausted, part = "the store is full"; }
  if (!kind.empty()) store.order(Json::array({{{"kind", kind}, {"count", 1}}}));
  store.forget();
  const Status done = Store::bucket(location).put("k", "v");
  REQUIRE_FALSE(done);
  CHECK(done.error().code == code);
  CHECK_THAT(done.error().message, Catch::Contains(part) && Catch::Contains("/k at http://127.0.0.1:"));
  CHECK_THAT(done.error().message, !Catch::Contains("test/secret+key"));
  CHECK(store.log().size() == 1);
}

TEST_CASE("an unreachable store is unavailable, and an answer that is not S3's is data loss") {
  const Store store;
  storage::Location location = store.location();
  location.endpoint = "http://127.0.0.1:1";
  const Status away = Store::bucket(location).check();
  REQUIRE_FALSE(away);
  CHECK(away.error().code == Code::kUnavailable);
  store.order(Json::array({{{"method", "GET"}, {"kind", "nonsense"}, {"count", 9}}}));
  CHECK(store.bucket().list("", false).error().code == Code::kDataLoss);
}

namespace {

std::optional<MonoTime> left_at;

/// A bucket of a process that can be terminated: a call then waits at most 0.5 s for a stalled store.
Bucket leavers(const Store& store) {
  left_at.reset();
  return Bucket(store.location(), {.part = 1 << 16,
                                   .attempts = 4,
                                   .pause = std::chrono::milliseconds(1),
                                   .stall_timeout = std::chrono::seconds(30),
                                   .terminating_since = [] { return left_at; },
                                   .terminating_patience = std::chrono::milliseconds(500)});
}

}  // namespace

TEST_CASE("a terminating process abandons a stalled store and sends it no further requests") {
  const Store store;
  const Bucket bucket = leavers(store);
  const Files files;
  const std::string large = files.make("large", content_of(300'000));
  store.order(Json::array({{{"method", "PUT"}, {"kind", "slow"}, {"seconds", 60}, {"count", 9}}}));
  left_at = mono_now();
  const MonoTime begun = mono_now();
  const Status done = bucket.put_files({{"large", large}});
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Code::kUnavailable);
  CHECK_THAT(done.error().message, Catch::Contains("large"));
  store.forget();
  CHECK(bucket.remove({"large"}).error().code == Code::kUnavailable);
  CHECK(store.log().empty());
  CHECK(mono_now() - begun < std::chrono::seconds(20));  // less than the 30 s of a stall, four times
}

TEST_CASE("a terminating process still completes calls to a responsive store, with retries") {
  const Store store;
  const Bucket bucket = leavers(store);
  left_at = mono_now() + std::chrono::hours(-1);  // long before the first call
  REQUIRE(bucket.put("small", "x"));
  store.order(Json::array({{{"method", "PUT"}, {"kind", "500"}, {"count", 3}}}));
  REQUIRE(bucket.put("small", "y"));
  CHECK(bucket.get("small", 10).value() == "y");
}

TEST_CASE("without bulk deletion, objects are deleted one by one") {
  const Store store;
  const Bucket bucket = store.bucket();
  for (const char* key : {"a", "b", "c"}) REQUIRE(bucket.put(key, "x"));
  store.order(Json::array({{{"method", "POST"}, {"kind", GENERATE("501", "400")}, {"count", 1}}}));
  REQUIRE(bucket.remove({"a", "b", "c"}));
  CHECK(store.count() == 0);
}

TEST_CASE("a check leaves no objects and reports a missing permission") {
  const Store store;
  REQUIRE(store.bucket().check());
  CHECK(store.count() == 0);
  const std::string method = GENERATE("PUT", "GET", "DELETE");
  store.order(Json::array({{{"method", method}, {"kind", "403"}, {"count", 1}}}));
  const Status done = store.bucket().check();
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Code::kPermissionDenied);
}

}  // namespace det::storage
