// Owns when a wrapped schedule steps. Standard library only.
#pragma once

#include <cstdint>

namespace det {

enum class LRStepMode;

/// How often a schedule steps after batch `batch` (from 0), which ends an aggregation window of `aggregation`
/// batches. A schedule never steps without its optimizer: what falls between two optimizer steps is made up
/// for at the second (batches) or done at the first (the end of an epoch), so a learning rate is in force for
/// whole windows.
std::int64_t lr_steps_after(LRStepMode mode, std::int64_t frequency, std::int64_t batch,
                            std::int64_t aggregation, std::int64_t batches_per_epoch);

}  // namespace det
