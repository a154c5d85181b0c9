// A run starts only from an intact checkpoint, and an unavailable storage invalidates none.
#include "harness/src/checkpoint/checkpoint_start.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "common/base/files.h"
#include "harness/src/checkpoint/checkpoint_dir.h"

namespace det {
namespace {

namespace fs = std::filesystem;

struct StoredTrial {
  TemporaryDirectory directory = TemporaryDirectory::create().value();
  std::string storage = directory.path() + "/storage";
  TrialInfo info;
  std::vector<std::string> told;
  DistributedContext alone{RankInfo{}};

  StoredTrial() {
    info.checkpoint_dir = storage;
    REQUIRE(make_directories(storage));
    for (const char* uuid : {"a", "b", "c"}) {
      auto writer = CheckpointWriter::create(storage, uuid, {"cluster", 7, 2}).value();
      REQUIRE(writer.write("weights", "12345"));
      REQUIRE(writer.write("trial_state.json", "{}"));
      REQUIRE(writer.commit());
    }
  }
  void damage(const std::string& uuid) { std::ofstream(storage + "/" + uuid + "/weights") << "12346"; }
  /// Starts from c, then b, then a, then from the beginning.
  std::string start(const std::string& latest) {
    info.latest_checkpoint = latest;
    return agree_on_start(alone, info,
                          [&](const std::string& uuid, const std::string& reason) -> Result<std::string> {
                            told.push_back(uuid + ": " + reason.substr(reason.find_last_of('/') + 1));
                            if (uuid == "a") return "";
                            if (uuid.size() > 1) return fail(Code::kInvalidArgument, "it is another trial's");
                            return std::string(1, static_cast<char>(uuid[0] - 1));
                          });
  }
};

}  // namespace

TEST_CASE("a run starts from an intact checkpoint without a report to the master") {
  StoredTrial place;
  CHECK(place.start("c") == "c");
  CHECK(place.start("").empty());
  CHECK(place.told.empty());
}

TEST_CASE("damaged checkpoints are reported to the master until it names an intact one") {
  StoredTrial place;
  std::string why;
  SECTION("changed bytes") {
    place.damage("c");
    why = "weights is damaged: its digest is not the manifest's";
  }
  SECTION("truncated file") {
    fs::resize_file(place.storage + "/c/weights", 3);
    why = "weights has 3 bytes, not 5";
  }
  SECTION("a file is missing") {
    fs::remove(place.storage + "/c/weights");
    why = "weights is missing";
  }
  SECTION("the manifest is missing") {
    fs::remove(place.storage + "/c/manifest.json");
    why = "manifest.json is missing";
  }
  SECTION("the manifest is malformed") {
    std::ofstream(place.storage + "/c/manifest.json") << "{";
    why = "manifest.json is damaged";
  }
  SECTION("the checkpoint is missing") {
    fs::remove_all(place.storage + "/c");
    why = "c is missing";
  }
  place.damage("b");
  CHECK(place.start("c") == "a");
  REQUIRE(place.told.size() == 2);
  CHECK_THAT(place.told[0], Catch::StartsWith("c: ") && Catch::Contains(why));
  CHECK_THAT(place.told[1], Catch::StartsWith("b: "));
}

TEST_CASE("without an intact checkpoint training restarts, and another trial's checkpoint is an error") {
  StoredTrial place;
  for (const char* uuid : {"a", "b", "c"}) place.damage(uuid);
  CHECK(place.start("c").empty());
  CHECK_THROWS_WITH(place.start("another"), Catch::Contains("it is another trial's"));
}

TEST_CASE("an unavailable storage invalidates no checkpoint") {
  StoredTrial place;
  fs::rename(place.storage, place.storage + ".away");
  CHECK_THROWS_WITH(place.start("c"), Catch::Contains("is not there; is it mounted on this machine?"));
  REQUIRE(make_directories(place.storage));
  CHECK_THROWS_WITH(place.start("c"), Catch::Contains("is empty; is it mounted on this machine?"));
  CHECK(place.told.empty());
}

TEST_CASE("a checkpoint without a manifest from another program is accepted") {
  StoredTrial place;
  fs::create_directories(place.storage + "/python");
  std::ofstream(place.storage + "/python/state_dict.pth") << "x";
  CHECK(place.start("python") == "python");
}

TEST_CASE("a manifest records the cluster, trial and run") {
  StoredTrial place;
  const std::string manifest = read_file(place.storage + "/a/manifest.json").value();
  CHECK_THAT(manifest, Catch::Contains("\"cluster\": \"cluster\"") && Catch::Contains("\"trial\": 7") &&
                           Catch::Contains("\"run\": 2"));
}

}  // namespace det
