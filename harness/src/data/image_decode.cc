// Image decoding: libturbojpeg for JPEG, stb_image for other formats.
#include "harness/src/data/image_decode.h"

#include <turbojpeg.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_ONLY_BMP
#define STBI_ONLY_PNM
#define STBI_NO_STDIO
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

namespace det {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw std::runtime_error(what); }

/// One decompressor per thread: creating one costs as much as decoding a small image.
using Decompressor = std::unique_ptr<void, int (*)(tjhandle)>;

/// The decompressor of this thread, made on first use.
Decompressor& decompressor() {
  thread_local Decompressor handle(nullptr, &::tjDestroy);
  if (handle == nullptr) handle.reset(::tjInitDecompress());
  if (handle == nullptr) refuse("libturbojpeg cannot be started");
  return handle;
}

/// Discards the decompressor: after a damaged image it does not read the header of the next one
/// (libjpeg-turbo 2.1).
[[noreturn]] void refuse_jpeg(const std::string& problem) {
  decompressor().reset();
  refuse("is a damaged JPEG: " + problem);
}

const unsigned char* bytes_of(std::string_view file) {
  return reinterpret_cast<const unsigned char*>(file.data());
}

bool is_jpeg(std::string_view file) { return file.substr(0, 3) == "\xff\xd8\xff"; }

/// Size and color space of a JPEG.
struct JpegHeader {
  int width = 0, height = 0, subsampling = 0, colors = 0;
};

JpegHeader jpeg_header(std::string_view file) {
  JpegHeader header;
  const int failed = ::tjDecompressHeader3(decompressor().get(), bytes_of(file), file.size(), &header.width,
                                           &header.height, &header.subsampling, &header.colors);
  if (failed != 0) refuse_jpeg(::tjGetErrorStr2(decompressor().get()));
  if (header.width < 1 || header.height < 1) refuse_jpeg("it ends before its size");
  return header;
}

/// Decodes a JPEG at width × height, which select the scaling.
void decompress(std::string_view file, int width, int height, int format, std::uint8_t* out) {
  const tjhandle handle = decompressor().get();
  if (::tjDecompress2(handle, bytes_of(file), file.size(), out, width, 0, height, format,
                      TJFLAG_ACCURATEDCT) == 0) {
    return;
  }
  const std::string problem = ::tjGetErrorStr2(handle);
  // After a warning the image is complete (stray bytes between markers are common), unless data is missing.
  const auto says = [&](const char* text) { return problem.find(text) != std::string::npos; };
  const bool is_whole =
      ::tjGetErrorCode(handle) == TJERR_WARNING && !says("Premature end") && !says("contains no image");
  if (!is_whole) refuse_jpeg(problem);
}

/// Converts inverted CMYK, as Adobe's programs store it (255: no ink).
void cmyk_to_rgb(const std::vector<std::uint8_t>& cmyk, std::uint8_t* rgb) {
  for (std::size_t i = 0; i < cmyk.size(); i += 4) {
    for (int c = 0; c < 3; ++c) *rgb++ = static_cast<std::uint8_t>((cmyk[i + c] * cmyk[i + 3] + 127) / 255);
  }
}

}  // namespace

ImageHeader read_image_header(std::string_view file) {
  ImageHeader header;
  if (is_jpeg(file)) {
    const JpegHeader jpeg = jpeg_header(file);
    header = {jpeg.height, jpeg.width, true};
  } else {
    // stb_image takes the size as an int.
    if (file.size() > std::numeric_limits<int>::max()) refuse("is too large a file for an image");
    int width = 0, height = 0, channels = 0;
    if (::stbi_info_from_memory(bytes_of(file), static_cast<int>(file.size()), &width, &height, &channels) ==
        0) {
      refuse(std::string("is no JPEG, PNG, BMP or PNM that can be read: ") + ::stbi_failure_reason());
    }
    // The height of a BMP that is stored from top to bottom is negative.
    header = {std::abs(static_cast<std::int64_t>(height)), width, false};
  }
  if (header.height < 1 || header.width < 1 || header.height > kMaxPixels / header.width) {
    // Checked before any allocation for pixels.
    refuse("has " + std::to_string(header.width) + " × " + std::to_string(header.height) + " pixels; " +
           std::to_string(kMaxPixels) + " are the most");
  }
  return header;
}

void decode_image(std::string_view file, const ImageHeader& header, int divisor, std::uint8_t* rgb) {
  if (!header.jpeg) {
    int width = 0, height = 0, channels = 0;
    const std::unique_ptr<stbi_uc, void (*)(void*)> pixels(
        ::stbi_load_from_memory(bytes_of(file), static_cast<int>(file.size()), &width, &height, &channels, 3),
        &::stbi_image_free);
    if (pixels == nullptr) refuse(std::string("is a damaged image: ") + ::stbi_failure_reason());
    // The header was read before; the buffer has its size.
    if (width != header.width || height != header.height) refuse("is a damaged image: its sizes differ");
    std::memcpy(rgb, pixels.get(), static_cast<std::size_t>(header.width * header.height * 3));
    return;
  }
  const auto width = static_cast<int>(divided(header.width, divisor));
  const auto height = static_cast<int>(divided(header.height, divisor));
  // libturbojpeg does not convert CMYK to RGB.
  const int colors = jpeg_header(file).colors;
  if (colors != TJCS_CMYK && colors != TJCS_YCCK) {
    decompress(file, width, height, TJPF_RGB, rgb);
    return;
  }
  std::vector<std::uint8_t> cmyk(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 4);
  decompress(file, width, height, TJPF_CMYK, cmyk.data());
  cmyk_to_rgb(cmyk, rgb);
}

}  // namespace det
