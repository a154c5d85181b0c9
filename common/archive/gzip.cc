#include "common/archive/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

namespace det {
namespace {

constexpr std::size_t kPiece = 64 * 1024;
constexpr int kGzipWindow = 15 + 16;  // zlib: the largest window (15 bits), +16 for the gzip wrapper

Bytef* as_bytes(const char* data) { return reinterpret_cast<Bytef*>(const_cast<char*>(data)); }

}  // namespace

std::string gzip(std::string_view bytes, int level) {
  z_stream stream{};
  std::string out;
  if (deflateInit2(&stream, level, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  std::array<char, kPiece> buffer;
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    // zlib counts input in 32 bits, so larger inputs are fed in pieces.
    const std::size_t piece = std::min<std::size_t>(bytes.size(), std::numeric_limits<int>::max());
    stream.next_in = as_bytes(bytes.data());
    stream.avail_in = static_cast<uInt>(piece);
    bytes.remove_prefix(piece);
    do {
      stream.next_out = as_bytes(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      state = deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
      out.append(buffer.data(), buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  }
  deflateEnd(&stream);
  return out;
}

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1F\x8B"); }

/// Compression state: 64 KiB, for many open streams.
struct GzipStream::Deflater {
  z_stream stream{};
  Deflater() {
    constexpr int kWindow = 13 + 16, kMemory = 6;
    if (deflateInit2(&stream, 6, Z_DEFLATED, kWindow, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
  }
  ~Deflater() { deflateEnd(&stream); }
};

GzipStream::GzipStream() : deflater_(std::make_unique<Deflater>()) {}
GzipStream::~GzipStream() = default;

std::string GzipStream::add(std::string_view bytes) {
  z_stream& stream = deflater_->stream;
  stream.next_in = as_bytes(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  std::array<char, 4096> buffer;
  do {
    stream.next_out = as_bytes(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    deflate(&stream, Z_SYNC_FLUSH);
    out.append(buffer.data(), buffer.size() - stream.avail_out);
  } while (stream.avail_out == 0);
  return out;
}

/// Decompression state and output buffer.
struct ByteSource::Inflater {
  z_stream stream{};
  std::array<char, kPiece> buffer;
  bool done = false;

  Inflater() {
    if (inflateInit2(&stream, kGzipWindow) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
};

ByteSource::ByteSource(std::string_view bytes) : rest_(bytes) {
  if (is_gzip(bytes)) inflater_ = std::make_unique<Inflater>();
}
ByteSource::~ByteSource() = default;

Result<std::string_view> ByteSource::next() {
  if (!inflater_) {
    const std::string_view piece = rest_.substr(0, kPiece);
    rest_.remove_prefix(piece.size());
    return piece;
  }
  z_stream& stream = inflater_->stream;
  while (!inflater_->done) {
    const std::size_t given = std::min<std::size_t>(rest_.size(), std::numeric_limits<int>::max());
    stream.next_in = as_bytes(rest_.data());
    stream.avail_in = static_cast<uInt>(given);
    stream.next_out = as_bytes(inflater_->buffer.data());
    stream.avail_out = static_cast<uInt>(kPiece);
    const int state = inflate(&stream, Z_NO_FLUSH);
    rest_.remove_prefix(given - stream.avail_in);
    inflater_->done = state == Z_STREAM_END;
    // With input left, an error means corruption; without, truncation.
    if (state != Z_OK && state != Z_STREAM_END) {
      return fail(Code::kDataLoss,
                  rest_.empty() ? "the gzip data ends too early" : "the gzip data is damaged");
    }
    const std::size_t made = kPiece - stream.avail_out;
    if (made > 0) return std::string_view(inflater_->buffer.data(), made);
  }
  // A second gzip member would be ignored by some readers and read by others, so it is refused.
  if (!rest_.empty()) return fail(Code::kDataLoss, "bytes follow the end of the gzip data");
  return std::string_view();
}

}  // namespace det
