// Owns learning-rate schedules: those of torch.optim.lr_scheduler, with its names, formulas and defaults.
//
//   auto& schedule = context.wrap_lr_scheduler(det::StepLR(optimizer, {.step_size = 2, .gamma = 0.1}), …);
//
// Options have the names and defaults of PyTorch's keyword arguments; constructors throw
// std::invalid_argument naming the option that cannot work. Schedules that multiply the current learning rate
// (all that PyTorch calls chainable) go on from a learning rate that was changed by hand.
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

/// Sets the learning rate of each parameter group of an optimizer. As in PyTorch construction makes the first
/// step (last_epoch 0), and every step() moves on by one; what a step is (batch, epoch) is for
/// context.wrap_lr_scheduler to say. The optimizer must outlive the schedule, and gets no more parameter
/// groups.
///
/// Schedules of one optimizer share its initial learning rates (PyTorch's initial_lr): those it had when the
/// first of the schedules that live was made. Make them on one thread.
class LRScheduler {
 public:
  explicit LRScheduler(torch::optim::Optimizer& optimizer);
  LRScheduler(LRScheduler&&) = default;
  virtual ~LRScheduler() = default;
  /// Throws std::logic_error when the optimizer got another parameter group since.
  virtual void step();
  /// Of each parameter group, as the last step set it.
  const std::vector<double>& get_last_lr() const { return last_lr_; }
  torch::optim::Optimizer& optimizer() { return *optimizer_; }
  /// What PyTorch's state_dict() holds, under its names; numbers, texts, lists and maps only (integer keys,
  /// those of MultiStepLR's milestones, are decimal text). load_state_dict(state_dict()) changes nothing. The
  /// learning rates themselves are the optimizer's state, not the schedule's.
  virtual Json state_dict() const;
  /// Takes PyTorch's state too. Throws std::invalid_argument naming what is missing or of another kind;
  /// nothing has changed then.
  virtual void load_state_dict(const Json& state);

 protected:
  /// The learning rates after `last_epoch_` steps.
  virtual std::vector<double> get_lr() const = 0;
  /// Sets what else goes with the learning rate (momentum); called at each step after it.
  virtual void set_others() {}
  /// Begins anew at last_epoch 0 from the initial learning rates, when SequentialLR comes to this schedule.
  virtual void restart();
  /// A variable of state_dict(): its name and where it lies. Lists of double have an element for each
  /// parameter group.
  struct Field {
    const char* name;
    std::variant<double*, std::int64_t*, bool*, std::string*, std::vector<double>*,
                 std::vector<std::int64_t>*, std::map<std::int64_t, std::int64_t>*>
        value;
    bool required = true;  ///< of a state to load
  };
  /// All of them; derived classes add theirs to the base's.
  virtual std::vector<Field> fields();
  /// fields() of this class with more.
  std::vector<Field> fields_and(std::initializer_list<Field> more);

  /// For the constructors of derived classes, once their members are set: sets the first learning rates.
  void initial_step();
  std::vector<double> current_lr() const;
  void set_lr(const std::vector<double>& lr);
  /// Each initial learning rate times `factor`, each current one times `factor`.
  std::vector<double> base_times(double factor) const;
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

/// A value for all parameter groups, or one for each: `.max_lr = 0.1`, `.max_lr = {0.1, 0.01}`.
class PerGroup {
 public:
  PerGroup(double value) : values_{value} {}
  PerGroup(std::initializer_list<double> values) : values_(values) {}
  PerGroup(std::vector<double> values) : values_(std::move(values)) {}
  /// `groups` values; throws std::invalid_argument naming `name` when there are several, but not as many.
  std::vector<double> expand(std::size_t groups, const char* name) const;

 private:
  std::vector<double> values_;
};

/// A factor as a function of the step, counted from 0.
using LRFunction = std::function<double(std::int64_t step)>;

/// The initial learning rate times a function of the step.
class LambdaLR : public LRScheduler {
 public:
  LambdaLR(torch::optim::Optimizer& optimizer, LRFunction lr_lambda);
  LambdaLR(torch::optim::Optimizer& optimizer, std::vector<LRFunction> lr_lambdas);  ///< one a group

 protected:
  std::vector<double> get_lr() const override;

 private:
  std::vector<LRFunction> lambdas_;
};

/// The current learning rate times a function of the step.
class MultiplicativeLR : public LRScheduler {
 public:
  MultiplicativeLR(torch::optim::Optimizer& optimizer, LRFunction lr_lambda);
  MultiplicativeLR(torch::optim::Optimizer& optimizer, std::vector<LRFunction> lr_lambdas);  ///< one a group

