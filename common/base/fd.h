// RAII wrapper of a POSIX file descriptor.
#pragma once

#include <unistd.h>

#include <utility>

namespace det {

/// Owner of one open descriptor, closed exactly once. Movable. -1 means none.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  /// Moves ownership; `other` becomes -1.
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { reset(); }

  /// The descriptor, or -1. Ownership stays here.
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  /// Releases ownership without closing.
  int release() { return std::exchange(fd_, -1); }
  /// Closes the current descriptor and takes ownership of `fd`.
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace det
