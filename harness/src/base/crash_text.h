// Text in a fixed buffer, for signal handlers.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace det {

/// Text of at most `capacity` bytes; what does not fit is dropped. All functions are async-signal-safe.
template <std::size_t capacity>
class CrashText {
 public:
  CrashText& operator<<(std::string_view text) {
    const std::size_t fits = text.size() < capacity - size_ ? text.size() : capacity - size_;
    std::memcpy(buffer_ + size_, text.data(), fits);
    size_ += fits;
    return *this;
  }
  CrashText& operator<<(std::int64_t number) {
    if (number < 0) return *this << "-" << -number;
    return digits(static_cast<std::uint64_t>(number), 10);
  }
  CrashText& hex(std::uint64_t number) {
    *this << "0x";
    return digits(number, 16);
  }
  std::string_view view() const { return {buffer_, size_}; }
  bool empty() const { return size_ == 0; }
  void clear() { size_ = 0; }
  void write_to(int fd) const {
    for (std::size_t at = 0; at < size_;) {
      const ssize_t wrote = ::write(fd, buffer_ + at, size_ - at);
      if (wrote <= 0) return;
      at += static_cast<std::size_t>(wrote);
    }
  }

 private:
  CrashText& digits(std::uint64_t number, std::uint64_t base) {
    char text[20];
    std::size_t at = sizeof text;
    do {
      text[--at] = "0123456789abcdef"[number % base];
      number /= base;
    } while (number != 0);
    return *this << std::string_view(text + at, sizeof text - at);
  }

  char buffer_[capacity];
  std::size_t size_ = 0;
};

}  // namespace det
