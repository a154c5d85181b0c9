// Files of checkpoints: ids, names, and access that stays in the directory of the checkpoint.
#include "common/storage/checkpoint_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "common/base/files.h"

namespace det::storage {
namespace {

const CheckpointId kId("0d9a3c6e-52c4-4d0e-9a55-000000000001");

/// A storage with one checkpoint, and a directory beside it.
struct FilePlace {
  TemporaryDirectory directory = TemporaryDirectory::create("files").value();
  std::string root = directory.path() + "/storage", checkpoint = root + "/" + kId.value;
  std::string outside = directory.path() + "/outside";

  FilePlace() {
    REQUIRE(make_directories(checkpoint + "/code"));
    REQUIRE(make_directories(outside + "/" + kId.value));
    REQUIRE(write_file_atomic(checkpoint + "/model", "weights"));
    REQUIRE(write_file_atomic(checkpoint + "/code/net.cpp", "int x;"));
    REQUIRE(write_file_atomic(outside + "/" + kId.value + "/model", "secret"));
    REQUIRE(write_file_atomic(outside + "/secret", "secret"));
  }
  Result<CheckpointFiles> open(const Root& at) const {
    TRY_ASSIGN(const PinnedRoot pinned, PinnedRoot::open(at));
    return CheckpointFiles::open(pinned, kId);
  }
};

TEST_CASE("a checkpoint id is a lower-case UUID and nothing else") {
  CHECK(parse_checkpoint_id(kId.value).value() == kId);
  for (const char* bad :
       {"", "16384", "..", "0d9a3c6e52c44d0e9a55000000000001", "0D9A3C6E-52C4-4D0E-9A55-000000000001",
        "0d9a3c6e-52c4-4d0e-9a55-00000000000", "0d9a3c6e-52c4-4d0e-9a55-0000000000011",
        "0d9a3c6e-52c4-4d0e-9a55-00000000000g", "0d9a3c6e-52c4-4d0e-9a55/000000000001",
        "------------------------------------", "0d9a3c6e-52c4-4d0e-9a55-000000000001\n"}) {
    INFO(bad);
    CHECK_FALSE(parse_checkpoint_id(bad));
  }
}

TEST_CASE("a file name is a clean relative path") {
  for (const char* good : {"model", "code/net.cpp", "code/", "a b", ".hidden", "..x", "\xc3\xa4"}) {
    INFO(good);
    CHECK(check_file_name(good));
  }
  for (const char* bad : {"", "/", "/etc/passwd", "..", ".", "../x", "a/../b", "a/..", "a//b", "./a", "a/./b",
                          "a\\b", "a\nb", "\x80", "a//"}) {
    INFO(bad);
    CHECK_FALSE(check_file_name(bad));
  }
  CHECK_FALSE(check_file_name(std::string("a\0b", 3)));
  CHECK_FALSE(check_file_name(std::string(kMaxFileNameBytes + 1, 'a')));
}

TEST_CASE("files of a checkpoint are read and deleted") {
  const FilePlace place;
  const auto files = place.open({place.root});
  REQUIRE(files);
  const auto model = files->file("model");
  REQUIRE(model);
  CHECK(model->size() == 7);
  CHECK(model->read(100).value() == "weights");
  CHECK(model->read(1).error().code == Code::kDataLoss);
  CHECK(files->file("absent").error().code == Code::kNotFound);
  CHECK(files->file("code").error().code == Code::kDataLoss);
  REQUIRE(files->remove("code/net.cpp"));
  REQUIRE(files->remove("code/net.cpp"));
  REQUIRE(files->remove("none/net.cpp"));
  CHECK_FALSE(path_exists(place.checkpoint + "/code/net.cpp"));
}

TEST_CASE("links in a checkpoint are not followed, for reads and for deletes") {
  const FilePlace place;
  std::filesystem::create_symlink(place.outside, place.checkpoint + "/way");
  std::filesystem::create_symlink(place.outside + "/secret", place.checkpoint + "/link");
  std::filesystem::create_symlink("model", place.checkpoint + "/inside");
  const auto files = place.open({place.root});
  REQUIRE(files);
  for (const char* name : {"way/secret", "link", "inside", "../../outside/secret"}) {
    INFO(name);
    CHECK_FALSE(files->file(name));
  }
  CHECK_FALSE(files->remove("way/secret"));
  REQUIRE(files->remove("link"));
  CHECK_FALSE(path_exists(place.checkpoint + "/link"));
  CHECK(path_exists(place.outside + "/secret"));
}

TEST_CASE("a pipe in place of a file is refused without blocking") {
  const FilePlace place;
  REQUIRE(::mkfifo((place.checkpoint + "/pipe").c_str(), 0600) == 0);
  CHECK(place.open({place.root})->file("pipe").error().code == Code::kDataLoss);
}

TEST_CASE("a link in place of the checkpoint's directory is refused") {
  const FilePlace place;
  REQUIRE(remove_tree(place.checkpoint));
  std::filesystem::create_symlink(place.outside + "/" + kId.value, place.checkpoint);
  CHECK(place.open({place.root}).error().code == Code::kFailedPrecondition);
}

TEST_CASE("links of the administrator lead to a storage, and links below it do not") {
  const FilePlace place;
  const std::string alias = place.directory.path() + "/alias";
  std::filesystem::create_symlink(place.root, alias);
  CHECK(place.open({alias}));
  std::filesystem::create_symlink(place.outside, place.root + "/team");
  CHECK(place.open({place.root, "team"}).error().code == Code::kFailedPrecondition);
  CHECK(place.open({place.root, "../outside"}).error().code == Code::kFailedPrecondition);
}

TEST_CASE("an open storage stays the same directory when its path is replaced") {
  const FilePlace place;
  const auto pinned = PinnedRoot::open({place.root});
  REQUIRE(pinned);
  std::filesystem::rename(place.root, place.root + ".old");
  std::filesystem::create_symlink(place.outside, place.root);
  const auto files = CheckpointFiles::open(*pinned, kId);
  REQUIRE(files);
  CHECK(files->file("model")->read(100).value() == "weights");
}

}  // namespace
}  // namespace det::storage
