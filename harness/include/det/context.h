// Owns TrialContext: what a trial is told (hyperparameters, configuration, identity) and through which it
// hands its model, optimizers and the rest to the platform.
#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "det/amp.h"
#include "det/data.h"
#include "det/distributed.h"
#include "det/lr_scheduler.h"
#include "det/metrics.h"
#include "det/profiler.h"

namespace det {

/// Thrown by a trial whose hyperparameters cannot work: the trial ends without counting as a failure, and a
/// search may try another point.
class InvalidHP : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// When the trainer steps a wrapped schedule. With `frequency` n: every n-th time.
enum class LRStepMode {
  kEveryEpoch,  ///< after the last optimizer step of an epoch
  kEveryBatch,  ///< a batch that only adds gradients counts too: its step is made up for at the optimizer's
                ///< next
  kEveryOptimizerStep,  ///< counts optimizer steps, not batches
  kManual,              ///< the trial calls step()
};

/// Mixed precision of the whole trial.
struct AmpOptions {
  torch::ScalarType dtype = torch::kBFloat16;  ///< or kHalf (CUDA), whose losses are scaled
  bool channels_last = true;  ///< keep images and convolutions in the order that is fast in this precision
};

/// Numbers kept with gradients; see TrialContext::aggregation.
struct Aggregation {
  int64_t frequency = 1;  ///< batches whose gradients are added before an optimizer steps
  bool average = true;    ///< divide their sum by `frequency`
};

struct ContextState;
class BatchStream;
class TensorBoard;

/// Walks over a loader once.
class LoaderIterator {
 public:
  explicit LoaderIterator(std::unique_ptr<BatchStream> stream);
  LoaderIterator(LoaderIterator&& other) noexcept;
  ~LoaderIterator();
  /// Nothing at the end.
  std::optional<Batch> next();

 private:
  std::unique_ptr<BatchStream> stream_;
};

/// One per process, made by det::run or det::init; used on one thread. Everything wrapped is saved in
/// checkpoints and restored from them, in the order of wrapping.
class TrialContext {
 public:
  explicit TrialContext(std::unique_ptr<ContextState> state);
  ~TrialContext();
  TrialContext(const TrialContext&) = delete;

  /// The hyperparameter `name` ("optimizer.lr" reaches into a map). T is bool, int, int64_t, float, double,
  /// std::string or Json. Throws std::invalid_argument when there is none of that name (naming those there
  /// are) or its value is no T.
  template <typename T>
  T get_hparam(const std::string& name) const;
  const Json& get_hparams() const;
  /// `data` of the experiment configuration; an empty object when it has none.
  const Json& get_data_config() const;
  /// An empty object when a script runs without a configuration.
  const Json& get_experiment_config() const;

  /// The hyperparameter global_batch_size.
  int64_t get_global_batch_size() const;
  /// global_batch_size over the processes of this trial, with `reproducibility: exact` over its virtual
  /// shards; at least 1.
  int64_t get_per_slot_batch_size() const;
  /// Seeds LibTorch before the trial is built, and orders shuffled data.
  int64_t get_trial_seed() const;
  /// 0 without a cluster.
  int64_t get_experiment_id() const;
  /// 0 without a cluster.
  int64_t get_trial_id() const;
  /// The batch with which training starts: batches trained by the checkpoint it starts from.
  int64_t get_initial_batch() const;
  /// Rank, number of processes, and exchanges between them.
  DistributedContext& distributed();

  /// Where models and batches live: this process's CUDA device when there is one, else the CPU.
  const torch::Device& device() const;
  /// For tensors of the trial's own; batches come on the device already.
  Batch to_device(const Batch& batch) const { return det::to_device(batch, device()); }
  /// Batches then come as the loader made them.
  void disable_auto_to_device();
  /// Allows loaders over a BatchSource, whose order the platform cannot promise to repeat.
  void disable_dataset_reproducibility_checks();
  /// All batches of a loader in order, on the device, not shared among ranks: for evaluate_full_dataset.
  LoaderIterator iterate(const DataLoader& loader) const;

  /// Moves the model to the device and makes it part of every checkpoint; with several processes its
  /// gradients are averaged over them, and rank 0's weights are everybody's at the start. Takes a module
  /// holder (a TORCH_MODULE) or a shared_ptr to a module, and returns it. Before any optimizer over its
  /// parameters is made.
  template <typename Model>
  Model wrap_model(Model model) {
    if constexpr (requires { model.ptr(); }) {
      add_model(model.ptr());
    } else {
      add_model(model);
    }
    return model;
  }

  /// Takes the optimizer over: `torch::optim::SGD& optimizer =
  /// context.wrap_optimizer(torch::optim::SGD(…));`. The reference is good for the context's life. Its
  /// parameters must belong to wrapped models.
  template <typename Optimizer,
            typename = std::enable_if_t<std::is_base_of_v<torch::optim::Optimizer, Optimizer>>>
  Optimizer& wrap_optimizer(Optimizer optimizer) {
    auto owned = std::make_unique<Optimizer>(std::move(optimizer));
    Optimizer& reference = *owned;
    wrap_optimizer(std::unique_ptr<torch::optim::Optimizer>(std::move(owned)));
    return reference;
  }
  torch::optim::Optimizer& wrap_optimizer(std::unique_ptr<torch::optim::Optimizer> optimizer);

