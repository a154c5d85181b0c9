// Owns the order statistic of a rung: who is among the best 1/divisor of those that came. Private to
// master/searcher.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "master/searcher/searcher.h"

namespace det::searcher {

/// A trial's score at a rung. Ordered: the better first, of equals the older trial.
struct Entry {
  double score = 0;
  TrialNumber trial = 0;
  auto operator<=>(const Entry&) const = default;
};

/// A binary heap that forgets: what is erased leaves when it comes to the top. `Before(a, b)`: a is nearer
/// the top. Amortized O(log size), two entries of memory at most for each one ever in it.
template <bool kSmallestFirst>
class ForgettingHeap {
 public:
  std::size_t size() const { return heap_.size() - gone_.size(); }
  bool empty() const { return size() == 0; }
  void push(Entry entry) {
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end(), below);
  }
  /// `entry` must be in it.
  void erase(Entry entry) {
    gone_.push_back(entry);
    std::push_heap(gone_.begin(), gone_.end(), below);
    forget();
  }
  const Entry& top() const { return heap_.front(); }
  Entry pop() {
    const Entry entry = heap_.front();
    drop();
    forget();
    return entry;
  }

 private:
  static bool below(const Entry& a, const Entry& b) { return kSmallestFirst ? b < a : a < b; }
  void drop() {
    std::pop_heap(heap_.begin(), heap_.end(), below);
    heap_.pop_back();
  }
  void forget() {
    while (!gone_.empty() && gone_.front() == heap_.front()) {
      std::pop_heap(gone_.begin(), gone_.end(), below);
      gone_.pop_back();
      drop();
    }
  }
  std::vector<Entry> heap_, gone_;  ///< gone_ is a part of heap_; their tops differ
};

/// One in so many; whole divisors are exact (W6).
class Divisor {
 public:
  explicit Divisor(double value)
      : value_(value), whole_(value == std::floor(value) ? static_cast<std::int64_t>(value) : 0) {}
  /// floor(n / divisor^times)
  std::int64_t divide(std::int64_t n, std::int64_t times = 1) const;
  /// The largest k with divisor^k <= n; n >= 1.
  std::int64_t log(std::int64_t n) const;
  double value() const { return value_; }
  std::int64_t whole() const { return whole_; }  ///< 0 when it is not

 private:
  double value_;
  std::int64_t whole_;
};

/// The results that trials had at one length of training. insert and erase are amortized O(log size).
class Rung {
 public:
  /// `least`: how many are among the best however few came.
  Rung(Divisor divisor, std::size_t least) : divisor_(divisor), least_(least) {}
  std::size_t size() const { return best_.size() + rest_.size(); }
  void insert(Entry entry) {
    if (!best_.empty() && entry < best_.top())
      best_.push(entry);
    else
      rest_.push(entry);
    balance();
  }
  /// `entry` must be in it.
  void erase(Entry entry) {
    if (among_best(entry))
      best_.erase(entry);
    else
      rest_.erase(entry);
    balance();
  }
  /// Whether an entry that is in it is one of the max(least, floor(size / divisor)) best.
  bool among_best(Entry entry) const { return !best_.empty() && !(best_.top() < entry); }
  /// The same where the last of the best shares its score with others: they all are.
  bool ties_best(double score) const { return !best_.empty() && score <= best_.top().score; }

 private:
  void balance() {
    const auto share = static_cast<std::size_t>(divisor_.divide(static_cast<std::int64_t>(size())));
    const std::size_t keep = std::min(std::max(share, least_), size());
    while (best_.size() < keep) best_.push(rest_.pop());
    while (best_.size() > keep) rest_.push(best_.pop());
  }

  Divisor divisor_;
  std::size_t least_;
  ForgettingHeap<false> best_;
  ForgettingHeap<true> rest_;
};

}  // namespace det::searcher
