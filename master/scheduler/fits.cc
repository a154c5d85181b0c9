#include "master/scheduler/fits.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "common/base/text.h"

namespace det::scheduler {

std::string slots_text(int slots) { return std::to_string(slots) + (slots == 1 ? " slot" : " slots"); }

namespace {

int largest(const PoolShape& pool) {
  return pool.agents.empty() ? 0 : *std::max_element(pool.agents.begin(), pool.agents.end());
}
int total(const PoolShape& pool) { return std::accumulate(pool.agents.begin(), pool.agents.end(), 0); }
/// The empty pool has room for the request.
bool holds(const PoolShape& pool, int slots, bool single_node) {
  return slots <= (single_node ? largest(pool) : total(pool));
}

/// Returns the fewest agents that a gang of `slots` slots needs: the largest ones first.
int agents_for(PoolShape pool, int slots) {
  std::sort(pool.agents.begin(), pool.agents.end(), std::greater<>());
  int count = 0;
  for (int there : pool.agents) {
    if (slots <= 0) break;
    slots -= there;
    ++count;
  }
  return count;
}

}  // namespace

PoolShape shape_of(std::string name, const std::vector<Agent>& agents) {
  PoolShape pool{std::move(name), {}};
  for (const Agent& agent : agents) {
    if (agent.exclusive) continue;
    pool.agents.push_back(static_cast<int>(std::count_if(agent.slots.begin(), agent.slots.end(),
                                                         [](const Slot& slot) { return slot.enabled; })));
  }
  return pool;
}

Status fits(const std::vector<PoolShape>& pools, const std::string& pool, int slots, bool single_node) {
  // A pool without agents may get some later, so its capacity is unknown rather than zero.
  const auto asked =
      std::find_if(pools.begin(), pools.end(), [&](const PoolShape& one) { return one.name == pool; });
  if (asked == pools.end() || asked->agents.empty() || holds(*asked, slots, single_node)) return {};
  const int most = largest(*asked), all = total(*asked);
  std::string message = slots_text(slots) +
                        (single_node ? " on one agent; the largest agent of pool " : "; pool ") + pool +
                        " has " + std::to_string(single_node ? most : all);
  if (!single_node) {
    message +=
        " on " + std::to_string(asked->agents.size()) + (asked->agents.size() == 1 ? " agent" : " agents");
  }
  // Alternatives: the largest single-node request, a gang in the same pool, other pools.
  std::vector<std::string> others;
  if (most > 0) others.push_back(slots_text(most) + " on one agent");
  if (single_node && slots <= all) {
    others.push_back(std::to_string(slots) + " over " + std::to_string(agents_for(*asked, slots)) +
                     " agents (resources.is_single_node: false)");
  } else if (!single_node && all > most) {
    others.push_back(std::to_string(all) + " over " + std::to_string(agents_for(*asked, all)) + " agents");
  }
  for (const PoolShape& other : pools) {
    if (other.name != pool && holds(other, slots, single_node)) others.push_back("pool " + other.name);
  }
  message += others.empty() ? "; would fit: 0 slots" : "; would fit: " + join(others, ", or ");
  return fail(Code::kInvalidArgument, std::move(message));
}

}  // namespace det::scheduler
