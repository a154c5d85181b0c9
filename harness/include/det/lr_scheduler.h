// Learning-rate schedules of torch.optim.lr_scheduler, with PyTorch's names, formulas and defaults.
//
//   auto& schedule = context.wrap_lr_scheduler(det::StepLR(optimizer, {.step_size = 2, .gamma = 0.1}), …);
//
// Options have the names and defaults of PyTorch's keyword arguments. Constructors throw
// std::invalid_argument naming the option that is invalid. Schedules that multiply the current learning rate
// (PyTorch's "chainable" ones) continue from a learning rate that was changed by hand.
//
// In the formulas below, base_lr is the initial learning rate of a parameter group and t the number of steps,
// from 0.
#pragma once

#include <torch/optim/optimizer.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "det/distributed.h"

namespace det {

/// Base class: sets the learning rate of each parameter group of an optimizer.
///
/// As in PyTorch, the constructor performs the first step (last_epoch becomes 0), and each step() advances by
/// one. The unit of a step (batch, epoch) is chosen by context.wrap_lr_scheduler(). The optimizer must
/// outlive the schedule, and must not get further parameter groups. Not thread-safe.
///
/// All schedules of one optimizer share its initial learning rates (PyTorch's initial_lr), taken when the
/// first of the living schedules was constructed. Construct the schedules of an optimizer on one thread.
class LRScheduler {
 public:
  explicit LRScheduler(torch::optim::Optimizer& optimizer);
  LRScheduler(LRScheduler&&) = default;
  virtual ~LRScheduler() = default;
  /// Advances by one step and sets the learning rates. Throws std::logic_error when a parameter group was
  /// added to the optimizer after construction.
  virtual void step();
  /// Learning rate of each parameter group as set by the last step.
  const std::vector<double>& get_last_lr() const { return last_lr_; }
  /// The optimizer that this schedule controls.
  torch::optim::Optimizer& optimizer() { return *optimizer_; }
  /// State under PyTorch's names, consisting of numbers, strings, lists and maps. Integer keys (MultiStepLR's
  /// milestones) become decimal strings. The learning rates themselves belong to the optimizer's state.
  virtual Json state_dict() const;
  /// Restores state_dict(), of PyTorch as well. Throws std::invalid_argument naming the entry that is missing
  /// or of another type; the state is then unchanged.
  virtual void load_state_dict(const Json& state);

 protected:
  /// Learning rates of all groups after `last_epoch_` steps.
  virtual std::vector<double> get_lr() const = 0;
  /// Sets further options that follow the learning rate, such as momentum. Called by each step, after the
  /// learning rates.
  virtual void set_others() {}
  /// Restarts at last_epoch 0 from the initial learning rates. Called when SequentialLR switches to this
  /// schedule.
  virtual void restart();
  /// An entry of state_dict(): its name and the member that holds it. Lists of double have one element per
  /// parameter group.
  struct Field {
    const char* name;
    std::variant<double*, std::int64_t*, bool*, std::string*, std::vector<double>*,
                 std::vector<std::int64_t>*, std::map<std::int64_t, std::int64_t>*>
        value;
    bool required = true;  ///< a state without this entry is rejected
  };
  /// Entries of state_dict(). Derived classes add theirs to those of the base class.
  virtual std::vector<Field> fields();
  /// The base class's fields() and `more`.
  std::vector<Field> fields_and(std::initializer_list<Field> more);

  /// Sets the first learning rates. Called by constructors of derived classes once their members are set.
  void initial_step();
  /// Learning rates that the optimizer has now, and their assignment.
  std::vector<double> current_lr() const;
  void set_lr(const std::vector<double>& lr);
  /// The current learning rates, each multiplied by `factor`.
  std::vector<double> current_times(double factor) const;

  torch::optim::Optimizer* optimizer_;
  std::vector<double> base_lrs_, last_lr_;
  std::int64_t last_epoch_ = -1;
  std::int64_t step_count_ = 0;
  std::shared_ptr<std::vector<double>> initial_lrs_;  ///< shared by all schedules of the optimizer

 private:
  friend class SequentialLR;
  friend class ShardedSchedules;
};

/// One value for all parameter groups, or one per group: `.max_lr = 0.1`, `.max_lr = {0.1, 0.01}`.
class PerGroup {
 public:
  PerGroup(double value) : values_{value} {}
  PerGroup(std::initializer_list<double> values) : values_(values) {}
  PerGroup(std::vector<double> values) : values_(std::move(values)) {}
  /// Returns `groups` values. Throws std::invalid_argument naming `name` when there are several values, but
  /// not one per group.
  std::vector<double> expand(std::size_t groups, const char* name) const;

