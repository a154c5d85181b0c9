// gzip compression in memory, and streaming decompression.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace det {

/// Compresses deterministically: no time and no file name in the header. `level`: 1 (fast) to 9 (small).
std::string gzip(std::string_view bytes, int level = 6);
/// True if `bytes` start with the gzip magic number.
bool is_gzip(std::string_view bytes);

/// Compresses a stream in pieces that the receiver can decode at once. Not thread-safe.
class GzipStream {
 public:
  GzipStream();
  ~GzipStream();
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  /// Returns the compressed form of the next bytes of the stream.
  std::string add(std::string_view bytes);

 private:
  struct Deflater;
  std::unique_ptr<Deflater> deflater_;
};

/// Reads one gzip member, or plain bytes as they are, in pieces of at most 64 KiB. Not thread-safe.
class ByteSource {
 public:
  /// `bytes` must outlive the object. gzip is detected by its magic number.
  explicit ByteSource(std::string_view bytes);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  /// Returns the next piece, valid until the next call; empty at the end.
  /// Errors: kDataLoss (damaged or truncated gzip data, or bytes after its end).
  Result<std::string_view> next();

 private:
  struct Inflater;
  std::string_view rest_;
  std::unique_ptr<Inflater> inflater_;  ///< null for plain bytes
};

}  // namespace det
