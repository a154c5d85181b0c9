// The copy-on-write table. Its copies share blocks.
#include "master/scheduler/shared_table.h"

#include <catch2/catch.hpp>
#include <deque>
#include <map>

#include "common/base/random.h"

namespace det::scheduler {
namespace {

using Known = std::map<std::int64_t, std::int64_t>;

/// Every value contains its key, so that visited values can be matched with expected ones.
struct Value {
  std::int64_t key = 0, number = 0;
};

Known all_of(const SharedTable<Value>::Copy& copy) {
  Known found;
  copy.each([&](const Value& value) { REQUIRE(found.emplace(value.key, value.number).second); });
  REQUIRE(copy.size() == found.size());
  return found;
}

TEST_CASE("a shared table behaves like a map, and its copies keep the values at their creation") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    Random random{seed, 0};
    SharedTable<Value> table;
    Known known;
    std::deque<std::pair<SharedTable<Value>::Copy, Known>> copies;
    std::int64_t newest = 0;
    for (int step = 0; step < 20'000; ++step) {
      // Keys of trials and of commands with the same numbers.
      const auto some = [&] {
        const auto number = static_cast<std::int64_t>(random.below(2000));
        return (random.below(2) == 0 ? TaskKey(TrialId(number)) : TaskKey(CommandId(number))).packed();
      };
      const std::uint64_t kind = random.below(1000);
      if (kind < 500) {
        const std::int64_t key = kind < 400 ? ++newest : some();
        table.put(key, {key, step});
        known[key] = step;
      } else if (kind < 990) {
        const std::int64_t key = some();
        table.erase(key);
        known.erase(key);
      } else {
        copies.emplace_back(table.share(), known);
        if (copies.size() > 3) copies.pop_front();
      }
      const std::int64_t asked = some();
      const Value* found = table.find(asked);
      REQUIRE((found != nullptr) == known.contains(asked));
      if (found) REQUIRE(found->number == known.at(asked));
      REQUIRE(table.size() == known.size());
    }
    for (const auto& [copy, before] : copies) REQUIRE(all_of(copy) == before);
    REQUIRE(all_of(table.share()) == known);
  }
}

TEST_CASE("a copy outlives its table") {
  SharedTable<Value>::Copy copy;
  {
    SharedTable<Value> table;
    for (std::int64_t key = 0; key < 1000; ++key) table.put(key, {key, -key});
    copy = table.share();
    for (std::int64_t key = 0; key < 1000; ++key) table.erase(key);
    REQUIRE(table.size() == 0);
  }
  REQUIRE(all_of(copy).size() == 1000);
}

}  // namespace
}  // namespace det::scheduler
