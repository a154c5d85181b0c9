// Owns the tests of checkpoints in a bucket: there whole or not at all, and gone without a trace.
#include "base/digest.h"
#include "storage/bucket_checkpoints.h"
#include "tests/storage/store.h"

namespace det::storage {
namespace {

using test::Store;

constexpr const char* kUuid = "00000000-0000-4000-8000-000000000001";
const Owner kOwner{"cluster", TrialId(7), 2};

/// A store, its bucket, and a checkpoint's files on disk.
struct Place {
  Store store;
  Bucket bucket = store.bucket();
  TemporaryDirectory disk = TemporaryDirectory::create("checkpoint").value();
  std::string files = disk.path() + "/files", back = disk.path() + "/back";
  std::vector<std::string> names{"metadata.json", "code/model.cpp", "weights"};

  Place() {
    REQUIRE(make_directories(files + "/code"));
    for (const std::string& name : names) REQUIRE(write_file_atomic(files + "/" + name, text(name)));
  }
  static std::string text(const std::string& name) {
    return name == "weights" ? std::string(200'000, 'w') : "of " + name;
  }
  std::string manifest() const {
    Json content{{"format", 2},
                 {"owner", {{"cluster", "cluster"}, {"trial", 7}, {"run", 2}}},
                 {"files", Json::object()}};
    for (const std::string& name : names) {
      const std::string bytes = text(name);
      content["files"][name] = {{"size", bytes.size()}, {"sha256", sha256_hex(bytes)}};
    }
    return dump_json(content);
  }
  void save() const {
    REQUIRE(begin_upload(bucket, kUuid, kOwner));
    REQUIRE(upload_files(bucket, kUuid, files, names));
    REQUIRE(finish_upload(bucket, kUuid, manifest()));
  }
  std::string file(const std::string& name) const { return store.file(std::string(kUuid) + "/" + name); }
};

}  // namespace

TEST_CASE("a checkpoint comes back as it was saved, and then is found with its owner") {
  Place place;
  place.save();
  REQUIRE(fetch(place.bucket, kUuid, place.back));
  for (const std::string& name : place.names)
    CHECK(read_file(place.back + "/" + name).value() == Place::text(name));
  CHECK(read_file(place.back + "/manifest.json").value() == place.manifest());
  CHECK(list_checkpoints(place.bucket).value() == std::vector<std::string>{kUuid});
  const Done found = perform(place.bucket, {}, true);
  CHECK(found.error.empty());
  CHECK(found.found == std::vector<Found>{{kUuid, kOwner}});
}

TEST_CASE("the manifest is the last that is written, and without it there is no checkpoint") {
  Place place;
  place.store.forget();
  REQUIRE(begin_upload(place.bucket, kUuid, kOwner));
  REQUIRE(upload_files(place.bucket, kUuid, place.files, place.names));
  CHECK(list_checkpoints(place.bucket).value().empty());
  CHECK(fetch(place.bucket, kUuid, place.back).error().code == Code::kDataLoss);
  CHECK_FALSE(path_exists(place.back));
  // The cluster finds what died in the middle, and whose it was.
  CHECK(perform(place.bucket, {}, true).found == std::vector<Found>{{kUuid, kOwner}});
  CHECK(perform(place.bucket, {kUuid}, false).removed == std::vector<std::string>{kUuid});
  CHECK(place.store.count() == 0);
}

TEST_CASE("a checkpoint that is damaged is not fetched") {
  Place place;
  place.save();
  std::string part;
  SECTION("too short") {
    std::filesystem::resize_file(place.file("weights"), 100'000);
    part = "weights";
  }
  SECTION("too long") {
    REQUIRE(write_file_atomic(place.file("code/model.cpp"), std::string(100, 'x')));
    part = "code/model.cpp has not the 17 bytes of its manifest";
  }
  SECTION("other bytes") {
    REQUIRE(write_file_atomic(place.file("code/model.cpp"), "Of code/model.cpp"));
    part = "code/model.cpp is damaged: its digest is not the manifest's";
  }
  SECTION("a file is missing") {
    std::filesystem::remove(place.file("weights"));
    part = "weights at ";
  }
  SECTION("no manifest") {
    REQUIRE(write_file_atomic(place.file("manifest.json"), "{"));
    part = "manifest.json is damaged";
  }
  SECTION("out of the directory") {
    REQUIRE(write_file_atomic(place.file("manifest.json"), R"({"files": {"../x": {"size": 1}}})"));
    part = "leads out of the checkpoint";
  }
  const Status done = fetch(place.bucket, kUuid, place.back);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Code::kDataLoss);
  CHECK_THAT(done.error().message, Catch::Contains(part));
  CHECK_FALSE(path_exists(place.back));
  std::size_t left = 0;
  for (const auto& entry : std::filesystem::directory_iterator(place.disk.path()))
    left += entry.path() != place.files;
  CHECK(left == 0);
}

TEST_CASE("an empty bucket says nothing of a checkpoint, another one says that it is missing") {
  Place place;
  CHECK(fetch(place.bucket, kUuid, place.back).error().code == Code::kUnavailable);
  REQUIRE(place.bucket.put("something", "else"));
  CHECK(fetch(place.bucket, kUuid, place.back).error().code == Code::kNotFound);
}

TEST_CASE("what another program wrote is fetched as it is") {
  Place place;
  REQUIRE(place.bucket.put(std::string(kUuid) + "/state_dict.pth", "torch"));
  REQUIRE(place.bucket.put(std::string(kUuid) + "/code/a.py", "pass"));
  REQUIRE(fetch(place.bucket, kUuid, place.back));
  CHECK(read_file(place.back + "/code/a.py").value() == "pass");
}

TEST_CASE("a removal that stopped anywhere goes on from there, and leaves what is not its own") {
  Place place;
  place.save();
  REQUIRE(place.bucket.put("00000000-0000-4000-8000-000000000002/weights", "another's"));
  REQUIRE(place.bucket.put(std::string(kUuid) + "-more/weights", "somebody else's"));
  place.store.order(Json::array({{{"method", GENERATE("PUT", "DELETE", "POST", "GET")},
                                  {"kind", "403"},
                                  {"count", 1},
                                  {"after", GENERATE(0, 1)}}}));
  const Done stopped = perform(place.bucket, {kUuid}, false);
  place.store.order(Json::array());
  // Whatever is left, the cluster finds it by its owner; or all is gone.
  const auto found = perform(place.bucket, {}, true).found;
  const bool there = std::find(found.begin(), found.end(), Found{kUuid, kOwner}) != found.end();
  CHECK((stopped.error.empty() || there || place.store.count() == 2));
  CHECK(perform(place.bucket, {kUuid}, false).error.empty());
  CHECK(place.store.count() == 2);
  const Done again = perform(place.bucket, {kUuid, "../../etc"}, false);
  CHECK(again.absent == std::vector<std::string>{kUuid, "../../etc"});
}

TEST_CASE("what another removal takes between the listing and the look is no error") {
  Place place;
  place.save();
  place.store.order(
      Json::array({{{"method", "GET"}, {"match", "/manifest.json"}, {"kind", "404"}, {"count", 1}}}));
  CHECK(perform(place.bucket, {kUuid}, false).error.empty());
  place.store.order(Json::array());
  CHECK(perform(place.bucket, {kUuid}, false).error.empty());
  CHECK(place.store.count() == 0);
}

}  // namespace det::storage
