#include "harness/src/observability/media.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "common/base/files.h"
#include "common/storage/media_limits.h"
#include "harness/src/base/or_throw.h"

namespace det {
namespace {

constexpr std::int64_t kMaxSide = 4096;
constexpr std::int64_t kGridGap = 2;  // pixels

[[noreturn]] void refuse_media(const std::string& name, const std::string& why) {
  throw std::invalid_argument("media \"" + make_utf8(name) + "\": " + why);
}

void append_big_endian(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
}

/// Appends a chunk of PNG: length, type, content, CRC-32 of type and content.
void append_chunk(std::string& out, const std::string& type, const std::string& content) {
  append_big_endian(out, static_cast<std::uint32_t>(content.size()));
  const std::string body = type + content;
  out += body;
  append_big_endian(out, static_cast<std::uint32_t>(::crc32(0, reinterpret_cast<const Bytef*>(body.data()),
                                                            static_cast<uInt>(body.size()))));
}

MediaRecord record_of(const char* kind, const std::string& name, std::string content,
                      const MediaOptions& options) {
  if (!is_media_name(name))
    refuse_media(name,
                 "a name has 1 to 128 letters, digits, spaces and _ - . =, in parts separated by slashes");
  if (options.steps_completed < 0) refuse_media(name, "steps_completed must be 0 or more");
  if (options.caption.size() > kMaxMediaCaption || find_bad_utf8(options.caption))
    refuse_media(name, "the caption must be UTF-8 of at most " + std::to_string(kMaxMediaCaption) + " bytes");
  if (content.empty()) refuse_media(name, "it is empty");
  if (content.size() > kMaxMediaBytes)
    refuse_media(name, "it has " + std::to_string(content.size()) + " bytes, more than " +
                           std::to_string(kMaxMediaBytes) + "; make it smaller, or save it in a checkpoint");
  return {.kind = kind,
          .name = name,
          .steps_completed = options.steps_completed,
          .caption = options.caption,
          .content = std::move(content)};
}

bool is_cell(const Json& value) {
  return value.is_string() || value.is_number() || value.is_boolean() || value.is_null();
}

}  // namespace

Image image_grid(const std::vector<Image>& images, int columns) {
  if (images.empty() || columns < 1)
    throw std::invalid_argument("image_grid: at least one image and one column are needed");
  const Image& first = images.front();
  const auto count = static_cast<std::int64_t>(images.size());
  const std::int64_t across = std::min<std::int64_t>(columns, count), down = (count + across - 1) / across;
  Image out{.width = across * (first.width + kGridGap) - kGridGap,
            .height = down * (first.height + kGridGap) - kGridGap,
            .channels = first.channels,
            .pixels = {}};
  out.pixels.resize(static_cast<std::size_t>(out.width * out.height * out.channels));
  for (std::int64_t i = 0; i < count; ++i) {
    const Image& image = images[static_cast<std::size_t>(i)];
    const std::int64_t row = image.width * image.channels;
    if (image.width != first.width || image.height != first.height || image.channels != first.channels ||
        static_cast<std::int64_t>(image.pixels.size()) != row * image.height)
      throw std::invalid_argument("image_grid: all images must have the same size and channels");
    const std::int64_t left = (i % across) * (first.width + kGridGap),
                       top = (i / across) * (first.height + kGridGap);
    for (std::int64_t y = 0; y < image.height; ++y) {
      std::copy_n(image.pixels.begin() + y * row, row,
                  out.pixels.begin() + ((top + y) * out.width + left) * out.channels);
    }
  }
  return out;
}

std::string encode_png(const Image& image) {
  if (image.width < 1 || image.height < 1 || image.width > kMaxSide || image.height > kMaxSide ||
      (image.channels != 1 && image.channels != 3))
    throw std::invalid_argument("an image has 1 to 4096 pixels a side and 1 or 3 channels, not " +
                                std::to_string(image.width) + " x " + std::to_string(image.height) + " x " +
                                std::to_string(image.channels));
  const auto row = static_cast<std::size_t>(image.width * image.channels);
  if (image.pixels.size() != row * static_cast<std::size_t>(image.height))
    throw std::invalid_argument("an image of " + std::to_string(image.width) + " x " +
                                std::to_string(image.height) + " needs " +
                                std::to_string(row * static_cast<std::size_t>(image.height)) +
                                " values, not " + std::to_string(image.pixels.size()));
  // Each row begins with its filter: 0 is none.
  std::string raw;
  for (std::size_t y = 0; y < static_cast<std::size_t>(image.height); ++y) {
    raw += '\0';
    raw.append(reinterpret_cast<const char*>(image.pixels.data()) + y * row, row);
  }
  uLongf size = ::compressBound(static_cast<uLong>(raw.size()));
  std::string packed(size, '\0');
  if (::compress2(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(raw.data()),
                  static_cast<uLong>(raw.size()), 6) != Z_OK)
    throw std::runtime_error("zlib could not compress an image");
  packed.resize(size);
  std::string header;
  append_big_endian(header, static_cast<std::uint32_t>(image.width));
  append_big_endian(header, static_cast<std::uint32_t>(image.height));
  // Eight bits a channel; color type 0 (gray) or 2 (RGB); deflate, no interlacing.
  header += std::string("\x08", 1) + (image.channels == 1 ? '\0' : '\2') + std::string(3, '\0');
  std::string out = "\x89PNG\r\n\x1a\n";
  append_chunk(out, "IHDR", header);
  append_chunk(out, "IDAT", packed);
  append_chunk(out, "IEND", "");
  return out;
}

MediaRecord image_record(const std::string& name, const Image& image, const MediaOptions& options) {
  try {
    return record_of("IMAGE", name, encode_png(image), options);
  } catch (const std::invalid_argument& error) {
    const std::string why = error.what();
    if (why.starts_with("media ")) throw;
    refuse_media(name, why);
  }
}

MediaRecord histogram_record(const std::string& name, const std::vector<double>& values, int bins,
                             const MediaOptions& options) {
  if (bins < 1 || bins > kMaxMediaBins)
    refuse_media(name, "a histogram has 1 to " + std::to_string(kMaxMediaBins) + " bins");
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (low > high) refuse_media(name, "a histogram needs at least one finite value");
  // Equal values get bins of a width that is not zero in floating point.
  const double least = std::max(std::abs(low), 1.0) * 1e-6;
  if (high - low < least * bins) {
    low -= least * bins / 2;
    high = low + least * bins;
  }
  Json edges = Json::array();
  for (int i = 0; i <= bins; ++i) {
    const double part = static_cast<double>(i) / bins;
    edges.push_back(low * (1 - part) + high * part);  // does not overflow
  }
  std::vector<std::int64_t> counts(static_cast<std::size_t>(bins));
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    const double place = (value / 2 - low / 2) / (high / 2 - low / 2) * bins;
    ++counts[static_cast<std::size_t>(std::clamp(place, 0.0, bins - 1.0))];
  }
  return record_of("HISTOGRAM", name, dump_json(Json{{"edges", edges}, {"counts", counts}}), options);
}

