// Owns which deadline comes next. An index only: the deadlines themselves are in the model.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace det::core {

/// One deadline per key at most.
template <typename Key>
class Timers {
 public:
  /// Nothing clears it.
  void set(const Key& key, std::optional<MonoTime> deadline) {
    if (auto it = deadlines_.find(key); it != deadlines_.end()) {
      order_.erase({it->second, key});
      deadlines_.erase(it);
    }
    if (!deadline) return;
    deadlines_.emplace(key, *deadline);
    order_.emplace(*deadline, key);
  }
  std::optional<MonoTime> next() const {
    return order_.empty() ? std::nullopt : std::optional(order_.begin()->first);
  }
  /// Those due at `now`, in order of deadline and key. They stay until set anew.
  std::vector<Key> due(MonoTime now) const {
    std::vector<Key> keys;
    for (auto it = order_.begin(); it != order_.end() && it->first <= now; ++it) keys.push_back(it->second);
    return keys;
  }

 private:
  std::map<Key, MonoTime> deadlines_;
  std::set<std::pair<MonoTime, Key>> order_;
};

}  // namespace det::core
