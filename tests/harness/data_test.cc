// Loaders give the same batches from any position, datasets refuse what does not fit, windows average by records.
#include <torch/torch.h>
#include <zlib.h>

// After LibTorch, whose logging has a CHECK of its own.
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"
#include "base/digest.h"
#include "base/files.h"
#include "batch_stream.h"
#include "det/data.h"
#include "window.h"

namespace det {
namespace {

/// Records are their own numbers; slow enough to be worth a thread when `slow`.
class Numbers : public Dataset {
 public:
  Numbers(std::int64_t count, bool slow) : count_(count), slow_(slow) {}
  std::int64_t size() const override { return count_; }
  Batch get_batch(const std::vector<std::int64_t>& indices) const override {
    if (fail_at_ >= 0 && indices.front() == fail_at_) throw std::runtime_error("record " + std::to_string(fail_at_));
    torch::Tensor data = torch::tensor(indices);
    // Busy, not asleep: the stream measures.
    for (const MonoTime end = mono_now() + std::chrono::milliseconds(2); slow_ && mono_now() < end;) {
    }
    return {data, {}, {}};
  }
  std::int64_t fail_at_ = -1;

 private:
  std::int64_t count_;
  bool slow_;
};

std::vector<std::int64_t> values(const torch::Tensor& tensor) {
  return {tensor.data_ptr<std::int64_t>(), tensor.data_ptr<std::int64_t>() + tensor.numel()};
}

TEST_CASE("a stream is the same from any position, read ahead or not") {
  const SamplerSpec spec{.seed = 5, .records = 50, .batch_size = 8, .shuffle = true};
  std::vector<std::vector<std::int64_t>> expected;
  BatchStream whole(std::make_shared<Numbers>(50, false), spec, 0);
  for (int i = 0; i < 30; ++i) expected.push_back(values(whole.next().data));
  for (const bool slow : {false, true}) {
    for (const int start : {0, 3, 13}) {
      BatchStream stream(std::make_shared<Numbers>(50, slow), spec, start);
      for (int i = start; i < 30; ++i) CHECK(values(stream.next().data) == expected[i]);
    }
  }
}

TEST_CASE("what a dataset throws reaches the trainer, at its batch") {
  auto numbers = std::make_shared<Numbers>(64, true);
  numbers->fail_at_ = 48;
  BatchStream stream(numbers, {.records = 64, .batch_size = 8}, 0);
  for (int i = 0; i < 6; ++i) CHECK(stream.next().size() == 8);
  CHECK_THROWS_WITH(stream.next(), "record 48");
}

class TooFew : public Dataset {
 public:
  std::int64_t size() const override { return 10; }
  Batch get_batch(const std::vector<std::int64_t>&) const override { return {torch::zeros({3}), {}, {}}; }
};

TEST_CASE("a dataset that gives another number of records is named") {
  BatchStream stream(std::make_shared<TooFew>(), {.records = 10, .batch_size = 4}, 0);
  CHECK_THROWS_WITH(stream.next(), Catch::Contains("gave 3 records where 4 were asked for"));
}

TEST_CASE("a loader refuses what cannot be batched") {
  CHECK_THROWS_WITH(DataLoader(Numbers(0, false), {}), Catch::Contains("the dataset is empty"));
  CHECK_THROWS_WITH(DataLoader(Numbers(3, false), {.batch_size = 0}), Catch::Contains("batch_size"));
  CHECK_THROWS_WITH(DataLoader(Numbers(3, false), {.batch_size = 4, .drop_last = true}), Catch::Contains("drop_last"));
  CHECK(DataLoader(Numbers(9, false), {.batch_size = 4}).size() == 3);
}

TEST_CASE("images become normalized floats, channel by channel") {
  const torch::Tensor images = torch::randint(0, 256, {5, 3, 4, 4}, torch::kByte);
  const ImageDataset dataset(images, torch::arange(5), {0.1, 0.2, 0.3}, {0.5, 0.6, 0.7});
  const Batch batch = dataset.get_batch({4, 0});
  const torch::Tensor mean = torch::tensor({0.1, 0.2, 0.3}).view({1, 3, 1, 1});
  const torch::Tensor stddev = torch::tensor({0.5, 0.6, 0.7}).view({1, 3, 1, 1});
  const torch::Tensor expected = (images.index_select(0, torch::tensor({4, 0})).to(torch::kFloat) / 255 - mean) / stddev;
  CHECK(torch::allclose(batch.data, expected, 1e-5, 1e-5));
  CHECK(values(batch.target) == std::vector<std::int64_t>{4, 0});
  CHECK_THROWS_WITH(ImageDataset(images, torch::arange(4), {0}, {1}), Catch::Contains("one label an image"));
  CHECK_THROWS_WITH(ImageDataset(images, torch::arange(5), {0}, {1}), Catch::Contains("3 figures"));
}

std::string idx_bytes() { return {"\0\0\x08\x02\0\0\0\x02\0\0\0\x03" "abcdef", 18}; }

void write_gz(const std::string& path, const std::string& bytes) {
  gzFile out = ::gzopen(path.c_str(), "wb");
  ::gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size()));
  ::gzclose(out);
}

