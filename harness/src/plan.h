// Owns when something is due. Standard library only.
#pragma once

#include <cstdint>

namespace det {

/// A fit in batches. A period of 0 is never.
struct Plan {
  std::int64_t length = 0;
  std::int64_t reporting = 0;
  std::int64_t validation = 0;
  std::int64_t checkpoint = 0;
};

struct Boundary {
  bool report = false;
  bool validate = false;
  bool checkpoint = false;
  bool any() const { return report || validate || checkpoint; }
};

/// What is due once `steps` batches are trained.
inline Boundary boundary_after(const Plan& plan, std::int64_t steps) {
  const auto due = [steps](std::int64_t period) { return period > 0 && steps % period == 0; };
  return {due(plan.reporting), due(plan.validation), due(plan.checkpoint)};
}

}  // namespace det
