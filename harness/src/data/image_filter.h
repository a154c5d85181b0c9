// Convolution of the channels of an image.
#pragma once

#include <ATen/ops/conv2d.h>
#include <torch/types.h>

#include <array>

namespace det::transforms {

/// Convolves each channel of a float image with a kernel [h, w], without padding.
inline torch::Tensor convolve(const torch::Tensor& image, const torch::Tensor& kernel) {
  constexpr std::array<std::int64_t, 2> kOne{1, 1}, kZero{0, 0};
  const std::int64_t channels = image.size(0);
  return at::conv2d(image.unsqueeze(0), kernel.expand({channels, 1, kernel.size(0), kernel.size(1)}),
                    torch::Tensor(), torch::IntArrayRef(kOne), torch::IntArrayRef(kZero),
                    torch::IntArrayRef(kOne), channels)
      .squeeze(0);
}

}  // namespace det::transforms
