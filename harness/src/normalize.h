// Owns the inner loop of image loading. Standard library only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace det {

/// out[i] = bytes[i] * scale + shift, rounded twice: the same bits on every machine.
void normalize(const std::uint8_t* bytes, float* out, std::size_t count, float scale, float shift);

}  // namespace det
