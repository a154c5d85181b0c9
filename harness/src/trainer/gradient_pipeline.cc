// From a loss to an optimizer step: backward pass, averaging over processes, aggregation, virtual shards,
// clipping, step.
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/src/base/torch_compat.h"
#include "harness/src/optim/autocast_compat.h"
#include "harness/src/optim/graph_mode.h"
#include "harness/src/optim/zero_partition.h"
#include "harness/src/trainer/context_state.h"

namespace det {
namespace {

std::vector<torch::Tensor> parameters_of(torch::optim::Optimizer& optimizer) {
  std::vector<torch::Tensor> parameters;
  for (const auto& group : optimizer.param_groups()) {
    parameters.insert(parameters.end(), group.params().begin(), group.params().end());
  }
  return parameters;
}

void check_loss(const torch::Tensor& loss, bool with_gradient) {
  if (!loss.defined()) throw std::invalid_argument("backward: the loss is an undefined tensor");
  if (loss.numel() != 1 && !with_gradient) {
    throw std::invalid_argument("backward: the loss must be one number, not a tensor of shape " +
                                compat::shape_text(loss) +
                                "; take its mean, or give a gradient of its shape");
  }
  if (!loss.requires_grad()) {
    throw std::invalid_argument(
        "backward: the loss does not depend on any parameter (was it detached, or made of numbers?)");
  }
}

/// Ends the trial before a loss that is not finite reaches the parameters. One on a device is not checked,
/// because reading it would synchronize; a loss scaler skips the step of such a batch.
void stop_on_bad_loss(const ContextState& state, const torch::Tensor& loss) {
  if (!state.gradients.stop_on_bad_loss || state.wrapped.scaler != nullptr) return;
  if (loss.numel() != 1 || !loss.device().is_cpu() || !loss.is_floating_point()) return;
  const double value = loss.item<double>();
  if (!std::isfinite(value)) throw BadLoss(value);
}

/// The models that a backward pass reached, such as "model 0 (Net), model 2 (Judge)". `reached` has one digit
/// per wrapped model.
std::string names_of_models(const ContextState& state, const std::string& reached) {
  std::string names;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (reached[i] == '0') continue;
    names += (names.empty() ? "model " : ", model ") + std::to_string(i) + " (" +
             state.wrapped.models[i]->name() + ")";
  }
  return names.empty() ? "no wrapped model" : names;
}

/// Throws std::logic_error unless the backward passes of all ranks reached the same models: the reducers of
/// different models would average their gradients. Collective. It does not use the communicator, on which
/// buckets may be under way.
void compare_reached_models(const ContextState& state) {
  if (state.gradients.reducers.size() < 2) return;
  std::string mine;
  for (const auto& reducer : state.gradients.reducers) mine += reducer->is_reached() ? '1' : '0';
  const std::vector<std::string> all = state.run.distributed->allgather_bytes(mine);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    throw std::logic_error(
        "backward: the batches of all processes must reach the same wrapped models; rank 0 reached " +
        names_of_models(state, all[0]) + ", and rank " + std::to_string(rank) + " reached " +
        names_of_models(state, all[rank]));
  }
}

/// Adds the gradients of a virtual shard to the sums and clears them. Returns true when the optimizer may
/// step; its parameters then have the gradients of the whole aggregation window.
bool collect_shard(ContextState& state, torch::optim::Optimizer& optimizer, Stepping& stepping) {
  at::NoGradGuard no_grad;
  // Every shard must step the optimizer exactly once; otherwise the sums of the ranks would not match.
  if (stepping.collected++ != state.gradients.at.shard) refuse_uneven_steps();
  std::vector<torch::Tensor> like = parameters_of(optimizer);
  TreeSum::Tensors leaf;
  for (torch::Tensor& parameter : like) {
    torch::Tensor gradient = parameter.grad();
    if (gradient.defined() && gradient.is_sparse()) {
      throw std::invalid_argument("reproducibility: exact sums dense gradients, and a parameter of shape " +
                                  compat::shape_text(parameter) +
                                  " has a sparse one; build its embedding with sparse(false)");
    }
    leaf.push_back(gradient.defined() ? gradient.detach().mul_(state.gradients.at.shard_records) : gradient);
    parameter.mutable_grad().reset();
  }
  // The number of records is summed like a gradient, so that it has the same order of additions.
  leaf.push_back(weight_of(state.gradients.at.shard_records, state.run.device));
  stepping.shards.add(std::move(leaf));
  if (state.gradients.at.shard + 1 < state.gradients.at.shards) return false;
  std::vector<torch::Tensor> shapes = like;
  shapes.push_back(weight_of(0, state.run.device));
  const PhaseSpan span(state.instruments.phases.get(), Phase::kExchange);
  TreeSum::Tensors sum = sum_over_ranks(stepping.shards.take(), shapes, state.run.communicator.get(),
                                        state.run.distributed->size());
  const double records = sum.back().item<double>();
  sum.pop_back();
  TreeSum::Tensors& window = stepping.window;
  window.resize(sum.size());
  for (std::size_t i = 0; i < sum.size(); ++i) {
    if (!sum[i].defined()) continue;
    sum[i].div_(records);
    window[i] = window[i].defined() ? window[i].add_(sum[i]) : sum[i];
  }
  if (!state.gradients.at.ends_window) return false;
  for (std::size_t i = 0; i < like.size(); ++i) like[i].mutable_grad() = std::move(window[i]);
  window.clear();
  return true;
}

