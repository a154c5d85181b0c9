// AutoAugment, RandAugment and TrivialAugment: random operations of a common search space.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>

#include "det/transforms.h"
#include "harness/src/data/image_check.h"

namespace det::transforms {
namespace {

/// Magnitudes of an operation: `bins` values from `first` to `last`. `is_signed` ones are negated with
/// probability 1/2.
struct Magnitudes {
  std::string_view operation;
  double first = 0, last = 0;
  bool is_signed = false;
};

/// Ranges of a search space. Translations are in pixels.
struct Space {
  double shear, translate_x, translate_y, rotate, enhance, posterize;
};
constexpr std::size_t kOperations = 15;
using Operations = std::array<Magnitudes, kOperations>;

/// The operations in torchvision's order. The last one is only part of AutoAugment.
Operations operations(const Space& space) {
  return {{{"Identity"},
           {"ShearX", 0, space.shear, true},
           {"ShearY", 0, space.shear, true},
           {"TranslateX", 0, space.translate_x, true},
           {"TranslateY", 0, space.translate_y, true},
           {"Rotate", 0, space.rotate, true},
           {"Brightness", 0, space.enhance, true},
           {"Color", 0, space.enhance, true},
           {"Contrast", 0, space.enhance, true},
           {"Sharpness", 0, space.enhance, true},
           {"Posterize", 8, space.posterize},
           {"Solarize", 255, 0},
           {"AutoContrast"},
           {"Equalize"},
           {"Invert"}}};
}

/// The space of AutoAugment and RandAugment; its translations grow with the image.
Operations scaled_operations(const torch::Tensor& image) {
  constexpr double kShare = 150.0 / 331.0;
  return operations({.shear = 0.3,
                     .translate_x = kShare * static_cast<double>(image.size(2)),
                     .translate_y = kShare * static_cast<double>(image.size(1)),
                     .rotate = 30,
                     .enhance = 0.9,
                     .posterize = 4});
}

/// Magnitude `bin` of `bins`, without its sign. Bits of Posterize are rounded.
double magnitude_of(const Magnitudes& range, std::int64_t bin, std::int64_t bins) {
  const double at = static_cast<double>(bin) / static_cast<double>(bins - 1);
  if (range.operation == "Posterize") return range.first - std::nearbyint((range.first - range.last) * at);
  return range.first + (range.last - range.first) * at;
}

/// Magnitudes of Solarize and Posterize are those of bytes.
void require_augmentable(const torch::Tensor& image, const char* transform) {
  require_image(image, transform, true);
  require(image.scalar_type() == torch::kByte,
          std::string(transform) + ": takes bytes: put it before to_tensor()");
}

/// A step of a policy: an operation with its probability and its magnitude out of 10.
struct PolicyStep {
  std::string_view operation;
  double probability;
  std::int64_t magnitude;  ///< -1: the operation has none
};
using SubPolicy = std::array<PolicyStep, 2>;
using Policy = std::array<SubPolicy, 25>;

constexpr Policy kImageNetPolicy{{
    {{{"Posterize", 0.4, 8}, {"Rotate", 0.6, 9}}},    {{{"Solarize", 0.6, 5}, {"AutoContrast", 0.6, -1}}},
    {{{"Equalize", 0.8, -1}, {"Equalize", 0.6, -1}}}, {{{"Posterize", 0.6, 7}, {"Posterize", 0.6, 6}}},
    {{{"Equalize", 0.4, -1}, {"Solarize", 0.2, 4}}},  {{{"Equalize", 0.4, -1}, {"Rotate", 0.8, 8}}},
    {{{"Solarize", 0.6, 3}, {"Equalize", 0.6, -1}}},  {{{"Posterize", 0.8, 5}, {"Equalize", 1, -1}}},
    {{{"Rotate", 0.2, 3}, {"Solarize", 0.6, 8}}},     {{{"Equalize", 0.6, -1}, {"Posterize", 0.4, 6}}},
    {{{"Rotate", 0.8, 8}, {"Color", 0.4, 0}}},        {{{"Rotate", 0.4, 9}, {"Equalize", 0.6, -1}}},
    {{{"Equalize", 0, -1}, {"Equalize", 0.8, -1}}},   {{{"Invert", 0.6, -1}, {"Equalize", 1, -1}}},
    {{{"Color", 0.6, 4}, {"Contrast", 1, 8}}},        {{{"Rotate", 0.8, 8}, {"Color", 1, 2}}},
    {{{"Color", 0.8, 8}, {"Solarize", 0.8, 7}}},      {{{"Sharpness", 0.4, 7}, {"Invert", 0.6, -1}}},
    {{{"ShearX", 0.6, 5}, {"Equalize", 1, -1}}},      {{{"Color", 0.4, 0}, {"Equalize", 0.6, -1}}},
    {{{"Equalize", 0.4, -1}, {"Solarize", 0.2, 4}}},  {{{"Solarize", 0.6, 5}, {"AutoContrast", 0.6, -1}}},
    {{{"Invert", 0.6, -1}, {"Equalize", 1, -1}}},     {{{"Color", 0.6, 4}, {"Contrast", 1, 8}}},
    {{{"Equalize", 0.8, -1}, {"Equalize", 0.6, -1}}},
}};
constexpr Policy kCifar10Policy{{
    {{{"Invert", 0.1, -1}, {"Contrast", 0.2, 6}}},
    {{{"Rotate", 0.7, 2}, {"TranslateX", 0.3, 9}}},
    {{{"Sharpness", 0.8, 1}, {"Sharpness", 0.9, 3}}},
    {{{"ShearY", 0.5, 8}, {"TranslateY", 0.7, 9}}},
    {{{"AutoContrast", 0.5, -1}, {"Equalize", 0.9, -1}}},
    {{{"ShearY", 0.2, 7}, {"Posterize", 0.3, 7}}},
    {{{"Color", 0.4, 3}, {"Brightness", 0.6, 7}}},
    {{{"Sharpness", 0.3, 9}, {"Brightness", 0.7, 9}}},
    {{{"Equalize", 0.6, -1}, {"Equalize", 0.5, -1}}},
    {{{"Contrast", 0.6, 7}, {"Sharpness", 0.6, 5}}},
    {{{"Color", 0.7, 7}, {"TranslateX", 0.5, 8}}},
    {{{"Equalize", 0.3, -1}, {"AutoContrast", 0.4, -1}}},
    {{{"TranslateY", 0.4, 3}, {"Sharpness", 0.2, 6}}},
    {{{"Brightness", 0.9, 6}, {"Color", 0.2, 8}}},
    {{{"Solarize", 0.5, 2}, {"Invert", 0, -1}}},
    {{{"Equalize", 0.2, -1}, {"AutoContrast", 0.6, -1}}},
    {{{"Equalize", 0.2, -1}, {"Equalize", 0.6, -1}}},
    {{{"Color", 0.9, 9}, {"Equalize", 0.6, -1}}},
    {{{"AutoContrast", 0.8, -1}, {"Solarize", 0.2, 8}}},
    {{{"Brightness", 0.1, 3}, {"Color", 0.7, 0}}},
    {{{"Solarize", 0.4, 5}, {"AutoContrast", 0.9, -1}}},
    {{{"TranslateY", 0.9, 9}, {"TranslateY", 0.7, 9}}},
    {{{"AutoContrast", 0.9, -1}, {"Solarize", 0.8, 3}}},
    {{{"Equalize", 0.8, -1}, {"Invert", 0.1, -1}}},
    {{{"TranslateY", 0.7, 9}, {"AutoContrast", 0.9, -1}}},
}};
constexpr Policy kSvhnPolicy{{
    {{{"ShearX", 0.9, 4}, {"Invert", 0.2, -1}}},        {{{"ShearY", 0.9, 8}, {"Invert", 0.7, -1}}},
    {{{"Equalize", 0.6, -1}, {"Solarize", 0.6, 6}}},    {{{"Invert", 0.9, -1}, {"Equalize", 0.6, -1}}},
    {{{"Equalize", 0.6, -1}, {"Rotate", 0.9, 3}}},      {{{"ShearX", 0.9, 4}, {"AutoContrast", 0.8, -1}}},
    {{{"ShearY", 0.9, 8}, {"Invert", 0.4, -1}}},        {{{"ShearY", 0.9, 5}, {"Solarize", 0.2, 6}}},
    {{{"Invert", 0.9, -1}, {"AutoContrast", 0.8, -1}}}, {{{"Equalize", 0.6, -1}, {"Rotate", 0.9, 3}}},
    {{{"ShearX", 0.9, 4}, {"Solarize", 0.3, 3}}},       {{{"ShearY", 0.8, 8}, {"Invert", 0.7, -1}}},
    {{{"Equalize", 0.9, -1}, {"TranslateY", 0.6, 6}}},  {{{"Invert", 0.9, -1}, {"Equalize", 0.6, -1}}},
    {{{"Contrast", 0.3, 3}, {"Rotate", 0.8, 4}}},       {{{"Invert", 0.8, -1}, {"TranslateY", 0, 2}}},
    {{{"ShearY", 0.7, 6}, {"Solarize", 0.4, 8}}},       {{{"Invert", 0.6, -1}, {"Rotate", 0.8, 4}}},
    {{{"ShearY", 0.3, 7}, {"TranslateX", 0.9, 3}}},     {{{"ShearX", 0.1, 6}, {"Invert", 0.6, -1}}},
    {{{"Solarize", 0.7, 2}, {"TranslateY", 0.6, 7}}},   {{{"ShearY", 0.8, 4}, {"Invert", 0.8, -1}}},
    {{{"ShearX", 0.7, 9}, {"TranslateY", 0.8, 3}}},     {{{"ShearY", 0.8, 5}, {"AutoContrast", 0.7, -1}}},
    {{{"ShearX", 0.7, 2}, {"Invert", 0.1, -1}}},
}};

}  // namespace

torch::Tensor functional::augment(const torch::Tensor& image, const std::string& operation, double magnitude,
                                  Interpolation interpolation, Fill fill) {
  const auto shear = [&](std::size_t axis) {
    // PIL's shear is the tangent of the angle. The origin is the center of the shear.
    Affine map{.center = Point{0, 0}};
    map.shear[axis] = std::atan(magnitude) * 180 / std::numbers::pi;
    return affine(image, map, interpolation, fill);
  };
  const auto translate = [&](std::size_t axis) {
    Affine map;
    map.translate[axis] = std::trunc(magnitude);
    return affine(image, map, interpolation, fill);
  };
  if (operation == "Identity") return image;
  if (operation == "ShearX") return shear(0);
  if (operation == "ShearY") return shear(1);
  if (operation == "TranslateX") return translate(0);
  if (operation == "TranslateY") return translate(1);
  if (operation == "Rotate") return rotate(image, magnitude, interpolation, /*expand=*/false, fill);
  if (operation == "Brightness") return adjust_brightness(image, 1 + magnitude);
  if (operation == "Color") return adjust_saturation(image, 1 + magnitude);
  if (operation == "Contrast") return adjust_contrast(image, 1 + magnitude);
  if (operation == "Sharpness") return adjust_sharpness(image, 1 + magnitude);
  if (operation == "Posterize") return posterize(image, static_cast<std::int64_t>(magnitude));
  if (operation == "Solarize") return solarize(image, magnitude);
  if (operation == "AutoContrast") return autocontrast(image);
  if (operation == "Equalize") return equalize(image);
  if (operation == "Invert") return invert(image);
  throw std::invalid_argument("transforms::augment: there is no operation \"" + operation + "\"");
}

Transform rand_augment(const RandAugment& options) {
  require(options.num_ops >= 0, "rand_augment: num_ops must not be below 0");
  require(options.num_magnitude_bins >= 2 && options.magnitude >= 0 &&
              options.magnitude < options.num_magnitude_bins,
          "rand_augment: magnitude is " + std::to_string(options.magnitude) + ", not in [0, " +
              std::to_string(options.num_magnitude_bins) + ")");
  return [options](const torch::Tensor& image, RecordRandom& random) {
    require_augmentable(image, "rand_augment");
    const Operations all = scaled_operations(image);
    torch::Tensor changed = image;
    for (std::int64_t i = 0; i < options.num_ops; ++i) {
      const Magnitudes& drawn = all[static_cast<std::size_t>(random.below(kOperations - 1))];
      double magnitude = magnitude_of(drawn, options.magnitude, options.num_magnitude_bins);
      if (drawn.is_signed && random.below(2) == 1) magnitude = -magnitude;
      changed = functional::augment(changed, std::string(drawn.operation), magnitude, options.interpolation,
                                    options.fill);
    }
    return changed;
  };
}

Transform trivial_augment_wide(std::int64_t num_magnitude_bins, Interpolation interpolation, Fill fill) {
  require(num_magnitude_bins >= 2, "trivial_augment_wide: num_magnitude_bins must be at least 2");
  return [=](const torch::Tensor& image, RecordRandom& random) {
    require_augmentable(image, "trivial_augment_wide");
    const Operations all = operations({.shear = 0.99,
                                       .translate_x = 32,
                                       .translate_y = 32,
                                       .rotate = 135,
                                       .enhance = 0.99,
                                       .posterize = 2});
    const Magnitudes& drawn = all[static_cast<std::size_t>(random.below(kOperations - 1))];
    double magnitude = magnitude_of(drawn, random.below(num_magnitude_bins), num_magnitude_bins);
    if (drawn.is_signed && random.below(2) == 1) magnitude = -magnitude;
    return functional::augment(image, std::string(drawn.operation), magnitude, interpolation, fill);
  };
}

Transform auto_augment(AutoAugmentPolicy policy, Interpolation interpolation, Fill fill) {
  const Policy& steps = policy == AutoAugmentPolicy::kImageNet  ? kImageNetPolicy
                        : policy == AutoAugmentPolicy::kCifar10 ? kCifar10Policy
                                                                : kSvhnPolicy;
  return [&steps, interpolation, fill](const torch::Tensor& image, RecordRandom& random) {
    require_augmentable(image, "auto_augment");
    const Operations all = scaled_operations(image);
    torch::Tensor changed = image;
    for (const PolicyStep& step : steps[static_cast<std::size_t>(random.below(steps.size()))]) {
      // Both numbers are drawn for each step, so that the stream does not depend on the policy.
      const bool applies = random.uniform() < step.probability, negative = random.below(2) == 0;
      if (!applies) continue;
      const auto* range = std::find_if(all.begin(), all.end(),
                                       [&](const Magnitudes& m) { return m.operation == step.operation; });
      double magnitude = step.magnitude < 0 ? 0 : magnitude_of(*range, step.magnitude, 10);
      if (range->is_signed && negative) magnitude = -magnitude;
      changed = functional::augment(changed, std::string(step.operation), magnitude, interpolation, fill);
    }
    return changed;
  };
}

}  // namespace det::transforms
