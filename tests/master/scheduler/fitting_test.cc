// Splitting a gang over agents, compared with trying all subsets.
#include "master/scheduler/fitting.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <optional>

#include "common/base/random.h"

namespace det::scheduler {
namespace {

TEST_CASE("a gang is split over the fewest agents with the fewest slots left over") {
  Random random{5, 0};
  for (int round = 0; round < 20000; ++round) {
    std::vector<int> free(1 + random.below(8));
    std::map<int, int, std::greater<>> kinds;
    for (int& one : free) ++kinds[one = static_cast<int>(1 + random.below(9))];
    const int count = static_cast<int>(1 + random.below(30));
    std::optional<std::pair<int, int>> best;  // Agents, slots left over.
    for (unsigned mask = 1; mask < (1U << free.size()); ++mask) {
      int sum = 0, agents = 0;
      for (std::size_t i = 0; i < free.size(); ++i) {
        if (mask >> i & 1U) sum += free[i], ++agents;
      }
      if (sum >= count && (!best || std::pair(agents, sum - count) < *best)) best = {agents, sum - count};
    }
    const std::vector<int> chosen = choose_agents({kinds.begin(), kinds.end()}, count);
    REQUIRE(chosen.empty() == !best);
    if (!best) continue;
    const int sum = std::accumulate(chosen.begin(), chosen.end(), 0);
    REQUIRE(std::pair(static_cast<int>(chosen.size()), sum - count) == *best);
    REQUIRE(std::is_sorted(chosen.rbegin(), chosen.rend()));
    for (int one : chosen) REQUIRE(--kinds[one] >= 0);
  }
}

TEST_CASE("a large pool of many kinds of agents is split in bounded time") {
  std::vector<std::pair<int, int>> kinds;
  for (int free = 200; free >= 1; --free) kinds.emplace_back(free, 5);
  const std::vector<int> chosen = choose_agents(kinds, 20001);
  REQUIRE(std::accumulate(chosen.begin(), chosen.end(), 0) >= 20001);
}

TEST_CASE("chosen devices are free, as many as requested, and of one link group if possible") {
  Random random{6, 0};
  for (int round = 0; round < 20000; ++round) {
    std::vector<Slot> slots(1 + random.below(16));
    std::vector<bool> free(slots.size());
    std::map<int, int> groups;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      slots[i].link = static_cast<int>(random.below(3));
      free[i] = random.below(3) != 0;
      if (free[i]) ++groups[slots[i].link];
    }
    const auto there = std::count(free.begin(), free.end(), true);
    if (there == 0) continue;
    const int count = static_cast<int>(1 + random.below(static_cast<std::uint64_t>(there)));
    const std::vector<int> chosen = choose_slots(slots, free, count);
    REQUIRE(static_cast<int>(chosen.size()) == count);
    std::map<int, int> used;
    for (int slot : chosen) {
      REQUIRE(free[static_cast<std::size_t>(slot)]);
      ++used[slots[static_cast<std::size_t>(slot)].link];
    }
    REQUIRE(std::adjacent_find(chosen.begin(), chosen.end(), std::greater_equal<>()) == chosen.end());
    const bool one_is_enough =
        std::any_of(groups.begin(), groups.end(), [&](const auto& group) { return group.second >= count; });
    if (one_is_enough) REQUIRE(used.size() == 1);
  }
}

}  // namespace
}  // namespace det::scheduler
