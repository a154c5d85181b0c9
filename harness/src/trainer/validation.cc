#include "harness/src/trainer/validation.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/base/text.h"
#include "harness/src/base/heartbeat.h"
#include "harness/src/data/batch_stream.h"

namespace det {
namespace {

constexpr auto kReducers = MetricReducers::Kind::kValidation;

/// Parts of a validation with random numbers of their own, as shards of seed_shard().
constexpr std::int64_t kFullDataset = -1, kBeforeBatches = -2, kAfterBatches = -3;

/// exact: seeds a part of the validation after `step` batches, or one of its batches. The negative batch
/// number keeps these streams apart from those of training.
void seed_part(const ContextState& state, std::int64_t step, std::int64_t part) {
  if (state.gradients.exact) seed_shard(state.run.device, state.run.info.seed ^ step, -1, part);
}

/// Switches all models between training and evaluation mode.
void set_training(ContextState& state, bool training) {
  for (const auto& model : state.wrapped.models) model->train(training);
}

/// Sends rank 0's buffers (running means), so that all ranks evaluate the same model. In exact mode they are
/// equal already. Collective.
void share_buffers(const ContextState& state) {
  if (state.run.communicator == nullptr || state.gradients.exact) return;
  for (const torch::Tensor& buffer : state.wrapped.buffers()) share_tensor(*state.run.communicator, buffer);
}

}  // namespace

Validation::Validation(Trial& trial, TrialContext& context, DataLoader loader)
    : trial_(trial), context_(context), state_(context.state()), loader_(std::move(loader)) {}

Json Validation::run(std::int64_t step, bool first_batch_only) {
  failed_together_ = false;
  for (const auto& [name, callback] : state_.wrapped.callbacks) callback->on_validation_start();
  Json metrics = evaluating([&] {
    state_.activity = {"evaluate_full_dataset", step, Activity::Kind::kComputation};
    // Only the chief evaluates a full dataset; all ranks must agree on the path before the collectives below.
    std::optional<Metrics> full;
    seed_part(state_, step, kFullDataset);
    together([&] {
      if (state_.run.distributed->is_chief()) full = trial_.evaluate_full_dataset(loader_);
    });
    seed_part(state_, step, kBeforeBatches);
    const bool is_full = state_.run.distributed->broadcast(full.has_value()).get<bool>();
    return is_full ? full_dataset(full.value_or(Metrics()))
                   : batch_by_batch(step, first_batch_only ? 1 : kAllBatches, state_.wrapped.callbacks);
  });
  for (const auto& [name, callback] : state_.wrapped.callbacks) callback->on_validation_end(metrics);
  return metrics;
}

Json Validation::probe(std::int64_t count) {
  return evaluating([&] { return batch_by_batch(0, count, {}); });
}

Json Validation::evaluating(const std::function<Json()>& act) {
  set_training(state_, false);
  state_.metric_reducers.reset(kReducers);
  const at::NoGradGuard no_grad;
  share_buffers(state_);
  std::optional<Autocast> autocast;
  if (state_.gradients.amp) autocast.emplace(state_.run.device, state_.gradients.amp->dtype);
  Json metrics = act();
  autocast.reset();
  state_.metric_reducers.reduce_into(metrics, kReducers, *state_.run.distributed,
                                     state_.gradients.local_shards());
  set_training(state_, true);
  return metrics;
}

void Validation::together(const std::function<void()>& act) {
  DistributedContext& ranks = *state_.run.distributed;
  std::exception_ptr mine;
  std::string message;
  try {
    act();
  } catch (const std::exception& error) {
    mine = std::current_exception();
    message = error.what();
  } catch (...) {
    mine = std::current_exception();
    message = "an exception that is no std::exception";
  }
  // The first line: LibTorch adds its own stack below.
  message = make_utf8(message.substr(0, message.find('\n')));
  const std::vector<Json> all =
      ranks.size() == 1 ? std::vector<Json>{} : ranks.allgather(Json{mine != nullptr, message});
  const auto first = std::find_if(all.begin(), all.end(), [](const Json& one) { return one[0].get<bool>(); });
  failed_together_ = mine != nullptr || first != all.end();
  if (mine) std::rethrow_exception(mine);
  if (first != all.end()) {
    throw std::runtime_error("rank " + std::to_string(first - all.begin()) +
                             " failed: " + (*first)[1].get<std::string>());
  }
}

Json Validation::full_dataset(const Metrics& metrics) {
  BatchMetrics one("evaluate_full_dataset");
  if (state_.run.distributed->is_chief()) one.add(0, metrics, 1);
  return one.reduce(*state_.run.distributed, {});
}

BatchMetrics Validation::evaluate(std::int64_t step, std::int64_t count) {
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
  for (std::int64_t i = 0; i != count; ++i) {
    state_.activity = {"the validation data", i, Activity::Kind::kReading};
    std::optional<Batch> batch = batches.next();
    if (!batch) break;
    batches.name_records();
    const std::int64_t number = batches.last_batch_number();
    const std::int64_t records = trial_.get_batch_length(*batch);
    state_.activity = {"evaluate_batch", i, Activity::Kind::kComputation};
    seed_part(state_, step, number);
    outputs.add(number, trial_.evaluate_batch(*batch), records);
    beat();
  }
  return outputs;
}

Json Validation::batch_by_batch(std::int64_t step, std::int64_t count, const Callbacks& callbacks) {
  for (const auto& [name, callback] : callbacks) callback->on_validation_epoch_start();
  BatchMetrics outputs("evaluate_batch");
  together([&] { outputs = evaluate(step, count); });
  seed_part(state_, step, kAfterBatches);
  state_.activity = {"evaluate_batch", -1};
  if (!callbacks.empty()) {
    const std::vector<Json> values = outputs.outputs();
    for (const auto& [name, callback] : callbacks) callback->on_validation_epoch_end(values);
  }
  Json metrics = outputs.reduce(*state_.run.distributed, trial_.evaluation_reducer());
  if (metrics.empty() && state_.metric_reducers.empty()) {
    throw std::invalid_argument("the validation loader gave no batch, or evaluate_batch no metric");
  }
  return metrics;
}

}  // namespace det
