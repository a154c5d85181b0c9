// Schedules without cycles: functions of the step, step decays, and decays to a final value. Most use the
// chainable (recursive) form of their formula.
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "det/lr_scheduler.h"
#include "harness/src/optim/lr_scheduler_check.h"

namespace det {
namespace {

using torch::optim::Optimizer;

std::vector<LRFunction> checked(std::vector<LRFunction> functions, std::size_t groups, const char* kind) {
  check_schedule(
      functions.size() == groups, kind,
      std::to_string(functions.size()) + " lr_lambdas for " + std::to_string(groups) + " parameter groups");
  for (const LRFunction& function : functions)
    check_schedule(static_cast<bool>(function), kind, "lr_lambda is empty");
  return functions;
}

}  // namespace

LambdaLR::LambdaLR(Optimizer& optimizer, const LRFunction& lr_lambda)
    : LambdaLR(optimizer, std::vector<LRFunction>(optimizer.param_groups().size(), lr_lambda)) {}

LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<LRFunction> lr_lambdas)
    : LRScheduler(optimizer), lambdas_(checked(std::move(lr_lambdas), base_lrs_.size(), "LambdaLR")) {
  initial_step();
}

std::vector<double> LambdaLR::get_lr() const {
  std::vector<double> lr = base_lrs_;
  for (std::size_t i = 0; i < lr.size(); ++i) lr[i] *= lambdas_[i](last_epoch_);
  return lr;
}

MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, const LRFunction& lr_lambda)
    : MultiplicativeLR(optimizer, std::vector<LRFunction>(optimizer.param_groups().size(), lr_lambda)) {}

MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, std::vector<LRFunction> lr_lambdas)
    : LRScheduler(optimizer), lambdas_(checked(std::move(lr_lambdas), base_lrs_.size(), "MultiplicativeLR")) {
  initial_step();
}

std::vector<double> MultiplicativeLR::get_lr() const {
  std::vector<double> lr = current_lr();
  if (last_epoch_ == 0) return lr;
  for (std::size_t i = 0; i < lr.size(); ++i) lr[i] *= lambdas_[i](last_epoch_);
  return lr;
}

void MultiplicativeLR::restart() {
  // As in PyTorch, this is the only chainable schedule that continues from the learning rate of its
  // predecessor.
  last_epoch_ = -1;
  step();
}

StepLR::StepLR(Optimizer& optimizer, const StepLROptions& options)
    : LRScheduler(optimizer), options_(options) {
  check_schedule(options.step_size >= 1, "StepLR", "step_size must be at least 1");
  initial_step();
}

std::vector<double> StepLR::get_lr() const {
  // Relative to the current rate, so that a rate changed by hand is kept. Step 0 never decays.
  const bool falls = last_epoch_ != 0 && last_epoch_ % options_.step_size == 0;
  return falls ? current_times(options_.gamma) : current_lr();
}

std::vector<LRScheduler::Field> StepLR::fields() {
  return fields_and({{"step_size", &options_.step_size}, {"gamma", &options_.gamma}});
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, const MultiStepLROptions& options)
    : LRScheduler(optimizer), gamma_(options.gamma) {
  for (const std::int64_t milestone : options.milestones) ++milestones_[milestone];
  initial_step();
}

std::vector<double> MultiStepLR::get_lr() const {
  const auto found = milestones_.find(last_epoch_);
  if (found == milestones_.end()) return current_lr();
  // A milestone that is listed n times decays by gamma^n.
  return current_times(std::pow(gamma_, static_cast<double>(found->second)));
}

std::vector<LRScheduler::Field> MultiStepLR::fields() {
  return fields_and({{"milestones", &milestones_}, {"gamma", &gamma_}});
}

ConstantLR::ConstantLR(Optimizer& optimizer, const ConstantLROptions& options)
    : LRScheduler(optimizer), options_(options) {
  check_schedule(options.factor > 0 && options.factor <= 1, "ConstantLR", "factor must be in (0, 1]");
  initial_step();
}

std::vector<double> ConstantLR::get_lr() const {
  if (last_epoch_ == 0) return current_times(options_.factor);
  // The factor is applied once and removed once; other schedules may change the rate in between.
  return last_epoch_ == options_.total_iters ? current_times(1 / options_.factor) : current_lr();
}

std::vector<LRScheduler::Field> ConstantLR::fields() {
  return fields_and({{"factor", &options_.factor}, {"total_iters", &options_.total_iters}});
}

LinearLR::LinearLR(Optimizer& optimizer, const LinearLROptions& options)
    : LRScheduler(optimizer), options_(options) {
  check_schedule(options.start_factor > 0 && options.start_factor <= 1, "LinearLR",
                 "start_factor must be in (0, 1]");
  check_schedule(options.end_factor >= 0 && options.end_factor <= 1, "LinearLR",
                 "end_factor must be in [0, 1]");
  check_schedule(options.total_iters >= 1, "LinearLR", "total_iters must be at least 1");
  initial_step();
}

