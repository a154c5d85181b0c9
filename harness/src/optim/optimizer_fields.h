// The fields of the options and states of all optimizers with a known layout, under PyTorch's names. One list
// serves checkpoints and LibTorch's archives, saving and loading.
#pragma once

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <typeinfo>

#include "det/optim.h"

namespace det {

/// A tensor of a state that need not have the shape of its parameter.
struct AnyShape {
  torch::Tensor& tensor;
};

// fields() calls f(name, field) for each field of an options or state struct.
template <typename F>
void fields(torch::optim::SGDOptions& o, F&& f) {
  f("lr", o.lr()), f("momentum", o.momentum()), f("dampening", o.dampening());
  f("weight_decay", o.weight_decay()), f("nesterov", o.nesterov());
}
template <typename F>
void fields(torch::optim::SGDParamState& s, F&& f) {
  f("momentum_buffer", s.momentum_buffer());
}
template <typename Adam, typename F>
void adam_options(Adam& o, F&& f) {
  f("lr", o.lr()), f("betas", o.betas()), f("eps", o.eps());
  f("weight_decay", o.weight_decay()), f("amsgrad", o.amsgrad());
}
template <typename Adam, typename F>
void adam_state(Adam& s, F&& f) {
  f("step", s.step()), f("exp_avg", s.exp_avg()), f("exp_avg_sq", s.exp_avg_sq());
  f("max_exp_avg_sq", s.max_exp_avg_sq());
}
template <typename F>
void fields(torch::optim::AdamOptions& o, F&& f) {
  adam_options(o, f);
}
template <typename F>
void fields(torch::optim::AdamParamState& s, F&& f) {
  adam_state(s, f);
}
template <typename F>
void fields(torch::optim::AdamWOptions& o, F&& f) {
  adam_options(o, f);
}
template <typename F>
void fields(torch::optim::AdamWParamState& s, F&& f) {
  adam_state(s, f);
}
template <typename F>
void fields(torch::optim::RMSpropOptions& o, F&& f) {
  f("lr", o.lr()), f("alpha", o.alpha()), f("eps", o.eps()), f("weight_decay", o.weight_decay());
  f("momentum", o.momentum()), f("centered", o.centered());
}
template <typename F>
void fields(torch::optim::RMSpropParamState& s, F&& f) {
  f("step", s.step()), f("square_avg", s.square_avg());
  f("momentum_buffer", s.momentum_buffer()), f("grad_avg", s.grad_avg());
}
template <typename F>
void fields(torch::optim::AdagradOptions& o, F&& f) {
  f("lr", o.lr()), f("lr_decay", o.lr_decay()), f("weight_decay", o.weight_decay());
  f("initial_accumulator_value", o.initial_accumulator_value()), f("eps", o.eps());
}
template <typename F>
void fields(torch::optim::AdagradParamState& s, F&& f) {
  f("step", s.step()), f("sum", s.sum());
}
template <typename F>
void fields(torch::optim::LBFGSOptions& o, F&& f) {
  f("lr", o.lr()), f("max_iter", o.max_iter()), f("max_eval", o.max_eval());
  f("tolerance_grad", o.tolerance_grad()), f("tolerance_change", o.tolerance_change());
  f("history_size", o.history_size()), f("line_search_fn", o.line_search_fn());
}
/// `al` is working memory of one step.
template <typename F>
void fields(torch::optim::LBFGSParamState& s, F&& f) {
  f("func_evals", s.func_evals()), f("n_iter", s.n_iter()), f("t", s.t()), f("prev_loss", s.prev_loss());
  f("d", AnyShape{s.d()}), f("H_diag", AnyShape{s.H_diag()});
  f("prev_flat_grad", AnyShape{s.prev_flat_grad()});
  f("old_dirs", s.old_dirs()), f("old_stps", s.old_stps()), f("ro", s.ro());
}

namespace optim {

template <typename F>
void fields(AdadeltaOptions& o, F&& f) {
  f("lr", o.lr()), f("rho", o.rho()), f("eps", o.eps()), f("weight_decay", o.weight_decay());
}
template <typename F>
void fields(AdadeltaParamState& s, F&& f) {
  f("step", s.step()), f("square_avg", s.square_avg()), f("acc_delta", s.acc_delta());
}
template <typename F>
void fields(AdamaxOptions& o, F&& f) {
  f("lr", o.lr()), f("betas", o.betas()), f("eps", o.eps()), f("weight_decay", o.weight_decay());
}
template <typename F>
void fields(AdamaxParamState& s, F&& f) {
  f("step", s.step()), f("exp_avg", s.exp_avg()), f("exp_inf", s.exp_inf());
}
template <typename F>
void fields(NAdamOptions& o, F&& f) {
  f("lr", o.lr()), f("betas", o.betas()), f("eps", o.eps()), f("weight_decay", o.weight_decay());
  f("momentum_decay", o.momentum_decay());
}
template <typename F>
void fields(NAdamParamState& s, F&& f) {
  f("step", s.step()), f("mu_product", s.mu_product());
  f("exp_avg", s.exp_avg()), f("exp_avg_sq", s.exp_avg_sq());
}
template <typename F>
void fields(RAdamOptions& o, F&& f) {
  f("lr", o.lr()), f("betas", o.betas()), f("eps", o.eps()), f("weight_decay", o.weight_decay());
}
template <typename F>
void fields(RAdamParamState& s, F&& f) {
  f("step", s.step()), f("exp_avg", s.exp_avg()), f("exp_avg_sq", s.exp_avg_sq());
}
template <typename F>
void fields(ASGDOptions& o, F&& f) {
  f("lr", o.lr()), f("lambd", o.lambd()), f("alpha", o.alpha()), f("t0", o.t0());
  f("weight_decay", o.weight_decay());
}
template <typename F>
void fields(ASGDParamState& s, F&& f) {
  f("step", s.step()), f("eta", s.eta()), f("mu", s.mu()), f("ax", s.ax());
}
template <typename F>
void fields(RpropOptions& o, F&& f) {
  f("lr", o.lr()), f("etas", o.etas()), f("step_sizes", o.step_sizes());
}
template <typename F>
void fields(RpropParamState& s, F&& f) {
  f("step", s.step()), f("prev", s.prev()), f("step_size", s.step_size());
}
template <typename F>
void fields(SparseAdamOptions& o, F&& f) {
  f("lr", o.lr()), f("betas", o.betas()), f("eps", o.eps());
}
template <typename F>
void fields(SparseAdamParamState& s, F&& f) {
  f("step", s.step()), f("exp_avg", s.exp_avg()), f("exp_avg_sq", s.exp_avg_sq());
}
template <typename F>
void fields(AdafactorOptions& o, F&& f) {
  f("lr", o.lr()), f("beta2_decay", o.beta2_decay()), f("eps", o.eps()), f("d", o.d());
  f("weight_decay", o.weight_decay());
}
template <typename F>
void fields(AdafactorParamState& s, F&& f) {
  f("step", s.step()), f("row_var", AnyShape{s.row_var()}), f("col_var", AnyShape{s.col_var()});
  f("variance", s.variance());
}
template <typename F>
void fields(MuonOptions& o, F&& f) {
  f("lr", o.lr()), f("weight_decay", o.weight_decay()), f("momentum", o.momentum());
  f("nesterov", o.nesterov()), f("ns_coefficients", o.ns_coefficients()), f("eps", o.eps());
  f("ns_steps", o.ns_steps()), f("adjust_lr_fn", o.adjust_lr_fn());
}
template <typename F>
void fields(MuonParamState& s, F&& f) {
  f("step", s.step()), f("momentum_buffer", s.momentum_buffer());
}

}  // namespace optim

/// Calls `use.template operator()<Options, ParamState>()` for the optimizer's kind. Returns false for a class
/// that is none of those listed, also for one derived from them.
template <typename Use>
bool with_kind(torch::optim::Optimizer& optimizer, Use&& use) {
  const auto is = [&]<typename Kind, typename Options, typename State>() {
    if (typeid(optimizer) != typeid(Kind)) return false;
    use.template operator()<Options, State>();
    return true;
  };
  namespace lib = torch::optim;
  return is.template operator()<lib::SGD, lib::SGDOptions, lib::SGDParamState>() ||
         is.template operator()<lib::Adam, lib::AdamOptions, lib::AdamParamState>() ||
         is.template operator()<lib::AdamW, lib::AdamWOptions, lib::AdamWParamState>() ||
         is.template operator()<lib::RMSprop, lib::RMSpropOptions, lib::RMSpropParamState>() ||
         is.template operator()<lib::Adagrad, lib::AdagradOptions, lib::AdagradParamState>() ||
         is.template operator()<lib::LBFGS, lib::LBFGSOptions, lib::LBFGSParamState>() ||
         is.template operator()<optim::Adadelta, optim::AdadeltaOptions, optim::AdadeltaParamState>() ||
         is.template operator()<optim::Adamax, optim::AdamaxOptions, optim::AdamaxParamState>() ||
         is.template operator()<optim::NAdam, optim::NAdamOptions, optim::NAdamParamState>() ||
         is.template operator()<optim::RAdam, optim::RAdamOptions, optim::RAdamParamState>() ||
         is.template operator()<optim::ASGD, optim::ASGDOptions, optim::ASGDParamState>() ||
         is.template operator()<optim::Rprop, optim::RpropOptions, optim::RpropParamState>() ||
         is.template operator()<optim::SparseAdam, optim::SparseAdamOptions, optim::SparseAdamParamState>() ||
         is.template operator()<optim::Adafactor, optim::AdafactorOptions, optim::AdafactorParamState>() ||
         is.template operator()<optim::Muon, optim::MuonOptions, optim::MuonParamState>();
}

}  // namespace det
