// Owns gzip, in memory and piece by piece. Private to base/.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace det {

/// The same bytes for the same input: no time, no name.
std::string gzip(std::string_view bytes);
bool is_gzip(std::string_view bytes);

/// Reads a stream in pieces of at most 64 KiB: one gzip member, or any other bytes as they are.
class ByteSource {
 public:
  explicit ByteSource(std::string_view bytes);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  /// The next piece, valid until the next call; empty at the end. kDataLoss when the gzip data is damaged,
  /// cut, or followed by anything.
  Result<std::string_view> next();

 private:
  struct Inflater;
  std::string_view rest_;
  std::unique_ptr<Inflater> inflater_;  ///< null for plain bytes
};

}  // namespace det
