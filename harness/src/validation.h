// Owns one pass over the validation data.
#pragma once

#include "base/json.h"
#include "context_state.h"
#include "det/trial.h"

namespace det {

class Validation {
 public:
  Validation(Trial& trial, TrialContext& context, DataLoader loader);

  /// Name → number, reduced over all ranks, the same on each; hooks are called. `first_batch_only` is for a
  /// test of the code. Throws std::invalid_argument when the metrics of batches or ranks do not fit together.
  Json run(std::int64_t step, bool first_batch_only);

 private:
  Json full_dataset(const Metrics& metrics);
  Json batch_by_batch(std::int64_t step, bool first_batch_only);

  Trial& trial_;
  TrialContext& context_;
  ContextState& state_;
  DataLoader loader_;
};

}  // namespace det