 protected:
  std::vector<double> get_lr() const override;
  void restart() override;

 private:
  std::vector<LRFunction> lambdas_;
};

struct StepLROptions {
  std::int64_t step_size = 0;  ///< steps, >= 1
  double gamma = 0.1;
};
/// Times gamma every step_size steps.
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
  std::vector<std::int64_t> milestones;  ///< steps; one named twice counts twice
  double gamma = 0.1;
};
/// Times gamma at each milestone.
class MultiStepLR : public LRScheduler {
 public:
  MultiStepLR(torch::optim::Optimizer& optimizer, const MultiStepLROptions& options);

 protected:
  std::vector<double> get_lr() const override;
  std::vector<Field> fields() override;

 private:
  std::map<std::int64_t, std::int64_t> milestones_;  // step → how many times
  double gamma_;
};

struct ConstantLROptions {
  double factor = 1.0 / 3;  ///< in (0, 1]
  std::int64_t total_iters = 5;
};
/// Times factor until total_iters.
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
/// From start_factor to end_factor in total_iters equal steps.
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
/// Times gamma every step.
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
  double power = 1;
};
/// Falls to 0 at total_iters as (1 - step / total_iters)^power.
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
  std::int64_t T_max = 0;  ///< steps of half a wave, >= 1
  double eta_min = 0;
};
/// Half a cosine wave from the initial learning rate to eta_min in T_max steps, and back in as many
/// (Loshchilov and Hutter, SGDR, ICLR 2017, equation 5, without restarts), in its recursive form.
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
  std::int64_t T_0 = 0;     ///< steps of the first fall, >= 1
  std::int64_t T_mult = 1;  ///< every next fall is as many times longer, >= 1
  double eta_min = 0;
};
/// Falls as half a cosine wave, again and again (Loshchilov and Hutter, SGDR, ICLR 2017, equation 5).
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
  std::int64_t T_i_;  // steps of this fall
};

struct OneCycleLROptions {
  PerGroup max_lr = 0.0;
  /// Steps of the whole cycle; or epochs and steps_per_epoch, whose product it is. One of the two must be
  /// given.
  std::optional<std::int64_t> total_steps, epochs, steps_per_epoch;
  double pct_start = 0.3;               ///< part of the cycle in which the learning rate rises
  std::string anneal_strategy = "cos";  ///< or "linear"
  bool cycle_momentum = true;           ///< of SGD and RMSprop; beta1 of Adam and AdamW
  PerGroup base_momentum = 0.85, max_momentum = 0.95;
  double div_factor = 25;         ///< the first learning rate is max_lr / div_factor
  double final_div_factor = 1e4;  ///< the last is the first / final_div_factor
  bool three_phase = false;       ///< fall to the first learning rate as fast as it rose, then on to the last
};
/// Rises to max_lr, then falls to almost nothing, while momentum does the reverse (Smith and Topin,
/// Super-Convergence, 2018). step() throws std::logic_error after total_steps steps.
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
  /// A phase of the cycle: from where to where; 0 is the initial value, 1 the maximum, 2 the minimum.
  struct Phase {
    double end_step;
    int start_lr, end_lr;
    bool start_at_max_momentum, end_at_max_momentum;
  };
  std::vector<Phase> phases() const;
  /// The phase `last_epoch_` is in, and how far, 0 to 1.
  std::pair<Phase, double> position() const;
  double anneal(double start, double end, double part) const;

  std::int64_t total_steps_ = 0;
  std::vector<double> phase_ends_;
  std::string anneal_strategy_;
  bool cycle_momentum_, use_beta1_ = false;
  std::vector<double> max_lrs_, first_lrs_, min_lrs_, base_momentums_, max_momentums_;
};

struct CyclicLROptions {
  PerGroup base_lr = 0.0, max_lr = 0.0;
  std::int64_t step_size_up = 2000;
  std::optional<std::int64_t> step_size_down;  ///< absent: as step_size_up
  std::string mode = "triangular";  ///< or "triangular2" (half as high each cycle), "exp_range" (gamma^step)
  double gamma = 1;
  LRFunction scale_fn;               ///< instead of mode: the height's factor
  std::string scale_mode = "cycle";  ///< what scale_fn is given: "cycle" (from 1) or "iterations"
  bool cycle_momentum = true;        ///< of SGD and RMSprop; beta1 of Adam and AdamW
  PerGroup base_momentum = 0.8, max_momentum = 0.9;
};
/// Up and down between base_lr and max_lr in straight lines (Smith, Cyclical Learning Rates, WACV 2017).
class CyclicLR : public LRScheduler {
 public:
  CyclicLR(torch::optim::Optimizer& optimizer, const CyclicLROptions& options);

