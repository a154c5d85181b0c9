// Built-in datasets and the file formats they read.
#include <torch/types.h>
#include <turbojpeg.h>
#include <zlib.h>

#include "det/datasets.h"

// Catch2 must follow LibTorch: both define CHECK.
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "common/base/files.h"
#include "common/crypto/digest.h"
#include "tensors.h"

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#include <stb/stb_image_write.h>

namespace det {
namespace {

namespace fs = std::filesystem;
using testing::values;

void write(const std::string& path, const std::string& bytes) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

/// A smooth image [H, W, 3] that compresses well, so that JPEG changes it little.
torch::Tensor smooth(std::int64_t height, std::int64_t width) {
  const torch::Tensor y =
      torch::arange(height, torch::kFloat).view({height, 1, 1}) / static_cast<double>(height);
  const torch::Tensor x =
      torch::arange(width, torch::kFloat).view({1, width, 1}) / static_cast<double>(width);
  const torch::Tensor image = x * torch::tensor({200.f, 20.f, 90.f}) + y * torch::tensor({30.f, 200.f, 60.f});
  return image.to(torch::kByte).contiguous();
}

std::string jpeg(const torch::Tensor& pixels, int format = TJPF_RGB, int subsampling = TJSAMP_444) {
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const tjhandle handle = ::tjInitCompress();
  ::tjCompress2(handle, pixels.data_ptr<std::uint8_t>(), static_cast<int>(pixels.size(1)), 0,
                static_cast<int>(pixels.size(0)), format, &bytes, &size, subsampling, 98, TJFLAG_ACCURATEDCT);
  const std::string file(reinterpret_cast<char*>(bytes), size);
  ::tjFree(bytes);
  ::tjDestroy(handle);
  return file;
}

void write_png(const std::string& path, const torch::Tensor& pixels) {
  fs::create_directories(fs::path(path).parent_path());
  const auto channels = static_cast<int>(pixels.size(2));
  ::stbi_write_png(path.c_str(), static_cast<int>(pixels.size(1)), static_cast<int>(pixels.size(0)), channels,
                   pixels.data_ptr(), static_cast<int>(pixels.size(1)) * channels);
}

double difference(const torch::Tensor& image, const torch::Tensor& pixels) {
  return (image.to(torch::kFloat) - pixels.permute({2, 0, 1}).to(torch::kFloat)).abs().max().item<double>();
}

TEST_CASE("rows of any number of tensors are taken together") {
  const TensorDataset three(
      {torch::arange(5), torch::arange(10).view({5, 2}), torch::arange(5).to(torch::kFloat)});
  const auto [a, b, c] = three.get_batch({4, 1}).unpack<3>();
  CHECK(values(a) == std::vector<std::int64_t>{4, 1});
  CHECK(values(b) == std::vector<std::int64_t>{8, 9, 2, 3});
  CHECK(c.sizes() == torch::IntArrayRef({2}));
  CHECK(TensorDataset(torch::arange(5)).get_batch({3}).tensor().item<int>() == 3);
  CHECK(TensorDataset(torch::arange(5), torch::arange(5)).get_batch({3}).target().item<int>() == 3);
  CHECK_THROWS_WITH(TensorDataset(torch::zeros({3, 2}), torch::zeros({4})),
                    Catch::Contains("[3, 2] and [4] have different numbers of rows"));
  CHECK_THROWS_AS(TensorDataset(torch::tensor(1)), std::invalid_argument);
}

TEST_CASE("images become normalized floats, channel by channel") {
  const torch::Tensor images = torch::arange(240).remainder(256).to(torch::kByte).view({5, 3, 4, 4});
  const ImageDataset dataset(images, torch::arange(5), {0.1, 0.2, 0.3}, {0.5, 0.6, 0.7});
  const Batch batch = dataset.get_batch({4, 0});
  const torch::Tensor mean = torch::tensor({0.1, 0.2, 0.3}).view({1, 3, 1, 1});
  const torch::Tensor stddev = torch::tensor({0.5, 0.6, 0.7}).view({1, 3, 1, 1});
  const torch::Tensor taken = images.index_select(0, torch::tensor({4, 0})).to(torch::kFloat);
  const torch::Tensor expected = (taken / 255 - mean) / stddev;
  CHECK(torch::allclose(batch.data(), expected, 1e-5, 1e-5));
  CHECK(values(batch.target()) == std::vector<std::int64_t>{4, 0});
  CHECK(dataset.get_batch({4, 0}, {.seed = 3}).data().equal(batch.data()));
  CHECK_THROWS_WITH(ImageDataset(images, torch::arange(4), {0}, {1}), Catch::Contains("one label an image"));
  CHECK_THROWS_WITH(ImageDataset(images, torch::arange(5), {0}, {1}), Catch::Contains("3 figures"));
  CHECK_THROWS_WITH(ImageDataset(images, torch::arange(5), {0, 0, 0}, {1, 0, 1}), Catch::Contains("stddev"));
  CHECK_THROWS_WITH(ImageDataset(images.to(torch::kFloat), torch::arange(5), {0}, {1}),
                    Catch::Contains("uint8"));
}

TEST_CASE("crops and flips work on bytes and reach every position") {
  const torch::Tensor one = torch::arange(1, 25).to(torch::kByte).view({1, 2, 3, 4});
  const torch::Tensor images = one.expand({500, 2, 3, 4}).contiguous();
  const ImageDataset dataset({images, torch::zeros({500}, torch::kLong)},
                             {.mean = {0, 0}, .stddev = {1, 1}, .crop_padding = 1, .flip = 0.5});
  const torch::Tensor padded = torch::constant_pad_nd(one[0].to(torch::kFloat), {1, 1, 1, 1});
  std::set<int> seen;
  std::vector<std::int64_t> all(500);
  for (int i = 0; i < 500; ++i) all[i] = i;
  const SampleKey key{.seed = 4, .epoch = 1};
  const torch::Tensor changed = (dataset.get_batch(all, key).data() * 255).round();
  int known = 0;
  for (int i = 0; i < 500; ++i) {
    for (int way = 0; way < 18; ++way) {
      torch::Tensor expected = padded.slice(1, way / 6, way / 6 + 3).slice(2, way / 2 % 3, way / 2 % 3 + 4);
      if (way % 2 == 1) expected = expected.flip({2});
      if (!changed[i].equal(expected)) continue;
      seen.insert(way), ++known;
    }
  }
  CHECK(known == 500);
  CHECK(seen.size() == 18);
  CHECK(dataset.get_batch({7}, key).data()[0].equal(dataset.get_batch(all, key).data()[7]));
  CHECK(dataset.get_batch({7}).data().mul(255).round().equal(one.to(torch::kFloat)));
  // Padding larger than the image can crop it away entirely; no read is out of bounds.
  const ImageDataset wild({images, torch::zeros({500}, torch::kLong)},
                          {.mean = {0, 0}, .stddev = {1, 1}, .crop_padding = 9});
  CHECK(wild.get_batch(all, key).data().sum({1, 2, 3}).eq(0).sum().item<int>() > 100);
}

std::string idx_bytes() {
  return {
      "\0\0\x08\x02\0\0\0\x02\0\0\0\x03"
      "abcdef",
      18};
}

void write_gz(const std::string& path, const std::string& bytes) {
  gzFile out = ::gzopen(path.c_str(), "wb");
  ::gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size()));
  ::gzclose(out);
}

