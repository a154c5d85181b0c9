// State between the gradients of a batch and the optimizer steps: exchange between ranks, aggregation,
// virtual shards. Training thread.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "det/context.h"
#include "harness/src/distributed/gradient_reducer.h"
#include "harness/src/distributed/virtual_shards.h"
#include "harness/src/optim/device_step.h"
#include "harness/src/optim/fused_step.h"

namespace det {

/// A training loss that is infinite or NaN.
class BadLoss final : public std::runtime_error {
 public:
  explicit BadLoss(double loss);
  /// Adds what made it, for the report.
  void add_origin(const std::string& origin);
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

/// Stepping state of the optimizer with the same index. "exact" marks members of `reproducibility: exact`.
struct Stepping {
  /// Steps the optimizer in one pass where it can.
  std::unique_ptr<FusedStep> fused;
  /// Steps the optimizer instead of `fused` while steps are recorded and repeated.
  std::unique_ptr<DeviceStep> on_device;
  TreeSum shards;              ///< exact: sum of this batch's shards
  std::int64_t collected = 0;  ///< exact: shards of this process collected in this batch
  TreeSum::Tensors window;     ///< exact: sum of the batches of this aggregation window
};

/// Position in training of a call of train_batch.
struct StepPosition {
  /// Batch of the trial from 0, its epoch, and the length of an epoch.
  std::int64_t batch = 0, epoch = 0, batches_per_epoch = 1;
  bool ends_window = true;             ///< optimizers step after this batch
  std::int64_t shard = 0, shards = 1;  ///< exact: index of the shard, and shards of this process
  double shard_records = 0;            ///< exact: records of this shard
};

/// exact: a parameter that has been stepped. It shows its previous value until all shards of the batch are
/// done.
struct Stepped {
  /// The parameter, and its value after the step.
  torch::Tensor parameter, after;
};

/// `stepping` has one entry per wrapped optimizer. `reducers` has one per model while training with several
/// processes, and is empty otherwise and in exact mode. `stepped` is empty between batches.
struct GradientPipeline {
  std::vector<Stepping> stepping;
  std::vector<std::unique_ptr<GradientReducer>> reducers;
  /// Bucket sizes of the reducers.
  ReducerOptions reduction;
  /// This process's virtual shards; absent unless `reproducibility: exact`.
  std::optional<ShardPlan> exact;
  std::vector<Stepped> stepped;
  /// Mixed precision of the whole trial; absent: full precision.
  std::optional<AmpOptions> amp;
  Aggregation aggregation;
  /// `optimizations.zero: 1`: optimizers are divided over the ranks when training starts.
  bool zero = false;
  bool cuda_graph = false;       ///< `optimizations.cuda_graph`
  bool stop_on_bad_loss = true;  ///< FitOptions::stop_on_bad_loss
  /// Shards of a batch on this process; equal on all ranks.
  std::int64_t local_shards() const { return exact ? exact->count : 1; }
  /// The batch that train_batch is working on.
  StepPosition at;
};

}  // namespace det