 protected:
  std::vector<double> get_lr() const override;
  void set_others() override;
  std::vector<Field> fields() override;

 private:
  /// How high in the cycle, 0 to 1, times its scale.
  double height() const;

  double total_size_, step_ratio_, gamma_;
  std::string mode_, scale_mode_;
  LRFunction scale_fn_;
  bool cycle_momentum_;
  std::vector<double> max_lrs_, base_momentums_, max_momentums_;
};

/// Schedules to be put together: `{LinearLR(optimizer), ExponentialLR(optimizer, {.gamma = 0.9})}`, made in
/// this order.
class Schedules {
 public:
  template <typename... S>
  requires(sizeof...(S) > 0 && (std::derived_from<S, LRScheduler> && ...)) Schedules(S&&... schedules) {
    (list_.push_back(std::make_unique<S>(std::move(schedules))), ...);
  }
  Schedules(std::vector<std::unique_ptr<LRScheduler>> list) : list_(std::move(list)) {}

 protected:
  friend class SequentialLR;
  friend class ShardedSchedules;
  friend class ChainedScheduler;
  std::vector<std::unique_ptr<LRScheduler>> list_;
};

/// One schedule after the other: the next takes over, from its beginning, at each milestone.
class SequentialLR : public LRScheduler {
 public:
  /// Throws std::invalid_argument unless there is a milestone between each two schedules, in rising order,
  /// and all of them are of `optimizer` and neither of the kinds that hold others nor ReduceLROnPlateau.
  SequentialLR(torch::optim::Optimizer& optimizer, Schedules schedules, std::vector<std::int64_t> milestones);
  void step() override;
  Json state_dict() const override;
  void load_state_dict(const Json& state) override;

 protected:
  std::vector<double> get_lr() const override { return last_lr_; }
  std::vector<Field> fields() override;

 private:
  std::vector<std::unique_ptr<LRScheduler>> schedules_;
  std::vector<std::int64_t> milestones_;
};

/// All schedules at once, each changing what the one before left.
class ChainedScheduler : public LRScheduler {
 public:
  /// Throws std::invalid_argument unless all are of one optimizer, and none is ReduceLROnPlateau.
  explicit ChainedScheduler(Schedules schedules);
  void step() override;
  Json state_dict() const override;
  void load_state_dict(const Json& state) override;

 protected:
  std::vector<double> get_lr() const override { return last_lr_; }
  std::vector<Field> fields() override;

 private:
  std::vector<std::unique_ptr<LRScheduler>> schedules_;
};

/// Rises in straight line from `start_factor` of the learning rate in `steps` steps, and goes on with `then`
/// from its beginning: `warm_up(optimizer, 500, CosineAnnealingLR(optimizer, {.T_max = 10000}))`.
template <std::derived_from<LRScheduler> Then>
SequentialLR warm_up(torch::optim::Optimizer& optimizer, std::int64_t steps, Then then,
                     double start_factor = 1.0 / 3) {
  return SequentialLR(
      optimizer, {LinearLR(optimizer, {.start_factor = start_factor, .total_iters = steps}), std::move(then)},
      {steps});
}

struct ReduceLROnPlateauOptions {
  std::string mode = "min";  ///< a metric is better when lower; "max": when higher
  double factor = 0.1;       ///< < 1
  std::int64_t patience = 10;
  double threshold = 1e-4;             ///< how much better counts as better
  std::string threshold_mode = "rel";  ///< `threshold` is of the best so far; "abs": it is a difference
  std::int64_t cooldown = 0;
  PerGroup min_lr = 0.0;
  double eps = 1e-8;  ///< smaller changes are not made
};
/// Times factor when a metric has not become better for more than `patience` steps; then waits `cooldown`
/// steps.
class ReduceLROnPlateau : public LRScheduler {
 public:
  explicit ReduceLROnPlateau(torch::optim::Optimizer& optimizer,
                             const ReduceLROnPlateauOptions& options = {});
  /// NaN is no better than anything.
  void step(double metric);
  /// Throws std::logic_error: this schedule needs the metric, and can be stepped by hand only.
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
