// Owns one simulation: wires plan, master, machines and users together, injects the faults, and says how it
// went.
#pragma once

#include <cstdint>
#include <string>

#include "tests/sim/plan.h"

namespace det::sim {

struct Outcome {
  std::string failure;  ///< "" when every rule held and everything finished
  std::uint64_t trace_hash = 0;
  std::uint64_t events = 0;
  double seconds = 0;  ///< simulated
};

Outcome simulate(const Plan& plan, bool print_trace = false);

}  // namespace det::sim
