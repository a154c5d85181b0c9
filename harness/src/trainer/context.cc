// TrialContext: registration of models, optimizers, schedules, reducers and the scaler.
#include "det/context.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/src/base/heartbeat.h"
#include "harness/src/base/torch_compat.h"
#include "harness/src/checkpoint/state.h"
#include "harness/src/data/batch_stream.h"
#include "harness/src/optim/graph_mode.h"
#include "harness/src/optim/zero_partition.h"
#include "harness/src/trainer/context_state.h"

namespace det {

LoaderIterator::LoaderIterator(std::unique_ptr<BatchStream> stream) : stream_(std::move(stream)) {}
LoaderIterator::LoaderIterator(LoaderIterator&&) noexcept = default;
LoaderIterator::~LoaderIterator() = default;
std::optional<Batch> LoaderIterator::next() {
  beat();
  return stream_->next();
}

TrialContext::TrialContext(std::unique_ptr<ContextState> state) : state_(std::move(state)) {}
TrialContext::~TrialContext() = default;

DistributedContext& TrialContext::distributed() { return *state_->run.distributed; }
const torch::Device& TrialContext::device() const { return state_->run.device; }
void TrialContext::disable_auto_to_device() { state_->auto_to_device = false; }
void TrialContext::disable_dataset_reproducibility_checks() { state_->reproducible_data = false; }

LoaderIterator TrialContext::iterate(const DataLoader& loader) const {
  return LoaderIterator(std::make_unique<BatchStream>(
      loader,
      StreamSpec{.seed = static_cast<std::uint64_t>(state_->run.info.seed),
                 .device = state_->auto_to_device ? state_->run.device : torch::Device(torch::kCPU)},
      0));
}

void TrialContext::add_model(std::shared_ptr<torch::nn::Module> model) {
  if (model == nullptr) throw std::invalid_argument("wrap_model: the model is empty");
  model->to(state_->run.device);
  if (state_->gradients.amp && state_->gradients.amp->channels_last) to_channels_last(*model);
  state_->wrapped.models.push_back(std::move(model));
}

torch::optim::Optimizer& TrialContext::wrap_optimizer(std::unique_ptr<torch::optim::Optimizer> optimizer) {
  if (optimizer == nullptr) throw std::invalid_argument("wrap_optimizer: the optimizer is empty");
  // The state of a parameter is saved under its name in a model, so every parameter needs one.
  const ParameterNames names = parameter_names(state_->wrapped);
  bool trains = false;
  for (const auto& group : optimizer->param_groups()) trains = trains || !group.params().empty();
  if (!trains) throw std::invalid_argument("wrap_optimizer: the optimizer has no parameters");
  for (const auto& group : optimizer->param_groups()) {
    for (const torch::Tensor& parameter : group.params()) {
      if (names.count(parameter.unsafeGetTensorImpl()) == 0) {
        throw std::invalid_argument("wrap_optimizer: a parameter of shape " + compat::shape_text(parameter) +
                                    " belongs to no wrapped model; call wrap_model on it first");
      }
    }
  }
  // Refused now rather than when the first checkpoint is saved.
  check_can_be_saved(names, *optimizer);
  if (state_->gradients.zero) check_can_be_partitioned(*optimizer);
  // `stepping` and `optimizers` are parallel arrays.
  state_->gradients.stepping.push_back({.fused = std::make_unique<FusedStep>(*optimizer)});
  state_->wrapped.optimizers.push_back(std::move(optimizer));
  return *state_->wrapped.optimizers.back();
}

void TrialContext::add_lr_scheduler(std::unique_ptr<LRScheduler> scheduler, LRStepMode mode,
                                    int64_t frequency) {
  const auto& wrapped = state_->wrapped.optimizers;
  const auto* optimizer = &scheduler->optimizer();
  if (std::none_of(wrapped.begin(), wrapped.end(),
                   [&](const auto& known) { return known.get() == optimizer; })) {
    throw std::invalid_argument("wrap_lr_scheduler: its optimizer is not the one wrap_optimizer returned");
  }
  if (frequency < 1) throw std::invalid_argument("wrap_lr_scheduler: frequency must be at least 1");
  if (mode != LRStepMode::kManual && dynamic_cast<ReduceLROnPlateau*>(scheduler.get()) != nullptr) {
    throw std::invalid_argument(
        "wrap_lr_scheduler: ReduceLROnPlateau needs a metric; use LRStepMode::kManual and call step(metric)");
  }
  state_->wrapped.lr_schedulers.push_back({std::move(scheduler), mode, frequency});
}

void TrialContext::add_reducer(std::shared_ptr<MetricReducer> reducer, std::string name, bool for_training,
                               bool for_validation) {
  if (name.find('.') != std::string::npos)
    throw std::invalid_argument("wrap_reducer: a metric's name has no \".\": " + name);
  state_->metric_reducers.add(std::move(reducer), std::move(name), for_training, for_validation);
}

void TrialContext::use_amp(const AmpOptions& options) {
  (void)Autocast(state_->run.device, options.dtype);  // throws when the device lacks the type
  state_->gradients.amp = options;
  if (options.dtype == torch::kHalf && state_->wrapped.scaler == nullptr)
    state_->wrapped.scaler = std::make_unique<GradScaler>();
  // Models that were wrapped before this call; later ones are converted by add_model().
  if (!options.channels_last) return;
  for (const auto& model : state_->wrapped.models) to_channels_last(*model);
}

GradScaler& TrialContext::wrap_scaler(GradScaler scaler) {
  if (state_->wrapped.scaler != nullptr)
    throw std::invalid_argument("wrap_scaler: there is a scaler already");
  state_->wrapped.scaler = std::make_unique<GradScaler>(std::move(scaler));
  return *state_->wrapped.scaler;
}

const Aggregation& TrialContext::aggregation() const { return state_->gradients.aggregation; }

bool TrialContext::is_epoch_start() const {
  refuse_in_recording("is_epoch_start");
  return state_->gradients.at.batch % state_->gradients.at.batches_per_epoch == 0;
}
bool TrialContext::is_epoch_end() const {
  refuse_in_recording("is_epoch_end");
  return (state_->gradients.at.batch + 1) % state_->gradients.at.batches_per_epoch == 0;
}
int64_t TrialContext::current_train_epoch() const {
  refuse_in_recording("current_train_epoch");
  return state_->gradients.at.epoch;
}
int64_t TrialContext::current_train_batch() const {
  refuse_in_recording("current_train_batch");
  return state_->gradients.at.batch;
}

void TrialContext::set_stop_requested(bool stop) {
  refuse_in_recording("set_stop_requested");
  state_->stop_requested = stop;
}
bool TrialContext::get_stop_requested() const { return state_->stop_requested; }

void TrialContext::set_profiler(const ProfilerOptions& options) {
  state_->instruments.tracer = std::make_unique<TraceProfiler>(options, state_->instruments.tensorboard_dir);
}
const std::string& TrialContext::get_tensorboard_path() const { return state_->instruments.tensorboard_dir; }
void TrialContext::set_enable_tensorboard_logging(bool enable) {
  state_->instruments.tensorboard_logging = enable;
}
TensorBoard& TrialContext::get_tensorboard_writer() {
  refuse_in_recording("get_tensorboard_writer");
  if (state_->instruments.tensorboard == nullptr) {
    state_->instruments.tensorboard = std::make_unique<TensorBoard>(
        state_->run.distributed->is_chief() ? state_->instruments.tensorboard_dir : "");
  }
  return *state_->instruments.tensorboard;
}

}  // namespace det
