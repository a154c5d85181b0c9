// Bit sets of small numbers, alone and by key. The indexes of the scheduler use them for agents: thousands of
// agents share a few keys (numbers of free slots), and moving one between two keys flips two bits instead of
// allocating and freeing tree nodes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace det::scheduler {

/// A bit set of numbers >= 0, in one contiguous allocation that grows with the largest number.
class Marks {
 public:
  /// Inserts a number, which must not be in the set.
  void put(int number) {
    const auto word = static_cast<std::size_t>(number) / 64;
    if (word >= words_.size()) words_.resize(word + 1);
    words_[word] |= bit(number);
    ++count_;
  }
  /// Removes a number, which must be in the set.
  void drop(int number) {
    words_[static_cast<std::size_t>(number) / 64] &= ~bit(number);
    --count_;
  }
  /// Number of elements.
  int count() const { return count_; }
  /// Returns the smallest element >= `number`, or -1.
  int from(int number) const {
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
  int first() const { return from(0); }

 private:
  static std::uint64_t bit(int number) { return std::uint64_t{1} << (number % 64); }
  std::vector<std::uint64_t> words_;
  int count_ = 0;
};

/// Numbers by key, each under at most one key. Contains no empty set, so its keys are those in use.
template <typename Key>
class MarksBy : public std::map<Key, Marks> {
 public:
  /// Inserts a number, which must be under no key.
  void put(const Key& key, int number) { (*this)[key].put(number); }
  /// Removes a number, which must be under `key`.
  void drop(const Key& key, int number) {
    auto it = this->find(key);
    it->second.drop(number);
    if (it->second.count() == 0) this->erase(it);
  }
};

}  // namespace det::scheduler
