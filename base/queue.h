// Owns the one way threads of a daemon hand work to each other: a bounded queue. The only mutex of the
// daemons' own code lives here.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

namespace det {

/// Many producers, any number of consumers. Bounded: a full queue refuses (try_push) or blocks (push), so a
/// slow consumer is felt by its producers instead of by memory. After close() pushes are refused and pops
/// drain.
template <typename T>
class Queue {
 public:
  explicit Queue(std::size_t capacity) : capacity_(capacity) {}

  /// False when full or closed; `item` is then untouched.
  bool try_push(T&& item) {
    {
      std::lock_guard lock(mutex_);
      if (closed_ || items_.size() >= capacity_) return false;
      items_.push_back(std::move(item));
    }
    ready_.notify_one();
    return true;
  }

  /// Waits for room; false when closed.
  bool push(T&& item) {
    {
      std::unique_lock lock(mutex_);
      room_.wait(lock, [&] { return closed_ || items_.size() < capacity_; });
      if (closed_) return false;
      items_.push_back(std::move(item));
    }
    ready_.notify_one();
    return true;
  }

  /// Waits up to `timeout` for something, then takes at most `most` items in order; empty on time-out or
  /// close.
  template <typename Rep, typename Period>
  std::vector<T> pop_batch(std::size_t most, std::chrono::duration<Rep, Period> timeout) {
    std::unique_lock lock(mutex_);
    ready_.wait_for(lock, timeout, [&] { return closed_ || !items_.empty(); });
    std::vector<T> batch;
    while (!items_.empty() && batch.size() < most) {
      batch.push_back(std::move(items_.front()));
      items_.pop_front();
    }
    lock.unlock();
    room_.notify_all();
    return batch;
  }

  /// Waits for one item; nothing when the queue is closed and drained.
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return closed_ || !items_.empty(); });
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    lock.unlock();
    room_.notify_one();
    return item;
  }

  void close() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    ready_.notify_all();
    room_.notify_all();
  }

  bool closed() const {
    std::lock_guard lock(mutex_);
    return closed_;
  }
  std::size_t size() const {
    std::lock_guard lock(mutex_);
    return items_.size();
  }

 private:
  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable ready_, room_;
  std::deque<T> items_;
  bool closed_ = false;
};

}  // namespace det
