// One training batch: data, train_batch() (per virtual shard in exact mode), schedules, and the metrics since
// the last report. Training thread.
#pragma once

#include <optional>

#include "common/base/json.h"
#include "det/trial.h"
#include "harness/src/data/batch_stream.h"
#include "harness/src/observability/batch_metrics.h"
#include "harness/src/observability/window.h"
#include "harness/src/trainer/context_state.h"
#include "harness/src/trainer/graphed_step.h"

namespace det {

/// Created once per fit(). start() and run() must be called by all ranks.
class TrainStep {
 public:
  /// Throws std::invalid_argument for data that cannot be reproduced, and when ranks
  /// have epochs of different lengths.
  TrainStep(Trial& trial, TrialContext& context, DataLoader loader, bool stop_on_bad_loss);
  /// Removes the gradient hooks from the models.
  ~TrainStep();

  /// Global batches per epoch; equal on all ranks.
  std::int64_t batches_per_epoch() const { return batches_per_epoch_; }
  /// Prepares training from batch `batch`. The weights must be in place; those
  /// of rank 0 are sent to all ranks. `resumed`: the random state is in place, too.
  void start(std::int64_t batch, bool resumed);
  /// Trains batch `batch`. Batches are trained once each, in order, from the argument of start(). Throws
  /// std::runtime_error when the loader ends or the loss is not finite; exceptions of the trial pass through.
  void run(std::int64_t batch);
  /// True when no accumulated gradients wait for an optimizer step after `trained` batches.
  /// Checkpoints are taken only then.
  bool is_between_windows(std::int64_t trained) const {
    return trained % state_.gradients.aggregation.frequency == 0;
  }

  /// True when batches were trained since the last take_metrics().
  bool has_metrics() const { return !window_.empty() || !shards_.empty(); }
  /// Returns the averages since the last call and the results of the reducers. Collective: every rank calls
  /// it and gets the result. Throws std::runtime_error when the average loss is not finite.
  Json take_metrics();
  /// The open metric windows of all ranks, for a checkpoint. Collective.
  Json save_metrics();
  /// Restores the value of save_metrics(); windows of another mode (exact or not) are ignored.
  void restore_metrics(const Json& saved);

 private:
  void train_shards(std::int64_t batch);
  Metrics train(Batch& batch, std::int64_t number);
  std::string nan_origin(Batch& batch, std::int64_t number);
  Batch next_batch(std::int64_t number);
  void step_schedules(std::int64_t batch);
  void start_recording();

  Trial& trial_;
  TrialContext& context_;
  ContextState& state_;
  DataLoader loader_;
  std::optional<BatchStream> stream_;
  std::int64_t batches_per_epoch_ = 1;
  std::optional<ShardedBuffers> sharded_buffers_;
  std::optional<ShardedSchedules> sharded_schedules_;
  std::vector<torch::Tensor> shared_buffers_;  ///< set to rank 0's before every batch
  MetricWindow window_{"train_batch"};
  BatchMetrics shards_{"train_batch"};  ///< takes the place of window_ in exact mode
  std::optional<GraphedStep> graphed_;  ///< `optimizations.cuda_graph`, where steps can be recorded
};

}  // namespace det
