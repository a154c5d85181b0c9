// Owns turning the bytes of image files into pixels. No LibTorch.
#pragma once

#include <cstdint>
#include <string_view>

namespace det {

struct ImageHeader {
  std::int64_t height = 0, width = 0;
  bool jpeg = false;
};

/// More pixels are refused: a damaged header must not take all memory.
inline constexpr std::int64_t kMostPixels = std::int64_t{1} << 27;

/// What decode_image() will give. JPEG, PNG, BMP, binary PNM, told by content. Throws std::runtime_error that
/// says what is wrong, not where.
ImageHeader read_image_header(std::string_view file);

/// Height or width when decoded at 1 / `divisor`; 1 for what is no JPEG.
constexpr std::int64_t divided(std::int64_t size, int divisor) { return (size + divisor - 1) / divisor; }

/// Writes the pixels as RGB, row by row, into divided(height) * divided(width) * 3 bytes. Alpha is dropped,
/// grey is spread. `divisor` is 1, 2, 4 or 8, for a JPEG; else 1. Throws std::runtime_error for a damaged
/// file.
void decode_image(std::string_view file, const ImageHeader& header, int divisor, std::uint8_t* rgb);

}  // namespace det
