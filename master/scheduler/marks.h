// Owns a set of small numbers in one piece of memory: a bit for each. And such sets by a key, of which none
// is empty.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace det::scheduler {

class Marks {
 public:
  void put(int number) {
    const auto word = static_cast<std::size_t>(number) / 64;
    if (word >= words_.size()) words_.resize(word + 1);
    words_[word] |= bit(number);
    ++count_;
  }
  void drop(int number) {
    words_[static_cast<std::size_t>(number) / 64] &= ~bit(number);
    --count_;
  }
  int count() const { return count_; }
  /// The smallest that is not below `number`; -1 when there is none.
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
  int first() const { return from(0); }

 private:
  static std::uint64_t bit(int number) { return std::uint64_t{1} << (number % 64); }
  std::vector<std::uint64_t> words_;
  int count_ = 0;
};

/// A number stands at one key at most.
template <typename Key>
class MarksBy : public std::map<Key, Marks> {
 public:
  void put(const Key& key, int number) { (*this)[key].put(number); }
  void drop(const Key& key, int number) {
    auto it = this->find(key);
    it->second.drop(number);
    if (it->second.count() == 0) this->erase(it);
  }
};

}  // namespace det::scheduler
