// Transforms that draw parameters and call a function of det/transforms_functional.h.
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "det/transforms.h"
#include "harness/src/data/image_check.h"

namespace det::transforms {
namespace {

/// Applies `change(image)` with probability `p`.
template <typename Change>
Transform with_probability(double p, const std::string& name, Change change) {
  require_probability(p, name);
  return [p, name, change](const torch::Tensor& image, RecordRandom& random) {
    require_image(image, name);
    return random.uniform() < p ? change(image) : image;
  };
}

void require_range(const std::array<double, 2>& range, const std::string& what) {
  require(range[0] <= range[1], what + " must be two rising figures");
}

/// A random order of `count` indices (Fisher and Yates).
std::vector<std::size_t> shuffled(std::size_t count, RecordRandom& random) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = count; i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
  }
  return order;
}

/// Standard normal values (Box and Muller).
torch::Tensor normal(torch::IntArrayRef shape, RecordRandom& random) {
  torch::Tensor values = at::empty(shape, torch::kFloat);
  auto* out = values.data_ptr<float>();
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
    out[i] = static_cast<float>(radius * std::cos(2 * std::numbers::pi * random.uniform()));
  }
  return values;
}

}  // namespace

Transform random_horizontal_flip(double p) {
  return with_probability(p, "random_horizontal_flip", functional::hflip);
}
Transform random_vertical_flip(double p) {
  return with_probability(p, "random_vertical_flip", functional::vflip);
}
Transform random_invert(double p) { return with_probability(p, "random_invert", functional::invert); }
Transform random_autocontrast(double p) {
  return with_probability(p, "random_autocontrast", functional::autocontrast);
}
Transform random_equalize(double p) { return with_probability(p, "random_equalize", functional::equalize); }
Transform random_posterize(std::int64_t bits, double p) {
  require(bits >= 0 && bits <= 8, "random_posterize: bits is " + std::to_string(bits) + ", not in [0, 8]");
  return with_probability(p, "random_posterize",
                          [bits](const torch::Tensor& image) { return functional::posterize(image, bits); });
}
Transform random_solarize(double threshold, double p) {
  return with_probability(p, "random_solarize", [threshold](const torch::Tensor& image) {
    return functional::solarize(image, threshold);
  });
}
Transform random_adjust_sharpness(double factor, double p) {
  require(factor >= 0, "random_adjust_sharpness: the factor must not be below 0");
  return with_probability(p, "random_adjust_sharpness", [factor](const torch::Tensor& image) {
    return functional::adjust_sharpness(image, factor);
  });
}
Transform random_grayscale(double p) {
  return with_probability(p, "random_grayscale", [](const torch::Tensor& image) {
    return functional::rgb_to_grayscale(image, image.size(0));
  });
}

Transform grayscale(std::int64_t channels) {
  require(channels == 1 || channels == 3,
          "grayscale: the number of channels is " + std::to_string(channels) + ", not 1 or 3");
  return [channels](const torch::Tensor& image) { return functional::rgb_to_grayscale(image, channels); };
}

Transform pad(std::array<std::int64_t, 4> padding, double fill, PaddingMode mode) {
  require(*std::min_element(padding.begin(), padding.end()) >= 0, "pad: padding must not be below 0");
  return [=](const torch::Tensor& image) { return functional::pad(image, padding, fill, mode); };
}

Transform color_jitter(const ColorJitter& ranges) {
  for (const double value : {ranges.brightness, ranges.contrast, ranges.saturation, ranges.hue})
    require(value >= 0, "color_jitter: a range is " + std::to_string(value) + ", it must not be below 0");
  require(ranges.hue <= 0.5, "color_jitter: hue is " + std::to_string(ranges.hue) + ", above 0.5");
  return [ranges](const torch::Tensor& image, RecordRandom& random) {
    require_image(image, "color_jitter", true);
    const auto factor = [&](double range) { return random.uniform(std::max(0.0, 1 - range), 1 + range); };
    const std::vector<std::size_t> order = shuffled(4, random);
    const double brightness = factor(ranges.brightness), contrast = factor(ranges.contrast);
    const double saturation = factor(ranges.saturation), hue = random.uniform(-ranges.hue, ranges.hue);
    torch::Tensor changed = image;
    for (const std::size_t change : order) {
      if (change == 0 && ranges.brightness > 0) changed = functional::adjust_brightness(changed, brightness);
      if (change == 1 && ranges.contrast > 0) changed = functional::adjust_contrast(changed, contrast);
      if (change == 2 && ranges.saturation > 0) changed = functional::adjust_saturation(changed, saturation);
      if (change == 3 && ranges.hue > 0) changed = functional::adjust_hue(changed, hue);
    }
    return changed;
  };
}

Transform random_rotation(std::array<double, 2> degrees, Interpolation interpolation, bool expand,
                          Fill fill) {
  require_range(degrees, "random_rotation: degrees");
  return [=](const torch::Tensor& image, RecordRandom& random) {
    return functional::rotate(image, random.uniform(degrees[0], degrees[1]), interpolation, expand, fill);
  };
}

