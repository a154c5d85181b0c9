#include "harness/src/trainer/validation.h"

#include <ATen/core/grad_mode.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/src/base/heartbeat.h"
#include "harness/src/data/batch_stream.h"
#include "harness/src/observability/batch_metrics.h"

namespace det {
namespace {

/// Switches all models between training and evaluation mode.
void set_training(ContextState& state, bool training) {
  for (const auto& model : state.wrapped.models) model->train(training);
}

}  // namespace

Validation::Validation(Trial& trial, TrialContext& context, DataLoader loader)
    : trial_(trial), context_(context), state_(context.state()), loader_(std::move(loader)) {}

Json Validation::run(std::int64_t step, bool first_batch_only) {
  for (const auto& [name, callback] : state_.wrapped.callbacks) callback->on_validation_start();
  set_training(state_, false);
  constexpr auto kKind = MetricReducers::Kind::kValidation;
  state_.metric_reducers.reset(kKind);
  at::NoGradGuard no_grad;
  std::optional<Autocast> autocast;
  if (state_.gradients.amp) autocast.emplace(state_.run.device, state_.gradients.amp->dtype);
  state_.activity = {"evaluate_full_dataset", -1};
  // Only the chief evaluates a full dataset; all ranks must agree on the path before the collectives below.
  const std::optional<Metrics> full =
      state_.run.distributed->is_chief() ? trial_.evaluate_full_dataset(loader_) : std::nullopt;
  const bool is_full = state_.run.distributed->broadcast(full.has_value()).get<bool>();
  Json metrics = is_full ? full_dataset(full.value_or(Metrics())) : batch_by_batch(step, first_batch_only);
  autocast.reset();
  state_.metric_reducers.reduce_into(metrics, kKind, *state_.run.distributed);
  set_training(state_, true);
  for (const auto& [name, callback] : state_.wrapped.callbacks) callback->on_validation_end(metrics);
  return metrics;
}

Json Validation::full_dataset(const Metrics& metrics) {
  BatchMetrics one("evaluate_full_dataset");
  if (state_.run.distributed->is_chief()) one.add(0, metrics, 1);
  return one.reduce(*state_.run.distributed, {});
}

Json Validation::batch_by_batch(std::int64_t step, bool first_batch_only) {
  for (const auto& [name, callback] : state_.wrapped.callbacks) callback->on_validation_epoch_start();
  const ShardPlan shards = state_.gradients.exact.value_or(ShardPlan{
      .shards = state_.run.distributed->size(), .first = state_.run.distributed->rank(), .count = 1});
  BatchStream batches(loader_,
                      {.seed = static_cast<std::uint64_t>(context_.get_trial_seed()),
                       .world = shards.shards,
                       .first = shards.first,
                       .count = shards.count,
                       .device = state_.auto_to_device ? state_.run.device : torch::Device(torch::kCPU)},
                      0);
  BatchMetrics outputs("evaluate_batch");
  for (std::int64_t i = 0; i == 0 || !first_batch_only; ++i) {
    state_.activity = {"the validation data", i};
    std::optional<Batch> batch = batches.next();
    if (!batch) break;
    const std::int64_t number = batches.last_batch_number();
    const std::int64_t records = trial_.get_batch_length(*batch);
    state_.activity.name = "evaluate_batch";
    // A negative batch number keeps these streams apart from those of training.
    if (state_.gradients.exact) seed_shard(state_.run.device, context_.get_trial_seed() ^ step, -1, number);
    outputs.add(number, trial_.evaluate_batch(*batch), records);
    beat();
  }
  state_.activity = {"evaluate_batch", -1};
  if (!state_.wrapped.callbacks.empty()) {
    const std::vector<Json> values = outputs.outputs();
    for (const auto& [name, callback] : state_.wrapped.callbacks) callback->on_validation_epoch_end(values);
  }
  Json metrics = outputs.reduce(*state_.run.distributed, trial_.evaluation_reducer());
  if (metrics.empty() && state_.metric_reducers.empty()) {
    throw std::invalid_argument("the validation loader gave no batch, or evaluate_batch no metric");
  }
  return metrics;
}

}  // namespace det