TEST_CASE("IDX files are read plain and packed, and damage is named") {
  const auto directory = TemporaryDirectory::create().value();
  const std::string path = directory.path() + "/x";
  write_gz(path + ".gz", idx_bytes());
  CHECK(read_idx(path).sizes() == torch::IntArrayRef({2, 3}));
  std::ofstream(path, std::ios::binary) << idx_bytes();
  CHECK(read_idx(path)[1][2].item<int>() == 'f');
  std::ofstream(path, std::ios::binary) << idx_bytes().substr(0, 17);
  CHECK_THROWS_WITH(read_idx(path), Catch::Contains("ends too early"));
  std::ofstream(path, std::ios::binary) << idx_bytes() + "g";
  CHECK_THROWS_WITH(read_idx(path), Catch::Contains("longer"));
  std::ofstream(path, std::ios::binary) << "text that is no IDX";
  CHECK_THROWS_WITH(read_idx(path), Catch::Contains("no IDX file"));
  CHECK_THROWS_WITH(read_idx(directory.path() + "/none"), Catch::Contains("no such file"));
}

TEST_CASE("a download is kept only with the right content, from the first mirror that has it") {
  const auto directory = TemporaryDirectory::create().value();
  const std::string here = directory.path() + "/", sha256 = sha256_hex(idx_bytes());
  write_gz(here + "good.gz", idx_bytes());
  write_gz(here + "bad.gz", "something else");
  const std::string target = here + "cache/x.gz";
  CHECK_FALSE(download(target, {"file://" + here + "bad.gz", "file://" + here + "absent"}, sha256));
  CHECK_FALSE(path_exists(target));
  CHECK(download(target, {"file://" + here + "bad.gz", "file://" + here + "good.gz"}, sha256));
  CHECK(download(target, {}, sha256));  // it is there
}

Metrics metrics(double value) { return {{"loss", value}}; }

TEST_CASE("a window averages over records, not over batches") {
  MetricWindow window("train_batch", false);
  window.add(metrics(1), 64);
  window.add({{"loss", torch::tensor(5.0)}}, 16);
  CHECK(window.averages()["loss"].get<double>() == Approx((1.0 * 64 + 5.0 * 16) / 80));
}

TEST_CASE("a window that is saved and restored ends in the same bits") {
  MetricWindow one("train_batch", false), two("train_batch", false), three("train_batch", false);
  for (int i = 0; i < 10; ++i) {
    const double value = std::sin(i) / 3;
    one.add(metrics(value), 7);
    (i < 6 ? two : three).add(metrics(value), 7);
    if (i == 5) three.restore(parse_json(dump_json(two.save())).value());
  }
  CHECK(one.averages() == three.averages());
}

TEST_CASE("NaN is reported as it is") {
  MetricWindow window("train_batch", false);
  window.add({{"loss", torch::tensor(std::nanf(""))}}, 1);
  CHECK(window.averages()["loss"] == "NaN");
}

TEST_CASE("metrics that do not fit are named") {
  MetricWindow window("evaluate_batch", true);
  window.add({{"a", 1}, {"b", 2}}, 1);
  CHECK_THROWS_WITH(window.add({{"a", 1}}, 1), Catch::Contains("\"b\" is missing from batch 1"));
  MetricWindow second("evaluate_batch", true);
  second.add({{"a", 1}}, 1);
  CHECK_THROWS_WITH(second.add({{"a", 1}, {"c", 1}}, 1), Catch::Contains("\"c\" is new in batch 1"));
  MetricWindow third("train_batch", false);
  CHECK_THROWS_WITH(third.add({{"loss", torch::zeros({64})}}, 64), Catch::Contains("\"loss\" must be one number") &&
                                                                       Catch::Contains("[64]"));
  CHECK_THROWS_WITH(third.add({{"x", 1}, {"x", 2}}, 1), Catch::Contains("given twice"));
}

}  // namespace
}  // namespace det
