// Checkpoints in a bucket are complete or absent, and a deleted one leaves no objects.
#include "common/crypto/digest.h"
#include "common/storage/bucket_checkpoints.h"
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

TEST_CASE("a saved checkpoint is fetched unchanged and found with its owner") {
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

TEST_CASE("a target that is not empty is refused before the transfer, and slashes at its end are ignored") {
  Place place;
  place.save();
  REQUIRE(make_directories(place.back));
  REQUIRE(fetch(place.bucket, kUuid, place.back + "/"));
  CHECK(read_file(place.back + "/manifest.json").value() == place.manifest());
  // Not even the manifest is read.
  REQUIRE(write_file_atomic(place.file("manifest.json"), "{"));
  CHECK(fetch(place.bucket, kUuid, place.back).error().code == Code::kFailedPrecondition);
}

TEST_CASE("the manifest is written last, and without it there is no checkpoint") {
  Place place;
  place.store.forget();
  REQUIRE(begin_upload(place.bucket, kUuid, kOwner));
  REQUIRE(upload_files(place.bucket, kUuid, place.files, place.names));
  CHECK(list_checkpoints(place.bucket).value().empty());
  CHECK(fetch(place.bucket, kUuid, place.back).error().code == Code::kDataLoss);
  CHECK_FALSE(path_exists(place.back));
  // Reconciliation finds the incomplete checkpoint and its owner.
  CHECK(perform(place.bucket, {}, true).found == std::vector<Found>{{kUuid, kOwner}});
  CHECK(perform(place.bucket, {kUuid}, false).removed == std::vector<std::string>{kUuid});
  CHECK(place.store.count() == 0);
}

TEST_CASE("a damaged checkpoint is not fetched") {
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
  SECTION("changed bytes") {
    REQUIRE(write_file_atomic(place.file("code/model.cpp"), "Of code/model.cpp"));
    part = "code/model.cpp is damaged: its digest is not the manifest's";
  }
  SECTION("a file is missing") {
    std::filesystem::remove(place.file("weights"));
    part = "weights at ";
  }
  SECTION("the manifest is missing") {
    REQUIRE(write_file_atomic(place.file("manifest.json"), "{"));
    part = "manifest.json is damaged";
  }
  SECTION("a path leads out of the directory") {
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

TEST_CASE("a checkpoint is unavailable in an empty bucket and not found in any other") {
  Place place;
  CHECK(fetch(place.bucket, kUuid, place.back).error().code == Code::kUnavailable);
  REQUIRE(place.bucket.put("something", "else"));
  CHECK(fetch(place.bucket, kUuid, place.back).error().code == Code::kNotFound);
}

TEST_CASE("a checkpoint without a manifest from another program is fetched unchanged") {
  Place place;
  REQUIRE(place.bucket.put(std::string(kUuid) + "/state_dict.pth", "torch"));
  REQUIRE(place.bucket.put(std::string(kUuid) + "/code/a.py", "pass"));
  REQUIRE(fetch(place.bucket, kUuid, place.back));
  CHECK(read_file(place.back + "/code/a.py").value() == "pass");
}

TEST_CASE("media in a bucket are removed with their experiment, and no others are") {
  Place place;
  const std::string cluster = "00000000-0000-4000-8000-0000000000aa";
  const std::string mine = media_name(cluster, ExperimentId(1)),
                    other = media_name(cluster, ExperimentId(12));
  for (const std::string& name : {mine, other})
    REQUIRE(place.bucket.put(name + "/trial/1/digest", "content"));
  const Done done = perform(place.bucket, {mine, cluster + "/media/experiment/"}, false);
  CHECK(done.error.empty());
  CHECK(done.removed == std::vector<std::string>{mine});
  CHECK(place.store.count() == 1);
  CHECK(place.bucket.get(other + "/trial/1/digest", 100).value() == "content");
  CHECK(perform(place.bucket, {mine}, false).absent == std::vector<std::string>{mine});
}

TEST_CASE("an interrupted removal can be resumed and leaves foreign objects") {
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
  // Either the owner of the remaining objects is still found, or all of them are gone.
  const auto found = perform(place.bucket, {}, true).found;
  const bool there = std::find(found.begin(), found.end(), Found{kUuid, kOwner}) != found.end();
  CHECK((stopped.error.empty() || there || place.store.count() == 2));
  CHECK(perform(place.bucket, {kUuid}, false).error.empty());
  CHECK(place.store.count() == 2);
  const Done again = perform(place.bucket, {kUuid, "../../etc"}, false);
  CHECK(again.absent == std::vector<std::string>{kUuid, "../../etc"});
}

TEST_CASE("an object removed concurrently after the listing is no error") {
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
