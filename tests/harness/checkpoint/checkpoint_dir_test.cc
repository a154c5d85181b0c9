// A checkpoint directory is complete or absent, and damage is reported by file name.
#include "harness/src/checkpoint/checkpoint_dir.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <limits>

#include "common/base/files.h"

namespace det {
namespace {

namespace fs = std::filesystem;

struct Storage {
  TemporaryDirectory directory = TemporaryDirectory::create().value();
  const std::string& path() const { return directory.path(); }
  std::string at(const std::string& name) const { return path() + "/" + name; }

  void write(const std::string& uuid, int steps) const {
    auto writer = CheckpointWriter::create(path(), uuid).value();
    REQUIRE(writer.write("weights", std::string(1000, 'w')).has_value());
    REQUIRE(
        writer.write("metadata.json", "{\"steps_completed\": " + std::to_string(steps) + "}").has_value());
    REQUIRE(writer.commit().has_value());
  }
};

TEST_CASE("a committed checkpoint verifies and lists its files with their sizes") {
  Storage storage;
  auto writer = CheckpointWriter::create(storage.path(), "a").value();
  REQUIRE(writer.write("weights", "12345").has_value());
  const auto resources = writer.commit().value();
  CHECK(resources.at("weights") == 5);
  CHECK(resources.count("manifest.json") == 1);
  CHECK(verify_checkpoint(storage.at("a")).has_value());
}

TEST_CASE("an uncommitted checkpoint leaves no files") {
  Storage storage;
  { (void)CheckpointWriter::create(storage.path(), "a").value().write("weights", "1"); }
  CHECK(fs::is_empty(storage.path()));
}

TEST_CASE("a checkpoint is not visible before it is complete") {
  Storage storage;
  auto writer = CheckpointWriter::create(storage.path(), "a").value();
  (void)writer.write("weights", "1");
  CHECK_FALSE(path_exists(storage.at("a")));
  CHECK_FALSE(find_latest_checkpoint(storage.path()).has_value());
}

TEST_CASE("damage is detected and reported by file") {
  Storage storage;
  storage.write("a", 1);
  const std::string file = storage.at("a/weights"), manifest = storage.at("a/manifest.json");
  std::string expected;
  SECTION("a changed byte") {
    std::fstream(file).put('x');
    expected = "weights is damaged";
  }
  SECTION("a file cut short") {
    fs::resize_file(file, 999);
    expected = "weights has 999 bytes, not 1000";
  }
  SECTION("a missing file") {
    fs::remove(file);
    expected = "weights is missing";
  }
  SECTION("a cut manifest") {
    fs::resize_file(manifest, fs::file_size(manifest) / 2);
    expected = "manifest.json is damaged";
  }
  SECTION("a manifest with a path outside the directory") {
    std::ofstream(manifest) << R"({"files": {"../b": {"size": 1, "sha256": ""}}})";
    expected = "leads out of the checkpoint";
  }
  SECTION("no manifest") {
    fs::remove(manifest);
    expected = "no complete checkpoint";
  }
  const Status status = verify_checkpoint(storage.at("a"));
  REQUIRE_FALSE(status.has_value());
  CHECK_THAT(status.error().message, Catch::Contains(expected));
}

TEST_CASE("the latest checkpoint is the undamaged one with the most steps") {
  Storage storage;
  storage.write("a", 10);
  storage.write("b", 30);
  storage.write("c", 20);
  CHECK(find_latest_checkpoint(storage.path()) == storage.at("b"));
  fs::resize_file(storage.at("b/weights"), 3);
  CHECK(find_latest_checkpoint(storage.path()) == storage.at("c"));
  // The state that a kill before the final rename leaves.
  fs::rename(storage.at("c"), storage.at("c.partial"));
  CHECK(find_latest_checkpoint(storage.path()) == storage.at("a"));
}

TEST_CASE("a locked directory is not removed as abandoned") {
  Storage storage;
  auto lock = make_locked_directory(storage.at("u.1.partial")).value();
  constexpr std::int64_t kMuchLater = std::numeric_limits<std::int64_t>::max() / 2;
  remove_dead_partials(storage.path(), kMuchLater);
  CHECK(path_exists(storage.at("u.1.partial")));
  lock.reset();
  remove_dead_partials(storage.path(), kMuchLater);
  CHECK_FALSE(path_exists(storage.at("u.1.partial")));
}

TEST_CASE("code is copied without hidden files, symlinks and the storage itself") {
  Storage storage;
  const std::string model = storage.at("model");
  fs::create_directories(model + "/sub/.git");
  fs::create_directories(model + "/checkpoints/x");
  std::ofstream(model + "/a.cpp") << "a";
  std::ofstream(model + "/sub/b.h") << "b";
  std::ofstream(model + "/sub/.git/c") << "c";
  std::ofstream(model + "/checkpoints/x/big") << "d";
  fs::create_symlink("/etc/passwd", model + "/link");
  const auto files = list_files(model, model + "/checkpoints");
  CHECK(files == std::vector<std::string>{"a.cpp", "sub/b.h"});
  auto writer = CheckpointWriter::create(storage.path(), "u").value();
  REQUIRE(writer.copy(model, files, "code").has_value());
  REQUIRE(writer.commit().has_value());
  CHECK(read_file(storage.at("u/code/sub/b.h")).value() == "b");
  CHECK(verify_checkpoint(storage.at("u")).has_value());
}

}  // namespace
}  // namespace det
