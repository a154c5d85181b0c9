// Owns when an allocation is on its way out.
#pragma once

#include <algorithm>

#include "master/core/model.h"

namespace det::core {

/// All parts that do the work have ended: the helpers that are left are ended too.
inline bool only_helpers_live(const Allocation& allocation) {
  return std::all_of(allocation.parts.begin(), allocation.parts.end(), [](const AllocationPart& part) {
    return part.daemon || part.state == AllocationState::kTerminated;
  });
}

/// What lives of it is killed. Like all here of what the store keeps alone: a restarted core says the same.
inline bool is_killed(const Allocation& allocation) {
  return allocation.kill_requested || allocation.exit || only_helpers_live(allocation);
}

/// It was asked to leave, or is made to.
inline bool is_leaving(const Allocation& allocation) {
  return allocation.preempt_requested || is_killed(allocation);
}

}  // namespace det::core
