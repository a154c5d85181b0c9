// The optimizers of det/optim.h, written with LibTorch operators. fused_step.h has a single-pass version of
// Adadelta for the CPU.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/serialize.h>
#include <torch/serialize/archive.h>

#include <cmath>

#include "harness/src/base/torch_compat.h"
#include "harness/src/optim/optimizer_fields.h"

namespace det::optim {
namespace {

using torch::Tensor;
using torch::serialize::InputArchive;
using torch::serialize::OutputArchive;

/// Writes each field to an archive; undefined tensors are omitted.
struct ArchiveWriter {
  OutputArchive& archive;
  template <typename T>
  void operator()(const char* name, const T& value) const {
    archive.write(name, torch::IValue(value));
  }
  void operator()(const char* name, const Tensor& value) const {
    if (value.defined()) archive.write(name, torch::IValue(value));
  }
  void operator()(const char* name, const AnyShape& value) const { (*this)(name, value.tensor); }
};
struct ArchiveReader {
  InputArchive& archive;
  template <typename T>
  void operator()(const char* name, T& value) const {
    torch::IValue read;
    archive.read(name, read);
    value = read.to<T>();
  }
  void operator()(const char* name, Tensor& value) const {
    if (torch::IValue read; archive.try_read(name, read)) value = read.toTensor();
  }
  void operator()(const char* name, const AnyShape& value) const { (*this)(name, value.tensor); }
};

/// Throws c10::Error "<name> is <value>, <range>" unless `fits`.
void check_option(bool fits, const char* name, double value, const char* range) {
  TORCH_CHECK(fits, name, " is ", value, ", ", range);
}
void not_negative(const char* name, double value) {
  check_option(value >= 0, name, value, "it must not be below 0");
}
void below_one(const char* name, const Pair& pair) {
  const auto [first, second] = pair;
  check_option(first >= 0 && first < 1, name, first, "not in [0, 1)");
  check_option(second >= 0 && second < 1, name, second, "not in [0, 1)");
}
template <typename Adam>
void check_adam(const Adam& o) {
  not_negative("lr", o.lr()), not_negative("eps", o.eps()), below_one("betas", o.betas());
}

void check(const AdadeltaOptions& o) {
  not_negative("lr", o.lr()), not_negative("eps", o.eps()), not_negative("weight_decay", o.weight_decay());
  check_option(o.rho() >= 0 && o.rho() <= 1, "rho", o.rho(), "not in [0, 1]");
}
void check(const AdamaxOptions& o) { check_adam(o), not_negative("weight_decay", o.weight_decay()); }
void check(const NAdamOptions& o) {
  check_adam(o), not_negative("weight_decay", o.weight_decay());
  not_negative("momentum_decay", o.momentum_decay());
}
void check(const RAdamOptions& o) { check_adam(o), not_negative("weight_decay", o.weight_decay()); }
void check(const ASGDOptions& o) {
  not_negative("lr", o.lr()), not_negative("weight_decay", o.weight_decay());
}
void check(const RpropOptions& o) {
  not_negative("lr", o.lr());
  const auto [shrink, grow] = o.etas();
  check_option(shrink > 0 && shrink < 1, "etas", shrink, "the first must be in (0, 1)");
  check_option(grow > 1, "etas", grow, "the second must be above 1");
}
void check(const SparseAdamOptions& o) {
  check_adam(o);
  check_option(o.lr() > 0 && o.eps() > 0, "lr or eps", 0, "it must be above 0");
}
void check(const AdafactorOptions& o) {
  not_negative("lr", o.lr()), not_negative("weight_decay", o.weight_decay());
  check_option(o.beta2_decay() <= 0, "beta2_decay", o.beta2_decay(), "it must not be above 0");
  not_negative("eps", std::get<0>(o.eps())), not_negative("eps", std::get<1>(o.eps()));
  check_option(o.d() >= 1, "d", o.d(), "it must be at least 1");
}
void check(const MuonOptions& o) {
  not_negative("lr", o.lr()), not_negative("weight_decay", o.weight_decay());
  not_negative("momentum", o.momentum()), not_negative("eps", o.eps());
  check_option(o.ns_coefficients().size() == 3, "the number of ns_coefficients",
               static_cast<double>(o.ns_coefficients().size()), "it must be 3");
  check_option(o.ns_steps() >= 1 && o.ns_steps() < 100, "ns_steps", static_cast<double>(o.ns_steps()),
               "it must be in [1, 100)");
  TORCH_CHECK(o.adjust_lr_fn() == "original" || o.adjust_lr_fn() == "match_rms_adamw", "adjust_lr_fn is \"",
              o.adjust_lr_fn(), "\", neither \"original\" nor \"match_rms_adamw\"");
}

Tensor zeros_of(const Tensor& parameter) {
  return at::zeros_like(parameter, parameter.options().requires_grad(false), at::MemoryFormat::Preserve);
}

// start() creates the state before a parameter's first step; update() performs a step. state.step() counts
// it.
void start(AdadeltaParamState& s, const Tensor& p, const AdadeltaOptions& /*o*/) {
  s.square_avg(zeros_of(p)), s.acc_delta(zeros_of(p));
}
void update(Tensor& p, Tensor g, const AdadeltaOptions& o, AdadeltaParamState& s) {
  if (o.weight_decay() != 0) g = g.add(p, o.weight_decay());
  s.square_avg().mul_(o.rho()).addcmul_(g, g, 1 - o.rho());
  const Tensor spread = s.square_avg().add(o.eps()).sqrt_();
  const Tensor change = s.acc_delta().add(o.eps()).sqrt_().div_(spread).mul_(g);
  s.acc_delta().mul_(o.rho()).addcmul_(change, change, 1 - o.rho());
  p.add_(change, -o.lr());
}

void start(AdamaxParamState& s, const Tensor& p, const AdamaxOptions& /*o*/) {
  s.exp_avg(zeros_of(p)), s.exp_inf(zeros_of(p));
}
void update(Tensor& p, Tensor g, const AdamaxOptions& o, AdamaxParamState& s) {
  const auto [beta1, beta2] = o.betas();
  if (o.weight_decay() != 0) g = g.add(p, o.weight_decay());
  s.exp_avg().mul_(beta1).add_(g, 1 - beta1);
  s.exp_inf(at::maximum(s.exp_inf().mul_(beta2), g.abs().add_(o.eps())));
  const double correction = 1 - std::pow(beta1, static_cast<double>(s.step()));
  p.addcdiv_(s.exp_avg(), s.exp_inf(), -o.lr() / correction);
}

/// The two moving averages of Adam, updated with a gradient.
template <typename State>
void update_averages(State& s, const Tensor& g, double beta1, double beta2) {
  s.exp_avg().mul_(beta1).add_(g, 1 - beta1);
  s.exp_avg_sq().mul_(beta2).addcmul_(g, g, 1 - beta2);
}

void start(NAdamParamState& s, const Tensor& p, const NAdamOptions& /*o*/) {
  s.exp_avg(zeros_of(p)), s.exp_avg_sq(zeros_of(p));
}
void update(Tensor& p, Tensor g, const NAdamOptions& o, NAdamParamState& s) {
  const auto [beta1, beta2] = o.betas();
  const auto step = static_cast<double>(s.step());
  const auto momentum = [&, beta1 = beta1](double at) {
    return beta1 * (1 - 0.5 * std::pow(0.96, at * o.momentum_decay()));
  };
  const double now = momentum(step), next = momentum(step + 1);
  if (o.weight_decay() != 0) g = g.add(p, o.weight_decay());
  s.mu_product(s.mu_product() * now);
  update_averages(s, g, beta1, beta2);
  const Tensor spread = s.exp_avg_sq().div(1 - std::pow(beta2, step)).sqrt_().add_(o.eps());
  p.addcdiv_(g, spread, -o.lr() * (1 - now) / (1 - s.mu_product()));
  p.addcdiv_(s.exp_avg(), spread, -o.lr() * next / (1 - s.mu_product() * next));
}

void start(RAdamParamState& s, const Tensor& p, const RAdamOptions& /*o*/) {
  s.exp_avg(zeros_of(p)), s.exp_avg_sq(zeros_of(p));
}
void update(Tensor& p, Tensor g, const RAdamOptions& o, RAdamParamState& s) {
  const auto [beta1, beta2] = o.betas();
  const auto step = static_cast<double>(s.step());
  if (o.weight_decay() != 0) g = g.add(p, o.weight_decay());
  update_averages(s, g, beta1, beta2);
  const double decayed = std::pow(beta2, step), correction = 1 - decayed;
  const Tensor average = s.exp_avg().div(1 - std::pow(beta1, step));
  const double longest = 2 / (1 - beta2) - 1, length = longest - 2 * step * decayed / correction;
  // The variance of the adaptive step is finite only for lengths above 4; PyTorch begins at 5.
  if (length <= 5) {
    p.add_(average, -o.lr());
    return;
  }
  const double rectification =
      std::sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length));
  p.addcdiv_(average, s.exp_avg_sq().sqrt().add_(o.eps()), -o.lr() * std::sqrt(correction) * rectification);
}