/// Copies of the parameters with a gradient, from before the step, for hide_step().
std::vector<torch::Tensor> copies_of(torch::optim::Optimizer& optimizer) {
  std::vector<torch::Tensor> copies;
  for (const torch::Tensor& parameter : parameters_of(optimizer)) {
    copies.push_back(parameter.grad().defined() ? parameter.detach().clone() : torch::Tensor());
  }
  return copies;
}

/// Restores the parameters' previous values until the batch is done. The shard that performs the step depends
/// on the number of processes, so code after it in train_batch must not see its effect.
void hide_step(ContextState& state, torch::optim::Optimizer& optimizer,
               const std::vector<torch::Tensor>& before) {
  std::size_t i = 0;
  for (torch::Tensor& parameter : parameters_of(optimizer)) {
    const torch::Tensor& copy = before[i++];
    if (!copy.defined()) continue;
    state.gradients.stepped.push_back({parameter, parameter.detach()});
    parameter.set_data(copy);
  }
}

/// Returns the index of an optimizer. Throws std::logic_error when it is not wrapped.
std::size_t index_of(const ContextState& state, const torch::optim::Optimizer& optimizer) {
  const auto& wrapped = state.wrapped.optimizers;
  const auto found =
      std::find_if(wrapped.begin(), wrapped.end(), [&](const auto& o) { return o.get() == &optimizer; });
  if (found == wrapped.end()) {
    throw std::logic_error("step_optimizer: this optimizer is not the one wrap_optimizer returned");
  }
  return static_cast<std::size_t>(found - wrapped.begin());
}

/// Scope of an optimizer's step: in full precision. Weights that were cast before are cast again after it.
class StepScope {
 public:
  explicit StepScope(const torch::Device& device) : full_precision_(device, torch::kFloat, false) {}
  ~StepScope() { at::autocast::clear_cache(); }
  StepScope(const StepScope&) = delete;

 private:
  Autocast full_precision_;
};

/// Cheaper than zeros: the next backward pass moves its gradient in.
void clear_gradients(torch::optim::Optimizer& optimizer) {
  for (auto& group : optimizer.param_groups()) {
    for (torch::Tensor& parameter : group.params()) parameter.mutable_grad().reset();
  }
}

}  // namespace

BadLoss::BadLoss(double loss)
    : runtime_error(""),
      // Whether a NaN has a sign depends on the compiler.
      text_("the loss is " + (std::isnan(loss) ? "nan" : std::to_string(loss)) +
            "; lower the learning rate or clip gradients (FitOptions::stop_on_bad_loss = false trains on)") {}

void BadLoss::add_origin(const std::string& origin) {
  if (!origin.empty()) text_ += "; " + origin;
}

void TrialContext::backward(const torch::Tensor& loss, const BackwardOptions& options) {
  check_loss(loss, options.gradient.defined());
  stop_on_bad_loss(*state_, loss);
  const PhaseSpan span(state_->instruments.phases.get(), Phase::kBackward);
  // The backward pass uses the precision of the forward pass's operators.
  std::optional<Autocast> full_precision;
  if (state_->gradients.amp) full_precision.emplace(state_->run.device, state_->gradients.amp->dtype, false);
  const torch::Tensor scaled = state_->wrapped.scaler != nullptr ? state_->wrapped.scaler->scale(loss) : loss;
  // Batches that only accumulate need no exchange; virtual shards have one of their own.
  const bool reduce =
      state_->gradients.at.ends_window && !state_->gradients.exact && !state_->gradients.reducers.empty();
  if (reduce) {
    for (const auto& reducer : state_->gradients.reducers) reducer->start();
  }
  scaled.backward(options.gradient, options.retain_graph, options.create_graph);
  if (!reduce) return;
  const PhaseSpan waiting(state_->instruments.phases.get(), Phase::kExchange);
  compare_reached_models(*state_);
  for (const auto& reducer : state_->gradients.reducers) reducer->finish();
}

