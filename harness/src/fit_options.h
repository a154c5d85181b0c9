// Owns turning lengths into batches.
#pragma once

#include "det/trainer.h"
#include "plan.h"

namespace det {

/// Throws std::invalid_argument when no maximum length is known or an option cannot work.
Plan make_plan(const FitOptions& options, std::int64_t batches_per_epoch, const TrialContext& context);

}  // namespace det
