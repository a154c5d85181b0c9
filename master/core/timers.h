// Index of deadlines by key, ordered by time. The core computes the deadlines; a restart rebuilds the index
// from the state, so it is never stored.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/base/clock.h"

namespace det::core {

/// At most one deadline for each key. All operations are O(log n).
template <typename Key>
class Timers {
 public:
  /// Sets the deadline of a key, replacing an earlier one. An empty `deadline` clears it.
  void set(const Key& key, std::optional<MonoTime> deadline) {
    if (auto it = deadlines_.find(key); it != deadlines_.end()) {
      order_.erase({it->second, key});
      deadlines_.erase(it);
    }
    if (!deadline) return;
    deadlines_.emplace(key, *deadline);
    order_.emplace(*deadline, key);
  }
  bool has(const Key& key) const { return deadlines_.contains(key); }
  /// Returns the earliest deadline.
  std::optional<MonoTime> next() const {
    return order_.empty() ? std::nullopt : std::optional(order_.begin()->first);
  }
  /// Returns the keys that are due at `now`, in the order of deadline and key. Does not clear them: a key
  /// stays due until `set` changes it.
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
