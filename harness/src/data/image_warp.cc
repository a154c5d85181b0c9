// Transforms of pixel positions.
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/grid_sampler.h>
#include <ATen/ops/linalg_lstsq.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "det/transforms_functional.h"
#include "harness/src/data/image_check.h"
#include "harness/src/data/image_filter.h"
#include "harness/src/data/resample.h"

namespace det::transforms::functional {
namespace {

/// Coefficients {a, b, c, d, e, f}: an output pixel (x, y) shows the input at (ax + by + c, dx + ey + f).
using Matrix = std::array<double, 6>;

/// `rows` of `columns` numbers as a float tensor.
torch::Tensor matrix_of(const std::vector<double>& values, std::int64_t rows, std::int64_t columns) {
  return torch::tensor(values, torch::kFloat).view({rows, columns});
}

/// The inverse of the affine map. Positions are relative to the center of the image.
Matrix inverse_of(const Affine& map, const Point& center) {
  constexpr double kDegree = std::numbers::pi / 180;
  const double angle = map.angle * kDegree, sx = map.shear[0] * kDegree, sy = map.shear[1] * kDegree;
  // Rotation and shear, a matrix with determinant 1.
  const double a = std::cos(angle - sy) / std::cos(sy);
  const double b = -std::cos(angle - sy) * std::tan(sx) / std::cos(sy) - std::sin(angle);
  const double c = std::sin(angle - sy) / std::cos(sy);
  const double d = -std::sin(angle - sy) * std::tan(sx) / std::cos(sy) + std::cos(angle);
  Matrix m{d / map.scale, -b / map.scale, 0, -c / map.scale, a / map.scale, 0};
  const double x = -center[0] - map.translate[0], y = -center[1] - map.translate[1];
  m[2] = m[0] * x + m[1] * y + center[0];
  m[5] = m[3] * x + m[4] * y + center[1];
  return m;
}

/// Homogeneous coordinates [1, height * width, 3] of pixels; the first one is at (left, top).
torch::Tensor positions(double left, double top, std::int64_t height, std::int64_t width) {
  const auto line = [](double first, std::int64_t count) {
    return at::linspace(first, first + static_cast<double>(count - 1), count, torch::kFloat);
  };
  torch::Tensor grid = at::ones({1, height, width, 3}, torch::kFloat);
  grid.select(3, 0).copy_(line(left, width));
  grid.select(3, 1).copy_(line(top, height).unsqueeze(1));
  return grid.view({1, height * width, 3});
}

/// Samples the image at a grid of positions in [-1, 1].
torch::Tensor sample(const torch::Tensor& image, const torch::Tensor& grid, Interpolation interpolation,
                     const Fill& fill) {
  const bool nearest = interpolation == Interpolation::kNearest;
  torch::Tensor source = image.to(torch::kFloat).unsqueeze(0);
  // A channel of ones shows the share of each result that lies inside.
  if (fill) source = at::cat({source, at::ones({1, 1, image.size(1), image.size(2)}, torch::kFloat)}, 1);
  torch::Tensor result = at::grid_sampler(source, grid, /*interpolation_mode=*/nearest ? 1 : 0,
                                          /*padding_mode=zeros*/ 0, /*align_corners=*/false)
                             .squeeze(0);
  if (fill) {
    const torch::Tensor inside = result.slice(0, -1);
    result = result.slice(0, 0, -1);
    result = nearest ? result.masked_fill(inside < 0.5, *fill) : result * inside + (1 - inside) * *fill;
  }
  return image.is_floating_point() ? result : result.round_().to(image.scalar_type());
}

torch::Tensor warp(const torch::Tensor& image, const Matrix& matrix, std::int64_t height, std::int64_t width,
                   Interpolation interpolation, const Fill& fill) {
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  const torch::Tensor half = torch::tensor(
      {0.5 * static_cast<double>(image.size(2)), 0.5 * static_cast<double>(image.size(1))}, torch::kFloat);
  const torch::Tensor map = matrix_of({matrix.begin(), matrix.end()}, 2, 3).t().unsqueeze(0) / half;
  const torch::Tensor grid = positions(0.5 - w / 2, 0.5 - h / 2, height, width).bmm(map);
  return sample(image, grid.view({1, height, width, 2}), interpolation, fill);
}

/// The size {height, width} that holds the whole image after a rotation. Corners are rounded to 1e-4 pixels.
std::array<std::int64_t, 2> rotated_size(const torch::Tensor& image, const Matrix& m) {
  const auto extent = [&](std::size_t row, double size) {
    const double x = 0.5 * static_cast<double>(image.size(2)), y = 0.5 * static_cast<double>(image.size(1));
    const double reach = std::abs(m[row] * x) + std::abs(m[row + 1] * y);
    const auto rounded = [](double value) {
      return std::trunc(value / 1e-4 + (value < 0 ? -0.01 : 0.01)) * 1e-4;
    };
    return static_cast<std::int64_t>(std::ceil(rounded(reach + 0.5 * size)) -
                                     std::floor(rounded(0.5 * size - reach)));
  };
  return {extent(3, static_cast<double>(image.size(1))), extent(0, static_cast<double>(image.size(2)))};
}

/// A point in pixels from the top left corner, relative to the center of the image.
Point centered(const torch::Tensor& image, const std::optional<Point>& point) {
  if (!point) return {0, 0};
  return {(*point)[0] - 0.5 * static_cast<double>(image.size(2)),
          (*point)[1] - 0.5 * static_cast<double>(image.size(1))};
}

/// The source position of each position of a padded side.
torch::Tensor padded_positions(std::int64_t before, std::int64_t size, std::int64_t after, PaddingMode mode) {
  std::vector<std::int64_t> from;
  for (std::int64_t i = -before; i < size + after; ++i) {
    if (mode == PaddingMode::kEdge) from.push_back(std::clamp<std::int64_t>(i, 0, size - 1));
    if (mode == PaddingMode::kReflect) from.push_back(i < 0 ? -i : i < size ? i : 2 * size - 2 - i);
    if (mode == PaddingMode::kSymmetric) from.push_back(i < 0 ? -i - 1 : i < size ? i : 2 * size - 1 - i);
  }
  return torch::tensor(from);
}

}  // namespace

torch::Tensor hflip(const torch::Tensor& image) {
  require_image(image, "hflip");
  return at::flip(image, {2});
}
torch::Tensor vflip(const torch::Tensor& image) {
  require_image(image, "vflip");
  return at::flip(image, {1});
}

torch::Tensor crop(const torch::Tensor& image, std::int64_t from_top, std::int64_t from_left,
                   std::int64_t height, std::int64_t width) {
  require_image(image, "crop");
  require(height >= 1 && width >= 1,
          "crop: size is " + std::to_string(height) + " × " + std::to_string(width));
  const std::int64_t top = std::max<std::int64_t>(0, from_top), left = std::max<std::int64_t>(0, from_left);
  const std::int64_t bottom = std::min(image.size(1), from_top + height);
  const std::int64_t right = std::min(image.size(2), from_left + width);
  // A part of the image is a view of it.
  if (bottom - top == height && right - left == width)
    return image.narrow(1, top, height).narrow(2, left, width);
  torch::Tensor result = at::zeros({image.size(0), height, width}, image.options());
  if (bottom > top && right > left) {
    result.narrow(1, top - from_top, bottom - top)
        .narrow(2, left - from_left, right - left)
        .copy_(image.narrow(1, top, bottom - top).narrow(2, left, right - left));
  }
  return result;
}

torch::Tensor resize(const torch::Tensor& image, std::int64_t height, std::int64_t width) {
  require_image(image, "resize");
  require(height >= 1 && width >= 1,
          "resize: size is " + std::to_string(height) + " × " + std::to_string(width));
  return resample(image, height, width);
}

torch::Tensor pad(const torch::Tensor& image, const std::array<std::int64_t, 4>& padding, double fill,
                  PaddingMode mode) {
  require_image(image, "pad");
  const auto [left, top, right, bottom] = padding;
  require(std::min({left, top, right, bottom}) >= 0, "pad: padding must not be below 0");
  if (mode == PaddingMode::kConstant) return at::constant_pad_nd(image, {left, right, top, bottom}, fill);
  const std::int64_t most = mode == PaddingMode::kEdge ? std::max({left, top, right, bottom})
                                                       : std::min(image.size(1), image.size(2)) -
                                                             (mode == PaddingMode::kReflect ? 1 : 0);
  require(std::max({left, top, right, bottom}) <= most,
          "pad: a reflection is at most as wide as the image " + compat::shape_text(image));
  return image.index_select(1, padded_positions(top, image.size(1), bottom, mode))
      .index_select(2, padded_positions(left, image.size(2), right, mode));
}

torch::Tensor erase(const torch::Tensor& image, std::int64_t top, std::int64_t left, std::int64_t height,
                    std::int64_t width, const torch::Tensor& value) {
  require_image(image, "erase");
  require(top >= 0 && left >= 0 && height >= 1 && width >= 1 && top + height <= image.size(1) &&
              left + width <= image.size(2),
          "erase: the rectangle is not inside the image " + compat::shape_text(image));
  torch::Tensor result = image.clone();
  result.narrow(1, top, height).narrow(2, left, width).copy_(value);
  return result;
}

torch::Tensor rotate(const torch::Tensor& image, double angle, Interpolation interpolation, bool expand,
                     Fill fill, std::optional<Point> center) {
  require_image(image, "rotate");
  const Matrix matrix = inverse_of({.angle = -angle}, centered(image, center));
  std::array<std::int64_t, 2> size{image.size(1), image.size(2)};
  if (expand) size = rotated_size(image, matrix);
  return warp(image, matrix, size[0], size[1], interpolation, fill);
}

torch::Tensor affine(const torch::Tensor& image, const Affine& parameters, Interpolation interpolation,
                     Fill fill) {
  require_image(image, "affine");
  require(parameters.scale > 0,
          "affine: scale is " + std::to_string(parameters.scale) + ", it must be above 0");
  return warp(image, inverse_of(parameters, centered(image, parameters.center)), image.size(1), image.size(2),
              interpolation, fill);
}

torch::Tensor perspective(const torch::Tensor& image, const Corners& from, const Corners& to,
                          Interpolation interpolation, Fill fill) {
  require_image(image, "perspective");
  // Two equations for each corner: the map takes `to` to `from`.
  std::vector<double> equations, right;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto [x, y] = to[i];
    const auto [u, v] = from[i];
    for (const double value : {x, y, 1.0, 0.0, 0.0, 0.0, -u * x, -u * y}) equations.push_back(value);
    for (const double value : {0.0, 0.0, 0.0, x, y, 1.0, -v * x, -v * y}) equations.push_back(value);
    right.push_back(u), right.push_back(v);
  }
  // In double precision: the equations of near corners are ill-conditioned.
  const torch::Tensor c =
      std::get<0>(at::linalg_lstsq(torch::tensor(equations, torch::kDouble).view({8, 8}),
                                   torch::tensor(right, torch::kDouble), c10::nullopt, "gels"))
          .to(torch::kFloat);
  const std::int64_t height = image.size(1), width = image.size(2);
  const torch::Tensor half =
      torch::tensor({0.5 * static_cast<double>(width), 0.5 * static_cast<double>(height)}, torch::kFloat);
  const torch::Tensor above = c.slice(0, 0, 6).view({2, 3}).t().unsqueeze(0) / half;
  const torch::Tensor below =
      at::cat({c.slice(0, 6), at::ones({1}, torch::kFloat)}).view({1, 3, 1}).expand({1, 3, 2}).contiguous();
  const torch::Tensor at_pixels = positions(0.5, 0.5, height, width);
  const torch::Tensor grid = at_pixels.bmm(above) / at_pixels.bmm(below) - 1.0;
  return sample(image, grid.view({1, height, width, 2}), interpolation, fill);
}

torch::Tensor gaussian_blur(const torch::Tensor& image, std::int64_t kernel_size, double sigma) {
  require_image(image, "gaussian_blur");
  require(kernel_size >= 1 && kernel_size % 2 == 1,
          "gaussian_blur: kernel_size is " + std::to_string(kernel_size) + ", it must be odd");
  require(sigma > 0, "gaussian_blur: sigma is " + std::to_string(sigma) + ", it must be above 0");
  const std::int64_t half = kernel_size / 2;
  const torch::Tensor x =
      at::linspace(-static_cast<double>(half), static_cast<double>(half), kernel_size, torch::kFloat);
  const torch::Tensor weights = (x / sigma).pow(2).mul(-0.5).exp();
  const torch::Tensor line = weights / weights.sum();
  const torch::Tensor kernel = line.unsqueeze(1).mm(line.unsqueeze(0));
  const torch::Tensor wide = pad(image, {half, half, half, half}, 0, PaddingMode::kReflect).to(torch::kFloat);
  torch::Tensor result = convolve(wide, kernel);
  return image.is_floating_point() ? result : result.round_().to(image.scalar_type());
}

}  // namespace det::transforms::functional