std::vector<double> LinearLR::get_lr() const {
  const auto& [start, end, total] = options_;
  if (last_epoch_ == 0) return current_times(start);
  if (last_epoch_ > total) return current_lr();
  const double rise = end - start;
  // Ratio of the factors of this step and the previous one.
  return current_times(
      1 + rise / (static_cast<double>(total) * start + static_cast<double>(last_epoch_ - 1) * rise));
}

std::vector<LRScheduler::Field> LinearLR::fields() {
  return fields_and({{"start_factor", &options_.start_factor},
                     {"end_factor", &options_.end_factor},
                     {"total_iters", &options_.total_iters}});
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, const ExponentialLROptions& options)
    : LRScheduler(optimizer), options_(options) {
  check_schedule(options.gamma > 0, "ExponentialLR", "gamma must be above 0");
  initial_step();
}

std::vector<double> ExponentialLR::get_lr() const {
  return last_epoch_ == 0 ? current_lr() : current_times(options_.gamma);
}

std::vector<LRScheduler::Field> ExponentialLR::fields() { return fields_and({{"gamma", &options_.gamma}}); }

PolynomialLR::PolynomialLR(Optimizer& optimizer, const PolynomialLROptions& options)
    : LRScheduler(optimizer), options_(options) {
  check_schedule(options.total_iters >= 1, "PolynomialLR", "total_iters must be at least 1");
  initial_step();
}

std::vector<double> PolynomialLR::get_lr() const {
  if (last_epoch_ == 0 || last_epoch_ > options_.total_iters) return current_lr();
  const auto total = static_cast<double>(options_.total_iters), step = static_cast<double>(last_epoch_);
  return current_times(std::pow((1 - step / total) / (1 - (step - 1) / total), options_.power));
}

std::vector<LRScheduler::Field> PolynomialLR::fields() {
  return fields_and({{"total_iters", &options_.total_iters}, {"power", &options_.power}});
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& options)
    : LRScheduler(optimizer), options_(options) {
  check_schedule(options.T_max >= 1, "CosineAnnealingLR", "T_max must be at least 1");
  initial_step();
}

std::vector<double> CosineAnnealingLR::get_lr() const {
  std::vector<double> lr = current_lr();
  if (last_epoch_ == 0) return lr;
  const double half = static_cast<double>(options_.T_max), eta_min = options_.eta_min, pi = std::numbers::pi;
  // The previous step was at the minimum, where the ratio below is undefined (0 / 0).
  if ((last_epoch_ - 1 - options_.T_max) % (2 * options_.T_max) == 0) {
    for (std::size_t i = 0; i < lr.size(); ++i)
      lr[i] += (base_lrs_[i] - eta_min) * (1 - std::cos(pi / half)) / 2;
    return lr;
  }
  const auto step = static_cast<double>(last_epoch_);
  const double ratio = (1 + std::cos(pi * step / half)) / (1 + std::cos(pi * (step - 1) / half));
  for (double& value : lr) value = ratio * (value - eta_min) + eta_min;
  return lr;
}

std::vector<LRScheduler::Field> CosineAnnealingLR::fields() {
  return fields_and({{"T_max", &options_.T_max}, {"eta_min", &options_.eta_min}});
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer,
                                                         const CosineAnnealingWarmRestartsOptions& options)
    : LRScheduler(optimizer), options_(options), T_i_(options.T_0) {
  check_schedule(options.T_0 >= 1, "CosineAnnealingWarmRestarts", "T_0 must be at least 1");
  check_schedule(options.T_mult >= 1, "CosineAnnealingWarmRestarts", "T_mult must be at least 1");
  restart();
}

void CosineAnnealingWarmRestarts::step() {
  // As in PyTorch, the first step of a schedule that has not begun is step 0. SequentialLR takes it again.
  if (last_epoch_ < 0) return restart();
  ++last_epoch_;
  ++T_cur_;
  if (T_cur_ >= static_cast<double>(T_i_)) {
    T_cur_ -= static_cast<double>(T_i_);
    T_i_ *= options_.T_mult;
  }
  set_lr(get_lr());
}

void CosineAnnealingWarmRestarts::restart() {
  last_epoch_ = 0;
  T_cur_ = 0;
  T_i_ = options_.T_0;
  set_lr(get_lr());
}

std::vector<double> CosineAnnealingWarmRestarts::get_lr() const {
  std::vector<double> lr = base_lrs_;
  // Computed from the initial rate, not recursively: a restart returns to it exactly.
  const double wave = 1 + std::cos(std::numbers::pi * T_cur_ / static_cast<double>(T_i_));
  for (double& value : lr) value = options_.eta_min + (value - options_.eta_min) * wave / 2;
  return lr;
}

std::vector<LRScheduler::Field> CosineAnnealingWarmRestarts::fields() {
  return fields_and({{"T_0", &options_.T_0},
                     {"T_i", &T_i_},
                     {"T_mult", &options_.T_mult},
                     {"eta_min", &options_.eta_min},
                     {"T_cur", &T_cur_}});
}

}  // namespace det