void start(ASGDParamState& s, const Tensor& p, const ASGDOptions& o) { s.eta(o.lr()), s.ax(zeros_of(p)); }
void update(Tensor& p, Tensor g, const ASGDOptions& o, ASGDParamState& s) {
  if (o.weight_decay() != 0) g = g.add(p, o.weight_decay());
  p.mul_(1 - o.lambd() * s.eta()).add_(g, -s.eta());
  if (s.mu() == 1) {
    s.ax().copy_(p);
  } else {
    s.ax().add_(p.sub(s.ax()).mul_(s.mu()));
  }
  const auto step = static_cast<double>(s.step());
  s.eta(o.lr() / std::pow(1 + o.lambd() * o.lr() * step, o.alpha()));
  s.mu(1 / std::max(1.0, step - o.t0()));
}

void start(RpropParamState& s, const Tensor& p, const RpropOptions& o) {
  s.prev(zeros_of(p)), s.step_size(at::full_like(s.prev(), o.lr()));
}
void update(Tensor& p, const Tensor& g, const RpropOptions& o, RpropParamState& s) {
  const auto [shrink, grow] = o.etas();
  const Tensor agreement = g.mul(s.prev());
  const Tensor reversed = agreement.lt(0);
  const Tensor factor =
      at::full_like(g, 1.0).masked_fill_(agreement.gt(0), grow).masked_fill_(reversed, shrink);
  s.step_size().mul_(factor).clamp_(std::get<0>(o.step_sizes()), std::get<1>(o.step_sizes()));
  // After a change of sign the next step starts from an unknown sign.
  s.prev(g.masked_fill(reversed, 0));
  p.addcmul_(s.prev().sign(), s.step_size(), -1);
}

