// Image resizing on the CPU.
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace det {

/// Resizes an image [C, H, W] of uint8 or float, with any strides. The filter is a separable triangle,
/// widened when shrinking so that every result is a weighted mean of all pixels it covers. Rows are filtered
/// first, then columns; bytes are rounded after each pass. Byte weights have 22 fraction bits, which makes
/// the result bit-identical on all CPUs. Returns the image itself when the size does not change. Heckbert,
/// "Fundamentals of Texture Mapping and Image Warping", 1989, section 3.
torch::Tensor resample(const torch::Tensor& image, std::int64_t height, std::int64_t width);

}  // namespace det
