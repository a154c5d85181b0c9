#include "harness/src/optim/device_step.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <stdexcept>
#include <type_traits>
#include <typeinfo>

#include "harness/src/base/torch_compat.h"
#include "harness/src/optim/fused_step.h"
#include "harness/src/optim/graph_mode.h"

namespace det {
namespace {

namespace lib = torch::optim;

constexpr std::int64_t kNumbers = 3;  ///< of a parameter

/// Calls use(options, state) with the types of Adam or AdamW.
template <typename Use>
void with_adam(bool decoupled, lib::OptimizerOptions& options, lib::OptimizerParamState& state,
               const Use& use) {
  if (decoupled) {
    use(static_cast<lib::AdamWOptions&>(options), static_cast<lib::AdamWParamState&>(state));
  } else {
    use(static_cast<lib::AdamOptions&>(options), static_cast<lib::AdamParamState&>(state));
  }
}

}  // namespace

DeviceStep::DeviceStep(lib::Optimizer& optimizer) : optimizer_(&optimizer) {
  const std::type_info& type = typeid(optimizer);
  kind_ = type == typeid(lib::SGD)     ? Kind::kSgd
          : type == typeid(lib::Adam)  ? Kind::kAdam
          : type == typeid(lib::AdamW) ? Kind::kAdamW
                                       : Kind::kNone;
  std::int64_t parameters = 0;
  torch::Device device = torch::kCPU;
  for (const auto& group : optimizer.param_groups()) {
    parameters += static_cast<std::int64_t>(group.params().size());
    for (const torch::Tensor& parameter : group.params()) device = parameter.device();
  }
  numbers_ = at::zeros({parameters, kNumbers}, torch::dtype(torch::kDouble).device(device));
}

std::string DeviceStep::problem() const {
  if (kind_ == Kind::kNone) return "the optimizer is not torch::optim::SGD, Adam or AdamW";
  for (const auto& group : optimizer_->param_groups()) {
    const auto& options = group.options();
    if ((kind_ == Kind::kAdam && static_cast<const lib::AdamOptions&>(options).amsgrad()) ||
        (kind_ == Kind::kAdamW && static_cast<const lib::AdamWOptions&>(options).amsgrad()))
      return "the optimizer has amsgrad";
    for (const torch::Tensor& parameter : group.params()) {
      if (parameter.device() != numbers_.device()) return "the parameters are on several devices";
    }
  }
  return "";
}

void DeviceStep::step() {
  const at::NoGradGuard no_grad;
  const std::vector<Job> jobs = collect();
  count(jobs);
  apply(jobs);
}

void DeviceStep::record() {
  const at::NoGradGuard no_grad;
  recorded_ = collect();
  recorded_constants_ = constants();
  apply(recorded_);
}

std::vector<DeviceStep::Job> DeviceStep::collect() {
  std::vector<Job> jobs;
  std::size_t index = 0;
  for (auto& group : optimizer_->param_groups()) {
    for (const torch::Tensor& parameter : group.params()) {
      const std::size_t own = index++;
      const torch::Tensor& gradient = parameter.unsafeGetTensorImpl()->grad();
      if (!gradient.defined()) continue;
      if (gradient.is_sparse()) {
        throw std::invalid_argument("step_optimizer: a parameter of shape " + compat::shape_text(parameter) +
                                    " has a sparse gradient; build its embedding with sparse(false)");
      }
      jobs.push_back({parameter, own, &group.options(), state_of(parameter, group.options())});
    }
  }
  return jobs;
}

/// The optimizer's state of a parameter, made if it is missing.
lib::OptimizerParamState* DeviceStep::state_of(const torch::Tensor& parameter,
                                               const lib::OptimizerOptions& options) {
  const bool is_sgd = kind_ == Kind::kSgd;
  if (is_sgd && static_cast<const lib::SGDOptions&>(options).momentum() == 0) return nullptr;
  auto& state = optimizer_->state()[compat::state_key(*optimizer_, parameter)];
  if (state != nullptr) return state.get();
  if (GraphMode::is_recording())
    throw Unrecordable("a parameter of shape " + compat::shape_text(parameter) + " had no gradient before");
  if (is_sgd) {
    state = std::make_unique<lib::SGDParamState>();
    return state.get();
  }
  const auto make = [&](auto made) {
    made->exp_avg(zeros_as(parameter));
    made->exp_avg_sq(zeros_as(parameter));
    state = std::move(made);
  };
  if (kind_ == Kind::kAdamW) {
    make(std::make_unique<lib::AdamWParamState>());
  } else {
    make(std::make_unique<lib::AdamParamState>());
  }
  return state.get();
}

/// Advances the counts of the parameters and writes the numbers of the step.
void DeviceStep::count(const std::vector<Job>& jobs) {
  const at::NoGradGuard no_grad;
  const bool on_gpu = numbers_.is_cuda();
  // New memory for each step: the copy may still read that of the last one.
  const torch::Tensor host = at::empty(numbers_.sizes(), torch::dtype(torch::kDouble).pinned_memory(on_gpu));
  host.zero_();
  auto* rows = host.data_ptr<double>();
  for (const Job& job : jobs) {
    double* row = rows + kNumbers * static_cast<std::int64_t>(job.index);
    if (kind_ == Kind::kSgd) {
      row[0] = static_cast<lib::SGDOptions&>(*job.options).lr();
      continue;
    }
    with_adam(kind_ == Kind::kAdamW, *job.options, *job.state, [&](auto& options, auto& state) {
      state.step(state.step() + 1);
      const auto steps = static_cast<double>(state.step());
      const auto [beta1, beta2] = options.betas();
      row[0] = options.lr() / (1 - std::pow(beta1, steps));
      row[1] = std::sqrt(1 - std::pow(beta2, steps));
      row[2] = 1 - options.lr() * options.weight_decay();
    });
  }
  numbers_.copy_(host, /*non_blocking=*/on_gpu);
}

void DeviceStep::uncount_repetition() {
  if (kind_ == Kind::kSgd) return;
  for (const Job& job : recorded_) {
    with_adam(kind_ == Kind::kAdamW, *job.options, *job.state,
              [](auto&, auto& state) { state.step(state.step() - 1); });
  }
}

void DeviceStep::apply(const std::vector<Job>& jobs) {
  for (const Job& job : jobs) {
    const torch::Tensor& gradient = job.parameter.unsafeGetTensorImpl()->grad();
    switch (kind_) {
      case Kind::kSgd:
        apply_sgd(job, gradient);
        break;
      case Kind::kAdam:
        apply_adam<lib::AdamOptions, lib::AdamParamState>(job, gradient);
        break;
      case Kind::kAdamW:
        apply_adam<lib::AdamWOptions, lib::AdamWParamState>(job, gradient);
        break;
      case Kind::kNone:
        break;
    }
  }
}

void DeviceStep::apply_sgd(const Job& job, const torch::Tensor& gradient) {
  const auto& options = static_cast<lib::SGDOptions&>(*job.options);
  torch::Tensor change = gradient;
  if (options.weight_decay() != 0) change = change.add(job.parameter, options.weight_decay());
  if (job.state != nullptr) {
    auto& state = static_cast<lib::SGDParamState&>(*job.state);
    torch::Tensor buffer = state.momentum_buffer();
    if (!buffer.defined()) {
      if (GraphMode::is_recording())
        throw Unrecordable("a parameter of shape " + compat::shape_text(job.parameter) +
                           " had no step before");
      // As in PyTorch, the first step initializes the buffer with the gradient, without dampening.
      buffer = change.clone();
      state.momentum_buffer(buffer);
    } else {
      buffer.mul_(options.momentum()).add_(change, 1 - options.dampening());
    }
    change = options.nesterov() ? change.add(buffer, options.momentum()) : buffer;
  }
  const auto row = static_cast<std::int64_t>(job.index);
  torch::Tensor(job.parameter).sub_(change * numbers_.select(0, row).select(0, 0));
}

template <typename Options, typename State>
void DeviceStep::apply_adam(const Job& job, const torch::Tensor& gradient) {
  const auto& options = static_cast<Options&>(*job.options);
  auto& state = static_cast<State&>(*job.state);
  const torch::Tensor row = numbers_.select(0, static_cast<std::int64_t>(job.index));
  const auto [beta1, beta2] = options.betas();
  torch::Tensor parameter = job.parameter, average = state.exp_avg(), square = state.exp_avg_sq();
  constexpr bool kDecoupled = std::is_same_v<Options, lib::AdamWOptions>;
  const bool decays = options.weight_decay() != 0;
  if (kDecoupled && decays) parameter.mul_(row.select(0, 2));
  const torch::Tensor change =
      !kDecoupled && decays ? gradient.add(parameter, options.weight_decay()) : gradient;
  average.mul_(beta1).add_(change, 1 - beta1);
  square.mul_(beta2).addcmul_(change, change, 1 - beta2);
  const torch::Tensor scale = square.sqrt().div_(row.select(0, 1)).add_(options.eps());
  parameter.sub_((average / scale).mul_(row.select(0, 0)));
}

/// The options that recorded kernels contain, of all groups.
std::vector<double> DeviceStep::constants() const {
  std::vector<double> all;
  for (const auto& group : optimizer_->param_groups()) {
    all.push_back(static_cast<double>(group.params().size()));
    const auto adam = [&](const auto& options, double decay) {
      const auto [beta1, beta2] = options.betas();
      all.insert(all.end(), {beta1, beta2, options.eps(), decay});
    };
    if (kind_ == Kind::kSgd) {
      const auto& options = static_cast<const lib::SGDOptions&>(group.options());
      all.insert(all.end(), {options.momentum(), options.dampening(), options.weight_decay(),
                             options.nesterov() ? 1.0 : 0.0});
    } else if (kind_ == Kind::kAdam) {
      const auto& options = static_cast<const lib::AdamOptions&>(group.options());
      adam(options, options.weight_decay());
    } else if (kind_ == Kind::kAdamW) {
      const auto& options = static_cast<const lib::AdamWOptions&>(group.options());
      adam(options, options.weight_decay() != 0 ? 1 : 0);
    }
  }
  return all;
}

std::vector<torch::Tensor> DeviceStep::state_tensors() const {
  std::vector<torch::Tensor> tensors;
  for (const Job& job : recorded_) {
    if (job.state == nullptr) continue;
    if (kind_ == Kind::kSgd) {
      tensors.push_back(static_cast<lib::SGDParamState&>(*job.state).momentum_buffer());
    } else {
      with_adam(kind_ == Kind::kAdamW, *job.options, *job.state, [&](auto&, auto& state) {
        tensors.insert(tensors.end(), {state.exp_avg(), state.exp_avg_sq()});
      });
    }
  }
  return tensors;
}

}  // namespace det
