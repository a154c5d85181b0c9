#pragma once

#include <functional>

#include "common/base/json.h"
#include "det/trial.h"
#include "harness/src/observability/batch_metrics.h"
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
  /// Evaluates the first `count` batches with evaluate_batch(), to test a trial's code and names of metrics.
  /// Calls no callbacks. Returns and throws as run(). Collective.
  Json probe(std::int64_t count);
  /// False for a BatchSource: reading it changes what it delivers next.
  bool is_repeatable() const { return loader_.is_reproducible(); }
  /// True when every rank left the last run() by an exception at the same place, so that all of them may
  /// still act together.
  bool failed_together() const { return failed_together_; }

 private:
  static constexpr std::int64_t kAllBatches = -1;
  /// Calls `act` with the models in evaluation mode, without gradients, in the precision of training. Returns
  /// its metrics and those of the reducers.
  Json evaluating(const std::function<Json()>& act);
  /// Distributes the metrics that the chief got from evaluate_full_dataset().
  Json full_dataset(const Metrics& metrics);
  /// Runs evaluate_batch() on this rank's batches, at most `count`, and reduces the metrics.
  Json batch_by_batch(std::int64_t step, std::int64_t count, const Callbacks& callbacks);
  BatchMetrics evaluate(std::int64_t step, std::int64_t count);
  /// Calls `act` and exchanges its outcome. When it throws on one rank, all ranks throw. Collective.
  void together(const std::function<void()>& act);

  Trial& trial_;
  TrialContext& context_;
  ContextState& state_;
  DataLoader loader_;
  bool failed_together_ = false;
};

}  // namespace det
