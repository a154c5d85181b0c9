#include "harness/src/data/resample.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "harness/src/base/every_machine.h"

namespace det {
namespace {

/// Fraction bits of integer weights. 22 bits times 255 fits in an int32.
constexpr int kBits = 22;

/// For each output position, the range of source positions that contribute and their weights.
template <typename Weight>
struct Filter {
  std::int64_t taps;                // weights stored per position; entries beyond its count are 0
  std::vector<std::int64_t> first;  // first source position
  std::vector<std::int64_t> count;  // source positions used
  std::vector<Weight> weights;
};

/// The triangle filter for resizing `from` positions to `to`. When shrinking, the support grows with the
/// scale, which averages all covered pixels (anti-aliasing).
template <typename Weight>
Filter<Weight> make_filter(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double radius = std::max(scale, 1.0);
  Filter<Weight> filter{2 * static_cast<std::int64_t>(std::ceil(radius)) + 1, {}, {}, {}};
  filter.weights.resize(to * filter.taps);
  std::vector<double> exact(filter.taps);
  for (std::int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const auto low = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(center - radius + 0.5)));
    const auto high =
        std::min<std::int64_t>(from, static_cast<std::int64_t>(std::floor(center + radius + 0.5)));
    double sum = 0;
    for (std::int64_t k = low; k < high; ++k) {
      exact[k - low] = std::max(0.0, 1 - std::abs((static_cast<double>(k) + 0.5 - center) / radius));
      sum += exact[k - low];
    }
    for (std::int64_t k = 0; k < high - low; ++k) {
      const double weight = exact[k] / sum;
      Weight& out = filter.weights[i * filter.taps + k];
      if constexpr (std::is_integral_v<Weight>) {
        out = static_cast<Weight>(std::floor(weight * (1 << kBits) + 0.5));
      } else {
        out = static_cast<Weight>(weight);
      }
    }
    filter.first.push_back(low);
    filter.count.push_back(high - low);
  }
  return filter;
}

/// Rounds a fixed-point sum to a byte; floats pass through.
template <typename T, typename Sum>
inline T finish(Sum sum) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(std::min<Sum>(255, (sum + (1 << (kBits - 1))) >> kBits));
  } else {
    return sum;
  }
}

/// Filters one row of pixels of kLanes values each.
template <typename T, typename Weight, int kLanes>
void filter_row(const T* in, T* out, std::int64_t width, const Filter<Weight>& filter) {
  const Weight* weights = filter.weights.data();
  for (std::int64_t x = 0; x < width; ++x, weights += filter.taps) {
    const T* from = in + filter.first[x] * kLanes;
    Weight sum[kLanes] = {};
    for (std::int64_t k = 0; k < filter.count[x]; ++k) {
      for (int lane = 0; lane < kLanes; ++lane)
        sum[lane] += static_cast<Weight>(from[k * kLanes + lane]) * weights[k];
    }
    for (int lane = 0; lane < kLanes; ++lane) *out++ = finish<T>(sum[lane]);
  }
}

/// filter_row for RGB bytes, with the three sums in one vector register. Reads four bytes per pixel, one past
/// the pixel; the last pixel is read byte by byte so that the read stays inside the row.
DET_EVERY_MACHINE void filter_rgb_row(const std::uint8_t* in, std::uint8_t* out, std::int64_t width,
                                      const Filter<std::int32_t>& filter) {
  using Bytes = std::uint8_t __attribute__((vector_size(4)));
  using Sums = std::int32_t __attribute__((vector_size(16)));
  const std::int32_t* weights = filter.weights.data();
  for (std::int64_t x = 0; x < width; ++x, weights += filter.taps) {
    const std::uint8_t* from = in + filter.first[x] * 3;
    Sums sum{};
    const std::int64_t last = filter.count[x] - 1;
    for (std::int64_t k = 0; k < last; ++k) {
      Bytes pixel;
      std::memcpy(&pixel, from + k * 3, 4);
      sum += __builtin_convertvector(pixel, Sums) * weights[k];
    }
    sum += Sums{from[last * 3], from[last * 3 + 1], from[last * 3 + 2], 0} * weights[last];
    for (int lane = 0; lane < 3; ++lane) *out++ = finish<std::uint8_t>(sum[lane]);
  }
}

