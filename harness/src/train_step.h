// Owns one batch of training: its data, the trial's step on it (or its virtual shards'), schedules, and the
// metrics since the last report.
#pragma once

#include <optional>

#include "base/json.h"
#include "batch_metrics.h"
#include "batch_stream.h"
#include "context_state.h"
#include "det/trial.h"
#include "window.h"

namespace det {

class TrainStep {
 public:
  /// Throws std::invalid_argument when ranks would have epochs of different lengths.
  TrainStep(Trial& trial, TrialContext& context, DataLoader loader, bool stop_on_bad_loss);
  /// Takes the hooks of several processes off the models again.
  ~TrainStep();

  std::int64_t batches_per_epoch() const { return batches_per_epoch_; }
  /// From batch `batch` on. The weights are in place: rank 0's become everybody's.
  void start(std::int64_t batch);
  /// Trains batch `batch`: each once, in order, from start()'s.
  void run(std::int64_t batch);
  /// After `trained` batches no gradients wait for an optimizer: the moment for a checkpoint.
  bool is_between_windows(std::int64_t trained) const { return trained % state_.aggregation.frequency == 0; }

  bool has_metrics() const { return !window_.empty() || !shards_.empty(); }
  /// Averages since the last call, and the reducers' results. Every rank calls it, and has the result.
  Json take_metrics();
  /// Of all ranks, on every one.
  Json save_metrics();
  void restore_metrics(const Json& saved);

 private:
  void train_shards(std::int64_t batch);
  Metrics train(Batch& batch, std::int64_t number);
  Batch next_batch(std::int64_t number);
  void step_schedules(std::int64_t batch);

  Trial& trial_;
  TrialContext& context_;
  ContextState& state_;
  DataLoader loader_;
  bool stop_on_bad_loss_;
  std::optional<BatchStream> stream_;
  std::int64_t batches_per_epoch_ = 1;
  std::optional<ShardedBuffers> sharded_buffers_;
  std::optional<ShardedSchedules> sharded_schedules_;
  std::vector<torch::Tensor> shared_buffers_;  // of several processes: rank 0's before every batch
  MetricWindow window_{"train_batch"};
  BatchMetrics shards_{"train_batch"};  // instead of window_ under virtual shards
};

}  // namespace det
