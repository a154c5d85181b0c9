// Order statistics of one rung: is an entry among the best 1/divisor of the results so far. Private to
// common/searcher.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/searcher/searcher.h"

namespace det::searcher {

/// Score of a trial at a rung. Ordered best first: by smaller score, then by lower trial number.
struct Entry {
  double score = 0;
  TrialNumber trial = 0;
  auto operator<=>(const Entry&) const = default;
};

/// Binary heap with lazy deletion: an erased entry is removed when it reaches the top. All operations are
/// amortized O(log size). Memory is at most two entries for each entry ever pushed. The top is the smallest
/// entry when kSmallestFirst, else the largest.
template <bool kSmallestFirst>
class ForgettingHeap {
 public:
  std::size_t size() const { return heap_.size() - gone_.size(); }
  bool empty() const { return size() == 0; }
  void push(Entry entry) {
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end(), below);
  }
  /// Requires: `entry` is in the heap and was not erased.
  void erase(Entry entry) {
    gone_.push_back(entry);
    std::push_heap(gone_.begin(), gone_.end(), below);
    forget();
  }
  /// Requires: the heap is not empty.
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
  /// gone_: erased entries that heap_ still holds. The tops of the two always differ.
  std::vector<Entry> heap_, gone_;
};

/// Fraction 1/divisor of a rung. Arithmetic is exact in integers when the divisor is a whole number.
class Divisor {
 public:
  explicit Divisor(double value)
      : value_(value), whole_(value == std::floor(value) ? static_cast<std::int64_t>(value) : 0) {}
  /// Returns floor(n / divisor^times).
  std::int64_t divide(std::int64_t n, std::int64_t times = 1) const;
  /// Returns the largest k with divisor^k <= n, at most 100. Requires n >= 1.
  std::int64_t log(std::int64_t n) const;
  double value() const { return value_; }
  /// The divisor as an integer; 0 if it is not whole.
  std::int64_t whole() const { return whole_; }

 private:
  double value_;
  std::int64_t whole_;
};

/// Results of the trials that reached one training length, split into the best max(least, floor(size /
/// divisor)) and the rest. insert and erase are amortized O(log size).
class Rung {
 public:
  /// `least`: lower bound of the number of best entries, whatever the size.
  Rung(Divisor divisor, std::size_t least) : divisor_(divisor), least_(least) {}
  std::size_t size() const { return best_.size() + rest_.size(); }
  void insert(Entry entry) {
    if (!best_.empty() && entry < best_.top())
      best_.push(entry);
    else
      rest_.push(entry);
    balance();
  }
  /// Requires: `entry` is in the rung.
  void erase(Entry entry) {
    if (among_best(entry))
      best_.erase(entry);
    else
      rest_.erase(entry);
    balance();
  }
  /// Returns whether `entry`, which is in the rung, is one of the max(least, floor(size / divisor)) best.
  bool among_best(Entry entry) const { return !best_.empty() && !(best_.top() < entry); }
  /// Like among_best, but every entry that ties with the last of the best passes too.
  bool ties_best(double score) const { return !best_.empty() && score <= best_.top().score; }

 private:
  // Restores the split after one insertion or removal. Each loop moves at most one entry.
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
