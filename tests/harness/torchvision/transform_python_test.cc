// Transforms with given parameters against torchvision's, on the same image.
#include <torch/types.h>

#include <catch2/catch.hpp>
#include <functional>
#include <map>

#include "common/base/files.h"
#include "det/transforms.h"
#include "harness/src/checkpoint/pickle.h"
#include "torchvision.h"

namespace det {
namespace {

namespace fn = transforms::functional;
using transforms::Interpolation;
using transforms::PaddingMode;
using Case = std::function<torch::Tensor(const torch::Tensor&)>;

const fn::Corners kCorners{{{0, 0}, {42, 0}, {42, 30}, {0, 30}}},
    kMoved{{{3, 2}, {38, 5}, {40, 26}, {6, 29}}};

Case operation(const std::string& name, double magnitude, Interpolation how = Interpolation::kNearest,
               transforms::Fill fill = {}) {
  return [=](const torch::Tensor& x) { return fn::augment(x, name, magnitude, how, fill); };
}

using Cases = std::map<std::string, Case>;
using Image = const torch::Tensor&;

/// The cases of torchvision_golden.py that change values.
Cases color_cases() {
  return {
      {"grayscale", [](Image x) { return fn::rgb_to_grayscale(x); }},
      {"grayscale 3", [](Image x) { return fn::rgb_to_grayscale(x, 3); }},
      {"brightness", [](Image x) { return fn::adjust_brightness(x, 1.37); }},
      {"contrast", [](Image x) { return fn::adjust_contrast(x, 0.43); }},
      {"saturation", [](Image x) { return fn::adjust_saturation(x, 1.71); }},
      {"hue", [](Image x) { return fn::adjust_hue(x, 0.29); }},
      {"hue back", [](Image x) { return fn::adjust_hue(x, -0.43); }},
      {"gamma", [](Image x) { return fn::adjust_gamma(x, 1.8, 1.1); }},
      {"sharpness", [](Image x) { return fn::adjust_sharpness(x, 2.3); }},
      {"smoothness", [](Image x) { return fn::adjust_sharpness(x, 0); }},
      {"invert", fn::invert},
      {"posterize", [](Image x) { return fn::posterize(x, 3); }},
      {"solarize", [](Image x) { return fn::solarize(x, x.is_floating_point() ? 0.4 : 100); }},
      {"autocontrast", fn::autocontrast},
      {"equalize", fn::equalize},
  };
}

/// Those that change positions.
Cases position_cases() {
  constexpr auto kBilinear = Interpolation::kBilinear;
  return {
      {"hflip", fn::hflip},
      {"vflip", fn::vflip},
      {"crop", [](Image x) { return fn::crop(x, -2, 5, 20, 50); }},
      {"center_crop",
       [](Image x) {
         RecordRandom random(0, 0, 0);
         return transforms::center_crop(21, 30)(x, random);
       }},
      {"resize", [](Image x) { return fn::resize(x, 17, 23); }},
      {"resize up", [](Image x) { return fn::resize(x, 60, 55); }},
      {"pad",
       [](Image x) {
         return fn::pad(x, {1, 2, 3, 4}, 1);
       }},
      {"pad edge",
       [](Image x) {
         return fn::pad(x, {1, 2, 3, 4}, 0, PaddingMode::kEdge);
       }},
      {"pad reflect",
       [](Image x) {
         return fn::pad(x, {1, 2, 3, 4}, 0, PaddingMode::kReflect);
       }},
      {"pad symmetric",
       [](Image x) {
         return fn::pad(x, {1, 2, 3, 4}, 0, PaddingMode::kSymmetric);
       }},
      {"rotate", [](Image x) { return fn::rotate(x, 33); }},
      {"rotate bilinear", [](Image x) { return fn::rotate(x, -71.5, kBilinear, false, 0.5); }},
      {"rotate expand", [](Image x) { return fn::rotate(x, 25, kBilinear, true); }},
      {"rotate quarter", [](Image x) { return fn::rotate(x, 90, Interpolation::kNearest, true); }},
      {"rotate center",
       [](Image x) {
         return fn::rotate(x, 12, Interpolation::kNearest, false, 1, transforms::Point{4, 9});
       }},
      {"affine",
       [](Image x) {
         return fn::affine(x, {.angle = 14, .translate = {3, -5}, .scale = 1.3, .shear = {7, -4}});
       }},
      {"affine bilinear",
       [](Image x) {
         const fn::Affine map{.angle = -40, .translate = {-6, 2}, .scale = 0.7, .shear = {0, 9}};
         return fn::affine(x, map, kBilinear, 0.25);
       }},
      {"affine center",
       [](Image x) {
         return fn::affine(x, {.scale = 2, .center = transforms::Point{10, 20}});
       }},
      {"perspective", [](Image x) { return fn::perspective(x, kCorners, kMoved); }},
      {"perspective nearest",
       [](Image x) { return fn::perspective(x, kCorners, kMoved, Interpolation::kNearest, 1); }},
      {"blur", [](Image x) { return fn::gaussian_blur(x, 5, 1.3); }},
      {"erase",
       [](Image x) {
         return fn::erase(x, 3, 4, 5, 6, torch::ones({1, 1, 1}));
       }},
  };
}

/// The operations of AutoAugment.
Cases augment_cases() {
  constexpr auto kBilinear = Interpolation::kBilinear;
  return {
      {"ShearX", operation("ShearX", 0.3)},
      {"ShearY", operation("ShearY", -0.2, kBilinear)},
      {"TranslateX", operation("TranslateX", 7.9)},
      {"TranslateY", operation("TranslateY", -3.2, Interpolation::kNearest, 0.5)},
      {"Rotate", operation("Rotate", -27)},
      {"Brightness", operation("Brightness", -0.5)},
      {"Color", operation("Color", 0.7)},
      {"Contrast", operation("Contrast", 0.6)},
      {"Sharpness", operation("Sharpness", -0.9)},
      {"Posterize", operation("Posterize", 5)},
      {"Solarize", operation("Solarize", 0.5)},
      {"AutoContrast", operation("AutoContrast", 0)},
      {"Equalize", operation("Equalize", 0)},
  };
}

TEST_CASE("transforms equal torchvision's: bytes exactly, floats within 1e-5") {
  auto directory = TemporaryDirectory::create().value();
  const std::string file = directory.path() + "/cases.pth";
  if (!testing::torchvision({"transforms", file})) {
    WARN("no torchvision for Python on this machine (python3-torchvision): nothing compared");
    return;
  }
  const pickle::Value read = pickle::load(file);
  std::size_t compared = 0;
  Cases all = color_cases();
  all.merge(position_cases()), all.merge(augment_cases());
  for (const auto& [name, run] : all) {
    for (const std::string kind : {"bytes", "floats"}) {
      const auto* expected = read.as<pickle::Dict>()->find(name + "/" + kind);
      if (expected == nullptr) continue;  // the case takes bytes only
      INFO(name << " of " << kind);
      const auto& image = pickle::expect<torch::Tensor>(pickle::member(read, kind.c_str()), kind);
      const torch::Tensor before = image.clone();
      const torch::Tensor ours = run(image), theirs = pickle::expect<torch::Tensor>(*expected, name);
      ++compared;
      CHECK(image.equal(before));
      REQUIRE(ours.sizes() == theirs.sizes());
      REQUIRE(ours.scalar_type() == theirs.scalar_type());
      const double difference =
          (ours.to(torch::kDouble) - theirs.to(torch::kDouble)).abs().max().item<double>();
      CHECK(difference <= (kind == "bytes" ? 0 : 1e-5));
    }
  }
  CHECK(compared == read.as<pickle::Dict>()->items.size() - 2);
}

}  // namespace
}  // namespace det
