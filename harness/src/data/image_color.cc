// Transforms of pixel values.
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "det/transforms_functional.h"
#include "harness/src/data/image_check.h"
#include "harness/src/data/image_filter.h"

namespace det::transforms::functional {
namespace {

double bound_of(const torch::Tensor& image) { return image.is_floating_point() ? 1 : 255; }
torch::Tensor as_float(const torch::Tensor& image) { return image.to(torch::kFloat); }

void require_factor(double factor, const char* transform) {
  require(factor >= 0,
          std::string(transform) + ": the factor is " + std::to_string(factor) + ", it must not be below 0");
}

/// factor * image + (1 - factor) * other. Bytes are truncated.
torch::Tensor blend(const torch::Tensor& image, const torch::Tensor& other, double factor) {
  return image.mul(factor).add(other.mul(1 - factor)).clamp_(0, bound_of(image)).to(image.scalar_type());
}

/// The image filtered by the smoothing kernel of PIL's SMOOTH; the border is the image's.
torch::Tensor smoothed(const torch::Tensor& image) {
  torch::Tensor kernel = at::ones({3, 3}, torch::kFloat);
  kernel[1][1] = 5;
  kernel /= kernel.sum();
  torch::Tensor inner = convolve(as_float(image), kernel);
  if (!image.is_floating_point()) inner.round_();
  torch::Tensor result = image.clone();
  result.slice(1, 1, -1).slice(2, 1, -1).copy_(inner);
  return result;
}

/// Converts values in [0, 1] as torchvision does: the range is divided into 256 equal parts.
torch::Tensor to_bytes(const torch::Tensor& values) { return values.mul(256 - 1e-3).to(torch::kByte); }

/// Rotates the hue of one pixel with values in [0, 1] (Smith, Color Gamut Transform Pairs, SIGGRAPH 1978).
void rotate_hue(float& r, float& g, float& b, float turn) {
  const float most = std::max({r, g, b}), least = std::min({r, g, b}), range = most - least;
  const float saturation = range == 0 ? 0 : range / most, divisor = range == 0 ? 1 : range;
  const float red = (most - r) / divisor, green = (most - g) / divisor, blue = (most - b) / divisor;
  float hue = 0;
  if (most == r) {
    hue = blue - green;
  } else if (most == g) {
    hue = 2.0F + red - blue;
  } else {
    hue = 4.0F + green - red;
  }
  hue = std::fmod(hue / 6.0F + 1.0F, 1.0F);
  hue = std::fmod(hue + turn, 1.0F);
  if (hue < 0) hue += 1.0F;
  const float sector = std::floor(hue * 6.0F), part = hue * 6.0F - sector;
  const auto limited = [](float value) { return std::clamp(value, 0.0F, 1.0F); };
  const float p = limited(most * (1.0F - saturation)), q = limited(most * (1.0F - saturation * part));
  const float t = limited(most * (1.0F - saturation * (1.0F - part)));
  const std::array<std::array<float, 3>, 6> colors{
      {{most, t, p}, {q, most, p}, {p, most, t}, {p, q, most}, {t, p, most}, {most, p, q}}};
  const auto& color = colors[static_cast<std::size_t>(sector) % 6];
  r = color[0], g = color[1], b = color[2];
}

/// Equalizes the histogram of one contiguous plane.
void equalize_plane(const std::uint8_t* in, std::uint8_t* out, std::int64_t count) {
  std::array<std::int64_t, 256> histogram{};
  for (std::int64_t i = 0; i < count; ++i) ++histogram[in[i]];
  std::int64_t last = 0;  // pixels of the highest value
  for (const std::int64_t pixels : histogram) last = pixels != 0 ? pixels : last;
  const std::int64_t step = (count - last) / 255;
  if (step == 0) {
    std::copy_n(in, count, out);
    return;
  }
  std::array<std::uint8_t, 256> table{};
  std::int64_t below = 0;
  for (std::size_t value = 0; value < table.size(); ++value) {
    table[value] =
        value == 0 ? 0 : static_cast<std::uint8_t>(std::min<std::int64_t>(255, (below + step / 2) / step));
    below += histogram[value];
  }
  for (std::int64_t i = 0; i < count; ++i) out[i] = table[in[i]];
}

void require_bytes(const torch::Tensor& image, const std::string& transform) {
  require_image(image, transform, true);
  require(image.scalar_type() == torch::kByte, transform + ": takes bytes: put it before to_tensor()");
}

}  // namespace

torch::Tensor rgb_to_grayscale(const torch::Tensor& image, std::int64_t channels) {
  require_image(image, "grayscale", true);
  require(channels == 1 || channels == 3,
          "grayscale: the number of channels is " + std::to_string(channels) + ", not 1 or 3");
  torch::Tensor gray = image;
  if (image.size(0) == 3) {
    gray = image[0]
               .mul(0.2989)
               .add(image[1].mul(0.587))
               .add(image[2].mul(0.114))
               .to(image.scalar_type())
               .unsqueeze(0);
  }
  return channels == 3 ? gray.expand({3, image.size(1), image.size(2)}) : gray;
}

torch::Tensor adjust_brightness(const torch::Tensor& image, double factor) {
  require_image(image, "adjust_brightness", true);
  require_factor(factor, "adjust_brightness");
  return blend(image, at::zeros_like(image), factor);
}

torch::Tensor adjust_contrast(const torch::Tensor& image, double factor) {
  require_image(image, "adjust_contrast", true);
  require_factor(factor, "adjust_contrast");
  return blend(image, as_float(rgb_to_grayscale(image)).mean({0, 1, 2}, /*keepdim=*/true), factor);
}

torch::Tensor adjust_saturation(const torch::Tensor& image, double factor) {
  require_image(image, "adjust_saturation", true);
  require_factor(factor, "adjust_saturation");
  return image.size(0) == 1 ? image : blend(image, rgb_to_grayscale(image), factor);
}

torch::Tensor adjust_sharpness(const torch::Tensor& image, double factor) {
  require_image(image, "adjust_sharpness", true);
  require_factor(factor, "adjust_sharpness");
  if (image.size(1) <= 2 || image.size(2) <= 2) return image;
  return blend(image, smoothed(image), factor);
}

torch::Tensor adjust_hue(const torch::Tensor& image, double factor) {
  require_image(image, "adjust_hue", true);
  require(factor >= -0.5 && factor <= 0.5,
          "adjust_hue: the factor is " + std::to_string(factor) + ", not in [-0.5, 0.5]");
  if (image.size(0) == 1) return image;
  const bool bytes = image.scalar_type() == torch::kByte;
  torch::Tensor result =
      bytes ? as_float(image).div_(255).contiguous() : image.clone(at::MemoryFormat::Contiguous);
  const std::int64_t pixels = image.size(1) * image.size(2);
  auto* values = result.data_ptr<float>();
  for (std::int64_t i = 0; i < pixels; ++i) {
    rotate_hue(values[i], values[pixels + i], values[2 * pixels + i], static_cast<float>(factor));
  }
  return bytes ? to_bytes(result) : result;
}

torch::Tensor adjust_gamma(const torch::Tensor& image, double gamma, double gain) {
  require_image(image, "adjust_gamma", true);
  require(gamma >= 0, "adjust_gamma: gamma is " + std::to_string(gamma) + ", it must not be below 0");
  const bool bytes = image.scalar_type() == torch::kByte;
  const torch::Tensor changed =
      (bytes ? as_float(image).div_(255) : image).pow(gamma).mul_(gain).clamp_(0, 1);
  return bytes ? to_bytes(changed) : changed;
}

torch::Tensor invert(const torch::Tensor& image) {
  require_image(image, "invert", true);
  return image.is_floating_point() ? 1 - image : image.bitwise_not();
}

torch::Tensor posterize(const torch::Tensor& image, std::int64_t bits) {
  require_bytes(image, "posterize");
  require(bits >= 0 && bits <= 8, "posterize: bits is " + std::to_string(bits) + ", not in [0, 8]");
  return image.bitwise_and(256 - (std::int64_t{1} << (8 - bits)));
}

torch::Tensor solarize(const torch::Tensor& image, double threshold) {
  require_image(image, "solarize", true);
  require(threshold <= bound_of(image), "solarize: the threshold is " + std::to_string(threshold) +
                                            ", above the largest value of the image's type");
  return at::where(image.ge(threshold), invert(image), image);
}

torch::Tensor autocontrast(const torch::Tensor& image) {
  require_image(image, "autocontrast", true);
  const double bound = bound_of(image);
  torch::Tensor least = as_float(image.amin({1, 2}, /*keepdim=*/true));
  torch::Tensor scale = (as_float(image.amax({1, 2}, /*keepdim=*/true)) - least).reciprocal_().mul_(bound);
  // A channel of one value stays as it is.
  const torch::Tensor flat = scale.isfinite().logical_not();
  least.masked_fill_(flat, 0), scale.masked_fill_(flat, 1);
  return (image - least).mul_(scale).clamp_(0, bound).to(image.scalar_type());
}

torch::Tensor equalize(const torch::Tensor& image) {
  require_bytes(image, "equalize");
  const torch::Tensor planes = image.contiguous();
  torch::Tensor result = at::empty_like(planes);
  const std::int64_t pixels = image.size(1) * image.size(2);
  for (std::int64_t c = 0; c < image.size(0); ++c) {
    equalize_plane(planes.data_ptr<std::uint8_t>() + c * pixels, result.data_ptr<std::uint8_t>() + c * pixels,
                   pixels);
  }
  return result;
}

}  // namespace det::transforms::functional
