// Decides at which batches a trial reports, validates and saves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "det/trainer.h"

namespace det {

/// Due every `every` batches, or after exactly the batches in `at` (ascending). With neither, never due.
struct Period {
  std::int64_t every = 0;
  std::vector<std::int64_t> at = {};

  /// `steps` is the number of batches trained.
  bool due(std::int64_t steps) const {
    return (every > 0 && steps % every == 0) || std::binary_search(at.begin(), at.end(), steps);
  }
};

/// The length and the periods of one fit(), in batches.
struct Plan {
  std::int64_t length = 0;  ///< total batches to train
  Period reporting = {}, validation = {}, checkpoint = {};
};

/// The actions that are due after a batch.
struct Boundary {
  bool report = false;
  bool validate = false;
  bool checkpoint = false;
};

/// The actions due once `steps` batches are trained.
inline Boundary boundary_after(const Plan& plan, std::int64_t steps) {
  return {plan.reporting.due(steps), plan.validation.due(steps), plan.checkpoint.due(steps)};
}

/// Converts the length and the periods of `options` to batches. Throws std::invalid_argument when no maximum
/// length is given or an option is invalid.
Plan make_plan(const FitOptions& options, std::int64_t batches_per_epoch, const TrialContext& context);

}  // namespace det
