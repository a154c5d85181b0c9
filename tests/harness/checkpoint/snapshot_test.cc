// Snapshots of a training state, and the checksums and large files they are written with.
#include "harness/src/checkpoint/snapshot.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "common/base/files.h"
#include "common/base/random.h"
#include "harness/src/checkpoint/checksum.h"

namespace det {
namespace {

TEST_CASE("checksums match known values, in one piece and in two") {
  CHECK(crc32_of("123456789") == 0xcbf43926);
  CHECK(crc64_of("123456789") == 0x995dc9bbdf1939fa);
  CHECK(crc64_hex(0x995dc9bbdf1939fa) == "995dc9bbdf1939fa");
  CHECK(crc32_of("6789", crc32_of("12345")) == crc32_of("123456789"));
  CHECK(crc64_of("6789", crc64_of("12345")) == crc64_of("123456789"));
}

TEST_CASE("a snapshot is independent of later training, and its memory is reused") {
  auto directory = TemporaryDirectory::create().value();
  const std::string path = directory.path() + "/x";
  torch::Tensor weight = at::full({1000}, 1.0);
  Snapshot snapshot(torch::kCPU);
  for (const double value : {1.0, 2.0, 3.0}) {
    weight.fill_(value);
    snapshot.take(weight);
    weight.fill_(-1);
    REQUIRE(snapshot.write(path).has_value());
    CHECK(pickle::load(path).as<torch::Tensor>()->equal(at::full({1000}, value)));
  }
}

TEST_CASE("files of many blocks are correct at every alignment of entries and blocks") {
  auto directory = TemporaryDirectory::create().value();
  const std::string path = directory.path() + "/x";
  Random random{3};
  Snapshot snapshot(torch::kCPU);
  for (int round = 0; round < 6; ++round) {
    pickle::List list;
    for (std::int64_t left = 9 << 20; left > 0;) {
      const auto bytes = static_cast<std::int64_t>(random.below(5 << 20));
      list.emplace_back(at::randn({bytes / 4}));
      left -= bytes;
    }
    snapshot.take(list);
    const auto crc = snapshot.write(path);
    REQUIRE(crc.has_value());
    CHECK(std::filesystem::file_size(path) == snapshot.size());
    CHECK(crc64_file(path).value() == crc64_hex(*crc));
    const pickle::Value loaded = pickle::load(path);  // checks every entry's CRC-32
    for (std::size_t i = 0; i < list.size(); ++i) {
      CHECK(at::equal(*(*loaded.as<pickle::List>())[i].as<torch::Tensor>(), *list[i].as<torch::Tensor>()));
    }
  }
}

TEST_CASE("an image is written on a file system without direct I/O") {
  auto directory = TemporaryDirectory::create("det", "/dev/shm");  // tmpfs
  if (!directory) return;
  const std::string path = directory->path() + "/x";
  Snapshot snapshot(torch::kCPU);
  snapshot.take(at::randn({3 << 20}));
  REQUIRE(snapshot.write(path).has_value());
  CHECK(std::filesystem::file_size(path) == snapshot.size());
  CHECK(pickle::load(path).as<torch::Tensor>()->numel() == 3 << 20);
}

TEST_CASE("a full disk and a missing directory are reported by path") {
  Snapshot snapshot(torch::kCPU);
  snapshot.take(at::randn({100}));
  const auto full = snapshot.write("/dev/full");
  REQUIRE_FALSE(full.has_value());
  CHECK(full.error().code == Code::kResourceExhausted);
  CHECK_THAT(full.error().message, Catch::StartsWith("/dev/full"));
  CHECK(snapshot.write("/nowhere/x").error().code == Code::kNotFound);
}

}  // namespace
}  // namespace det
