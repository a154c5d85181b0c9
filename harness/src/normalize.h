// Owns the inner loops of image loading. Standard library only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace det {

/// out[i] = bytes[i] * scale + shift, rounded twice: the same bits on every machine.
void normalize(const std::uint8_t* bytes, float* out, std::size_t count, float scale, float shift);

/// out[i] = bytes[i * stride] / 255.
void bytes_to_unit(const std::uint8_t* bytes, std::size_t stride, float* out, std::size_t count);

/// out[i] = (values[i] - mean) / stddev.
void standardize(const float* values, float* out, std::size_t count, float mean, float stddev);

}  // namespace det
