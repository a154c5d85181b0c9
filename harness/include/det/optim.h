// Owns what the C++ frontend lacks beside the optimizers it has: Adadelta, and clipping gradients in one
// pass.
#pragma once

#include <torch/arg.h>
#include <torch/optim/optimizer.h>
#include <torch/types.h>

#include <utility>
#include <vector>

namespace det::optim {

/// As torch.optim.Adadelta.
struct AdadeltaOptions : public torch::optim::OptimizerCloneableOptions<AdadeltaOptions> {
  AdadeltaOptions(double lr = 1.0);
  TORCH_ARG(double, lr) = 1.0;
  TORCH_ARG(double, rho) = 0.9;
  TORCH_ARG(double, eps) = 1e-6;
  TORCH_ARG(double, weight_decay) = 0;

 public:
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
  double get_lr() const override;
  void set_lr(const double lr) override;
};

struct AdadeltaParamState : public torch::optim::OptimizerCloneableParamState<AdadeltaParamState> {
  TORCH_ARG(int64_t, step) = 0;
  TORCH_ARG(torch::Tensor, square_avg);
  TORCH_ARG(torch::Tensor, acc_delta);

 public:
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
};

/// Zeiler, ADADELTA: An Adaptive Learning Rate Method, 2012, algorithm 1, with a learning rate and weight
/// decay as in PyTorch. Throws c10::Error for options out of range and for sparse gradients.
class Adadelta : public torch::optim::Optimizer {
 public:
  explicit Adadelta(std::vector<torch::optim::OptimizerParamGroup> param_groups,
                    AdadeltaOptions defaults = {});
  explicit Adadelta(std::vector<torch::Tensor> params, AdadeltaOptions defaults = {})
      : Adadelta({torch::optim::OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}

  torch::Tensor step(LossClosure closure = nullptr) override;
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;
};

}  // namespace det::optim

namespace det {

/// torch.nn.utils.clip_grad_norm_: multiplies all gradients by max_norm / (norm + 1e-6) when that is < 1, and
/// returns the norm they had, taken over all of them as one vector. `norm_type` may be infinity. Parameters
/// without a gradient do not count. The result does not depend on the number of threads.
double clip_grad_norm(const std::vector<torch::Tensor>& parameters, double max_norm, double norm_type = 2);

/// torch.nn.utils.clip_grad_value_: every element of every gradient into [-clip_value, clip_value].
void clip_grad_value(const std::vector<torch::Tensor>& parameters, double clip_value);

}  // namespace det
