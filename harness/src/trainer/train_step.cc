#include "harness/src/trainer/train_step.h"

#include <torch/utils.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <unordered_set>

#include "common/base/random.h"
#include "harness/src/observability/nan_origin.h"
#include "harness/src/optim/lr_stepping.h"
#include "harness/src/optim/zero_partition.h"

namespace det {
namespace {

/// The shard of random numbers between two batches, in hooks.
constexpr std::int64_t kBetweenBatches = -1;

/// The records that this process reads: its virtual shards in exact mode, else one shard per rank.
StreamSpec training_spec(const ContextState& state) {
  const ShardPlan shards = state.gradients.exact.value_or(
      ShardPlan{.shards = state.run.distributed->size(), .first = state.run.distributed->rank(), .count = 1});
  return {.seed = static_cast<std::uint64_t>(state.run.info.seed),
          .world = shards.shards,
          .first = shards.first,
          .count = shards.count,
          .training = true,
          .device = state.auto_to_device ? state.run.device : torch::Device(torch::kCPU)};
}

/// Throws BadLoss when the metric "loss" is NaN or infinite. A loss on a device is not checked,
/// because reading it would synchronize.
void check_loss(const Metrics& metrics) {
  for (const auto& [name, value] : metrics.entries()) {
    if (name != "loss") continue;
    const torch::Tensor* tensor = value.tensor();
    if (tensor != nullptr && (!tensor->defined() || tensor->numel() != 1 || !tensor->device().is_cpu()))
      return;
    const double loss = tensor != nullptr ? read_number(*tensor) : value.number();
    if (!std::isfinite(loss)) throw BadLoss(loss);
    return;
  }
}

/// Divides the optimizers over the ranks, once. A parameter of two optimizers would be in two memories.
void divide_optimizers(ContextState& state) {
  if (!state.gradients.zero || state.run.communicator == nullptr || !state.wrapped.zero.empty()) return;
  std::unordered_set<const c10::TensorImpl*> known;
  for (const auto& optimizer : state.wrapped.optimizers) {
    for (const auto& group : optimizer->param_groups()) {
      for (const torch::Tensor& parameter : group.params()) {
        if (!known.insert(parameter.unsafeGetTensorImpl()).second)
          throw std::invalid_argument("optimizations.zero: 1: a parameter belongs to two optimizers");
      }
    }
  }
  for (const auto& optimizer : state.wrapped.optimizers) {
    state.wrapped.zero.push_back(
        std::make_shared<ZeroPartition>(*optimizer, *state.run.communicator, state.run.distributed->rank()));
  }
}

/// Adjusts the loss scale. Batches without an optimizer step do not change it.
void update_scale(GradScaler* scaler) {
  if (scaler == nullptr) return;
  try {
    scaler->update();
  } catch (const std::logic_error&) {
    // There was no step since the last update.
  }
}

}  // namespace

TrainStep::TrainStep(Trial& trial, TrialContext& context, DataLoader loader, bool stop_on_bad_loss)
    : trial_(trial), context_(context), state_(context.state()), loader_(std::move(loader)) {
  state_.gradients.stop_on_bad_loss = stop_on_bad_loss;
  // The order of data must repeat for a trial to resume from a checkpoint exactly.
  if (!loader_.is_reproducible() && state_.reproducible_data) {
    throw std::invalid_argument(
        "build_training_data_loader: the order of a BatchSource cannot be promised to repeat; call "
        "context.disable_dataset_reproducibility_checks() to train on it");
  }
  if (state_.gradients.exact) {
    if (!loader_.is_reproducible())
      throw std::invalid_argument("reproducibility: exact needs a dataset with numbered records");
    sharded_buffers_.emplace(state_.wrapped.models);
    std::vector<LRScheduler*> by_hand;
    for (const WrappedScheduler& wrapped : state_.wrapped.lr_schedulers) {
      if (wrapped.mode == LRStepMode::kManual) by_hand.push_back(wrapped.scheduler.get());
    }
    std::vector<torch::optim::Optimizer*> optimizers;
    for (const auto& optimizer : state_.wrapped.optimizers) optimizers.push_back(optimizer.get());
    sharded_schedules_.emplace(std::move(by_hand), optimizers);
  }
  divide_optimizers(state_);
  stream_.emplace(loader_, training_spec(state_), 0);
  // Unequal epochs would leave some ranks waiting in a collective.
  batches_per_epoch_ = stream_->steps_per_epoch();
  for (const Json& other : state_.run.distributed->allgather(batches_per_epoch_)) {
    if (other.get<std::int64_t>() == batches_per_epoch_) continue;
    throw std::invalid_argument("build_training_data_loader: an epoch has " +
                                std::to_string(batches_per_epoch_) + " batches on this process and " +
                                other.dump() + " on another; they must be equal");
  }
}

TrainStep::~TrainStep() { state_.gradients.reducers.clear(); }

void TrainStep::start(std::int64_t batch, bool resumed) {
  // After a restore, positions the stream at the batch.
  if (batch != 0) stream_.emplace(loader_, training_spec(state_), batch);
  state_.metric_reducers.reset(MetricReducers::Kind::kTraining);
  if (state_.gradients.cuda_graph) start_recording();
  if (state_.run.communicator == nullptr) return;
  for (const auto& model : state_.wrapped.models) {
    at::NoGradGuard no_grad;
    std::vector<torch::Tensor> parameters;
    for (const torch::Tensor& parameter : model->parameters()) {
      torch::Tensor data = parameter.contiguous();
      state_.run.communicator->broadcast(data)->wait();
      if (!data.is_same(parameter)) parameter.copy_(data);
      parameters.push_back(parameter);  // frozen ones too: they may be unfrozen later
    }
    if (!state_.gradients.exact) {
      state_.gradients.reducers.push_back(std::make_unique<GradientReducer>(
          std::move(parameters), *state_.run.communicator, state_.gradients.reduction));
    }
  }
  shared_buffers_ = state_.wrapped.buffers();
  if (state_.gradients.exact || resumed) return;
  // The seed was equal on all ranks so that they build the same model. From here each rank draws its own
  // dropout masks and augmentations.
  if (const int rank = state_.run.distributed->rank(); rank > 0) {
    torch::manual_seed(
        Random{static_cast<std::uint64_t>(state_.run.info.seed), static_cast<std::uint64_t>(rank)}.next());
  }
}

/// Repeats steps as one CUDA graph, or says why not.
void TrainStep::start_recording() {
  std::unique_ptr<GraphRecorder> recorder = make_graph_recorder(state_.run.device);
  const std::string problem = !state_.run.device.is_cuda() ? "the trial trains on the CPU"
                              : recorder == nullptr        ? "this build has no CUDA"
                                                           : graph_problem(state_);
  if (problem.empty()) {
    graphed_.emplace(state_, std::move(recorder));
  } else {
    report_no_graph(problem);
  }
}

Batch TrainStep::next_batch(std::int64_t number) {
  state_.activity = {"the training data", number, Activity::Kind::kReading};
  const PhaseSpan span(state_.instruments.phases.get(), Phase::kData);
  std::optional<Batch> batch = stream_->next();
  stream_->name_records();
  if (!batch) throw std::runtime_error("the training loader has no more batches; it must be endless");
  return std::move(*batch);
}

Metrics TrainStep::train(Batch& batch, std::int64_t number) {
  state_.activity = {"train_batch", number, Activity::Kind::kComputation};
  const PhaseSpan span(state_.instruments.phases.get(), Phase::kForward);
  std::optional<Autocast> autocast;
  if (state_.gradients.amp) {
    autocast.emplace(state_.run.device, state_.gradients.amp->dtype);
    if (state_.gradients.amp->channels_last)
      batch = batch.map([](const torch::Tensor& tensor) { return channels_last(tensor); });
  }
  try {
    Metrics metrics = trial_.train_batch(batch, state_.gradients.at.epoch, number);
    if (state_.gradients.stop_on_bad_loss) check_loss(metrics);
    return metrics;
  } catch (BadLoss& error) {
    error.add_origin(nan_origin(batch, number));
    throw;
  }
}

/// Runs a batch that has failed once more, observed: its loss was wrong before the step. Not with several
/// processes, which would wait for an exchange.
std::string TrainStep::nan_origin(Batch& batch, std::int64_t number) {
  if (state_.run.communicator != nullptr) return "";
  const NanOrigin origin;
  try {
    trial_.train_batch(batch, state_.gradients.at.epoch, number);
  } catch (...) {
    // It fails again.
  }
  return origin.text();
}

void TrainStep::run(std::int64_t number) {
  const std::int64_t frequency = state_.gradients.aggregation.frequency;
  state_.gradients.at = {.batch = number,
                         .epoch = number / batches_per_epoch_,
                         .batches_per_epoch = batches_per_epoch_,
                         .ends_window = (number + 1) % frequency == 0};
  if (state_.gradients.exact) {
    train_shards(number);
  } else {
    // Every batch starts from rank 0's buffers (running means), like DistributedDataParallel.
    for (const torch::Tensor& buffer : shared_buffers_) share_tensor(*state_.run.communicator, buffer);
    Batch batch = next_batch(number);
    const std::int64_t records = trial_.get_batch_length(batch);
    const auto train_one = [this, number](Batch& one) { return train(one, number); };
    window_.add(graphed_ ? graphed_->train(batch, train_one) : train_one(batch), records);
  }
  // Optimizers stepped in train_batch; the loss scale and the schedules follow once per aggregation window.
  if (state_.gradients.at.ends_window) {
    update_scale(state_.wrapped.scaler.get());
    step_schedules(number);
  }
  if (state_.instruments.tracer != nullptr) state_.instruments.tracer->step();
}

void TrainStep::train_shards(std::int64_t number) {
  const ShardPlan& plan = *state_.gradients.exact;
  sharded_buffers_->start_step();
  sharded_schedules_->start_step();
  for (Stepping& stepping : state_.gradients.stepping) stepping.collected = 0;
  for (std::int64_t i = 0; i < plan.count; ++i) {
    Batch batch = next_batch(number);
    const std::int64_t records = trial_.get_batch_length(batch);
    const std::int64_t shard = plan.first + i;
    // Every shard starts from the same schedules, parameters and random state, on any number of processes.
    if (i > 0) sharded_schedules_->rewind();
    state_.gradients.at.shard = i;
    state_.gradients.at.shards = plan.count;
    state_.gradients.at.shard_records = static_cast<double>(records);
    seed_shard(state_.run.device, state_.run.info.seed, number, shard);
    shards_.add(number * plan.shards + shard, train(batch, number), records);
    sharded_buffers_->end_shard(static_cast<double>(records));
  }
  // During the shards, stepped parameters show their old values; the new ones take effect together here.
  for (Stepped& stepped : state_.gradients.stepped) stepped.parameter.set_data(stepped.after);
  state_.gradients.stepped.clear();
  for (const Stepping& stepping : state_.gradients.stepping) {
    if (stepping.collected != 0 && stepping.collected != plan.count) refuse_uneven_steps();
  }
  sharded_buffers_->end_step(state_.run.communicator.get(), state_.run.distributed->size());
  // The last shard of this process depends on the number of processes.
  seed_shard(state_.run.device, state_.run.info.seed, number, kBetweenBatches);
}

void TrainStep::step_schedules(std::int64_t batch) {
  for (WrappedScheduler& wrapped : state_.wrapped.lr_schedulers) {
    const std::int64_t steps = lr_steps_after(wrapped.mode, wrapped.frequency, batch,
                                              state_.gradients.aggregation.frequency, batches_per_epoch_);
    for (std::int64_t i = 0; i < steps; ++i) wrapped.scheduler->step();
  }
}

Json TrainStep::take_metrics() {
  Json metrics = state_.gradients.exact ? shards_.reduce(*state_.run.distributed, {})
                                        : window_.averages(*state_.run.distributed);
  window_.clear();
  shards_.clear();
  constexpr auto kKind = MetricReducers::Kind::kTraining;
  state_.metric_reducers.reduce_into(metrics, kKind, *state_.run.distributed,
                                     state_.gradients.local_shards());
  state_.metric_reducers.reset(kKind);
  // The average also covers losses on a device, which check_loss() skipped.
  const Json* loss = metrics.contains("loss") ? &metrics["loss"] : nullptr;
  if (state_.gradients.stop_on_bad_loss && loss != nullptr &&
      !std::isfinite(read_double(*loss).value_or(0))) {
    throw std::runtime_error("the loss became " + dump_json(*loss) + " since the last report");
  }
  return metrics;
}

Json TrainStep::save_metrics() {
  return Json(state_.run.distributed->allgather(state_.gradients.exact ? shards_.save() : window_.save()));
}

void TrainStep::restore_metrics(const Json& saved) {
  if (!saved.is_array()) return;
  const auto size = static_cast<std::size_t>(state_.run.distributed->size());
  const auto rank = static_cast<std::size_t>(state_.run.distributed->rank());
  for (std::size_t i = 0; i < saved.size(); ++i) {
    // With a different number of ranks, the chief takes over all windows.
    const bool mine = saved.size() == size ? i == rank : rank == 0;
    if (!mine || saved[i].contains("rows") != state_.gradients.exact.has_value()) continue;
    state_.gradients.exact ? shards_.append(saved[i]) : window_.append(saved[i]);
  }
}

}  // namespace det