TEST_CASE("IDX files are read plain and gzipped, and damage is reported") {
  const auto directory = TemporaryDirectory::create().value();
  const std::string path = directory.path() + "/x";
  write_gz(path + ".gz", idx_bytes());
  CHECK(read_idx(path).sizes() == torch::IntArrayRef({2, 3}));
  write(path, idx_bytes());
  CHECK(read_idx(path)[1][2].item<int>() == 'f');
  write(path, idx_bytes().substr(0, 17));
  CHECK_THROWS_WITH(read_idx(path), Catch::Contains("ends too early"));
  write(path, idx_bytes() + "g");
  CHECK_THROWS_WITH(read_idx(path), Catch::Contains("longer"));
  write(path, "text that is no IDX");
  CHECK_THROWS_WITH(read_idx(path), Catch::Contains("no IDX file"));
  CHECK_THROWS_WITH(read_idx(directory.path() + "/none"), Catch::Contains("no such file"));
}

TEST_CASE("a download is kept only with the right digest, from the first mirror that has it") {
  const auto directory = TemporaryDirectory::create().value();
  const std::string here = directory.path() + "/", sha256 = sha256_hex(idx_bytes());
  write_gz(here + "good.gz", idx_bytes());
  write_gz(here + "bad.gz", "something else");
  const std::string target = here + "cache/x.gz";
  CHECK_FALSE(download(target, {"file://" + here + "bad.gz", "file://" + here + "absent"}, sha256));
  CHECK_FALSE(path_exists(target));
  CHECK(download(target, {"file://" + here + "bad.gz", "file://" + here + "good.gz"}, sha256));
  CHECK(download(target, {}, sha256));  // already downloaded
}