 private:
  std::vector<double> values_;
};

/// A factor as a function of the step, counted from 0.
using LRFunction = std::function<double(std::int64_t step)>;

/// Sets the learning rate to lr = base_lr * lr_lambda(t). The functions are not part of the state: a resumed
/// trial must construct the schedule with the same ones.
class LambdaLR : public LRScheduler {
 public:
  LambdaLR(torch::optim::Optimizer& optimizer, const LRFunction& lr_lambda);
  /// One function per parameter group.
  LambdaLR(torch::optim::Optimizer& optimizer, std::vector<LRFunction> lr_lambdas);

 protected:
  std::vector<double> get_lr() const override;

 private:
  std::vector<LRFunction> lambdas_;
};

/// Multiplies the learning rate by lr_lambda(t) at every step from t = 1. The functions are not part of the
/// state.
class MultiplicativeLR : public LRScheduler {
 public:
  MultiplicativeLR(torch::optim::Optimizer& optimizer, const LRFunction& lr_lambda);
  /// One function per parameter group.
  MultiplicativeLR(torch::optim::Optimizer& optimizer, std::vector<LRFunction> lr_lambdas);

 protected:
  std::vector<double> get_lr() const override;
  void restart() override;

 private:
  std::vector<LRFunction> lambdas_;
};

struct StepLROptions {
  std::int64_t step_size = 0;  ///< steps, >= 1
  /// Factor of each decay.
  double gamma = 0.1;
};
/// Multiplies the learning rate by gamma every step_size steps: lr = base_lr * gamma^floor(t / step_size).
/// Throws std::invalid_argument for step_size < 1.
class StepLR : public LRScheduler {
 public:
  StepLR(torch::optim::Optimizer& optimizer, const StepLROptions& options);

 protected:
  std::vector<double> get_lr() const override;
  std::vector<Field> fields() override;

 private:
  StepLROptions options_;
};

struct MultiStepLROptions {
  std::vector<std::int64_t> milestones;  ///< steps; a duplicate decays twice
  /// Factor of each decay.
  double gamma = 0.1;
};
/// Multiplies the learning rate by gamma at each milestone: lr = base_lr * gamma^n after n milestones.
class MultiStepLR : public LRScheduler {
 public:
  MultiStepLR(torch::optim::Optimizer& optimizer, const MultiStepLROptions& options);

 protected:
  std::vector<double> get_lr() const override;
  std::vector<Field> fields() override;

 private:
  std::map<std::int64_t, std::int64_t> milestones_;  // step → number of occurrences
  double gamma_;
};

struct ConstantLROptions {
  double factor = 1.0 / 3;  ///< in (0, 1]
  /// Steps until the factor is removed.
  std::int64_t total_iters = 5;
};
/// Reduces the learning rate for the first steps: lr = base_lr * factor while t < total_iters, then base_lr.
/// Throws std::invalid_argument for a factor outside (0, 1].
class ConstantLR : public LRScheduler {
 public:
  explicit ConstantLR(torch::optim::Optimizer& optimizer, const ConstantLROptions& options = {});

 protected:
  std::vector<double> get_lr() const override;
  std::vector<Field> fields() override;

 private:
  ConstantLROptions options_;
};

struct LinearLROptions {
  double start_factor = 1.0 / 3;  ///< in (0, 1]
  double end_factor = 1;          ///< in [0, 1]
  std::int64_t total_iters = 5;   ///< >= 1
};
/// Scales the learning rate by a factor that changes linearly from start_factor to end_factor in total_iters
/// steps, and stays at end_factor: a gradual warm-up (Goyal et al., Accurate, Large Minibatch SGD, 2017,
/// section 2.2) or a linear decay. Throws std::invalid_argument for options out of range.
class LinearLR : public LRScheduler {
 public:
  explicit LinearLR(torch::optim::Optimizer& optimizer, const LinearLROptions& options = {});

 protected:
  std::vector<double> get_lr() const override;
  std::vector<Field> fields() override;

 private:
  LinearLROptions options_;
};

struct ExponentialLROptions {
  double gamma = 0;  ///< > 0
};
/// Multiplies the learning rate by gamma at every step: lr = base_lr * gamma^t. Throws std::invalid_argument
/// unless gamma > 0.
class ExponentialLR : public LRScheduler {
 public:
  ExponentialLR(torch::optim::Optimizer& optimizer, const ExponentialLROptions& options);

