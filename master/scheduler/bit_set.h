// Bit sets of small numbers, alone and by key. The indexes of the scheduler use them for agents: thousands of
// agents share a few keys (numbers of free slots), and moving one between two keys flips two bits instead of
// allocating and freeing tree nodes (`tests/bench/run.sh scheduler`).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace det::scheduler {

/// A bit set of numbers >= 0, in one contiguous allocation that grows with the largest number.
class BitSet {
 public:
  /// Inserts a number, which must not be in the set.
  void insert(int number) {
    const auto word = static_cast<std::size_t>(number) / 64;
    if (word >= words_.size()) words_.resize(word + 1);
    words_[word] |= bit(number);
    ++count_;
  }
  /// Removes a number, which must be in the set.
  void erase(int number) {
    words_[static_cast<std::size_t>(number) / 64] &= ~bit(number);
    --count_;
  }
  /// Number of elements.
  int count() const { return count_; }
  /// Returns the smallest element >= `number`, or -1.
  int next(int number) const {
    std::uint64_t mask = ~std::uint64_t{0} << (number % 64);
    for (auto word = static_cast<std::size_t>(number) / 64; word < words_.size(); ++word) {
      if (const std::uint64_t found = words_[word] & mask) {
        return static_cast<int>(word * 64) + std::countr_zero(found);
      }
      mask = ~std::uint64_t{0};
    }
    return -1;
  }
  /// Returns the smallest element, or -1.
  int first() const { return next(0); }

 private:
  static std::uint64_t bit(int number) { return std::uint64_t{1} << (number % 64); }
  std::vector<std::uint64_t> words_;
  int count_ = 0;
};

/// Numbers by key, each under at most one key. Contains no empty set, so its keys are those in use.
template <typename Key>
class BitSetMap {
 public:
  using const_iterator = typename std::map<Key, BitSet>::const_iterator;

  bool empty() const { return sets_.empty(); }
  const_iterator begin() const { return sets_.begin(); }
  const_iterator end() const { return sets_.end(); }
  auto rbegin() const { return sets_.rbegin(); }
  auto rend() const { return sets_.rend(); }
  const_iterator lower_bound(const Key& key) const { return sets_.lower_bound(key); }
  const BitSet& at(const Key& key) const { return sets_.at(key); }
  /// Inserts a number, which must be under no key.
  void insert(const Key& key, int number) { sets_[key].insert(number); }
  /// Removes a number, which must be under `key`.
  void erase(const Key& key, int number) {
    const auto set = sets_.find(key);
    set->second.erase(number);
    if (set->second.count() == 0) sets_.erase(set);
  }
  void clear() { sets_.clear(); }

 private:
  std::map<Key, BitSet> sets_;
};

}  // namespace det::scheduler