void TrialContext::step_optimizer(torch::optim::Optimizer& optimizer, const ClipGradients& clip_gradients,
                                  bool auto_zero_grads) {
  const std::size_t index = index_of(*state_, optimizer);
  Stepping& stepping = state_->gradients.stepping[index];
  const PhaseSpan span(state_->instruments.phases.get(), Phase::kOptimizer);
  // Also where a virtual shard does not step, so that all shards cast alike.
  const StepScope scope(state_->run.device);
  const Aggregation& aggregation = state_->gradients.aggregation;
  if (!auto_zero_grads && (aggregation.frequency > 1 || state_->gradients.exact)) {
    throw std::logic_error(
        "step_optimizer: auto_zero_grads = false does not go with " +
        std::string(state_->gradients.exact ? "reproducibility: exact" : "aggregation_frequency > 1"));
  }
  if (state_->gradients.exact && !collect_shard(*state_, optimizer, stepping)) return;
  if (!state_->gradients.at.ends_window) return;
  if (aggregation.frequency > 1 && aggregation.average) {
    at::NoGradGuard no_grad;
    for (const torch::Tensor& parameter : parameters_of(optimizer)) {
      if (parameter.grad().defined()) parameter.grad().div_(aggregation.frequency);
    }
  }
  if (state_->wrapped.scaler != nullptr) state_->wrapped.scaler->unscale(optimizer);
  if (clip_gradients) {
    std::vector<torch::Tensor> parameters = parameters_of(optimizer);
    clip_gradients(parameters);
  }
  const std::vector<torch::Tensor> before =
      state_->gradients.exact ? copies_of(optimizer) : std::vector<torch::Tensor>();
  const auto step_all = [&] {
    if (stepping.on_device != nullptr) {
      GraphMode::is_recording() ? stepping.on_device->record() : stepping.on_device->step();
    } else if (!stepping.fused->step()) {
      optimizer.step();
    }
  };
  const auto step = [&] {
    state_->wrapped.zero.empty() ? step_all() : state_->wrapped.zero[index]->step(step_all);
  };
  if (state_->wrapped.scaler != nullptr) {
    state_->wrapped.scaler->step(optimizer, step);
  } else {
    step();
  }
  if (state_->gradients.exact) hide_step(*state_, optimizer, before);
  if (auto_zero_grads) clear_gradients(optimizer);
}

torch::Tensor TrialContext::step_optimizer(torch::optim::Optimizer& optimizer,
                                           const torch::optim::Optimizer::LossClosure& closure) {
  (void)index_of(*state_, optimizer);
  refuse_in_recording("step_optimizer with a closure");
  const char* conflict = state_->gradients.exact                       ? "reproducibility: exact"
                         : state_->gradients.aggregation.frequency > 1 ? "aggregation_frequency > 1"
                         : state_->wrapped.scaler != nullptr           ? "a scaler"
                         : state_->gradients.zero                      ? "optimizations.zero: 1"
                                                                       : nullptr;
  if (conflict != nullptr)
    throw std::logic_error(std::string("step_optimizer: a closure does not go with ") + conflict);
  const PhaseSpan span(state_->instruments.phases.get(), Phase::kOptimizer);
  const torch::Device& device = state_->run.device;
  const compat::AutocastSetting outside = compat::autocast(device.type());
  const StepScope scope(device);
  torch::Tensor first = optimizer.step([&] {
    clear_gradients(optimizer);
    // The optimizer has changed the weights since the last evaluation.
    at::autocast::clear_cache();
    std::optional<Autocast> autocast;
    if (outside.enabled) autocast.emplace(device, outside.dtype);
    const torch::Tensor own = closure();
    autocast.reset();
    if (!own.defined()) throw std::invalid_argument("step_optimizer: the closure returned no loss");
    torch::Tensor loss = own.detach().clone();
    // The steps depend on the loss. Its value must be equal on all ranks, like the gradients.
    if (state_->run.communicator != nullptr)
      state_->run.communicator->all_reduce(loss, Reduction::kMean, Start::kOnWait)->wait();
    return loss;
  });
  clear_gradients(optimizer);
  return first;
}

}  // namespace det
