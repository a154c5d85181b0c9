// Owns what stands behind a TrialContext; shared by the context, the trainer and the checkpoint's state.
#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client.h"
#include "communicator.h"
#include "det/amp.h"
#include "det/callback.h"
#include "det/context.h"
#include "det/lr_scheduler.h"
#include "det/profiler.h"
#include "det/tensorboard.h"
#include "fused_step.h"
#include "gradient_reducer.h"
#include "phase_clock.h"
#include "virtual_shards.h"

namespace det {

struct WrappedScheduler {
  std::unique_ptr<LRScheduler> scheduler;
  LRStepMode mode = LRStepMode::kManual;
  std::int64_t frequency = 1;
};

struct WrappedReducer {
  std::shared_ptr<MetricReducer> reducer;
  std::string name;  ///< "" when its result is an object
  bool for_training = true, for_validation = true;
};

/// What goes with the optimizer of the same number.
struct Stepping {
  std::unique_ptr<FusedStep> fused;
  TreeSum shards;              ///< exact: this batch's shards
  std::int64_t collected = 0;  ///< exact: of this process's shards of the batch
  TreeSum::Tensors window;     ///< exact: the batches of this aggregation window
};

/// Where in training a call of train_batch is.
struct StepPosition {
  std::int64_t batch = 0, epoch = 0, batches_per_epoch = 1;
  bool ends_window = true;             ///< optimizers step
  std::int64_t shard = 0, shards = 1;  ///< exact: which of this process's shards of the batch
  double shard_records = 0;            ///< exact: records of this shard
};

/// exact: a parameter that has been stepped, and shows what it was until the shard's train_batch is over.
struct Stepped {
  torch::Tensor parameter, after;
};

struct ContextState {
  TrialInfo info;
  std::unique_ptr<Client> client;
  torch::Device device{torch::kCPU};
  std::unique_ptr<DistributedContext> distributed = std::make_unique<DistributedContext>();
  std::unique_ptr<Communicator> communicator;  ///< null for one process
  Json data_config = Json::object();
  std::vector<std::string> code;  ///< files of info.model_dir when the program started: kept in checkpoints

  // What the trial wrapped, in its order; what a checkpoint holds.
  std::vector<std::shared_ptr<torch::nn::Module>> models;
  std::vector<std::unique_ptr<torch::optim::Optimizer>> optimizers;
  std::vector<WrappedScheduler> lr_schedulers;
  std::unique_ptr<GradScaler> scaler;
  Callbacks callbacks;

  // How gradients become steps.
  std::vector<Stepping> stepping;                          ///< one an optimizer
  std::vector<std::unique_ptr<GradientReducer>> reducers;  ///< one a model, while several processes train
  ReducerOptions reduction;
  std::optional<ShardPlan> exact;
  std::vector<Stepped> stepped;
  std::optional<AmpOptions> amp;
  Aggregation aggregation;
  StepPosition at;

  std::vector<WrappedReducer> metric_reducers;
  std::unique_ptr<TraceProfiler> tracer;
  std::unique_ptr<PhaseClock> phases;  ///< null while not profiled; the chief's
  std::string tensorboard_dir;
  std::unique_ptr<TensorBoard> tensorboard;  ///< made when first used
  bool tensorboard_logging = true;
  bool auto_to_device = true;
  bool reproducible_data = true;

  std::int64_t initial_batch = 0;
  bool stop_requested = false;
  /// For messages: what the trial's code is being asked for, and at which batch (-1: none).
  const char* doing = "the trial's constructor";
  std::int64_t doing_batch = -1;
};

}  // namespace det
