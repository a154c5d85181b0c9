// Check at submission: could a request ever start in its pool? Pure functions of the sizes of the pools'
// agents.
#pragma once

#include <string>
#include <vector>

#include "common/base/result.h"
#include "master/scheduler/scheduler.h"

namespace det::scheduler {

/// The size of an empty pool: the enabled slots of each agent. Includes agents that are draining or closed
/// for other reasons, but none that is for one request (Exclusive).
struct PoolShape {
  std::string name;
  std::vector<int> agents;  ///< enabled slots of each agent
};
PoolShape shape_of(std::string name, const std::vector<Agent>& agents);

/// Returns "1 slot", "3 slots".
std::string slots_text(int slots);

/// Returns kInvalidArgument when `pool` could not hold the request even if it were empty; the message lists
/// what would fit, in that pool and in others. A pool that is unknown or has no agents (yet) accepts
/// everything.
Status fits(const std::vector<PoolShape>& pools, const std::string& pool, int slots, bool single_node);

}  // namespace det::scheduler