MediaRecord text_record(const std::string& name, const std::string& text, const MediaOptions& options) {
  if (find_bad_utf8(text) || text.find('\0') != text.npos) refuse_media(name, "a text is UTF-8 without NUL");
  return record_of("TEXT", name, text, options);
}

MediaRecord table_record(const std::string& name, const std::vector<std::string>& columns, const Json& rows,
                         const MediaOptions& options) {
  if (columns.empty() || columns.size() > kMaxMediaColumns || !rows.is_array() || rows.size() > kMaxMediaRows)
    refuse_media(name, "a table has 1 to " + std::to_string(kMaxMediaColumns) +
                           " columns and a list of at most " + std::to_string(kMaxMediaRows) + " rows");
  for (const Json& row : rows) {
    if (!row.is_array() || row.size() != columns.size() || !std::all_of(row.begin(), row.end(), is_cell))
      refuse_media(name, "each row of a table is a list of strings and numbers, one per column");
  }
  return record_of("TABLE", name, dump_json(Json{{"columns", columns}, {"rows", rows}}), options);
}

MediaRecord file_record(const std::string& name, const std::string& path, const MediaOptions& options) {
  const std::string leaf = path.substr(path.rfind('/') + 1);
  if (!is_media_file_name(leaf))
    refuse_media(name, "the file \"" + make_utf8(leaf) +
                           "\" needs a name of letters, digits, spaces and _ - . = that begins with no dot");
  MediaRecord record = record_of(
      "FILE", name, value_or_throw(read_file(path, static_cast<std::int64_t>(kMaxMediaBytes))), options);
  record.file_name = leaf;
  return record;
}

}  // namespace det