TEST_CASE("CIFAR-10's records are read from five files or one, and damage is reported") {
  const auto directory = TemporaryDirectory::create().value();
  const auto record = [](int label, int byte) {
    return std::string(1, static_cast<char>(label)) + std::string(3071, static_cast<char>(byte)) + '\x07';
  };
  for (int i = 1; i <= 5; ++i) {
    write(directory.path() + "/data_batch_" + std::to_string(i) + ".bin", record(i, 10 * i) + record(9, 200));
  }
  write(directory.path() + "/test_batch.bin", record(3, 1));
  const LabeledImages train = read_cifar10(directory.path(), true);
  CHECK(train.images.sizes() == torch::IntArrayRef({10, 3, 32, 32}));
  CHECK(values(train.labels) == std::vector<std::int64_t>{1, 9, 2, 9, 3, 9, 4, 9, 5, 9});
  CHECK(train.images[4][2][31][30].item<int>() == 30);
  CHECK(train.images[4][2][31][31].item<int>() == 7);
  CHECK(read_cifar10(directory.path(), false).labels.item<int>() == 3);
  CHECK(
      ImageDataset(train, {.mean = {0, 0, 0}, .stddev = {1, 1, 1}, .crop_padding = 4, .flip = 0.5}).size() ==
      10);
  write(directory.path() + "/data_batch_3.bin", record(1, 1) + "x");
  CHECK_THROWS_WITH(read_cifar10(directory.path(), true), Catch::Contains("data_batch_3.bin: is damaged"));
  write(directory.path() + "/data_batch_3.bin", record(10, 1));
  CHECK_THROWS_WITH(read_cifar10(directory.path(), true), Catch::Contains("record 0 has the class 10"));
  fs::remove(directory.path() + "/test_batch.bin");
  CHECK_THROWS_WITH(read_cifar10(directory.path(), false), Catch::Contains("test_batch.bin"));
}