void start(SparseAdamParamState& s, const Tensor& p, const SparseAdamOptions& /*o*/) {
  s.exp_avg(zeros_of(p)), s.exp_avg_sq(zeros_of(p));
}
void update(Tensor& p, const Tensor& gradient, const SparseAdamOptions& o, SparseAdamParamState& s) {
  const Tensor g = gradient.coalesce();
  const Tensor values = g.values();
  if (values.numel() == 0) return;
  const auto [beta1, beta2] = o.betas();
  const auto step = static_cast<double>(s.step());
  const auto sparse = [&](const Tensor& at_indices) {
    return at::sparse_coo_tensor(g.indices(), at_indices, g.sizes());
  };
  const Tensor average = s.exp_avg().sparse_mask(g).values(), square = s.exp_avg_sq().sparse_mask(g).values();
  const Tensor average_change = values.sub(average).mul_(1 - beta1);
  const Tensor square_change = values.pow(2).sub_(square).mul_(1 - beta2);
  s.exp_avg().add_(sparse(average_change));
  s.exp_avg_sq().add_(sparse(square_change));
  const double size = o.lr() * std::sqrt(1 - std::pow(beta2, step)) / (1 - std::pow(beta1, step));
  const Tensor spread = square_change.add(square).sqrt_().add_(o.eps());
  p.add_(sparse(average_change.add(average).div_(spread).mul_(-size)));
}

