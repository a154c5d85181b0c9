// Predicates of allocations that are terminating. They use stored fields only, so a restarted core gets the
// same results.
#pragma once

#include <algorithm>

#include "master/core/model.h"

namespace det::core {

/// Every part except daemons has ended; the daemons are then ended, too.
inline bool only_daemons_live(const Allocation& allocation) {
  return std::all_of(allocation.parts.begin(), allocation.parts.end(), [](const AllocationPart& part) {
    return part.daemon || part.state == AllocationState::kTerminated;
  });
}

/// The live parts of the allocation are being killed: on request, after the failure of a part, or because
/// only daemons are left.
inline bool is_killed(const Allocation& allocation) {
  return allocation.kill_requested || allocation.exit || only_daemons_live(allocation);
}

/// The allocation was preempted or is being killed: its slots are coming free.
inline bool is_terminating(const Allocation& allocation) {
  return allocation.preempt_requested || is_killed(allocation);
}

}  // namespace det::core
