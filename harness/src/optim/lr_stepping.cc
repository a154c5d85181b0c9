// Number of schedule steps after a batch.
#include "harness/src/optim/lr_stepping.h"

#include "det/context.h"

namespace det {

std::int64_t lr_steps_after(LRStepMode mode, std::int64_t frequency, std::int64_t batch,
                            std::int64_t aggregation, std::int64_t batches_per_epoch) {
  const std::int64_t trained = batch + 1;
  // Number of multiples of `frequency` in (from, to].
  const auto multiples = [frequency](std::int64_t from, std::int64_t to) {
    return to / frequency - from / frequency;
  };
  switch (mode) {
    case LRStepMode::kEveryBatch:
      return multiples(trained - aggregation, trained);
    case LRStepMode::kEveryOptimizerStep:
      return multiples(trained / aggregation - 1, trained / aggregation);
    // Epochs that will be complete when the optimizer steps next.
    case LRStepMode::kEveryEpoch:
      return multiples(batch / batches_per_epoch, (batch + aggregation) / batches_per_epoch);
    case LRStepMode::kManual:
      break;
  }
  return 0;
}

}  // namespace det
