// Additions to LibTorch's optimizers: those that only Python's torch.optim has, and gradient clipping in a
// single pass over memory.
#pragma once

#include <torch/arg.h>
#include <torch/optim/optimizer.h>
#include <torch/types.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace det::optim {

/// Base of the options below: the virtual members of LibTorch's interface, for save(), load() and schedules.
template <typename Derived>
struct NamedOptions : public torch::optim::OptimizerCloneableOptions<Derived> {
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
  double get_lr() const override { return static_cast<const Derived*>(this)->lr(); }
  void set_lr(const double lr) override { static_cast<Derived*>(this)->lr(lr); }
};

/// Base of a parameter's state below. Every state begins with the number of updates of the parameter.
template <typename Derived>
struct NamedState : public torch::optim::OptimizerCloneableParamState<Derived> {
  TORCH_ARG(int64_t, step) = 0;

 public:
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
};

/// An optimizer that updates each parameter by itself, defined by its options and state. Throws c10::Error
/// for options out of range, and for sparse gradients (SparseAdam: for dense ones).
template <typename Options, typename State>
class ParameterOptimizer : public torch::optim::Optimizer {
 public:
  /// Parameter groups inherit the options they do not set from `defaults`.
  explicit ParameterOptimizer(std::vector<torch::optim::OptimizerParamGroup> param_groups,
                              Options defaults = {});
  explicit ParameterOptimizer(std::vector<torch::Tensor> params, Options defaults = {})
      : ParameterOptimizer({torch::optim::OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}

  /// Updates all parameters that have a gradient. Returns the result of `closure`, if given.
  /// As in LibTorch, `closure` recomputes the loss before the step.
  torch::Tensor step(LossClosure closure = nullptr) override;
  /// Serialize options and state in LibTorch's archive format.
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;
};

// Options and states have the names and defaults of torch.optim. Tensors of a state have the shape of the
// parameter unless stated otherwise. `weight_decay` is an L2 penalty, except in Adafactor and Muon.
using Pair = std::tuple<double, double>;

/// Zeiler, ADADELTA: An Adaptive Learning Rate Method, 2012, algorithm 1.
struct AdadeltaOptions : public NamedOptions<AdadeltaOptions> {
  AdadeltaOptions(double lr = 1.0) : lr_(lr) {}
  TORCH_ARG(double, lr) = 1.0;
  TORCH_ARG(double, rho) = 0.9;
  TORCH_ARG(double, eps) = 1e-6;
  TORCH_ARG(double, weight_decay) = 0;
};
struct AdadeltaParamState : public NamedState<AdadeltaParamState> {
  TORCH_ARG(torch::Tensor, square_avg);
  TORCH_ARG(torch::Tensor, acc_delta);
};
using Adadelta = ParameterOptimizer<AdadeltaOptions, AdadeltaParamState>;

/// Kingma and Ba, Adam: A Method for Stochastic Optimization, ICLR 2015, algorithm 2.
struct AdamaxOptions : public NamedOptions<AdamaxOptions> {
  AdamaxOptions(double lr = 2e-3) : lr_(lr) {}
  TORCH_ARG(double, lr) = 2e-3;
  TORCH_ARG(Pair, betas) = {0.9, 0.999};
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 0;
};
struct AdamaxParamState : public NamedState<AdamaxParamState> {
  TORCH_ARG(torch::Tensor, exp_avg);
  TORCH_ARG(torch::Tensor, exp_inf);
};
using Adamax = ParameterOptimizer<AdamaxOptions, AdamaxParamState>;

/// Dozat, Incorporating Nesterov Momentum into Adam, ICLR workshop 2016, algorithm 8.
struct NAdamOptions : public NamedOptions<NAdamOptions> {
  NAdamOptions(double lr = 2e-3) : lr_(lr) {}
  TORCH_ARG(double, lr) = 2e-3;
  TORCH_ARG(Pair, betas) = {0.9, 0.999};
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(double, momentum_decay) = 4e-3;
};
struct NAdamParamState : public NamedState<NAdamParamState> {
  TORCH_ARG(double, mu_product) = 1;
  TORCH_ARG(torch::Tensor, exp_avg);
  TORCH_ARG(torch::Tensor, exp_avg_sq);
};
using NAdam = ParameterOptimizer<NAdamOptions, NAdamParamState>;

/// Liu et al., On the Variance of the Adaptive Learning Rate and Beyond, ICLR 2020, algorithm 2.
struct RAdamOptions : public NamedOptions<RAdamOptions> {
  RAdamOptions(double lr = 1e-3) : lr_(lr) {}
  TORCH_ARG(double, lr) = 1e-3;
  TORCH_ARG(Pair, betas) = {0.9, 0.999};
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 0;
};
struct RAdamParamState : public NamedState<RAdamParamState> {
  TORCH_ARG(torch::Tensor, exp_avg);
  TORCH_ARG(torch::Tensor, exp_avg_sq);
};
using RAdam = ParameterOptimizer<RAdamOptions, RAdamParamState>;

/// Polyak and Juditsky, Acceleration of Stochastic Approximation by Averaging, 1992. The average of the
/// parameter is `ax` of its state.
struct ASGDOptions : public NamedOptions<ASGDOptions> {
  ASGDOptions(double lr = 1e-2) : lr_(lr) {}
  TORCH_ARG(double, lr) = 1e-2;
  TORCH_ARG(double, lambd) = 1e-4;
  TORCH_ARG(double, alpha) = 0.75;
  TORCH_ARG(double, t0) = 1e6;
  TORCH_ARG(double, weight_decay) = 0;
};
struct ASGDParamState : public NamedState<ASGDParamState> {
  TORCH_ARG(double, eta) = 0;
  TORCH_ARG(double, mu) = 1;
  TORCH_ARG(torch::Tensor, ax);
};
using ASGD = ParameterOptimizer<ASGDOptions, ASGDParamState>;

/// Riedmiller and Braun, A Direct Adaptive Method for Faster Backpropagation Learning, 1993. For full-batch
/// gradients.
struct RpropOptions : public NamedOptions<RpropOptions> {
  RpropOptions(double lr = 1e-2) : lr_(lr) {}
  TORCH_ARG(double, lr) = 1e-2;
  TORCH_ARG(Pair, etas) = {0.5, 1.2};
  TORCH_ARG(Pair, step_sizes) = {1e-6, 50};
};
struct RpropParamState : public NamedState<RpropParamState> {
  TORCH_ARG(torch::Tensor, prev);
  TORCH_ARG(torch::Tensor, step_size);
};
using Rprop = ParameterOptimizer<RpropOptions, RpropParamState>;

/// Adam that updates only the rows with a gradient, for torch::nn::Embedding with sparse(true). One process
/// only: sparse gradients are not averaged over processes.
struct SparseAdamOptions : public NamedOptions<SparseAdamOptions> {
  SparseAdamOptions(double lr = 1e-3) : lr_(lr) {}
  TORCH_ARG(double, lr) = 1e-3;
  TORCH_ARG(Pair, betas) = {0.9, 0.999};
  TORCH_ARG(double, eps) = 1e-8;
};
struct SparseAdamParamState : public NamedState<SparseAdamParamState> {
  TORCH_ARG(torch::Tensor, exp_avg);
  TORCH_ARG(torch::Tensor, exp_avg_sq);
};
using SparseAdam = ParameterOptimizer<SparseAdamOptions, SparseAdamParamState>;

/// Shazeer and Stern, Adafactor: Adaptive Learning Rates with Sublinear Memory Cost, ICML 2018, algorithms 4
/// and 5, with the relative step of section 8 and no momentum. Tensors of two and more dimensions keep the
/// row and column means of the squared gradient (`row_var` [.., n, 1], `col_var` [.., 1, m]), others
/// `variance`. `eps` is {regularization, least scale of a parameter}; `weight_decay` is decoupled.
struct AdafactorOptions : public NamedOptions<AdafactorOptions> {
  AdafactorOptions(double lr = 1e-2) : lr_(lr) {}
  TORCH_ARG(double, lr) = 1e-2;
  TORCH_ARG(double, beta2_decay) = -0.8;
  TORCH_ARG(Pair, eps) = {1.1920928955078125e-7, 1e-3};
  TORCH_ARG(double, d) = 1.0;
  TORCH_ARG(double, weight_decay) = 0;
};
struct AdafactorParamState : public NamedState<AdafactorParamState> {
  TORCH_ARG(torch::Tensor, row_var);
  TORCH_ARG(torch::Tensor, col_var);
  TORCH_ARG(torch::Tensor, variance);
};
using Adafactor = ParameterOptimizer<AdafactorOptions, AdafactorParamState>;

/// Jordan et al., Muon: An Optimizer for Hidden Layers in Neural Networks, 2024; Liu et al., Muon is Scalable
/// for LLM Training, 2025, section 2. The momentum of a matrix is orthogonalized by `ns_steps` Newton-Schulz
/// steps in the type of the parameter. For parameters with two dimensions; use AdamW for the others.
/// `weight_decay` is decoupled. `adjust_lr_fn` scales steps by the shape: "original" is Jordan's rule,
/// "match_rms_adamw" suits learning rates of AdamW (Liu et al., equation 4).
struct MuonOptions : public NamedOptions<MuonOptions> {
  MuonOptions(double lr = 1e-3) : lr_(lr) {}
  TORCH_ARG(double, lr) = 1e-3;
  TORCH_ARG(double, weight_decay) = 0.1;
  TORCH_ARG(double, momentum) = 0.95;
  TORCH_ARG(bool, nesterov) = true;
  TORCH_ARG(std::vector<double>, ns_coefficients) = {3.4445, -4.775, 2.0315};
  TORCH_ARG(double, eps) = 1e-7;
  TORCH_ARG(int64_t, ns_steps) = 5;
  TORCH_ARG(std::string, adjust_lr_fn) = "original";
};
struct MuonParamState : public NamedState<MuonParamState> {
  TORCH_ARG(torch::Tensor, momentum_buffer);
};
using Muon = ParameterOptimizer<MuonOptions, MuonParamState>;

extern template class ParameterOptimizer<AdadeltaOptions, AdadeltaParamState>;
extern template class ParameterOptimizer<AdamaxOptions, AdamaxParamState>;
extern template class ParameterOptimizer<NAdamOptions, NAdamParamState>;
extern template class ParameterOptimizer<RAdamOptions, RAdamParamState>;
extern template class ParameterOptimizer<ASGDOptions, ASGDParamState>;
extern template class ParameterOptimizer<RpropOptions, RpropParamState>;
extern template class ParameterOptimizer<SparseAdamOptions, SparseAdamParamState>;
extern template class ParameterOptimizer<AdafactorOptions, AdafactorParamState>;
extern template class ParameterOptimizer<MuonOptions, MuonParamState>;

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
