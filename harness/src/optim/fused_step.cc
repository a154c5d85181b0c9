// Fused optimizer steps: validation of tensors, access to the optimizer's state, and calls of the kernels.
#include "harness/src/optim/fused_step.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <type_traits>
#include <typeinfo>

#include "det/optim.h"
#include "harness/src/base/torch_compat.h"
#include "harness/src/optim/optim_kernels.h"

namespace det {
namespace {

namespace lib = torch::optim;

/// Below this size one thread finishes before a second one has started.
constexpr std::int64_t kElementsForThreads = 256 * 1024;

/// Calls run(begin, end) for parts of `count` elements, in parallel for large parameters.
template <typename Run>
void in_parts(std::int64_t count, const Run& run) {
  if (count < kElementsForThreads) {
    run(std::size_t{0}, static_cast<std::size_t>(count));
    return;
  }
  at::parallel_for(0, count, kElementsForThreads / 2, [&](std::int64_t begin, std::int64_t end) {
    run(static_cast<std::size_t>(begin), static_cast<std::size_t>(end));
  });
}

float* data(const torch::Tensor& tensor) { return static_cast<float*>(tensor.data_ptr()); }

bool is_fusable(const torch::Tensor& tensor) {
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  return impl->layout() == at::kStrided && tensor.scalar_type() == at::kFloat && tensor.device().is_cpu() &&
         !tensor.is_neg() && impl->has_storage();
}

/// True when the elements of both tensors have the same memory order, without gaps.
bool alike(const torch::Tensor& a, const torch::Tensor& b) {
  if (!is_fusable(b) || a.sizes() != b.sizes()) return false;
  if (a.is_contiguous() && b.is_contiguous()) return true;
  return a.is_non_overlapping_and_dense() && a.strides() == b.strides();
}
bool alike_if_defined(const torch::Tensor& a, const torch::Tensor& b) { return !b.defined() || alike(a, b); }

template <typename State>
bool adam_state_fits(const torch::Tensor& parameter, State& state, bool amsgrad) {
  return state.exp_avg().defined() && alike(parameter, state.exp_avg()) && state.exp_avg_sq().defined() &&
         alike(parameter, state.exp_avg_sq()) &&
         (!amsgrad || (state.max_exp_avg_sq().defined() && alike(parameter, state.max_exp_avg_sq())));
}

}  // namespace

torch::Tensor zeros_as(const torch::Tensor& parameter) {
  return at::zeros_like(parameter, parameter.options().requires_grad(false), at::MemoryFormat::Preserve);
}

FusedStep::FusedStep(lib::Optimizer& optimizer) : optimizer_(&optimizer) {
  const std::type_info& type = typeid(optimizer);
  kind_ = type == typeid(lib::SGD)          ? Kind::kSgd
          : type == typeid(lib::Adam)       ? Kind::kAdam
          : type == typeid(lib::AdamW)      ? Kind::kAdamW
          : type == typeid(optim::Adadelta) ? Kind::kAdadelta
                                            : Kind::kNone;
}

bool FusedStep::step() {
  if (kind_ == Kind::kNone || !collect()) return false;
  const at::NoGradGuard no_grad;
  for (const Job& job : jobs_) {
    switch (kind_) {
      case Kind::kSgd:
        step_sgd(job);
        break;
      case Kind::kAdam:
        step_adam<lib::AdamOptions, lib::AdamParamState>(job);
        break;
      case Kind::kAdamW:
        step_adam<lib::AdamWOptions, lib::AdamWParamState>(job);
        break;
      case Kind::kAdadelta:
        step_adadelta(job);
        break;
      case Kind::kNone:
        break;
    }
  }
  return true;
}

void FusedStep::list_slots() {
  slots_.clear();
  for (auto& group : optimizer_->param_groups()) {
    for (const torch::Tensor& parameter : group.params())
      slots_.push_back({parameter.unsafeGetTensorImpl(), compat::state_key(*optimizer_, parameter)});
  }
}

/// Collects the parameters with a gradient in jobs_. Returns false when one of them is not supported.
bool FusedStep::collect() {
  std::size_t next = 0;
  // The cached slots are valid as long as the optimizer has the same parameters in the same order.
  bool known = !slots_.empty();
  for (auto& group : optimizer_->param_groups()) {
    for (const torch::Tensor& parameter : group.params()) {
      known = known && next < slots_.size() && slots_[next].parameter == parameter.unsafeGetTensorImpl();
      ++next;
    }
  }
  if (!known || next != slots_.size()) list_slots();

  jobs_.clear();
  next = 0;
  // Looked up in each step: callbacks may clear the state or load another one.
  auto& states = optimizer_->state();
  for (auto& group : optimizer_->param_groups()) {
    for (torch::Tensor& parameter : group.params()) {
      const Slot& slot = slots_[next++];
      const torch::Tensor& gradient = parameter.unsafeGetTensorImpl()->grad();
      if (!gradient.defined()) continue;
      const auto state = states.find(slot.key);
      jobs_.push_back({&parameter, &gradient, &slot, &group.options(),
                       state == states.end() ? nullptr : state->second.get()});
      if (!usable(jobs_.back())) return false;
    }
  }
  return true;
}

bool FusedStep::usable(const Job& job) const {
  const torch::Tensor& parameter = *job.parameter;
  if (!is_fusable(parameter) || !alike(parameter, *job.gradient)) return false;
  // SGD without momentum has no state.
  if (kind_ == Kind::kSgd && static_cast<lib::SGDOptions*>(job.options)->momentum() == 0) {
    return parameter.is_non_overlapping_and_dense();
  }
  torch::optim::OptimizerParamState* const state = job.state;
  if (state == nullptr) return parameter.is_non_overlapping_and_dense();
  switch (kind_) {
    case Kind::kSgd:
      return alike_if_defined(parameter, static_cast<lib::SGDParamState*>(state)->momentum_buffer());
    case Kind::kAdam:
      return adam_state_fits(parameter, *static_cast<lib::AdamParamState*>(state),
                             static_cast<lib::AdamOptions*>(job.options)->amsgrad());
    case Kind::kAdamW:
      return adam_state_fits(parameter, *static_cast<lib::AdamWParamState*>(state),
                             static_cast<lib::AdamWOptions*>(job.options)->amsgrad());
    case Kind::kAdadelta: {
      auto& kept = *static_cast<optim::AdadeltaParamState*>(state);
      return kept.square_avg().defined() && alike(parameter, kept.square_avg()) &&
             kept.acc_delta().defined() && alike(parameter, kept.acc_delta());
    }
    case Kind::kNone:
      break;
  }
  return false;
}

template <typename State>
State& FusedStep::state_of(const Job& job) {
  if (job.state != nullptr) return static_cast<State&>(*job.state);
  auto& state = optimizer_->state()[job.slot->key];
  state = std::make_unique<State>();
  auto& made = static_cast<State&>(*state);
  if constexpr (std::is_same_v<State, optim::AdadeltaParamState>) {
    made.square_avg(zeros_as(*job.parameter));
    made.acc_delta(zeros_as(*job.parameter));
  } else if constexpr (!std::is_same_v<State, lib::SGDParamState>) {
    made.exp_avg(zeros_as(*job.parameter));
    made.exp_avg_sq(zeros_as(*job.parameter));
  }
  return made;
}

void FusedStep::step_sgd(const Job& job) {
  auto& options = static_cast<lib::SGDOptions&>(*job.options);
  const kernels::Sgd how{static_cast<float>(options.lr()), static_cast<float>(options.momentum()),
                         static_cast<float>(1 - options.dampening()),
                         static_cast<float>(options.weight_decay()), options.nesterov()};
  float* p = data(*job.parameter);
  const float* g = data(*job.gradient);
  const std::int64_t count = job.parameter->numel();
  if (options.momentum() == 0) {
    in_parts(count, [&](std::size_t begin, std::size_t end) {
      kernels::sgd(how, p + begin, g + begin, end - begin);
    });
    return;
  }
  auto& state = state_of<lib::SGDParamState>(job);
  // As in PyTorch, the first step initializes the buffer with the gradient, without dampening.
  const bool first = !state.momentum_buffer().defined();
  if (first) {
    state.momentum_buffer(at::empty_like(*job.parameter, job.parameter->options().requires_grad(false),
                                         at::MemoryFormat::Preserve));
  }
  float* buffer = data(state.momentum_buffer());
  in_parts(count, [&](std::size_t begin, std::size_t end) {
    kernels::sgd_momentum(how, first, p + begin, g + begin, buffer + begin, end - begin);
  });
}

template <typename Options, typename State>
void FusedStep::step_adam(const Job& job) {
  auto& options = static_cast<Options&>(*job.options);
  auto& state = state_of<State>(job);
  if (options.amsgrad() && !state.max_exp_avg_sq().defined()) state.max_exp_avg_sq(zeros_as(*job.parameter));
  state.step(state.step() + 1);
  const auto [beta1, beta2] = options.betas();
  if (correction_.step != state.step() || correction_.beta1 != beta1 || correction_.beta2 != beta2) {
    const auto steps = static_cast<double>(state.step());
    correction_ = {state.step(), beta1, beta2, 1 - std::pow(beta1, steps),
                   std::sqrt(1 - std::pow(beta2, steps))};
  }
  // AdamW shrinks the parameter; Adam adds the decay to the gradient.
  const bool decoupled = std::is_same_v<Options, lib::AdamWOptions>;
  const double decay = options.weight_decay();
  const kernels::Adam how{.step_size = static_cast<float>(options.lr() / correction_.first),
                          .beta1 = static_cast<float>(beta1),
                          .one_minus_beta1 = static_cast<float>(1 - beta1),
                          .beta2 = static_cast<float>(beta2),
                          .one_minus_beta2 = static_cast<float>(1 - beta2),
                          .root_correction = static_cast<float>(correction_.root_of_second),
                          .eps = static_cast<float>(options.eps()),
                          .weight_decay = decoupled ? 0.f : static_cast<float>(decay),
                          .shrink = decoupled ? static_cast<float>(1 - options.lr() * decay) : 1.f};
  float *p = data(*job.parameter), *average = data(state.exp_avg()), *square = data(state.exp_avg_sq());
  float* largest = options.amsgrad() ? data(state.max_exp_avg_sq()) : nullptr;
  const float* g = data(*job.gradient);
  in_parts(job.parameter->numel(), [&](std::size_t begin, std::size_t end) {
    if (largest != nullptr) {
      kernels::adam_amsgrad(how, p + begin, g + begin, average + begin, square + begin, largest + begin,
                            end - begin);
    } else {
      kernels::adam(how, p + begin, g + begin, average + begin, square + begin, end - begin);
    }
  });
  // LibTorch's Adam increments the parameter's version for autograd, its SGD does not.
  job.parameter->unsafeGetTensorImpl()->bump_version();
}

void FusedStep::step_adadelta(const Job& job) {
  auto& options = static_cast<optim::AdadeltaOptions&>(*job.options);
  auto& state = state_of<optim::AdadeltaParamState>(job);
  state.step(state.step() + 1);
  const kernels::Adadelta how{static_cast<float>(options.lr()), static_cast<float>(options.rho()),
                              static_cast<float>(1 - options.rho()), static_cast<float>(options.eps()),
                              static_cast<float>(options.weight_decay())};
  float *p = data(*job.parameter), *square = data(state.square_avg()), *delta = data(state.acc_delta());
  const float* g = data(*job.gradient);
  in_parts(job.parameter->numel(), [&](std::size_t begin, std::size_t end) {
    kernels::adadelta(how, p + begin, g + begin, square + begin, delta + begin, end - begin);
  });
  job.parameter->unsafeGetTensorImpl()->bump_version();
}

}  // namespace det
