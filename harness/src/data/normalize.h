// Inner loops of image loading. Standard library only. Every operation is rounded separately (no fused
// multiply-add), so results are bit-identical on all CPUs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace det {

/// out[i] = bytes[i] * scale + shift, rounded after the multiplication and after the addition.
void normalize(const std::uint8_t* bytes, float* out, std::size_t count, float scale, float shift);

/// out[i] = bytes[i * stride] / 255, in [0, 1]. `stride` is 1 for planar images, 3 for interleaved RGB.
void bytes_to_unit(const std::uint8_t* bytes, std::size_t stride, float* out, std::size_t count);

/// out[i] = (values[i] - mean) / stddev.
void standardize(const float* values, float* out, std::size_t count, float mean, float stddev);

}  // namespace det