/// sum += in * weight, element by element: one tap of the vertical pass.
DET_EVERY_MACHINE void add_row(const std::uint8_t* in, std::int32_t* sum, std::int64_t count,
                               std::int32_t weight) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] += in[i] * weight;
}
DET_EVERY_MACHINE void add_row(const float* in, float* sum, std::int64_t count, float weight) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] += in[i] * weight;
}
DET_EVERY_MACHINE void finish_row(const std::int32_t* sum, std::uint8_t* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = finish<std::uint8_t>(sum[i]);
}
void finish_row(const float* sum, float* out, std::int64_t count) { std::copy_n(sum, count, out); }

/// An image plane. `stride` is the distance between rows, in values.
template <typename T>
struct Plane {
  const T* data;
  std::int64_t height, width, stride;
};

/// Resizes one plane of kLanes interleaved channels: rows first, then columns. A pass that
/// would keep its size is skipped.
template <typename T, int kLanes>
void resize_plane(const Plane<T>& in, T* out, std::int64_t height, std::int64_t width) {
  using Weight = std::conditional_t<std::is_integral_v<T>, std::int32_t, float>;
  const std::int64_t row = width * kLanes;
  std::vector<T> narrowed;
  const T* rows = in.data;
  std::int64_t stride = in.stride;
  if (width != in.width) {
    const Filter<Weight> across = make_filter<Weight>(in.width, width);
    narrowed.resize(in.height * row);
    for (std::int64_t y = 0; y < in.height; ++y) {
      const T* from = in.data + y * in.stride;
      T* to = narrowed.data() + y * row;
      if constexpr (kLanes == 3 && std::is_integral_v<T>) {
        filter_rgb_row(from, to, width, across);
      } else {
        filter_row<T, Weight, kLanes>(from, to, width, across);
      }
    }
    rows = narrowed.data(), stride = row;
  }
  if (height == in.height) {
    for (std::int64_t y = 0; y < height; ++y) std::copy_n(rows + y * stride, row, out + y * row);
    return;
  }
  const Filter<Weight> down = make_filter<Weight>(in.height, height);
  std::vector<Weight> sum(row);
  for (std::int64_t y = 0; y < height; ++y) {
    std::fill(sum.begin(), sum.end(), Weight{0});
    for (std::int64_t k = 0; k < down.count[y]; ++k) {
      add_row(rows + (down.first[y] + k) * stride, sum.data(), row, down.weights[y * down.taps + k]);
    }
    finish_row(sum.data(), out + y * row, row);
  }
}

template <typename T>
torch::Tensor resample_as(const torch::Tensor& image, std::int64_t height, std::int64_t width) {
  const std::int64_t channels = image.size(0);
  // Decoders return interleaved RGB; the result keeps that layout.
  if (channels == 3 && image.stride(0) == 1 && image.stride(2) == 3) {
    torch::Tensor result = at::empty({height, width, 3}, image.options());
    resize_plane<T, 3>({image.data_ptr<T>(), image.size(1), image.size(2), image.stride(1)},
                       result.data_ptr<T>(), height, width);
    return result.permute({2, 0, 1});
  }
  const torch::Tensor planes = image.stride(2) == 1 ? image : image.contiguous();
  torch::Tensor result = at::empty({channels, height, width}, image.options());
  for (std::int64_t c = 0; c < channels; ++c) {
    resize_plane<T, 1>(
        {planes.data_ptr<T>() + c * planes.stride(0), image.size(1), image.size(2), planes.stride(1)},
        result.data_ptr<T>() + c * height * width, height, width);
  }
  return result;
}

}  // namespace

torch::Tensor resample(const torch::Tensor& image, std::int64_t height, std::int64_t width) {
  if (image.size(1) == height && image.size(2) == width) return image;
  return image.scalar_type() == torch::kByte ? resample_as<std::uint8_t>(image, height, width)
                                             : resample_as<float>(image, height, width);
}

}  // namespace det
