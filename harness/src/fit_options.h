// Owns turning lengths into batches.
#pragma once

#include "det/trainer.h"
#include "plan.h"

namespace det {

/// `option` is for messages. `global_batch_size` is asked for only when records must be converted. Throws
/// std::invalid_argument for a length < 1.
std::int64_t in_batches(const Length& length, const std::string& option, std::int64_t batches_per_epoch,
                        const TrialContext& context);

/// Throws std::invalid_argument when no maximum length is known or an option cannot work.
Plan make_plan(const FitOptions& options, std::int64_t batches_per_epoch, const TrialContext& context);

}  // namespace det