void start(AdafactorParamState& s, const Tensor& p, const AdafactorOptions& /*o*/) {
  if (p.dim() < 2) {
    s.variance(zeros_of(p));
    return;
  }
  std::vector<std::int64_t> rows = p.sizes().vec(), columns = rows;
  rows[rows.size() - 1] = 1, columns[columns.size() - 2] = 1;
  const auto options = p.options().requires_grad(false);
  s.row_var(at::zeros(rows, options)), s.col_var(at::zeros(columns, options));
}
void update(Tensor& p, const Tensor& g, const AdafactorOptions& o, AdafactorParamState& s) {
  const auto [regularization, least_scale] = o.eps();
  const auto step = static_cast<double>(s.step());
  const double share = std::pow(step, o.beta2_decay()), relative = std::min(o.lr(), 1 / std::sqrt(step));
  const auto rms = [](const Tensor& t) {
    return t.norm(2).item<double>() / std::sqrt(static_cast<double>(t.numel()));
  };
  const double rate = std::max(least_scale, rms(p)) * relative;
  if (o.weight_decay() != 0) p.mul_(1 - o.lr() * o.weight_decay());
  Tensor estimate;
  if (p.dim() < 2) {
    s.variance().lerp_(g * g, share);
    estimate = s.variance().clone();
  } else {
    const Tensor squares = g * g;
    s.row_var().lerp_(squares.mean(-1, /*keepdim=*/true), share);
    s.col_var().lerp_(squares.mean(-2, /*keepdim=*/true), share);
    estimate = s.row_var().matmul(s.col_var());
    estimate.div_(s.row_var().mean(-2, /*keepdim=*/true).clamp_(regularization));
  }
  const Tensor change = estimate.clamp_(regularization * regularization).rsqrt_().mul_(g);
  p.add_(change, -rate / std::max(1.0, rms(change) / o.d()));
}

void start(MuonParamState& s, const Tensor& p, const MuonOptions& /*o*/) {
  TORCH_CHECK(p.dim() == 2, "Muon: a parameter is ", compat::shape_text(p),
              "; it takes those with two dimensions, use AdamW for the others");
  s.momentum_buffer(zeros_of(p));
}
void update(Tensor& p, const Tensor& g, const MuonOptions& o, MuonParamState& s) {
  s.momentum_buffer().lerp_(g, 1 - o.momentum());
  Tensor x = o.nesterov() ? g.lerp(s.momentum_buffer(), o.momentum()) : s.momentum_buffer();
  // The Gram matrix is smallest for a wide matrix.
  const auto rows = static_cast<double>(p.size(0)), columns = static_cast<double>(p.size(1));
  if (rows > columns) x = x.t();
  x = x / x.norm().clamp(o.eps());
  const std::vector<double>& c = o.ns_coefficients();
  for (std::int64_t i = 0; i < o.ns_steps(); ++i) {
    const Tensor gram = x.matmul(x.t());
    x = at::addmm(x, at::addmm(gram, gram, gram, c[1], c[2]), x, c[0]);
  }
  if (rows > columns) x = x.t();
  const double scale = o.adjust_lr_fn() == "original" ? std::sqrt(std::max(1.0, rows / columns))
                                                      : 0.2 * std::sqrt(std::max(rows, columns));
  p.mul_(1 - o.lr() * o.weight_decay()).add_(x, -o.lr() * scale);
}

}  // namespace

