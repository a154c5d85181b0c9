// Random parameters of transforms: determined by the record, within their ranges, with the given probability.
#include <torch/types.h>

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "det/transforms.h"

namespace det {
namespace {

namespace tf = transforms;

torch::Tensor draw(const tf::Transform& transform, const torch::Tensor& image, std::int64_t record) {
  RecordRandom random(1, 0, record);
  return transform(image, random);
}

/// A smooth image without symmetry.
torch::Tensor photo(bool bytes = true) {
  const torch::Tensor rows = torch::arange(24, torch::kFloat).view({24, 1}),
                      columns = torch::arange(32, torch::kFloat);
  const torch::Tensor plane = (rows * 0.3 + columns.mul(0.17).sin() * 4).sin().add(1).div(2);
  const torch::Tensor image = torch::stack({plane, plane.square(), 1 - plane * 0.7});
  return bytes ? image.mul(255).to(torch::kByte) : image;
}

TEST_CASE("random transforms depend on the record alone and keep the image's type") {
  const std::map<std::string, tf::Transform> all{
      {"color_jitter", tf::color_jitter({.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.2})},
      {"random_rotation", tf::random_rotation({-30, 30})},
      {"random_affine",
       tf::random_affine({.degrees = {-9, 9}, .translate = {0.2, 0.2}, .scale = {0.8, 1.2}})},
      {"random_perspective", tf::random_perspective(0.5, 1)},
      {"gaussian_blur", tf::gaussian_blur(5)},
      {"random_erasing", tf::random_erasing(1)},
      {"rand_augment", tf::rand_augment()},
      {"trivial_augment_wide", tf::trivial_augment_wide()},
      {"auto_augment", tf::auto_augment()},
      {"auto_augment cifar10", tf::auto_augment(tf::AutoAugmentPolicy::kCifar10)},
      {"auto_augment svhn", tf::auto_augment(tf::AutoAugmentPolicy::kSvhn)},
      {"random_order", tf::random_order({tf::random_posterize(2), tf::random_adjust_sharpness(2)})}};
  const torch::Tensor image = photo();
  for (const auto& [name, transform] : all) {
    INFO(name);
    int different = 0;
    for (int record = 0; record < 60; ++record) {
      const torch::Tensor result = draw(transform, image, record);
      REQUIRE(result.scalar_type() == torch::kByte);
      REQUIRE(result.sizes() == image.sizes());
      CHECK(result.equal(draw(transform, image, record)));
      different += result.equal(image) ? 0 : 1;
    }
    CHECK(different > 25);
    CHECK(image.equal(photo()));
  }
}

TEST_CASE("a transform with a probability occurs that often, and is the function of its name") {
  const torch::Tensor image = photo();
  const std::map<std::string, std::pair<tf::Transform, torch::Tensor>> all{
      {"random_vertical_flip", {tf::random_vertical_flip(0.3), image.flip({1})}},
      {"random_invert", {tf::random_invert(0.3), 255 - image}},
      {"random_grayscale", {tf::random_grayscale(0.3), tf::functional::rgb_to_grayscale(image, 3)}},
      {"random_solarize", {tf::random_solarize(128, 0.3), tf::functional::solarize(image, 128)}},
      {"random_autocontrast", {tf::random_autocontrast(0.3), tf::functional::autocontrast(image)}},
      {"random_equalize", {tf::random_equalize(0.3), tf::functional::equalize(image)}},
      {"random_apply",
       {tf::random_apply({tf::grayscale(3), tf::pad({1, 1, 1, 1})}, 0.3),
        tf::functional::pad(tf::functional::rgb_to_grayscale(image, 3), {1, 1, 1, 1})}}};
  for (const auto& [name, item] : all) {
    INFO(name);
    REQUIRE_FALSE(item.second.equal(image));
    int changed = 0;
    for (int record = 0; record < 1000; ++record) {
      const torch::Tensor result = draw(item.first, image, record);
      const bool now = result.equal(item.second);
      CHECK((now || result.equal(image)));
      changed += now ? 1 : 0;
    }
    CHECK(changed > 250);
    CHECK(changed < 350);
  }
}

TEST_CASE("one of several transforms is chosen with equal probability") {
  const tf::Transform one =
      tf::random_choice({tf::random_invert(1), tf::random_posterize(1, 1), tf::grayscale(3)});
  std::map<std::string, int> seen;
  for (int record = 0; record < 600; ++record) {
    const torch::Tensor result = draw(one, photo(), record);
    seen[result.equal(255 - photo())       ? "inverted"
         : result.max().item<int>() == 128 ? "posterized"
                                           : "gray"]++;
  }
  for (const std::string name : {"inverted", "posterized", "gray"}) CHECK(seen[name] > 140);
}

TEST_CASE("an erased rectangle has the given share, ratio and value") {
  const torch::Tensor image = torch::full({3, 60, 80}, 0.25);
  double least = 1, most = 0;
  for (int record = 0; record < 300; ++record) {
    const torch::Tensor erased =
        draw(tf::random_erasing(1, {0.1, 0.3}, {0.5, 2}, 0.75), image, record)[1] == 0.75;
    const double height = erased.any(1).sum().item<double>(), width = erased.any(0).sum().item<double>();
    CHECK(erased.sum().item<double>() == height * width);
    least = std::min(least, height * width / 4800), most = std::max(most, height * width / 4800);
    CHECK(height / width > 0.45);
    CHECK(height / width < 2.2);
  }
  CHECK(least == Approx(0.1).margin(0.02));
  CHECK(most == Approx(0.3).margin(0.02));
  const torch::Tensor noise =
      draw(tf::random_erasing(1, {0.5, 0.5}, {1, 1}, std::nullopt), torch::zeros({3, 200, 200}), 1);
  const torch::Tensor values = noise.index({noise != 0});
  CHECK(values.mean().item<double>() == Approx(0).margin(0.03));
  CHECK(values.std().item<double>() == Approx(1).margin(0.03));
}

TEST_CASE("mixup and CutMix mix images and targets by the same share") {
  const torch::Tensor images =
      torch::arange(4, torch::kFloat).view({4, 1, 1, 1}).expand({4, 3, 16, 16}).contiguous();
  const torch::Tensor labels = torch::tensor({0, 1, 2, 1});
  double sum = 0, squares = 0;
  for (int record = 0; record < 2000; ++record) {
    RecordRandom random(1, 0, record), again(1, 0, record);
    const auto mixed = tf::mixup(images, labels, 3, 0.4, random);
    const double lambda = mixed.targets[1][1].item<double>();
    sum += lambda, squares += lambda * lambda;
    if (record >= 100) continue;
    // Record 1 is mixed with record 0.
    CHECK(mixed.images[1].mean().item<double>() == Approx(lambda).margin(1e-5));
    CHECK(mixed.targets[1][0].item<double>() == Approx(1 - lambda).margin(1e-6));
    CHECK(mixed.images.equal(tf::mixup(images, labels, 3, 0.4, again).images));
    const auto cut = tf::cutmix(images, labels, 3, 1, random);
    CHECK(cut.images[1].mean().item<double>() == Approx(cut.targets[1][1].item<double>()).margin(1e-5));
    CHECK(cut.targets.sum(1).allclose(torch::ones({4})));
  }
  // Beta(α, α) has the mean 1/2 and the variance 1 / (4 (2α + 1)).
  CHECK(sum / 2000 == Approx(0.5).margin(0.03));
  CHECK(squares / 2000 - 0.25 == Approx(1 / (4 * 1.8)).margin(0.02));
  RecordRandom random(1, 0, 0);
  CHECK_THROWS_WITH(tf::mixup(images, labels, 3, 0, random), Catch::Contains("alpha is 0"));
  CHECK_THROWS_WITH(tf::cutmix(images[0], labels, 3, 1, random), Catch::Contains("[3, 16, 16] and [4]"));
}

TEST_CASE("parameters and images out of range are named") {
  CHECK_THROWS_WITH(tf::color_jitter({.hue = 0.6}), Catch::Contains("hue is 0.6"));
  CHECK_THROWS_WITH(tf::gaussian_blur(4), Catch::Contains("kernel_size is 4"));
  CHECK_THROWS_WITH(tf::random_affine({.scale = {0, 1}}), Catch::Contains("scale must be above 0"));
  CHECK_THROWS_WITH(tf::random_erasing(0.5, {0.5, 0.1}), Catch::Contains("scale"));
  CHECK_THROWS_WITH(tf::random_invert(2), Catch::Contains("p must be in [0, 1]"));
  CHECK_THROWS_WITH(tf::rand_augment({.magnitude = 31}), Catch::Contains("magnitude is 31, not in [0, 31)"));
  CHECK_THROWS_WITH(tf::random_choice({}), Catch::Contains("at least one"));
  CHECK_THROWS_WITH(draw(tf::rand_augment(), photo(false), 0), Catch::Contains("takes bytes"));
  CHECK_THROWS_WITH(tf::functional::augment(photo(), "Twist", 1), Catch::Contains("no operation \"Twist\""));
  CHECK_THROWS_WITH(tf::functional::pad(photo(), {40, 0, 0, 0}, 0, tf::PaddingMode::kReflect),
                    Catch::Contains("[3, 24, 32]"));
  CHECK_THROWS_WITH(tf::functional::adjust_hue(torch::zeros({2, 4, 4}), 0.1),
                    Catch::Contains("[1 or 3, H, W]"));
}

}  // namespace
}  // namespace det