 protected:
  std::vector<double> get_lr() const override;
  std::vector<Field> fields() override;

 private:
  ExponentialLROptions options_;
};

struct PolynomialLROptions {
  std::int64_t total_iters = 5;  ///< >= 1
  /// Exponent of the decay.
  double power = 1;
};
/// Lets the learning rate fall to 0 in total_iters steps: lr = base_lr * (1 - t / total_iters)^power. Throws
/// std::invalid_argument for total_iters < 1.
class PolynomialLR : public LRScheduler {
 public:
  explicit PolynomialLR(torch::optim::Optimizer& optimizer, const PolynomialLROptions& options = {});

 protected:
  std::vector<double> get_lr() const override;
  std::vector<Field> fields() override;

 private:
  PolynomialLROptions options_;
};

struct CosineAnnealingLROptions {
  std::int64_t T_max = 0;  ///< steps of half a cosine wave, >= 1
  /// Minimum learning rate.
  double eta_min = 0;
};
/// Half a cosine wave from base_lr to eta_min in T_max steps, and back to base_lr in the next T_max steps:
/// lr = eta_min + (base_lr - eta_min) * (1 + cos(pi * t / T_max)) / 2 (Loshchilov and Hutter, SGDR, ICLR
/// 2017, equation 5, without restarts). Computed recursively from the current learning rate, as in PyTorch.
/// Throws std::invalid_argument for T_max < 1.
class CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(torch::optim::Optimizer& optimizer, const CosineAnnealingLROptions& options);

 protected:
  std::vector<double> get_lr() const override;
  std::vector<Field> fields() override;

 private:
  CosineAnnealingLROptions options_;
};

struct CosineAnnealingWarmRestartsOptions {
  std::int64_t T_0 = 0;     ///< steps until the first restart, >= 1
  std::int64_t T_mult = 1;  ///< factor of the period after each restart, >= 1
  /// Minimum learning rate.
  double eta_min = 0;
};
/// Cosine annealing with warm restarts: lr = eta_min + (base_lr - eta_min) * (1 + cos(pi * T_cur / T_i)) / 2,
/// T_cur steps after a restart and with T_i steps until the next one (Loshchilov and Hutter, SGDR, ICLR 2017,
/// equation 5). Throws std::invalid_argument for T_0 < 1 or T_mult < 1.
class CosineAnnealingWarmRestarts : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(torch::optim::Optimizer& optimizer,
                              const CosineAnnealingWarmRestartsOptions& options);
  void step() override;

 protected:
  std::vector<double> get_lr() const override;
  void restart() override;
  std::vector<Field> fields() override;

 private:
  CosineAnnealingWarmRestartsOptions options_;
  double T_cur_ = 0;  // steps since the last restart
  std::int64_t T_i_;  // steps between the last restart and the next
};

struct OneCycleLROptions {
  /// Peak learning rate.
  PerGroup max_lr = 0.0;
  /// Steps of the cycle: total_steps, or the product of epochs and steps_per_epoch. One of the two must be
  /// given.
  std::optional<std::int64_t> total_steps, epochs, steps_per_epoch;
  double pct_start = 0.3;               ///< fraction of the cycle in which the learning rate rises
  std::string anneal_strategy = "cos";  ///< or "linear"
  /// Cycle momentum (SGD, RMSprop) or beta1 (Adam, AdamW) inversely to the learning rate.
  bool cycle_momentum = true;
  /// Momentum at the peak learning rate, and at the start and end of the cycle.
  PerGroup base_momentum = 0.85, max_momentum = 0.95;
  double div_factor = 25;         ///< initial learning rate = max_lr / div_factor
  double final_div_factor = 1e4;  ///< final learning rate = initial learning rate / final_div_factor
  bool three_phase = false;       ///< fall to the initial rate as fast as it rose, then to the final one
};
/// One cycle policy: the learning rate rises to max_lr and then falls to almost zero, while the momentum
/// moves inversely (Smith and Topin, Super-Convergence, 2018). The constructor throws
/// std::invalid_argument for options out of range, and for cycle_momentum with an optimizer that has neither
/// momentum nor betas. step() throws std::logic_error after total_steps steps.
class OneCycleLR : public LRScheduler {
 public:
  OneCycleLR(torch::optim::Optimizer& optimizer, const OneCycleLROptions& options);
  Json state_dict() const override;
  void load_state_dict(const Json& state) override;

