// A flag that threads wait for: an end request, a completion, an interruptible pause.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace det {

/// A flag, initially clear. Thread-safe. A wait without a set() is a plain pause: Event().wait_for(time).
class Event {
 public:
  /// Sets the flag and wakes all waiting threads. Idempotent.
  void set() {
    {
      const std::lock_guard lock(mutex_);
      set_ = true;
    }
    changed_.notify_all();
  }
  /// True after set(), until take_for() clears the flag.
  bool is_set() const {
    const std::lock_guard lock(mutex_);
    return set_;
  }
  /// Blocks until the flag is set or `timeout` has passed. Returns true if it is set.
  template <typename Rep, typename Period>
  bool wait_for(std::chrono::duration<Rep, Period> timeout) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, timeout, [this] { return set_; });
  }
  /// Like wait_for, and clears the flag: one set() ends the wait of one thread.
  template <typename Rep, typename Period>
  bool take_for(std::chrono::duration<Rep, Period> timeout) {
    std::unique_lock lock(mutex_);
    const bool taken = changed_.wait_for(lock, timeout, [this] { return set_; });
    set_ = false;
    return taken;
  }

 private:
  // Guards set_. changed_ signals that it became true.
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool set_ = false;
};

}  // namespace det
