#include "det/transforms.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "harness/src/data/image_check.h"
#include "harness/src/data/normalize.h"
#include "harness/src/data/resample.h"

namespace det::transforms {
namespace {

/// A rectangle of an image.
struct Box {
  std::int64_t top, left, height, width;
};

torch::Tensor crop(const torch::Tensor& image, const Box& box) {
  return functional::crop(image, box.top, box.left, box.height, box.width);
}

/// Decoders only shrink, so a scale is limited to 1.
double at_most_one(double factor) { return std::min(1.0, factor); }

/// Draws the box of random_resized_crop like torchvision: up to ten attempts, then a central crop with the
/// aspect ratio clamped to `ratio`.
Box draw_resized_crop(std::int64_t height, std::int64_t width, const std::array<double, 2>& scale,
                      const std::array<double, 2>& ratio, RecordRandom& random) {
  const auto area = static_cast<double>(height * width);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double part = area * random.uniform(scale[0], scale[1]);
    const double aspect = std::exp(random.uniform(std::log(ratio[0]), std::log(ratio[1])));
    const auto w = static_cast<std::int64_t>(std::nearbyint(std::sqrt(part * aspect)));
    const auto h = static_cast<std::int64_t>(std::nearbyint(std::sqrt(part / aspect)));
    if (w < 1 || w > width || h < 1 || h > height) continue;
    const std::int64_t top = random.below(height - h + 1);
    return {top, random.below(width - w + 1), h, w};
  }
  const double whole = static_cast<double>(width) / static_cast<double>(height);
  std::int64_t w = width, h = height;
  if (whole < ratio[0]) h = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(w) / ratio[0]));
  if (whole > ratio[1]) w = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(h) * ratio[1]));
  h = std::clamp<std::int64_t>(h, 1, height), w = std::clamp<std::int64_t>(w, 1, width);
  return {(height - h) / 2, (width - w) / 2, h, w};
}

}  // namespace

Transform compose(std::vector<Transform> transforms) {
  const auto all = std::make_shared<const std::vector<Transform>>(std::move(transforms));
  return Transform(
      [all](const torch::Tensor& image, RecordRandom& random) {
        torch::Tensor changed = image;
        for (const Transform& transform : *all) changed = transform(changed, random);
        return changed;
      },
      [all](std::int64_t height, std::int64_t width, const RecordRandom& random) {
        // Only the first transform sees the decoded image, so it alone determines the smallest usable size.
        return all->empty() ? 1 : all->front().least_scale(height, width, random);
      });
}

Transform to_tensor() {
  return [](const torch::Tensor& image) {
    require_image(image, "to_tensor");
    if (image.scalar_type() != torch::kByte) return image;
    const std::int64_t channels = image.size(0), height = image.size(1), width = image.size(2);
    torch::Tensor result = at::empty({channels, height, width}, torch::kFloat);
    auto* out = result.data_ptr<float>();
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t y = 0; y < height; ++y) {
        const auto* in = image.data_ptr<std::uint8_t>() + c * image.stride(0) + y * image.stride(1);
        bytes_to_unit(in, static_cast<std::size_t>(image.stride(2)), out, static_cast<std::size_t>(width));
        out += width;
      }
    }
    return result;
  };
}

Transform normalize(std::vector<double> mean, std::vector<double> stddev) {
  require(!mean.empty() && mean.size() == stddev.size(),
          "normalize: needs as many means as standard deviations");
  require(std::none_of(stddev.begin(), stddev.end(), [](double value) { return !(value > 0); }),
          "normalize: a standard deviation must be greater than 0");
  return [mean = std::move(mean), stddev = std::move(stddev)](const torch::Tensor& image) {
    require_image(image, "normalize");
    require(image.scalar_type() == torch::kFloat, "normalize: takes floats: put to_tensor() before it");
    require(
        image.size(0) == static_cast<std::int64_t>(mean.size()),
        "normalize: " + std::to_string(mean.size()) + " figures for an image " + compat::shape_text(image));
    const torch::Tensor planes = image.contiguous();
    torch::Tensor result = at::empty(planes.sizes(), planes.options());
    const std::int64_t pixels = planes.size(1) * planes.size(2);
    const float* in = planes.data_ptr<float>();
    auto* out = result.data_ptr<float>();
    for (std::size_t c = 0; c < mean.size(); ++c) {
      standardize(in, out, static_cast<std::size_t>(pixels), static_cast<float>(mean[c]),
                  static_cast<float>(stddev[c]));
      in += pixels, out += pixels;
    }
    return result;
  };
}

