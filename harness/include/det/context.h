// TrialContext: a trial's access to its hyperparameters and identity, and the registration of models,
// optimizers, schedules and metric reducers with the platform.
#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <cstddef>
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
#include "det/media.h"
#include "det/metrics.h"
#include "det/profiler.h"

namespace det {

/// Thrown by a trial with hyperparameters that cannot work. The trial ends without counting as a failure, and
/// a search may try another point.
class InvalidHP : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// When the trainer steps a wrapped schedule. A `frequency` of n steps it every n-th time.
enum class LRStepMode {
  kEveryEpoch,  ///< after the last optimizer step of an epoch
  /// After every batch. Batches that only accumulate gradients count; their steps are made up for at the next
  /// optimizer step.
  kEveryBatch,
  kEveryOptimizerStep,  ///< every optimizer step, not every batch
  kManual,              ///< the trial calls step()
};

/// Mixed precision of a whole trial; see TrialContext::use_amp().
struct AmpOptions {
  torch::ScalarType dtype = torch::kBFloat16;  ///< kBFloat16, or kHalf (CUDA only), which also scales losses
  /// Use the channels-last layout, in which low-precision convolutions are fast.
  bool channels_last = true;
};

/// Gradient accumulation, as set by `optimizations` of the configuration or by InitOptions.
struct Aggregation {
  int64_t frequency = 1;  ///< batches that accumulate gradients for one optimizer step
  bool average = true;    ///< divide the sum by `frequency`
};

struct ContextState;
struct MediaRecord;
class BatchStream;
class TensorBoard;

/// Iterates once over the batches of a data loader. Used on one thread.
class LoaderIterator {
 public:
  explicit LoaderIterator(std::unique_ptr<BatchStream> stream);
  LoaderIterator(LoaderIterator&& other) noexcept;
  ~LoaderIterator();
  /// Returns the next batch; nullopt at the end. Throws std::runtime_error that names the batch, with the
  /// dataset's exception nested in it.
  std::optional<Batch> next();

 private:
  std::unique_ptr<BatchStream> stream_;
};

/// Connects a trial with the platform: hyperparameters, configuration, devices, the other ranks, and the
/// objects that training needs. There is one context per process, created by det::run or det::init. All calls
/// must come from one thread.
///
/// Everything wrapped (models, optimizers, schedules, the scaler) is saved in checkpoints and restored from
/// them, in the order of wrapping; a trial must wrap the same objects in the same order on every start.
class TrialContext {
 public:
  explicit TrialContext(std::unique_ptr<ContextState> state);
  ~TrialContext();
  TrialContext(const TrialContext&) = delete;

  /// Returns the hyperparameter `name`; dots reach into maps ("optimizer.lr"). T is bool, int, int64_t,
  /// float, double, std::string or Json. An integral float converts to int: searches may produce 64.0 for 64.
  /// Throws std::invalid_argument, with the existing names, when there is no such hyperparameter, or when its
  /// value is not a T.
  template <typename T>
  T get_hparam(const std::string& name) const;
  /// All hyperparameters, as an object.
  const Json& get_hparams() const;
  /// The section `data` of the experiment configuration; an empty object when absent.
  const Json& get_data_config() const;
  /// The experiment configuration; an empty object when a script runs without one.
  const Json& get_experiment_config() const;

  /// The hyperparameter global_batch_size: records per batch over all processes. Throws std::invalid_argument
  /// when it is absent or below 1.
  int64_t get_global_batch_size() const;
  /// Records per batch of one process: global_batch_size divided by the number of processes, or with
  /// `reproducibility: exact` by the number of virtual shards; at least 1.
  int64_t get_per_slot_batch_size() const;
  /// The seed of LibTorch's generators when the trial is constructed, and of shuffled data.
  int64_t get_trial_seed() const;
  /// 0 without a cluster.
  int64_t get_experiment_id() const;
  /// 0 without a cluster.
  int64_t get_trial_id() const;
  /// Number of batches already trained when training starts; 0 unless the trial resumes from its own
  /// checkpoint.
  int64_t get_initial_batch() const;
  /// Ranks of this process and small exchanges between the processes.
  DistributedContext& distributed();

  /// The device of models and batches: this process's CUDA device if there is one, else the CPU.
  const torch::Device& device() const;
  /// Moves a batch to device(). Needed only for tensors that the trial creates: loaders deliver batches on
  /// the device.
  Batch to_device(const Batch& batch) const { return det::to_device(batch, device()); }
  /// Makes loaders deliver batches as the dataset produced them, on the CPU.
  void disable_auto_to_device();
  /// Allows a training loader over a BatchSource. The platform cannot replay the order of its batches, so a
  /// resumed trial may see other data.
  void disable_dataset_reproducibility_checks();
  /// Iterates over all batches of a loader, in order and on the device. The batches are not sharded over the
  /// ranks. Intended for Trial::evaluate_full_dataset.
  LoaderIterator iterate(const DataLoader& loader) const;

