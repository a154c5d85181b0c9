// Writes one large memory image to a durable file at disk speed: without the page cache (O_DIRECT), with
// several blocks in flight (Linux AIO), and with a checksum computed on the way. Standard library only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/base/result.h"

namespace det {

/// Alignment of addresses, lengths and offsets of direct writes, in bytes.
inline constexpr std::uint64_t kDirectAlignment = 4096;
inline constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t to) {
  return (value + to - 1) / to * to;
}

/// Page-aligned memory, with huge pages if available.
class PageBuffer {
 public:
  PageBuffer() = default;
  PageBuffer(const PageBuffer&) = delete;
  ~PageBuffer() { release(); }
  /// Ensures a capacity of `bytes`. The content is lost when the buffer grows. Throws std::bad_alloc.
  void reserve(std::uint64_t bytes);
  char* data() const { return data_; }
  std::uint64_t capacity() const { return capacity_; }

 private:
  void release();
  char* data_ = nullptr;
  std::uint64_t capacity_ = 0;
};

/// Writes image[0, size) to a new file at `path`, syncs it, and returns its CRC-64. `image` must be aligned
/// to kDirectAlignment, and its memory must extend to a multiple of it. `seal(end)` is called before the
/// first `end` bytes are read, with increasing `end`. Without support for O_DIRECT or AIO, ordinary writes
/// are used. Blocks. Errors: kResourceExhausted when the disk is full; the caller must remove an incomplete
/// file.
Result<std::uint64_t> write_image(const std::string& path, char* image, std::uint64_t size,
                                  const std::function<void(std::uint64_t end)>& seal);

}  // namespace det