template <typename Derived>
void NamedOptions<Derived>::serialize(OutputArchive& archive) const {
  Derived copy = static_cast<const Derived&>(*this);
  fields(copy, ArchiveWriter{archive});
}
template <typename Derived>
void NamedOptions<Derived>::serialize(InputArchive& archive) {
  fields(static_cast<Derived&>(*this), ArchiveReader{archive});
}
template <typename Derived>
void NamedState<Derived>::serialize(OutputArchive& archive) const {
  Derived copy = static_cast<const Derived&>(*this);
  fields(copy, ArchiveWriter{archive});
}
template <typename Derived>
void NamedState<Derived>::serialize(InputArchive& archive) {
  fields(static_cast<Derived&>(*this), ArchiveReader{archive});
}

template <typename Options, typename State>
ParameterOptimizer<Options, State>::ParameterOptimizer(
    std::vector<torch::optim::OptimizerParamGroup> param_groups, Options defaults)
    : Optimizer(std::move(param_groups), std::make_unique<Options>(defaults)) {
  for (const auto& group : param_groups_) check(static_cast<const Options&>(group.options()));
}

template <typename Options, typename State>
Tensor ParameterOptimizer<Options, State>::step(LossClosure closure) {
  Tensor loss;
  if (closure != nullptr) {
    const at::AutoGradMode with_gradients(true);
    loss = closure();
  }
  const at::NoGradGuard no_gradients;
  constexpr bool kSparse = std::is_same_v<Options, SparseAdamOptions>;
  for (auto& group : param_groups_) {
    const auto& options = static_cast<Options&>(group.options());
    for (Tensor& parameter : group.params()) {
      const Tensor gradient = parameter.grad();
      if (!gradient.defined()) continue;
      TORCH_CHECK(gradient.is_sparse() == kSparse, "the gradient of a parameter ",
                  compat::shape_text(parameter), " is ",
                  kSparse ? "dense; SparseAdam takes" : "sparse; only SparseAdam takes", " sparse gradients");
      auto& entry = state_[compat::state_key(*this, parameter)];
      // As in PyTorch, parameters without a gradient have no state.
      if (entry == nullptr) {
        auto fresh = std::make_unique<State>();
        start(*fresh, parameter, options);
        entry = std::move(fresh);
      }
      auto& state = static_cast<State&>(*entry);
      state.step(state.step() + 1);
      update(parameter, gradient, options, state);
    }
  }
  return loss;
}

template <typename Options, typename State>
void ParameterOptimizer<Options, State>::save(OutputArchive& archive) const {
  torch::optim::serialize<State, Options>(archive, *this);
}
template <typename Options, typename State>
void ParameterOptimizer<Options, State>::load(InputArchive& archive) {
  torch::optim::serialize<State, Options>(archive, *this);
}

template struct NamedOptions<AdadeltaOptions>;
template struct NamedState<AdadeltaParamState>;
template class ParameterOptimizer<AdadeltaOptions, AdadeltaParamState>;
template struct NamedOptions<AdamaxOptions>;
template struct NamedState<AdamaxParamState>;
template class ParameterOptimizer<AdamaxOptions, AdamaxParamState>;
template struct NamedOptions<NAdamOptions>;
template struct NamedState<NAdamParamState>;
template class ParameterOptimizer<NAdamOptions, NAdamParamState>;
template struct NamedOptions<RAdamOptions>;
template struct NamedState<RAdamParamState>;
template class ParameterOptimizer<RAdamOptions, RAdamParamState>;
template struct NamedOptions<ASGDOptions>;
template struct NamedState<ASGDParamState>;
template class ParameterOptimizer<ASGDOptions, ASGDParamState>;
template struct NamedOptions<RpropOptions>;
template struct NamedState<RpropParamState>;
template class ParameterOptimizer<RpropOptions, RpropParamState>;
template struct NamedOptions<SparseAdamOptions>;
template struct NamedState<SparseAdamParamState>;
template class ParameterOptimizer<SparseAdamOptions, SparseAdamParamState>;
template struct NamedOptions<AdafactorOptions>;
template struct NamedState<AdafactorParamState>;
template class ParameterOptimizer<AdafactorOptions, AdafactorParamState>;
template struct NamedOptions<MuonOptions>;
template struct NamedState<MuonParamState>;
template class ParameterOptimizer<MuonOptions, MuonParamState>;

}  // namespace det::optim
