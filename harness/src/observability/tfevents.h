// Writer of TensorBoard event files (scalars only), without TensorFlow or protobuf.
//
// A file is a sequence of TFRecords: length (uint64, little-endian), masked CRC-32C of these eight bytes,
// content, masked CRC-32C of the content. The content is an Event of TensorFlow's event.proto; the first one
// has file_version "brain.Event:2".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/fd.h"
#include "common/base/result.h"

namespace det {

/// CRC-32C (Castagnoli: RFC 3720, section 12.1 and appendix B.4).
std::uint32_t crc32c(std::string_view bytes);
/// CRC-32C as TFRecord stores it: rotated right by 15, plus 0xa282ead8.
std::uint32_t masked_crc32c(std::string_view bytes);

/// Writes one event file. Used by one thread.
class TensorBoardWriter {
 public:
  /// Creates a file in `directory`, which is created if missing. The name is unique: it consists of time,
  /// host, process id and a counter.
  static Result<TensorBoardWriter> create(const std::string& directory);
  TensorBoardWriter(TensorBoardWriter&&) = default;
  /// Flushes; errors are ignored.
  ~TensorBoardWriter();

  /// Buffers a scalar. Flushes when 64 KiB are buffered.
  Status add_scalar(std::string_view tag, double value, std::int64_t step);
  /// Writes the buffer to the file, where TensorBoard reads it. Does not sync.
  /// The buffer is dropped on errors.
  Status flush();
  const std::string& path() const { return path_; }

 private:
  TensorBoardWriter(UniqueFd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  UniqueFd file_;
  std::string path_;
  std::string unwritten_;
};

}  // namespace det
