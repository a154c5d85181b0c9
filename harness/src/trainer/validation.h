#pragma once

#include "common/base/json.h"
#include "det/trial.h"
#include "harness/src/trainer/context_state.h"

namespace det {

/// One pass over the validation data per run(). Training thread; run() is collective.
class Validation {
 public:
  /// The references must outlive this object.
  Validation(Trial& trial, TrialContext& context, DataLoader loader);

  /// Validates after `step` batches. Returns name → number, reduced over all ranks and equal on each.
  /// Runs the validation callbacks. `first_batch_only` limits the pass to one batch, to test a
  /// trial's code. Throws std::invalid_argument when the metrics of batches or ranks do not match;
  /// exceptions of the trial pass through.
  Json run(std::int64_t step, bool first_batch_only);

 private:
  /// Distributes the metrics that the chief got from evaluate_full_dataset().
  Json full_dataset(const Metrics& metrics);
  /// Runs evaluate_batch() on this rank's batches and reduces the metrics.
  Json batch_by_batch(std::int64_t step, bool first_batch_only);

  Trial& trial_;
  TrialContext& context_;
  ContextState& state_;
  DataLoader loader_;
};

}  // namespace det
