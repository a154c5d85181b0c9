// When wrapped schedules step. Standard library only.
#pragma once

#include <cstdint>

namespace det {

enum class LRStepMode;

/// Returns how often a schedule steps after batch `batch` (from 0), which ends an aggregation window of
/// `aggregation` batches. A schedule steps only together with its optimizer, so a learning rate is valid for
/// whole windows: steps that fall between two optimizer steps are made up for at the second one (batches) or
/// made at the first one (end of an epoch).
std::int64_t lr_steps_after(LRStepMode mode, std::int64_t frequency, std::int64_t batch,
                            std::int64_t aggregation, std::int64_t batches_per_epoch);

}  // namespace det
