// Decoding of image files. Independent of LibTorch. Thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

namespace det {

/// Size and kind of an image.
struct ImageHeader {
  std::int64_t height = 0, width = 0;
  bool jpeg = false;
};

/// Larger images are rejected, so that a damaged header cannot exhaust memory.
inline constexpr std::int64_t kMaxPixels = std::int64_t{1} << 27;

/// Reads the size of an image. The format (JPEG, PNG, BMP or binary PNM) is recognized by content. Throws
/// std::runtime_error with the problem; the message does not name the file.
ImageHeader read_image_header(std::string_view file);

/// Height or width of an image decoded at 1 / `divisor`.
constexpr std::int64_t divided(std::int64_t size, int divisor) { return (size + divisor - 1) / divisor; }

/// Writes the pixels as RGB, row by row, to divided(height) * divided(width) * 3 bytes. Alpha is dropped, and
/// gray is replicated to all channels. `divisor` is 1, 2, 4 or 8 for a JPEG, else 1. Throws
/// std::runtime_error for a damaged file.
void decode_image(std::string_view file, const ImageHeader& header, int divisor, std::uint8_t* rgb);

}  // namespace det
