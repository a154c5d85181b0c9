// Built trials in a checkpoint storage: verified by their digest, bounded in number, never through links.
#include "agent/shared_libraries.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "common/base/files.h"
#include "common/crypto/digest.h"
#include "need.h"
#include "tests/storage/store.h"
#include "tests/storage/variables.h"

using namespace det;
using namespace det::agent;

namespace {

const std::string kKey(64, 'a');

/// A storage directory, and a library beside it.
struct Storage {
  TemporaryDirectory dir = need(TemporaryDirectory::create());
  std::string root = dir.path() + "/storage", library = dir.path() + "/model.so";

  Storage() {
    need(make_directories(root));
    need(write_file_atomic(library, "the library"));
  }
  std::string config(const std::string& type = "shared_fs", const std::string& below = "") const {
    return R"({"checkpoint_storage": {"type": ")" + type + R"(", "host_path": ")" + root +
           R"(", "storage_path": ")" + below + "\"}}";
  }
  std::unique_ptr<SharedLibraries> open() const { return SharedLibraries::of(config()); }
};

/// Returns the key of the library that is written as number `i`. The names sort against the times.
std::string key_of(std::size_t i) { return "key" + std::to_string(999 - i); }

/// Stores one more library beside those of key_of(0) to key_of(kMaxLibraries).
void check_oldest_go(const SharedLibraries& shared, const Storage& storage) {
  need(shared.put("last", storage.library));
  const std::string digest = sha256_hex("the library");
  CHECK_FALSE(shared.get(key_of(0), digest));
  CHECK_FALSE(shared.get(key_of(1), digest));
  CHECK(shared.get(key_of(2), digest));
  CHECK(shared.get(key_of(SharedLibraries::kMaxLibraries), digest));
  CHECK(shared.get("last", digest));
}

}  // namespace

TEST_CASE("a stored library is returned for its digest only", "[shared_libraries]") {
  const Storage storage;
  const auto shared = storage.open();
  CHECK(shared->get(kKey, sha256_hex("the library")).error().code == Code::kNotFound);
  need(shared->put(kKey, storage.library));
  CHECK(need(shared->get(kKey, sha256_hex("the library"))) == "the library");
  CHECK(shared->get(kKey, sha256_hex("another")).error().code == Code::kDataLoss);
  need(write_file_atomic(storage.root + "/det-builds/" + kKey + ".so", "of a user"));
  CHECK(shared->get(kKey, sha256_hex("the library")).error().code == Code::kDataLoss);
  // The next build replaces it.
  need(shared->put(kKey, storage.library));
  CHECK(need(shared->get(kKey, sha256_hex("the library"))) == "the library");
}

TEST_CASE("a directory holds libraries only if agents share it", "[shared_libraries]") {
  const Storage storage;
  CHECK_FALSE(SharedLibraries::of(storage.config("s3")));
  CHECK_FALSE(SharedLibraries::of(storage.config("directory")));
  CHECK_FALSE(SharedLibraries::of("{}"));
  CHECK_FALSE(SharedLibraries::of("no JSON"));
  const auto absent = SharedLibraries::of(storage.config("shared_fs", "not/there"));
  REQUIRE(absent);
  CHECK(absent->put(kKey, storage.library).error().code == Code::kFailedPrecondition);
}

TEST_CASE("links of users in the storage are not followed", "[shared_libraries]") {
  const Storage storage;
  const std::string elsewhere = storage.dir.path() + "/elsewhere";
  need(make_directories(elsewhere));
  REQUIRE(::symlink(elsewhere.c_str(), (storage.root + "/det-builds").c_str()) == 0);
  CHECK_FALSE(storage.open()->put(kKey, storage.library));
  CHECK(std::filesystem::is_empty(elsewhere));
  need(remove_tree(storage.root + "/det-builds"));
  need(make_directories(storage.root + "/det-builds"));
  REQUIRE(::symlink(storage.library.c_str(), (storage.root + "/det-builds/" + kKey + ".so").c_str()) == 0);
  CHECK_FALSE(storage.open()->get(kKey, sha256_hex("the library")));
}

TEST_CASE("a storage keeps the newest libraries", "[shared_libraries]") {
  const Storage storage;
  const auto shared = storage.open();
  const auto begin = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (std::size_t i = 0; i <= SharedLibraries::kMaxLibraries; ++i) {
    const std::string key = key_of(i);
    need(shared->put(key, storage.library));
    std::filesystem::last_write_time(storage.root + "/det-builds/" + key + ".so",
                                     begin + std::chrono::seconds(i));
  }
  check_oldest_go(*shared, storage);
}

TEST_CASE("agents share libraries through a bucket whose keys are in the configuration",
          "[shared_libraries]") {
  const Storage storage;
  const test::Store store;
  const auto open = [&](const Json& changes) {
    Json section = store.config();
    section.update(changes);
    return SharedLibraries::of(Json{{"checkpoint_storage", section}}.dump());
  };
  const auto shared = open(Json::object());
  REQUIRE(shared);
  const std::string digest = sha256_hex("the library");
  CHECK(shared->get(kKey, digest).error().code == Code::kNotFound);
  need(shared->put(kKey, storage.library));
  CHECK(need(shared->get(kKey, digest)) == "the library");
  need(write_file_atomic(store.file("det-builds/" + kKey + ".so"), "of a user"));
  CHECK(shared->get(kKey, digest).error().code == Code::kDataLoss);
  CHECK(open({{"secret_key", "wrong"}})->get(kKey, digest).error().code == Code::kPermissionDenied);

  // The agent's own credentials are not used for a bucket of a user.
  const test::Variables variables(
      {{"AWS_ACCESS_KEY_ID", "AKIDTEST"}, {"AWS_SECRET_ACCESS_KEY", "test/secret+key"}});
  CHECK_FALSE(open({{"access_key", ""}, {"secret_key", ""}}));
  CHECK_FALSE(open({{"access_key", "****"}, {"secret_key", "****"}}));
  CHECK_FALSE(open({{"secret_key", ""}}));
  CHECK_FALSE(open({{"bucket", "?"}}));
}

TEST_CASE("a bucket keeps the newest libraries", "[shared_libraries]") {
  const Storage storage;
  const test::Store store;
  const auto shared = SharedLibraries::of(Json{{"checkpoint_storage", store.config()}}.dump());
  const auto begin = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (std::size_t i = 0; i <= SharedLibraries::kMaxLibraries; ++i) {
    const std::string file = store.file("det-builds/" + key_of(i) + ".so");
    need(write_file_atomic(file, "the library"));
    std::filesystem::last_write_time(file, begin + std::chrono::seconds(i));
  }
  check_oldest_go(*shared, storage);
}