  /// Registers a model and moves it to device(). With several processes, rank 0's weights are broadcast when
  /// training starts, and gradients are averaged over the processes. Accepts a module holder (TORCH_MODULE)
  /// or a shared_ptr to a module, and returns it. Call it before an optimizer over its parameters is
  /// constructed. Throws std::invalid_argument for a null model.
  template <typename Model>
  Model wrap_model(Model model) {
    if constexpr (requires { model.ptr(); }) {
      add_model(model.ptr());
    } else {
      add_model(model);
    }
    return model;
  }

  /// Registers an optimizer and takes ownership: `torch::optim::SGD& optimizer =
  /// context.wrap_optimizer(torch::optim::SGD(…));`. The reference is valid as long as the context.
  /// Checkpoints contain the state of LibTorch's optimizers and of det::optim; that of any other class is
  /// what its save() writes and load() reads. Throws std::invalid_argument when save() writes nothing, when
  /// the options cannot be serialized, and when a parameter belongs to no wrapped model.
  template <typename Optimizer,
            typename = std::enable_if_t<std::is_base_of_v<torch::optim::Optimizer, Optimizer>>>
  Optimizer& wrap_optimizer(Optimizer optimizer) {
    auto owned = std::make_unique<Optimizer>(std::move(optimizer));
    Optimizer& reference = *owned;
    wrap_optimizer(std::unique_ptr<torch::optim::Optimizer>(std::move(owned)));
    return reference;
  }
  /// The same for an optimizer that is chosen at run time.
  torch::optim::Optimizer& wrap_optimizer(std::unique_ptr<torch::optim::Optimizer> optimizer);

  /// Registers a schedule and takes ownership: `context.wrap_lr_scheduler(det::StepLR(optimizer_, {.step_size
  /// = 2}), LRStepMode::kEveryEpoch)`. The reference is valid as long as the context. Throws
  /// std::invalid_argument when its optimizer is not wrapped, when `frequency` < 1, and for a
  /// ReduceLROnPlateau with another mode than kManual.
  template <typename Scheduler, typename = std::enable_if_t<std::is_base_of_v<LRScheduler, Scheduler>>>
  Scheduler& wrap_lr_scheduler(Scheduler scheduler, LRStepMode mode, int64_t frequency = 1) {
    auto owned = std::make_unique<Scheduler>(std::move(scheduler));
    Scheduler& reference = *owned;
    add_lr_scheduler(std::move(owned), mode, frequency);
    return reference;
  }

  /// Registers a metric reducer, shared with the trial. It is reset before each reporting window (training)
  /// or validation and reduced over the ranks after it. With a `name` its result is the metric of that name;
  /// otherwise the result must be an object of name → number. Throws std::invalid_argument for a name that
  /// contains a dot.
  template <typename Reducer, typename = std::enable_if_t<std::is_base_of_v<MetricReducer, Reducer>>>
  Reducer& wrap_reducer(Reducer reducer, const std::string& name = "", bool for_training = true,
                        bool for_validation = true) {
    auto owned = std::make_shared<Reducer>(std::move(reducer));
    add_reducer(owned, name, for_training, for_validation);
    return *owned;
  }
  /// Registers a reducer made of one function, which receives the values passed to update() on all ranks in
  /// the order of their batches.
  SimpleReducer& wrap_reducer(std::function<Json(const std::vector<Json>&)> reduce,
                              const std::string& name = "", bool for_training = true,
                              bool for_validation = true) {
    return wrap_reducer(SimpleReducer(std::move(reduce)), name, for_training, for_validation);
  }

  /// Runs train_batch and evaluate_batch in mixed precision, as `optimizations.precision: bf16` (or fp16) of
  /// the configuration does. With kHalf it creates a GradScaler. Call it in the trial's constructor. Throws
  /// std::invalid_argument when the device does not support the precision.
  void use_amp(const AmpOptions& options = {});
  /// Registers a scaler for a trial that uses Autocast itself: backward() then scales losses, and
  /// step_optimizer() unscales gradients and may skip a step. Throws std::invalid_argument when there already
  /// is a scaler.
  GradScaler& wrap_scaler(GradScaler scaler);

