// Additions to LibTorch's optimizers: Adadelta, and gradient clipping in a single pass over memory.
#pragma once

#include <torch/arg.h>
#include <torch/optim/optimizer.h>
#include <torch/types.h>

#include <utility>
#include <vector>

namespace det::optim {

/// Options of Adadelta, with the names and defaults of torch.optim.Adadelta: learning rate, decay of the
/// running averages, term for numerical stability, and L2 penalty.
struct AdadeltaOptions : public torch::optim::OptimizerCloneableOptions<AdadeltaOptions> {
  /// Creates options with the given learning rate.
  AdadeltaOptions(double lr = 1.0);
  TORCH_ARG(double, lr) = 1.0;
  TORCH_ARG(double, rho) = 0.9;
  TORCH_ARG(double, eps) = 1e-6;
  TORCH_ARG(double, weight_decay) = 0;

 public:
  /// Overrides of LibTorch's option interface, for save(), load() and learning-rate schedules.
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
  double get_lr() const override;
  void set_lr(const double lr) override;
};

/// State of a parameter: number of steps, and running averages of squared gradients and squared updates.
struct AdadeltaParamState : public torch::optim::OptimizerCloneableParamState<AdadeltaParamState> {
  /// Updates of the parameter so far.
  TORCH_ARG(int64_t, step) = 0;
  /// Running averages, each with the shape of the parameter.
  TORCH_ARG(torch::Tensor, square_avg);
  TORCH_ARG(torch::Tensor, acc_delta);

 public:
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
};

/// Adadelta (Zeiler, ADADELTA: An Adaptive Learning Rate Method, 2012, algorithm 1) with a learning rate and
/// weight decay as in PyTorch. Throws c10::Error for options out of range and for sparse gradients.
class Adadelta : public torch::optim::Optimizer {
 public:
  /// Parameter groups inherit the options they do not set from `defaults`.
  explicit Adadelta(std::vector<torch::optim::OptimizerParamGroup> param_groups,
                    AdadeltaOptions defaults = {});
  explicit Adadelta(std::vector<torch::Tensor> params, AdadeltaOptions defaults = {})
      : Adadelta({torch::optim::OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}

  /// Updates all parameters that have a gradient. Returns the result of `closure`, if given.
  /// As in LibTorch, `closure` recomputes the loss before the step.
  torch::Tensor step(LossClosure closure = nullptr) override;
  /// Serialize options and state in LibTorch's archive format.
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;
};

}  // namespace det::optim

namespace det {

/// Scales all gradients by max_norm / (norm + 1e-6) when that is below 1, and returns the norm before scaling
/// (Pascanu et al., On the Difficulty of Training Recurrent Neural Networks, ICML 2013, algorithm 1;
/// torch.nn.utils.clip_grad_norm_). The norm is that of all gradients as one vector; `norm_type` may be
/// infinity. Parameters without a gradient are ignored. The result does not depend on the number of threads.
/// On CUDA it waits for the gradients.
double clip_grad_norm(const std::vector<torch::Tensor>& parameters, double max_norm, double norm_type = 2);

/// Clamps every element of every gradient to [-clip_value, clip_value], as torch.nn.utils.clip_grad_value_.
void clip_grad_value(const std::vector<torch::Tensor>& parameters, double clip_value);

}  // namespace det