TEST_CASE("images of every supported format are read as RGB") {
  const auto directory = TemporaryDirectory::create().value();
  const std::string here = directory.path() + "/";
  const torch::Tensor pixels = smooth(21, 30);
  write_png(here + "rgb.png", pixels);
  CHECK(difference(read_image(here + "rgb.png"), pixels) == 0);
  write_png(here + "alpha.png",
            torch::cat({pixels, torch::zeros({21, 30, 1}, torch::kByte)}, 2).contiguous());
  CHECK(difference(read_image(here + "alpha.png"), pixels) == 0);
  const torch::Tensor gray = pixels.slice(2, 0, 1).contiguous();
  write_png(here + "gray.png", gray);
  CHECK(difference(read_image(here + "gray.png"), gray.expand({21, 30, 3})) == 0);
  ::stbi_write_bmp((here + "x.bmp").c_str(), 30, 21, 3, pixels.data_ptr());
  CHECK(difference(read_image(here + "x.bmp"), pixels) == 0);
  // A negative height: rows are stored from top to bottom.
  std::string bmp = read_file(here + "x.bmp").value();
  constexpr std::int32_t kHeight = -21;
  std::memcpy(bmp.data() + 22, &kHeight, sizeof kHeight);
  write(here + "top_down.bmp", bmp);
  CHECK(difference(read_image(here + "top_down.bmp"), pixels.flip({0})) == 0);
  write(here + "x.ppm",
        "P6\n30 21\n255\n" + std::string(reinterpret_cast<const char*>(pixels.data_ptr()), 21 * 30 * 3));
  CHECK(difference(read_image(here + "x.ppm"), pixels) == 0);
  write(here + "x.jpg", jpeg(pixels));
  CHECK(difference(read_image(here + "x.jpg"), pixels) <= 6);
  write(here + "gray.jpg", jpeg(gray, TJPF_GRAY, TJSAMP_GRAY));
  CHECK(difference(read_image(here + "gray.jpg"), gray.expand({21, 30, 3})) <= 6);
  // CMYK, stored inverted; full black covers the other inks.
  const torch::Tensor ink =
      torch::tensor({255, 128, 0, 255, 255, 255, 255, 0}).to(torch::kByte).view({1, 2, 1, 4});
  write(here + "cmyk.jpg", jpeg(ink.expand({16, 2, 16, 4}).reshape({16, 32, 4}).contiguous(), TJPF_CMYK));
  const torch::Tensor rgb = read_image(here + "cmyk.jpg");
  const torch::Tensor left = rgb.select(2, 2).select(1, 3).to(torch::kFloat);
  CHECK((left - torch::tensor({255.f, 128.f, 0.f})).abs().max().item<float>() <= 8);
  CHECK(rgb.select(2, 29).max().item<int>() <= 8);
  // The format is detected by content, not by name.
  write(here + "lies.png", jpeg(pixels));
  CHECK(read_image(here + "lies.png").sizes() == torch::IntArrayRef({3, 21, 30}));
}

TEST_CASE("unreadable images are reported by file name") {
  const auto directory = TemporaryDirectory::create().value();
  const std::string path = directory.path() + "/x.jpg";
  const std::string whole = jpeg(smooth(64, 64));
  CHECK_THROWS_WITH(read_image(path), Catch::Contains(path));
  write(path, "");
  CHECK_THROWS_WITH(read_image(path), Catch::Contains(path + ": is no JPEG"));
  for (const std::size_t size : {whole.size() / 2, std::size_t{30}, std::size_t{200}}) {
    INFO(size << " bytes");
    write(path, whole.substr(0, size));
    CHECK_THROWS_WITH(read_image(path), Catch::Contains(path + ": is a damaged JPEG"));
    write(path, whole);
    CHECK(read_image(path).sizes() == torch::IntArrayRef({3, 64, 64}));
  }
  write(path, "P6\n60000 60000\n255\n");
  CHECK_THROWS_WITH(read_image(path), Catch::Contains("60000 × 60000 pixels"));
  write_png(path, smooth(64, 64));
  write(path, read_file(path).value().substr(0, 200));
  CHECK_THROWS_WITH(read_image(path), Catch::Contains(path + ": is a damaged image"));
}

TEST_CASE("an image folder takes its classes from subfolders in name order") {
  const auto directory = TemporaryDirectory::create().value();
  const std::string here = directory.path() + "/";
  write(here + "dog/2.jpg", jpeg(smooth(16, 16)));
  write(here + "dog/10.JPEG", jpeg(smooth(16, 16)));
  write_png(here + "cat/deep/1.png", smooth(16, 16));
  write_png(here + "cat/x.png", smooth(16, 16));
  write(here + "dog/notes.txt", "no image");
  write(here + "readme.md", "no class");
  const ImageFolder folder(directory.path());
  CHECK(folder.classes() == std::vector<std::string>{"cat", "dog"});
  std::vector<std::string> names;
  for (const auto& [path, label] : folder.files()) {
    names.push_back(path.substr(here.size()) + " " + std::to_string(label));
  }
  CHECK(names == std::vector<std::string>{"cat/x.png 0", "cat/deep/1.png 0", "dog/10.JPEG 1", "dog/2.jpg 1"});
  const Batch batch = folder.get_batch({3, 0});
  CHECK(batch.data().sizes() == torch::IntArrayRef({2, 3, 16, 16}));
  CHECK(batch.data().scalar_type() == torch::kFloat);
  CHECK(values(batch.target()) == std::vector<std::int64_t>{1, 0});
  CHECK(batch.data()[1].equal(smooth(16, 16).permute({2, 0, 1}).to(torch::kFloat) / 255));

  fs::create_directories(here + "empty");
  CHECK_THROWS_WITH(ImageFolder(directory.path()), Catch::Contains("empty: ImageFolder found no image"));
  write(here + "empty/x.webp", "");
  CHECK_THROWS_WITH(ImageFolder(directory.path()), Catch::Contains("x.webp") && Catch::Contains("convert"));
  CHECK_THROWS_WITH(ImageFolder(here + "dog"), Catch::Contains("subfolder for each class"));
  CHECK_THROWS_WITH(ImageFolder(here + "none"), Catch::Contains("none"));
}

