// Owns TensorBoard's event files: scalars, in the format TensorBoard reads. No TensorFlow, no protobuf.
//
// A file is records (TFRecord): length (uint64, little-endian), masked CRC-32C of these eight bytes, content,
// masked CRC-32C of the content. The content is an Event of TensorFlow's event.proto; the first one says
// "brain.Event:2".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace det {

/// CRC-32C (Castagnoli: RFC 3720, section 12.1 and appendix B.4).
std::uint32_t crc32c(std::string_view bytes);
/// As TFRecord stores it: rotated right by 15, plus 0xa282ead8.
std::uint32_t masked_crc32c(std::string_view bytes);

/// Writes one event file. Used by one thread.
class TensorBoardWriter {
 public:
  /// A new file in `directory`, which is made; its name has time, host, process and a number, so no other has
  /// it.
  static Result<TensorBoardWriter> create(const std::string& directory);
  TensorBoardWriter(TensorBoardWriter&&) = default;
  /// Flushes; what that cannot write is lost.
  ~TensorBoardWriter();

  /// Kept in memory until flush(), or until 64 KiB have come together.
  Status add_scalar(std::string_view tag, double value, std::int64_t step);
  /// Everything is in the file, where TensorBoard sees it.
  Status flush();
  const std::string& path() const { return path_; }

 private:
  TensorBoardWriter(UniqueFd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  UniqueFd file_;
  std::string path_;
  std::string unwritten_;
};

}  // namespace det