 protected:
  std::vector<double> get_lr() const override;
  void set_others() override;
  std::vector<Field> fields() override;

 private:
  /// A phase of the cycle. Learning rates are indices: 0 initial, 1 maximum, 2 minimum.
  struct Phase {
    double end_step;
    int start_lr, end_lr;
    bool start_at_max_momentum, end_at_max_momentum;
  };
  std::vector<Phase> phases() const;
  /// The phase of step `last_epoch_`, and the completed fraction of it in [0, 1].
  std::pair<Phase, double> position() const;
  /// Interpolates from `start` to `end` at fraction `part`, by the annealing strategy.
  double anneal(double start, double end, double part) const;

  std::int64_t total_steps_ = 0;
  std::vector<double> phase_ends_;
  std::string anneal_strategy_;
  bool cycle_momentum_, use_beta1_ = false;
  std::vector<double> max_lrs_, first_lrs_, min_lrs_, base_momentums_, max_momentums_;
};

struct CyclicLROptions {
  /// Lower and upper bound of the learning rate.
  PerGroup base_lr = 0.0, max_lr = 0.0;
  /// Steps of the rising half of a cycle.
  std::int64_t step_size_up = 2000;
  std::optional<std::int64_t> step_size_down;  ///< steps of the falling half; absent: step_size_up
  /// "triangular"; "triangular2" halves the amplitude after each cycle; "exp_range" scales it by gamma^t.
  std::string mode = "triangular";
  /// Base of "exp_range".
  double gamma = 1;
  LRFunction scale_fn;  ///< scale of the amplitude, in place of mode
  /// Argument of scale_fn: "cycle" (from 1) or "iterations" (from 0).
  std::string scale_mode = "cycle";
  /// Cycle momentum (SGD, RMSprop) or beta1 (Adam, AdamW) inversely to the learning rate.
  bool cycle_momentum = true;
  /// Lower and upper bound of the momentum.
  PerGroup base_momentum = 0.8, max_momentum = 0.9;
};
/// Cycles the learning rate linearly between base_lr and max_lr (Smith, Cyclical Learning Rates for Training
/// Neural Networks, WACV 2017). Throws std::invalid_argument for options out of range, and for cycle_momentum
/// with an optimizer that has neither momentum nor betas.
class CyclicLR : public LRScheduler {
 public:
  CyclicLR(torch::optim::Optimizer& optimizer, const CyclicLROptions& options);

 protected:
  std::vector<double> get_lr() const override;
  void set_others() override;
  Json state_dict() const override;
  std::vector<Field> fields() override;

 private:
  /// Position between the bounds in [0, 1], times the scale of the amplitude.
  double height() const;

  double total_size_, step_ratio_, gamma_;
  std::string mode_, scale_mode_;
  LRFunction scale_fn_;
  bool cycle_momentum_;
  std::vector<double> max_lrs_, base_momentums_, max_momentums_;
};

struct ReduceLROnPlateauOptions {
  std::string mode = "min";  ///< "min": lower metrics are better; "max": higher
  double factor = 0.1;       ///< < 1
  /// Steps without improvement that are tolerated.
  std::int64_t patience = 10;
  double threshold = 1e-4;  ///< minimum improvement that counts
  /// "rel": `threshold` is a fraction of the best metric; "abs": a difference.
  std::string threshold_mode = "rel";
  /// Steps after a reduction during which no step counts as bad.
  std::int64_t cooldown = 0;
  /// Lower bound of the learning rate.
  PerGroup min_lr = 0.0;
  double eps = 1e-8;  ///< smaller reductions are not applied
};
/// Multiplies the learning rate by `factor` when a metric has not improved for more than `patience` steps,
/// then waits for `cooldown` steps.
class ReduceLROnPlateau : public LRScheduler {
 public:
  explicit ReduceLROnPlateau(torch::optim::Optimizer& optimizer,
                             const ReduceLROnPlateauOptions& options = {});
  /// Advances by one step with the new value of the metric. NaN never counts as an improvement.
  void step(double metric);
  /// Throws std::logic_error: this schedule requires a metric, so it must be stepped by hand
  /// (LRStepMode::kManual).
  void step() override;

 protected:
  std::vector<double> get_lr() const override { return last_lr_; }
  std::vector<Field> fields() override;

 private:
  bool is_better(double metric) const;

  ReduceLROnPlateauOptions options_;
  std::vector<double> min_lrs_;
  double best_;
  std::int64_t num_bad_epochs_ = 0, cooldown_counter_ = 0;
};

}  // namespace det
