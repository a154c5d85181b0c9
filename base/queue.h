// Owns the ways threads of a daemon hand things to each other: a bounded queue, and the newest of a series
// that anybody may look back at. The only mutexes of the daemons' own code live here.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
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
  bool push(T&& item) { return put(std::move(item), false); }

  /// Ahead of all that wait, with the room of push(): for things that are best used again while they are
  /// warm.
  bool push_front(T&& item) { return put(std::move(item), true); }

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
  bool put(T&& item, bool ahead) {
    {
      std::unique_lock lock(mutex_);
      room_.wait(lock, [&] { return closed_ || items_.size() < capacity_; });
      if (closed_) return false;
      ahead ? items_.push_front(std::move(item)) : items_.push_back(std::move(item));
    }
    ready_.notify_one();
    return true;
  }

  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable ready_, room_;
  std::deque<T> items_;
  bool closed_ = false;
};

/// The newest items of many producers, for any number of readers: what is old makes room. The n-th item ever
/// added has the number n.
template <typename T>
class Newest {
 public:
  explicit Newest(std::size_t capacity) : capacity_(capacity) {}

  void add(T item) {
    std::lock_guard lock(mutex_);
    if (items_.size() == capacity_) items_.pop_front();
    items_.push_back(std::move(item));
    ++last_;
  }
  /// Of the newest; 0 before the first.
  std::uint64_t last() const {
    std::lock_guard lock(mutex_);
    return last_;
  }
  /// Those behind `number` that are still there, at most `most`, oldest first; and the number of the first of
  /// them.
  std::pair<std::uint64_t, std::vector<T>> after(std::uint64_t number, std::size_t most) const {
    std::lock_guard lock(mutex_);
    const std::uint64_t gone = last_ - items_.size();
    const std::uint64_t skipped = std::min(std::max(number, gone), last_);
    const auto begin = items_.begin() + static_cast<std::ptrdiff_t>(skipped - gone);
    const std::size_t count = std::min<std::size_t>(most, last_ - skipped);
    return {skipped + 1, std::vector<T>(begin, begin + static_cast<std::ptrdiff_t>(count))};
  }

 private:
  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::deque<T> items_;
  std::uint64_t last_ = 0;
};

}  // namespace det
