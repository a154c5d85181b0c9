// One simulation: connects plan, master, machines and users, injects the faults, and returns the outcome.
#pragma once

#include <cstdint>
#include <string>

#include "tests/sim/plan.h"

namespace det::sim {

struct Outcome {
  /// "" if every rule held and everything finished.
  std::string failure;
  std::uint64_t trace_hash = 0;
  std::uint64_t events = 0;
  double seconds = 0;  ///< Simulated time.
};

Outcome simulate(const Plan& plan, bool print_trace = false);

}  // namespace det::sim
