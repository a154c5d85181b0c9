// Owns writing one large image from memory to a durable file as fast as the disk takes it: around the page
// cache (O_DIRECT), several blocks under way at a time (Linux AIO), checksummed on the way. Standard library
// only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"

namespace det {

/// What a direct write asks of addresses, lengths and offsets.
inline constexpr std::uint64_t kDirectAlignment = 4096;
inline constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t to) {
  return (value + to - 1) / to * to;
}

/// Page-aligned memory of any size. Where pages are large it uses them.
class PageBuffer {
 public:
  PageBuffer() = default;
  PageBuffer(const PageBuffer&) = delete;
  ~PageBuffer() { release(); }
  /// Content is lost when it has to grow. Throws std::bad_alloc.
  void reserve(std::uint64_t bytes);
  char* data() const { return data_; }
  std::uint64_t capacity() const { return capacity_; }

 private:
  void release();
  char* data_ = nullptr;
  std::uint64_t capacity_ = 0;
};

/// Writes image[0, size) to a new file at `path` and syncs it; returns its CRC-64. `image` starts on, and its
/// memory reaches to, a multiple of kDirectAlignment. `seal(end)` is called before the first `end` bytes are
/// read, with `end` growing. File systems without direct writes (tmpfs) and systems without AIO are written
/// to in the ordinary way. kResourceExhausted when the disk is full; what is there then is for the caller to
/// remove.
Result<std::uint64_t> write_image(const std::string& path, char* image, std::uint64_t size,
                                  const std::function<void(std::uint64_t end)>& seal);

}  // namespace det
