// Owns resizing images.
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace det {

/// An image [C, H, W], uint8 or float, any strides, in another size: separable, with the triangle filter,
/// widened by the factor of shrinking (so each result is a weighted mean of all it covers). Rows first, then
/// columns; bytes are rounded after each, with weights of 22 bits: the same bits on every machine. Heckbert,
/// "Fundamentals of Texture Mapping and Image Warping", 1989, section 3.
torch::Tensor resample(const torch::Tensor& image, std::int64_t height, std::int64_t width);

}  // namespace det
