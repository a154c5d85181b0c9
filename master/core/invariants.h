// Invariants of a core between steps. The simulator checks them after every step; a master does not.
#pragma once

#include <string>
#include <vector>

#include "master/core/core.h"

namespace det::core {

/// Returns one sentence for each violation, empty when all invariants hold. Takes time in proportion to the
/// whole state.
std::vector<std::string> broken_invariants(const Core& core);

}  // namespace det::core
