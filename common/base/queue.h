// Thread-safe containers between the threads of a daemon: a bounded queue and a ring of newest items.
// Together with event.h and shared.h they hold the only mutexes of the daemons.
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

/// A bounded multi-producer multi-consumer FIFO. A full queue applies backpressure: try_push fails and push
/// blocks. After close(), pushes fail and pops drain the remaining items.
template <typename T>
class Queue {
 public:
  /// Creates a queue for at most `capacity` items.
  explicit Queue(std::size_t capacity) : capacity_(capacity) {}

  /// Appends an item without blocking. Returns false and leaves `item` untouched if the queue is full or
  /// closed.
  bool try_push(T&& item) {
    {
      std::lock_guard lock(mutex_);
      if (closed_ || items_.size() >= capacity_) return false;
      items_.push_back(std::move(item));
    }
    ready_.notify_one();
    return true;
  }

  /// Appends an item; blocks while the queue is full. Returns false if it is closed.
  bool push(T&& item) { return put(std::move(item), false); }

  /// Like push, but puts the item first: for reuse of the most recently used (cache-warm) item.
  bool push_front(T&& item) { return put(std::move(item), true); }

  /// Waits up to `timeout` for an item, then removes up to `most` items in order. Returns an empty vector on
  /// timeout or if the queue is closed and empty.
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

  /// Blocks until an item is available. Returns nothing once the queue is closed and drained.
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

  /// Fails all blocked and future pushes, and wakes all consumers. Idempotent.
  void close() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    ready_.notify_all();
    room_.notify_all();
  }

  /// True after close().
  bool closed() const {
    std::lock_guard lock(mutex_);
    return closed_;
  }
  /// Items in the queue; another thread may change it at any time.
  std::size_t size() const {
    std::lock_guard lock(mutex_);
    return items_.size();
  }

 private:
  /// Common part of push and push_front.
  bool put(T&& item, bool ahead) {
    {
      std::unique_lock lock(mutex_);
      // Waits for room under the same lock that inserts, so the bound is never exceeded.
      room_.wait(lock, [&] { return closed_ || items_.size() < capacity_; });
      if (closed_) return false;
      ahead ? items_.push_front(std::move(item)) : items_.push_back(std::move(item));
    }
    ready_.notify_one();
    return true;
  }

  const std::size_t capacity_;
  // Guards items_ and closed_. ready_ signals new items, room_ signals removed ones.
  mutable std::mutex mutex_;
  std::condition_variable ready_, room_;
  std::deque<T> items_;
  bool closed_ = false;
};

/// A ring of the newest items of many producers, for any number of readers; old items are dropped. Items are
/// numbered from 1 in the order of add.
template <typename T>
class Newest {
 public:
  /// Creates a ring of at most `capacity` items.
  explicit Newest(std::size_t capacity) : capacity_(capacity) {}

  /// Appends an item; drops the oldest one if the ring is full.
  void add(T item) {
    std::lock_guard lock(mutex_);
    if (items_.size() == capacity_) items_.pop_front();
    items_.push_back(std::move(item));
    ++last_;
  }
  /// Returns the number of the newest item; 0 if none was added.
  std::uint64_t last() const {
    std::lock_guard lock(mutex_);
    return last_;
  }
  /// Returns up to `most` items with numbers greater than `number`, oldest first, and the number of the first
  /// one. Dropped items are skipped.
  std::pair<std::uint64_t, std::vector<T>> after(std::uint64_t number, std::size_t most) const {
    std::lock_guard lock(mutex_);
    // Items 1..gone have been dropped.
    const std::uint64_t gone = last_ - items_.size();
    const std::uint64_t skipped = std::min(std::max(number, gone), last_);
    const auto begin = items_.begin() + static_cast<std::ptrdiff_t>(skipped - gone);
    const std::size_t count = std::min<std::size_t>(most, last_ - skipped);
    return {skipped + 1, std::vector<T>(begin, begin + static_cast<std::ptrdiff_t>(count))};
  }

 private:
  const std::size_t capacity_;
  // Guards items_ and last_.
  mutable std::mutex mutex_;
  std::deque<T> items_;
  std::uint64_t last_ = 0;  ///< number of items ever added
};

}  // namespace det