  /// Arguments of torch::Tensor::backward.
  struct BackwardOptions {
    torch::Tensor gradient = {};  ///< dLoss; required for a loss of more than one element
    bool retain_graph = false;
    bool create_graph = false;
  };
  /// Adds the gradients of `loss`, a tensor of one element, to the parameters' grad. Runs in full precision.
  /// With several processes, at the batch that ends an aggregation window, it returns when the gradients are
  /// averaged over the processes; all ranks must make the same calls. With `reproducibility: exact`
  /// step_optimizer() averages instead. Throws std::invalid_argument when the loss is undefined, has several
  /// elements, or depends on no parameter, and std::logic_error when the passes of two ranks reach different
  /// wrapped models.
  void backward(const torch::Tensor& loss, const BackwardOptions& options);
  /// The same with default options.
  void backward(const torch::Tensor& loss) { backward(loss, BackwardOptions()); }
  /// Changes the gradients of the given parameters in place, for example by det::clip_grad_norm.
  using ClipGradients = std::function<void(std::vector<torch::Tensor>& parameters)>;
  /// Steps a wrapped optimizer: divides accumulated gradients by the aggregation frequency, unscales, clips,
  /// steps, and clears the gradients unless `auto_zero_grads` is false. Does nothing on batches that only
  /// accumulate. The step is skipped when a scaler found a gradient that is not finite. Throws
  /// std::logic_error when the optimizer is not wrapped, or for `auto_zero_grads` = false together with
  /// aggregation or `reproducibility: exact`.
  void step_optimizer(torch::optim::Optimizer& optimizer, const ClipGradients& clip_gradients = nullptr,
                      bool auto_zero_grads = true);
  /// The same without clipping; resolves `step_optimizer(optimizer, nullptr)`.
  void step_optimizer(torch::optim::Optimizer& optimizer, std::nullptr_t, bool auto_zero_grads = true) {
    step_optimizer(optimizer, ClipGradients(), auto_zero_grads);
  }
  /// Steps an optimizer that evaluates the loss several times, such as torch::optim::LBFGS. `closure`
  /// computes the loss of the batch, calls backward() and returns the loss. Gradients are cleared before each
  /// evaluation and after the step; losses are averaged over the processes, so that all take equal steps.
  /// Returns the loss of the first evaluation. Throws std::logic_error when the optimizer is not wrapped, and
  /// for aggregation, a scaler and `reproducibility: exact`, which do not repeat a batch.
  torch::Tensor step_optimizer(torch::optim::Optimizer& optimizer,
                               const torch::optim::Optimizer::LossClosure& closure);
  /// Gradient accumulation of this trial.
  const Aggregation& aggregation() const;

  /// Position of the batch that train_batch is called with: first or last batch of its epoch, epoch and batch
  /// counted from 0. Valid in callbacks, too.
  bool is_epoch_start() const;
  bool is_epoch_end() const;
  int64_t current_train_epoch() const;
  int64_t current_train_batch() const;

  /// Requests the end of training after the current batch (the current aggregation window). A validation and
  /// a checkpoint follow, and the trial counts as completed. A request on one rank stops all ranks. It is
  /// part of the checkpoint: a run that starts from it trains no further, unless its length is another.
  void set_stop_requested(bool stop = true);
  bool get_stop_requested() const;

  /// Enables the trace profiler, which writes traces of some batches for chrome://tracing and TensorBoard.
  /// Files go to get_tensorboard_path(). Throws std::invalid_argument for an invalid schedule.
  void set_profiler(const ProfilerOptions& options = {});
  /// Directory of this trial's TensorBoard event files. Reported metrics are also written there, as
  /// Determined/<name> and Determined/val_<name>, unless that is disabled.
  const std::string& get_tensorboard_path() const;
  /// Writer for the trial's own scalars, flushed at every report. On ranks other than the chief it discards
  /// everything.
  TensorBoard& get_tensorboard_writer();
  /// Enables or disables writing reported metrics to TensorBoard files. Enabled by default.
  void set_enable_tensorboard_logging(bool enable);

  // Media of a step, for the panel "Media" (det/media.h). Rank 0 reports; other ranks may make the same
  // calls. `name`: 1 to 128 letters, digits, spaces and _ - . =; slashes separate groups. An entry has at
  // most 2 MiB, a trial 20,000 entries and 2 GiB; above that the master refuses entries, and the log says so.
  // Invalid arguments throw std::invalid_argument.

  /// Reports an image: [H, W], [C, H, W], or [N, C, H, W] as a grid of the first 64, with C = 1 (gray) or 3
  /// (RGB); uint8 from 0 to 255, other types from 0 to 1.
  void report_image(const std::string& name, const torch::Tensor& image, const MediaOptions& options = {});
  /// Reports the distribution of the values of a tensor of any shape, in 1 to 1000 bins of equal width.
  void report_histogram(const std::string& name, const torch::Tensor& values, int bins = 64,
                        const MediaOptions& options = {});
  /// Reports UTF-8 text; notes in Markdown are shown with their formatting.
  void report_text(const std::string& name, const std::string& text, const MediaOptions& options = {});
  /// Reports a table: 1 to 100 columns, and at most 10,000 rows, a list of lists of strings and numbers.
  void report_table(const std::string& name, const std::vector<std::string>& columns, const Json& rows,
                    const MediaOptions& options = {});
  /// Reports the content of a file, for download. Throws std::runtime_error when it cannot be read.
  void report_file(const std::string& name, const std::string& path, const MediaOptions& options = {});

  /// Internal state, for the library only.
  ContextState& state() { return *state_; }

 private:
  void report_media(const MediaRecord& record);
  void add_model(std::shared_ptr<torch::nn::Module> model);
  void add_lr_scheduler(std::unique_ptr<LRScheduler> scheduler, LRStepMode mode, int64_t frequency);
  void add_reducer(std::shared_ptr<MetricReducer> reducer, std::string name, bool for_training,
                   bool for_validation);
  std::unique_ptr<ContextState> state_;
};

}  // namespace det
