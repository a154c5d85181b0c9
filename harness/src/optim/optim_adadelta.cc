// Adadelta written with LibTorch operators. fused_step.h has the single-pass version for the CPU.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/serialize.h>
#include <torch/serialize/archive.h>

#include "det/optim.h"
#include "harness/src/base/torch_compat.h"

namespace det::optim {

using torch::serialize::InputArchive;
using torch::serialize::OutputArchive;

AdadeltaOptions::AdadeltaOptions(double lr) : lr_(lr) {}

void AdadeltaOptions::serialize(OutputArchive& archive) const {
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(lr);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(rho);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(eps);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(weight_decay);
}

void AdadeltaOptions::serialize(InputArchive& archive) {
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, lr);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, rho);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, eps);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, weight_decay);
}

double AdadeltaOptions::get_lr() const { return lr(); }
void AdadeltaOptions::set_lr(const double lr) { this->lr(lr); }

void AdadeltaParamState::serialize(OutputArchive& archive) const {
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(step);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(square_avg);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(acc_delta);
}

void AdadeltaParamState::serialize(InputArchive& archive) {
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(int64_t, step);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(torch::Tensor, square_avg);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(torch::Tensor, acc_delta);
}

Adadelta::Adadelta(std::vector<torch::optim::OptimizerParamGroup> param_groups, AdadeltaOptions defaults)
    : Optimizer(std::move(param_groups), std::make_unique<AdadeltaOptions>(defaults)) {
  TORCH_CHECK(defaults.lr() >= 0, "Adadelta: lr is ", defaults.lr(), ", it must not be below 0");
  TORCH_CHECK(defaults.rho() >= 0 && defaults.rho() <= 1, "Adadelta: rho is ", defaults.rho(),
              ", not in [0, 1]");
  TORCH_CHECK(defaults.eps() >= 0, "Adadelta: eps is ", defaults.eps(), ", it must not be below 0");
  TORCH_CHECK(defaults.weight_decay() >= 0, "Adadelta: weight_decay is ", defaults.weight_decay(),
              ", it must not be below 0");
}

torch::Tensor Adadelta::step(LossClosure closure) {
  torch::Tensor loss;
  if (closure != nullptr) {
    const at::AutoGradMode with_gradients(true);
    loss = closure();
  }
  const at::NoGradGuard no_gradients;
  for (auto& group : param_groups_) {
    const auto& options = static_cast<AdadeltaOptions&>(group.options());
    for (torch::Tensor& parameter : group.params()) {
      torch::Tensor gradient = parameter.grad();
      if (!gradient.defined()) continue;
      TORCH_CHECK(!gradient.is_sparse(), "Adadelta: sparse gradients are not supported");
      auto& entry = state_[compat::state_key(*this, parameter)];
      // The state is created at a parameter's first step: parameters without a
      // gradient have none, as in PyTorch.
      if (entry == nullptr) {
        auto fresh = std::make_unique<AdadeltaParamState>();
        fresh->square_avg(at::zeros_like(parameter, {}, at::MemoryFormat::Preserve));
        fresh->acc_delta(at::zeros_like(parameter, {}, at::MemoryFormat::Preserve));
        entry = std::move(fresh);
      }
      auto& state = static_cast<AdadeltaParamState&>(*entry);
      state.step(state.step() + 1);
      // Zeiler 2012, algorithm 1: accumulate g^2, scale the step by RMS(previous
      // steps) / RMS(g), accumulate step^2.
      if (options.weight_decay() != 0) gradient = gradient.add(parameter, options.weight_decay());
      state.square_avg().mul_(options.rho()).addcmul_(gradient, gradient, 1 - options.rho());
      const torch::Tensor spread = state.square_avg().add(options.eps()).sqrt_();
      const torch::Tensor change = state.acc_delta().add(options.eps()).sqrt_().div_(spread).mul_(gradient);
      state.acc_delta().mul_(options.rho()).addcmul_(change, change, 1 - options.rho());
      parameter.add_(change, -options.lr());
    }
  }
  return loss;
}

void Adadelta::save(OutputArchive& archive) const {
  torch::optim::serialize<AdadeltaParamState, AdadeltaOptions>(archive, *this);
}
void Adadelta::load(InputArchive& archive) {
  torch::optim::serialize<AdadeltaParamState, AdadeltaOptions>(archive, *this);
}

}  // namespace det::optim
