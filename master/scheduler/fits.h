// Owns the check at submission: could this request ever start in its pool (W33)? A function of the pools'
// shapes.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "master/scheduler/scheduler.h"

namespace det::scheduler {

/// What a pool has when nothing runs: the enabled slots of each agent, draining ones too.
struct PoolShape {
  std::string name;
  std::vector<int> agents;
};
PoolShape shape_of(std::string name, const std::vector<Agent>& agents);

/// "1 slot", "3 slots".
std::string slots_text(int slots);

/// kInvalidArgument when `pool` could not hold the request even if it were empty; the message says which
/// shapes would fit, there and in other pools. A pool that has no agents (yet) takes everything: nothing is
/// known of it.
Status fits(const std::vector<PoolShape>& pools, const std::string& pool, int slots, bool single_node);

}  // namespace det::scheduler
