// Files beside checkpoints: creation, listing, and removal of media.
#include "common/storage/file_tree.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "common/base/files.h"
#include "common/storage/work.h"

namespace det::storage {
namespace {

const std::string kTreeCluster = "0d9a3c6e-52c4-4d0e-9a55-0000000000aa";

struct TreePlace {
  TemporaryDirectory directory = TemporaryDirectory::create("tree").value();
  std::string root = directory.path() + "/storage", outside = directory.path() + "/outside";
  TreePlace() {
    REQUIRE(make_directories(root));
    REQUIRE(make_directories(outside));
  }
  PinnedRoot open() const { return PinnedRoot::open({root}).value(); }
};

TEST_CASE("a written file is complete, and replaces an older one") {
  const TreePlace place;
  for (const char* content : {"first", "second"}) {
    const auto directory = create_directories(place.open(), "a/b");
    REQUIRE(directory);
    REQUIRE(write_file(*directory, "file", content));
  }
  CHECK(read_file(place.root + "/a/b/file").value() == "second");
  const auto files = list_files(place.open(), 10);
  REQUIRE(files);
  REQUIRE(files->size() == 1);
  CHECK(files->front().path == "a/b/file");
  CHECK(files->front().size == 6);
}

TEST_CASE("no file is written through a link or outside the root") {
  const TreePlace place;
  REQUIRE(::symlink(place.outside.c_str(), (place.root + "/link").c_str()) == 0);
  CHECK_FALSE(create_directories(place.open(), "link"));
  CHECK_FALSE(create_directories(place.open(), "link/inner"));
  CHECK_FALSE(create_directories(place.open(), "../outside/inner"));
  CHECK_FALSE(write_file(place.open(), "../outside/file", "x"));
  CHECK_FALSE(write_file(place.open(), "link/file", "x"));
  CHECK(std::filesystem::is_empty(place.outside));
}

TEST_CASE("a listing skips links and stops at its limit") {
  const TreePlace place;
  REQUIRE(make_directories(place.root + "/d"));
  REQUIRE(write_file_atomic(place.outside + "/secret", "x"));
  for (const char* name : {"/a", "/b", "/d/c"}) REQUIRE(write_file_atomic(place.root + name, "x"));
  REQUIRE(::symlink((place.outside + "/secret").c_str(), (place.root + "/link").c_str()) == 0);
  REQUIRE(::symlink(place.outside.c_str(), (place.root + "/d/out").c_str()) == 0);
  const auto all = list_files(place.open(), 10);
  REQUIRE(all);
  REQUIRE(all->size() == 3);
  CHECK(all->back().path == "d/c");
  CHECK(list_files(place.open(), 2)->size() == 2);
}

TEST_CASE("media are removed with their experiment, and no other directory is") {
  const TreePlace place;
  const std::string mine = media_name(kTreeCluster, ExperimentId(3)),
                    other = media_name(kTreeCluster, ExperimentId(4));
  for (const std::string& name : {mine, other})
    REQUIRE(make_directories(place.root + "/" + name + "/trial/1"));
  const Done done = perform({.root = {place.root},
                             .remove = {mine, kTreeCluster + "/media/experiment/",
                                        kTreeCluster + "/media/experiment/../..", "media"}});
  CHECK(done.error.empty());
  CHECK(done.removed == std::vector<std::string>{mine});
  CHECK(done.absent.size() == 3);
  CHECK_FALSE(path_exists(place.root + "/" + mine));
  CHECK(path_exists(place.root + "/" + other));
}

}  // namespace
}  // namespace det::storage
