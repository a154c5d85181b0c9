// Internal state of a TrialContext, shared by the context, the trainer and the checkpoint code. Used on the
// training thread.
#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "det/amp.h"
#include "det/callback.h"
#include "det/context.h"
#include "det/lr_scheduler.h"
#include "det/profiler.h"
#include "det/tensorboard.h"
#include "harness/src/client/client.h"
#include "harness/src/distributed/communicator.h"
#include "harness/src/distributed/gradient_reducer.h"
#include "harness/src/distributed/virtual_shards.h"
#include "harness/src/observability/phase_clock.h"
#include "harness/src/optim/fused_step.h"

namespace det {

/// A schedule with the mode in which the trainer steps it.
struct WrappedScheduler {
  std::unique_ptr<LRScheduler> scheduler;
  /// When the trainer calls step(): every `frequency`-th time of `mode`.
  LRStepMode mode = LRStepMode::kManual;
  std::int64_t frequency = 1;
};

/// A metric reducer and the phases in which it is used.
struct WrappedReducer {
  std::shared_ptr<MetricReducer> reducer;
  std::string name;  ///< "" when its result is an object
  /// Used in training windows, and in validations.
  bool for_training = true, for_validation = true;
};

/// Stepping state of the optimizer with the same index. "exact" marks members of `reproducibility: exact`.
struct Stepping {
  /// Steps the optimizer in one pass where it can.
  std::unique_ptr<FusedStep> fused;
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

/// Internal state behind a TrialContext.
struct ContextState {
  /// Identity and hyperparameters of the trial.
  TrialInfo info;
  /// Reports to the master, or a local substitute.
  std::unique_ptr<Client> client;
  /// Device of models and batches.
  torch::Device device{torch::kCPU};
  /// Small exchanges between ranks; a single process by default.
  std::unique_ptr<DistributedContext> distributed = std::make_unique<DistributedContext>();
  std::unique_ptr<Communicator> communicator;  ///< null for a single process
  /// Section `data` of the configuration.
  Json data_config = Json::object();
  std::vector<std::string> code;  ///< files of info.model_dir at start-up, kept in checkpoints

  // Objects wrapped by the trial, in order: the contents of a checkpoint.
  std::vector<std::shared_ptr<torch::nn::Module>> models;
  std::vector<std::unique_ptr<torch::optim::Optimizer>> optimizers;
  std::vector<WrappedScheduler> lr_schedulers;
  std::unique_ptr<GradScaler> scaler;
  Callbacks callbacks;

  // From gradients to optimizer steps.
  std::vector<Stepping> stepping;                          ///< one per optimizer
  std::vector<std::unique_ptr<GradientReducer>> reducers;  ///< one per model; empty for a single process
  /// Bucket sizes of the reducers.
  ReducerOptions reduction;
  /// This process's virtual shards; absent unless `reproducibility: exact`.
  std::optional<ShardPlan> exact;
  std::vector<Stepped> stepped;
  /// Mixed precision of the whole trial; absent: full precision.
  std::optional<AmpOptions> amp;
  Aggregation aggregation;
  /// The batch that train_batch is working on.
  StepPosition at;

  /// Custom metrics of the trial.
  std::vector<WrappedReducer> metric_reducers;
  std::unique_ptr<TraceProfiler> tracer;
  std::unique_ptr<PhaseClock> phases;  ///< null unless profiling is enabled (chief only)
  /// Directory of event files; those of reported metrics can be turned off.
  std::string tensorboard_dir;
  std::unique_ptr<TensorBoard> tensorboard;  ///< created at first use
  bool tensorboard_logging = true;
  /// Loaders deliver batches on `device`.
  bool auto_to_device = true;
  /// Training over a BatchSource is an error.
  bool reproducible_data = true;

  /// Batches trained before this start.
  std::int64_t initial_batch = 0;
  /// set_stop_requested() was called on this rank, or on another one.
  bool stop_requested = false;
  /// Current activity of the trial's code and its batch (-1: none), for error messages.
  const char* doing = "the trial's constructor";
  std::int64_t doing_batch = -1;
};

}  // namespace det
