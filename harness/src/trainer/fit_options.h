// Conversion of FitOptions to batches.
#pragma once

#include "det/trainer.h"
#include "harness/src/trainer/plan.h"

namespace det {

/// Converts the length and the periods of `options` to batches. Throws std::invalid_argument when no maximum
/// length is given or an option is invalid.
Plan make_plan(const FitOptions& options, std::int64_t batches_per_epoch, const TrialContext& context);

}  // namespace det
