// Owns when something is due. Standard library only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace det {

/// Every `every` batches, or after exactly those of `at` (ascending). Neither is never.
struct Period {
  std::int64_t every = 0;
  std::vector<std::int64_t> at = {};

  bool due(std::int64_t steps) const {
    return (every > 0 && steps % every == 0) || std::binary_search(at.begin(), at.end(), steps);
  }
};

/// A fit in batches.
struct Plan {
  std::int64_t length = 0;
  Period reporting = {}, validation = {}, checkpoint = {};
};

struct Boundary {
  bool report = false;
  bool validate = false;
  bool checkpoint = false;
  bool any() const { return report || validate || checkpoint; }
  /// Also what was due before and had to wait.
  Boundary& operator|=(const Boundary& other) {
    report |= other.report, validate |= other.validate, checkpoint |= other.checkpoint;
    return *this;
  }
};

/// What is due once `steps` batches are trained.
inline Boundary boundary_after(const Plan& plan, std::int64_t steps) {
  return {plan.reporting.due(steps), plan.validation.due(steps), plan.checkpoint.due(steps)};
}

}  // namespace det
