// A shared pointer that any thread may replace and read. (std::atomic<std::shared_ptr> of GCC 12 does the
// same, but ThreadSanitizer reports a race in it.)
#pragma once

#include <memory>
#include <mutex>

namespace det {

/// Copy-on-write holder of an immutable value. Thread-safe.
template <typename T>
class Shared {
 public:
  /// Returns the current value; null before the first set. The value stays valid while the caller holds the
  /// pointer.
  std::shared_ptr<const T> get() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }
  /// Replaces the value. Readers keep the old one until they release it.
  void set(std::shared_ptr<const T> value) {
    const std::lock_guard lock(mutex_);
    // Swapping destroys the old value with the argument, after the lock is released.
    value_.swap(value);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const T> value_;
};

}  // namespace det