  /// Takes a schedule over: `context.wrap_lr_scheduler(det::StepLR(optimizer_, {.step_size = 2}),
  /// LRStepMode::kEveryEpoch)`. Its optimizer must be wrapped; ReduceLROnPlateau only goes with kManual.
  /// Throws std::invalid_argument.
  template <typename Scheduler, typename = std::enable_if_t<std::is_base_of_v<LRScheduler, Scheduler>>>
  Scheduler& wrap_lr_scheduler(Scheduler scheduler, LRStepMode mode, int64_t frequency = 1) {
    auto owned = std::make_unique<Scheduler>(std::move(scheduler));
    Scheduler& reference = *owned;
    add_lr_scheduler(std::move(owned), mode, frequency);
    return reference;
  }

  /// Takes a reducer over: reset before each window, reduced over ranks after it. With a `name` its result is
  /// the metric of that name; without, it must be an object name → number.
  template <typename Reducer, typename = std::enable_if_t<std::is_base_of_v<MetricReducer, Reducer>>>
  Reducer& wrap_reducer(Reducer reducer, std::string name = "", bool for_training = true,
                        bool for_validation = true) {
    auto owned = std::make_shared<Reducer>(std::move(reducer));
    add_reducer(owned, std::move(name), for_training, for_validation);
    return *owned;
  }
  /// The function form: the values given to update() on all ranks, in the order of their batches, make one
  /// result.
  SimpleReducer& wrap_reducer(std::function<Json(const std::vector<Json>&)> reduce, std::string name = "",
                              bool for_training = true, bool for_validation = true) {
    return wrap_reducer(SimpleReducer(std::move(reduce)), std::move(name), for_training, for_validation);
  }

  /// Runs train_batch and evaluate_batch in mixed precision. `optimizations.precision` of the configuration
  /// (bf16, fp16) does the same. In the trial's constructor.
  void use_amp(const AmpOptions& options = {});
  /// For a trial that calls Autocast itself: backward() scales with it, step_optimizer() unscales.
  GradScaler& wrap_scaler(GradScaler scaler);

  struct BackwardOptions {
    torch::Tensor gradient = {};  ///< for a loss of more than one element
    bool retain_graph = false;
    bool create_graph = false;
  };
  /// Adds the gradients of `loss` (a tensor of one element). With several processes they are their mean
  /// afterwards, on the batches at whose end optimizers step.
  void backward(const torch::Tensor& loss, const BackwardOptions& options);
  void backward(const torch::Tensor& loss) { backward(loss, BackwardOptions()); }
  /// Changes the gradients of the parameters it is given, as det::clip_grad_norm does.
  using ClipGradients = std::function<void(std::vector<torch::Tensor>& parameters)>;
  /// Averages what was aggregated, unscales, clips, steps, and clears the gradients (unless `auto_zero_grads`
  /// is false, which does not go with aggregation). Does nothing on batches that only add gradients. Throws
  /// std::logic_error when the optimizer was not wrapped.
  void step_optimizer(torch::optim::Optimizer& optimizer, const ClipGradients& clip_gradients = nullptr,
                      bool auto_zero_grads = true);
  const Aggregation& aggregation() const;

  /// About the batch in train_batch; also good in callbacks.
  bool is_epoch_start() const;
  bool is_epoch_end() const;
  int64_t current_train_epoch() const;
  int64_t current_train_batch() const;

  /// Ends training after this batch: validation and checkpoint are made, and the trial counts as completed.
  void set_stop_requested(bool stop = true);
  bool get_stop_requested() const;

  /// Writes traces of some batches (chrome://tracing and TensorBoard open them), by default to the
  /// TensorBoard folder.
  void set_profiler(const ProfilerOptions& options = {});
  /// The folder of this trial's TensorBoard files. Reported metrics are written there too, as
  /// Determined/<name> and Determined/val_<name>, unless that is turned off.
  const std::string& get_tensorboard_path() const;
  /// For the trial's own scalars; flushed at every report. On the chief; elsewhere what is written goes
  /// nowhere.
  TensorBoard& get_tensorboard_writer();
  void set_enable_tensorboard_logging(bool enable);

  /// For the library.
  ContextState& state() { return *state_; }

 private:
  void add_model(std::shared_ptr<torch::nn::Module> model);
  void add_lr_scheduler(std::unique_ptr<LRScheduler> scheduler, LRStepMode mode, int64_t frequency);
  void add_reducer(std::shared_ptr<MetricReducer> reducer, std::string name, bool for_training,
                   bool for_validation);
  std::unique_ptr<ContextState> state_;
};

}  // namespace det