Transform random_affine(const RandomAffine& ranges) {
  require_range(ranges.degrees, "random_affine: degrees");
  require_range(ranges.scale, "random_affine: scale");
  require_range({ranges.shear[0], ranges.shear[1]}, "random_affine: shear in x");
  require_range({ranges.shear[2], ranges.shear[3]}, "random_affine: shear in y");
  require(ranges.scale[0] > 0, "random_affine: scale must be above 0");
  for (const double share : ranges.translate)
    require(share >= 0 && share <= 1, "random_affine: translate must be in [0, 1]");
  return [ranges](const torch::Tensor& image, RecordRandom& random) {
    require_image(image, "random_affine");
    functional::Affine drawn;
    drawn.angle = random.uniform(ranges.degrees[0], ranges.degrees[1]);
    for (const int side : {0, 1}) {
      const double most = ranges.translate[side] * static_cast<double>(image.size(2 - side));
      drawn.translate[side] = std::nearbyint(random.uniform(-most, most));
    }
    drawn.scale = random.uniform(ranges.scale[0], ranges.scale[1]);
    drawn.shear = {random.uniform(ranges.shear[0], ranges.shear[1]),
                   random.uniform(ranges.shear[2], ranges.shear[3])};
    return functional::affine(image, drawn, ranges.interpolation, ranges.fill);
  };
}

Transform random_perspective(double distortion, double p, Interpolation interpolation, Fill fill) {
  require(distortion >= 0 && distortion <= 1, "random_perspective: distortion must be in [0, 1]");
  require_probability(p, "random_perspective");
  return [=](const torch::Tensor& image, RecordRandom& random) {
    require_image(image, "random_perspective");
    if (random.uniform() >= p) return image;
    const auto right = static_cast<double>(image.size(2) - 1),
               bottom = static_cast<double>(image.size(1) - 1);
    const functional::Corners from{{{0, 0}, {right, 0}, {right, bottom}, {0, bottom}}};
    functional::Corners to = from;
    for (Point& corner : to) {
      for (const int side : {0, 1}) {
        const std::int64_t half = image.size(2 - side) / 2;
        const auto most = static_cast<std::int64_t>(distortion * static_cast<double>(half));
        const auto moved = static_cast<double>(random.below(most + 1));
        corner[side] += corner[side] == 0 ? moved : -moved;
      }
    }
    return functional::perspective(image, from, to, interpolation, fill);
  };
}

Transform gaussian_blur(std::int64_t kernel_size, std::array<double, 2> sigma) {
  require(kernel_size >= 1 && kernel_size % 2 == 1,
          "gaussian_blur: kernel_size is " + std::to_string(kernel_size) + ", it must be odd");
  require_range(sigma, "gaussian_blur: sigma");
  require(sigma[0] > 0, "gaussian_blur: sigma must be above 0");
  return [=](const torch::Tensor& image, RecordRandom& random) {
    return functional::gaussian_blur(image, kernel_size, random.uniform(sigma[0], sigma[1]));
  };
}

Transform random_erasing(double p, std::array<double, 2> scale, std::array<double, 2> ratio,
                         std::optional<double> value) {
  require_probability(p, "random_erasing");
  require(scale[0] >= 0 && scale[0] <= scale[1] && scale[1] <= 1,
          "random_erasing: scale must be two rising figures in [0, 1]");
  require(ratio[0] > 0 && ratio[0] <= ratio[1], "random_erasing: ratio must be two rising figures above 0");
  return [=](const torch::Tensor& image, RecordRandom& random) {
    require_image(image, "random_erasing");
    require(value || image.is_floating_point(),
            "random_erasing: normal values need floats: put to_tensor() before it");
    if (random.uniform() >= p) return image;
    const std::int64_t height = image.size(1), width = image.size(2);
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double area = static_cast<double>(height * width) * random.uniform(scale[0], scale[1]);
      const double aspect = std::exp(random.uniform(std::log(ratio[0]), std::log(ratio[1])));
      const auto h = static_cast<std::int64_t>(std::nearbyint(std::sqrt(area * aspect)));
      const auto w = static_cast<std::int64_t>(std::nearbyint(std::sqrt(area / aspect)));
      if (h < 1 || w < 1 || h >= height || w >= width) continue;
      const std::int64_t top = random.below(height - h + 1), left = random.below(width - w + 1);
      const torch::Tensor content =
          value ? at::full({1, 1, 1}, *value) : normal({image.size(0), h, w}, random);
      return functional::erase(image, top, left, h, w, content);
    }
    return image;
  };
}

Transform random_apply(std::vector<Transform> transforms, double p) {
  require_probability(p, "random_apply");
  const Transform all = compose(std::move(transforms));
  return [all, p](const torch::Tensor& image, RecordRandom& random) {
    return random.uniform() < p ? all(image, random) : image;
  };
}

Transform random_choice(std::vector<Transform> transforms) {
  require(!transforms.empty(), "random_choice: needs at least one transform");
  return [all = std::move(transforms)](const torch::Tensor& image, RecordRandom& random) {
    return all[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(all.size())))](image, random);
  };
}

Transform random_order(std::vector<Transform> transforms) {
  return [all = std::move(transforms)](const torch::Tensor& image, RecordRandom& random) {
    torch::Tensor changed = image;
    for (const std::size_t i : shuffled(all.size(), random)) changed = all[i](changed, random);
    return changed;
  };
}

}  // namespace det::transforms
