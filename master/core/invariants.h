// Owns what must be true of a core between steps, as short named rules. The simulator looks after every step.
#pragma once

#include <string>
#include <vector>

#include "master/core/core.h"

namespace det::core {

/// One sentence per broken rule; empty when all hold.
std::vector<std::string> broken_invariants(const Core& core);

}  // namespace det::core
