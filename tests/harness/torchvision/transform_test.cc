// Transforms follow torchvision's semantics.
#include <torch/types.h>

#include <catch2/catch.hpp>

#include "det/transforms.h"
#include "harness/src/data/resample.h"

namespace det {
namespace {

using transforms::Transform;

torch::Tensor apply(const Transform& transform, const torch::Tensor& image, std::int64_t record = 0) {
  RecordRandom random(1, 0, record);
  return transform(image, random);
}

/// Deterministic bytes.
torch::Tensor picture(std::int64_t height, std::int64_t width, std::int64_t channels = 3) {
  const torch::Tensor bytes =
      torch::arange(channels * height * width).mul(7919).remainder(251).to(torch::kByte);
  return bytes.view({channels, height, width});
}
/// The same image with interleaved channels, as decoders write it.
torch::Tensor interleaved(const torch::Tensor& image) {
  return image.permute({1, 2, 0}).contiguous().permute({2, 0, 1});
}

TEST_CASE("bytes become floats in [0, 1] and are normalized") {
  const torch::Tensor image = picture(4, 5);
  CHECK(apply(transforms::to_tensor(), image).equal(image.to(torch::kFloat) / 255));
  CHECK(apply(transforms::to_tensor(), interleaved(image)).equal(image.to(torch::kFloat) / 255));
  CHECK(apply(transforms::to_tensor(), picture(4, 5, 1)).size(0) == 1);
  const Transform both =
      transforms::compose({transforms::to_tensor(), transforms::normalize({0.1, 0.2, 0.3}, {0.5, 0.6, 0.7})});
  const torch::Tensor mean = torch::tensor({0.1f, 0.2f, 0.3f}).view({3, 1, 1});
  const torch::Tensor stddev = torch::tensor({0.5f, 0.6f, 0.7f}).view({3, 1, 1});
  CHECK(torch::allclose(apply(both, image), (image.to(torch::kFloat) / 255 - mean) / stddev, 1e-6, 1e-6));
}

TEST_CASE("resizing matches LibTorch's antialiased bilinear interpolation, for floats and bytes") {
  const torch::Tensor bytes = picture(37, 50), floats = bytes.to(torch::kFloat);
  for (const auto& [height, width] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {16, 20}, {37, 20}, {16, 50}, {64, 61}, {5, 90}, {1, 1}, {90, 3}}) {
    const torch::Tensor expected =
        at::_upsample_bilinear2d_aa(floats.unsqueeze(0), {height, width}, /*align_corners=*/false).squeeze(0);
    CHECK(torch::allclose(resample(floats, height, width), expected, 1e-4, 1e-2));
    const torch::Tensor planar = resample(bytes, height, width);
    CHECK((planar.to(torch::kFloat) - expected).abs().max().item<float>() <= 1.01f);
    CHECK(resample(interleaved(bytes), height, width).equal(planar));
    CHECK(resample(picture(37, 50, 1), height, width).sizes() == torch::IntArrayRef({1, height, width}));
  }
  CHECK(resample(torch::full({3, 9, 9}, 255, torch::kByte), 4, 20)
            .equal(torch::full({3, 4, 20}, 255, torch::kByte)));
}

TEST_CASE("resize scales the smaller side to the size and keeps the aspect ratio, rounded down") {
  CHECK(apply(transforms::resize(256), picture(375, 500)).sizes() == torch::IntArrayRef({3, 256, 341}));
  CHECK(apply(transforms::resize(256), picture(500, 375)).sizes() == torch::IntArrayRef({3, 341, 256}));
  CHECK(apply(transforms::resize(8), picture(8, 8)).equal(picture(8, 8)));
  CHECK(apply(transforms::resize(3, 9), picture(8, 8)).sizes() == torch::IntArrayRef({3, 3, 9}));
}

TEST_CASE("a center crop rounds halves to even and pads small images with zeros") {
  const torch::Tensor image = picture(9, 10, 1);
  // (9 - 4) / 2 = 2.5 → 2; (9 - 6) / 2 = 1.5 → 2; (10 - 4) / 2 = 3.
  CHECK(apply(transforms::center_crop(4), image).equal(image.slice(1, 2, 6).slice(2, 3, 7)));
  CHECK(apply(transforms::center_crop(6), image).equal(image.slice(1, 2, 8).slice(2, 2, 8)));
  const torch::Tensor filled = apply(transforms::center_crop(12), image);
  CHECK(filled.slice(1, 1, 10).slice(2, 1, 11).equal(image));
  CHECK(filled.sum().item<std::int64_t>() == image.sum().item<std::int64_t>());
  CHECK(apply(transforms::center_crop(3, 8), image).equal(image.slice(1, 3, 6).slice(2, 1, 9)));
}

TEST_CASE("a random crop is a crop of the padded image, and every position occurs") {
  const torch::Tensor image = picture(6, 6) + 1;
  const torch::Tensor padded = torch::constant_pad_nd(image, {2, 2, 2, 2});
  std::set<std::pair<int, int>> seen;
  for (int record = 0; record < 400; ++record) {
    const torch::Tensor cropped = apply(transforms::random_crop(6, 2), image, record);
    for (int top = 0; top < 5; ++top) {
      for (int left = 0; left < 5; ++left) {
        if (cropped.equal(padded.slice(1, top, top + 6).slice(2, left, left + 6))) seen.insert({top, left});
      }
    }
  }
  CHECK(seen.size() == 25);
  CHECK(apply(transforms::random_crop(6), image).equal(image));
  CHECK_THROWS_WITH(apply(transforms::random_crop(11, 2), image), Catch::Contains("[3, 6, 6]"));
}

TEST_CASE("a random resized crop respects its scale and ratio") {
  // Column and row numbers serve as channels: their range shows the cropped region.
  const std::int64_t side = 100;
  const torch::Tensor grid = torch::stack({torch::arange(side).view({1, side}).expand({side, side}),
                                           torch::arange(side).view({side, 1}).expand({side, side})})
                                 .to(torch::kFloat);
  double least = 1, most = 0, flattest = 10, steepest = 0;
  for (int record = 0; record < 300; ++record) {
    const torch::Tensor cropped =
        apply(transforms::random_resized_crop(50, {0.25, 0.5}, {0.5, 2}), grid, record);
    REQUIRE(cropped.sizes() == torch::IntArrayRef({2, 50, 50}));
    // The centers of the outermost pixels are 49/50 of the crop apart, except for the filter's edge.
    const double width = (cropped[0][0][48] - cropped[0][0][1]).item<double>() * 50 / 47;
    const double height = (cropped[1][48][0] - cropped[1][1][0]).item<double>() * 50 / 47;
    least = std::min(least, width * height / 1e4), most = std::max(most, width * height / 1e4);
    flattest = std::min(flattest, width / height), steepest = std::max(steepest, width / height);
  }
  CHECK(least == Approx(0.25).margin(0.02));
  CHECK(most == Approx(0.5).margin(0.02));
  CHECK(flattest == Approx(0.5).margin(0.1));
  CHECK(steepest == Approx(2).margin(0.2));
  // Too long for any allowed ratio: the largest central region with the extreme ratio.
  const torch::Tensor strip =
      apply(transforms::random_resized_crop(6, {1, 1}, {0.5, 2}), grid.slice(1, 0, 10));
  CHECK(strip[0].min().item<double>() == Approx(40.5).margin(1.5));
  CHECK(strip[0].max().item<double>() == Approx(58.5).margin(1.5));
}

TEST_CASE("a flip occurs with the given probability and is horizontal only") {
  const torch::Tensor image = picture(3, 5);
  CHECK(apply(transforms::random_horizontal_flip(1), image).equal(image.flip({2})));
  CHECK(apply(transforms::random_horizontal_flip(0), image).equal(image));
  int flipped = 0;
  for (int record = 0; record < 1000; ++record) {
    flipped += apply(transforms::random_horizontal_flip(0.3), image, record).equal(image.flip({2})) ? 1 : 0;
  }
  CHECK(flipped > 250);
  CHECK(flipped < 350);
}

TEST_CASE("custom functions are transforms, and a composition uses one random stream") {
  const Transform own = transforms::compose({transforms::random_crop(4, 1),
                                             [](const torch::Tensor& image) { return image.flip({1}); },
                                             [](const torch::Tensor& image, RecordRandom& random) {
                                               return image.to(torch::kFloat) + random.uniform();
                                             }});
  const torch::Tensor image = picture(4, 4);
  CHECK(apply(own, image, 3).equal(apply(own, image, 3)));
  CHECK_FALSE(apply(own, image, 3).equal(apply(own, image, 4)));
  CHECK(image.equal(picture(4, 4)));
}

TEST_CASE("a transform reports the smallest scale at which its input may be decoded") {
  const RecordRandom random(1, 0, 0);
  CHECK(transforms::resize(256).least_scale(1024, 2000, random) == 0.25);
  CHECK(transforms::resize(256).least_scale(100, 90, random) == 1);
  CHECK(transforms::resize(100, 500).least_scale(1000, 1000, random) == 0.5);
  CHECK(transforms::compose({transforms::resize(10), transforms::center_crop(5)})
            .least_scale(100, 100, random) == 0.1);
  CHECK(transforms::center_crop(10).least_scale(100, 100, random) == 1);
  // The smallest region is 8 % of the area, but no less than 10 / 100.
  for (int record = 0; record < 100; ++record) {
    const double least =
        transforms::random_resized_crop(10).least_scale(100, 100, RecordRandom(1, 0, record));
    CHECK(least >= 0.1);
    CHECK(least <= 10 / (100 * std::sqrt(0.08 * 3 / 4)) * 1.05);
  }
}

TEST_CASE("parameters and images that do not fit are named") {
  CHECK_THROWS_WITH(transforms::resize(0), Catch::Contains("resize"));
  CHECK_THROWS_WITH(transforms::random_crop(4, -1), Catch::Contains("padding is -1"));
  CHECK_THROWS_WITH(transforms::random_resized_crop(4, {0.5, 0.1}), Catch::Contains("scale"));
  CHECK_THROWS_WITH(transforms::random_resized_crop(4, {0.1, 0.5}, {0, 1}), Catch::Contains("ratio"));
  CHECK_THROWS_WITH(transforms::random_horizontal_flip(1.5), Catch::Contains("[0, 1]"));
  CHECK_THROWS_WITH(transforms::normalize({0.5}, {}), Catch::Contains("as many"));
  CHECK_THROWS_WITH(transforms::normalize({0.5}, {0}), Catch::Contains("greater than 0"));
  CHECK_THROWS_WITH(apply(transforms::normalize({0.5}, {1}), picture(2, 2)),
                    Catch::Contains("to_tensor() before"));
  CHECK_THROWS_WITH(apply(transforms::normalize({0.5}, {1}), torch::zeros({3, 2, 2})),
                    Catch::Contains("[3, 2, 2]"));
  CHECK_THROWS_WITH(apply(transforms::to_tensor(), torch::zeros({2, 2})), Catch::Contains("[2, 2] of Float"));
}

}  // namespace
}  // namespace det
