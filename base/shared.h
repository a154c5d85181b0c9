// Owns a value that any thread replaces whole and any thread reads. (std::atomic<std::shared_ptr> of GCC 12
// is one too, but the thread sanitizer sees a race in it.)
#pragma once

#include <memory>
#include <mutex>

namespace det {

template <typename T>
class Shared {
 public:
  /// Null before the first set.
  std::shared_ptr<const T> get() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }
  void set(std::shared_ptr<const T> value) {
    const std::lock_guard lock(mutex_);
    value_.swap(value);  // the old one dies with the argument, behind the lock
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const T> value_;
};

}  // namespace det