Transform resize(std::int64_t size) {
  require(size >= 1, "resize: size is " + std::to_string(size));
  return Transform(
      [size](const torch::Tensor& image, RecordRandom&) {
        require_image(image, "resize");
        const std::int64_t height = image.size(1), width = image.size(2);
        return height < width ? resample(image, size, size * width / height)
                              : resample(image, size * height / width, size);
      },
      [size](std::int64_t height, std::int64_t width, const RecordRandom&) {
        return at_most_one(static_cast<double>(size) / static_cast<double>(std::min(height, width)));
      });
}

Transform resize(std::int64_t height, std::int64_t width) {
  require(height >= 1 && width >= 1,
          "resize: size is " + std::to_string(height) + " × " + std::to_string(width));
  return Transform(
      [=](const torch::Tensor& image, RecordRandom&) {
        require_image(image, "resize");
        return resample(image, height, width);
      },
      [=](std::int64_t from_height, std::int64_t from_width, const RecordRandom&) {
        return at_most_one(std::max(static_cast<double>(height) / static_cast<double>(from_height),
                                    static_cast<double>(width) / static_cast<double>(from_width)));
      });
}

Transform center_crop(std::int64_t size) { return center_crop(size, size); }

Transform center_crop(std::int64_t height, std::int64_t width) {
  require(height >= 1 && width >= 1,
          "center_crop: size is " + std::to_string(height) + " × " + std::to_string(width));
  return [=](const torch::Tensor& image) {
    require_image(image, "center_crop");
    // An odd remainder is placed like torchvision: rounded to even when cropping, truncated when padding.
    const auto start = [](std::int64_t have, std::int64_t want) {
      return have < want ? -((want - have) / 2)
                         : static_cast<std::int64_t>(std::nearbyint(static_cast<double>(have - want) / 2));
    };
    return crop(image, {start(image.size(1), height), start(image.size(2), width), height, width});
  };
}

Transform random_crop(std::int64_t size, std::int64_t padding) { return random_crop(size, size, padding); }

Transform random_crop(std::int64_t height, std::int64_t width, std::int64_t padding) {
  require(height >= 1 && width >= 1,
          "random_crop: size is " + std::to_string(height) + " × " + std::to_string(width));
  require(padding >= 0, "random_crop: padding is " + std::to_string(padding));
  return [=](const torch::Tensor& image, RecordRandom& random) {
    require_image(image, "random_crop");
    const std::int64_t rows = image.size(1) + 2 * padding - height,
                       columns = image.size(2) + 2 * padding - width;
    require(rows >= 0 && columns >= 0,
            "random_crop: " + std::to_string(height) + " × " + std::to_string(width) + " with padding " +
                std::to_string(padding) + " is more than an image " + compat::shape_text(image));
    const std::int64_t top = random.below(rows + 1) - padding;
    return crop(image, {top, random.below(columns + 1) - padding, height, width});
  };
}

Transform random_resized_crop(std::int64_t size, std::array<double, 2> scale, std::array<double, 2> ratio) {
  require(size >= 1, "random_resized_crop: size is " + std::to_string(size));
  require(scale[0] > 0 && scale[0] <= scale[1],
          "random_resized_crop: scale must be two rising figures above 0");
  require(ratio[0] > 0 && ratio[0] <= ratio[1],
          "random_resized_crop: ratio must be two rising figures above 0");
  return Transform(
      [=](const torch::Tensor& image, RecordRandom& random) {
        require_image(image, "random_resized_crop");
        return resample(crop(image, draw_resized_crop(image.size(1), image.size(2), scale, ratio, random)),
                        size, size);
      },
      [=](std::int64_t height, std::int64_t width, RecordRandom random) {
        // `random` is a copy: the transform later draws the same box.
        const Box box = draw_resized_crop(height, width, scale, ratio, random);
        return at_most_one(static_cast<double>(size) / static_cast<double>(std::min(box.height, box.width)));
      });
}

}  // namespace det::transforms