TEST_CASE("images of different sizes need a transform, and errors name the file") {
  const auto directory = TemporaryDirectory::create().value();
  write_png(directory.path() + "/a/1.png", smooth(16, 16));
  write_png(directory.path() + "/a/2.png", smooth(16, 20));
  CHECK_THROWS_WITH(ImageFolder(directory.path()).get_batch({0, 1}),
                    Catch::Contains("2.png: is [3, 16, 20]") && Catch::Contains("1.png is [3, 16, 16]"));
  CHECK_THROWS_WITH(ImageFolder(directory.path(), transforms::random_crop(18)).get_batch({0}),
                    Catch::Contains("1.png: transforms::random_crop"));
  const ImageFolder folder(
      directory.path(),
      transforms::compose({transforms::resize(12), transforms::center_crop(12), transforms::to_tensor()}));
  CHECK(folder.get_batch({0, 1}).data().sizes() == torch::IntArrayRef({2, 3, 12, 12}));
}

TEST_CASE("large JPEGs for a small target are decoded at reduced size with similar pixels") {
  const auto directory = TemporaryDirectory::create().value();
  write(directory.path() + "/a/1.jpg", jpeg(smooth(401, 600)));
  std::vector<torch::IntArrayRef::value_type> decoded;
  const auto spy = [&decoded](const torch::Tensor& image) {
    decoded.assign(image.sizes().begin(), image.sizes().end());
    return image;
  };
  // The spy precedes the resize and forwards its scale.
  const transforms::Transform resize = transforms::resize(90);
  const transforms::Transform watched(
      [&](const torch::Tensor& image, RecordRandom& random) { return resize(spy(image), random); },
      [&](std::int64_t height, std::int64_t width, const RecordRandom& random) {
        return resize.least_scale(height, width, random);
      });
  const torch::Tensor small = ImageFolder(directory.path(), watched).get_batch({0}).data()[0];
  CHECK(decoded == std::vector<std::int64_t>{3, 101, 150});
  const torch::Tensor exact = ImageFolder(directory.path(),
                                          [&](const torch::Tensor& image) {
                                            RecordRandom unused(0, 0, 0);
                                            return resize(spy(image), unused);
                                          })
                                  .get_batch({0})
                                  .data()[0];
  CHECK(decoded == std::vector<std::int64_t>{3, 401, 600});
  CHECK(std::abs(small.size(2) - exact.size(2)) <= 1);
  const torch::Tensor away =
      small.slice(2, 0, 133).to(torch::kFloat) - exact.slice(2, 0, 133).to(torch::kFloat);
  CHECK(away.abs().max().item<float>() <= 8);
}

TEST_CASE("an augmented image folder gives the same image for the same key, in any batch") {
  const auto directory = TemporaryDirectory::create().value();
  for (int i = 0; i < 6; ++i)
    write(directory.path() + "/a/" + std::to_string(i) + ".jpg", jpeg(smooth(120, 160)));
  const ImageFolder folder(
      directory.path(), transforms::compose({transforms::random_resized_crop(24),
                                             transforms::random_horizontal_flip(), transforms::to_tensor()}));
  const SampleKey key{.seed = 1, .epoch = 3};
  const torch::Tensor whole = folder.get_batch({0, 1, 2, 3, 4, 5}, key).data();
  CHECK(folder.get_batch({4}, key).data()[0].equal(whole[4]));
  CHECK_FALSE(folder.get_batch({4}, {.seed = 1, .epoch = 4}).data()[0].equal(whole[4]));
  CHECK_FALSE(whole[0].equal(whole[1]));
}

}  // namespace
}  // namespace det
