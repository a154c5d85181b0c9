// Schedules that cycle the learning rate together with the momentum: OneCycleLR and CyclicLR.
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <stdexcept>

#include "det/lr_scheduler.h"
#include "harness/src/optim/lr_scheduler_check.h"

namespace det {
namespace {

/// Pointer to the momentum or beta1 of a parameter group; null when it has neither.
double* momentum_of(torch::optim::OptimizerOptions& options) {
  if (auto* sgd = dynamic_cast<torch::optim::SGDOptions*>(&options)) return &sgd->momentum();
  if (auto* rmsprop = dynamic_cast<torch::optim::RMSpropOptions*>(&options)) return &rmsprop->momentum();
  if (auto* adam = dynamic_cast<torch::optim::AdamOptions*>(&options)) return &std::get<0>(adam->betas());
  if (auto* adamw = dynamic_cast<torch::optim::AdamWOptions*>(&options)) return &std::get<0>(adamw->betas());
  return nullptr;
}

void check_momentum(torch::optim::Optimizer& optimizer, const char* kind) {
  for (auto& group : optimizer.param_groups()) {
    check_schedule(momentum_of(group.options()) != nullptr, kind,
                   "this optimizer has neither momentum nor betas: set cycle_momentum = false");
  }
}

bool has_betas(torch::optim::Optimizer& optimizer) {
  auto* options = &optimizer.defaults();
  return dynamic_cast<torch::optim::AdamOptions*>(options) != nullptr ||
         dynamic_cast<torch::optim::AdamWOptions*>(options) != nullptr;
}

void set_momentum(torch::optim::Optimizer& optimizer, const std::vector<double>& momentum) {
  for (std::size_t i = 0; i < momentum.size(); ++i)
    *momentum_of(optimizer.param_groups()[i].options()) = momentum[i];
}

constexpr const char* kLrNames[] = {"initial_lr", "max_lr", "min_lr"};
constexpr const char* kMomentumNames[] = {"base_momentum", "max_momentum"};

}  // namespace

OneCycleLR::OneCycleLR(torch::optim::Optimizer& optimizer, const OneCycleLROptions& options)
    : LRScheduler(optimizer),
      anneal_strategy_(options.anneal_strategy),
      cycle_momentum_(options.cycle_momentum) {
  constexpr const char* kind = "OneCycleLR";
  check_schedule(options.total_steps || (options.epochs && options.steps_per_epoch), kind,
                 "give total_steps, or epochs and steps_per_epoch");
  total_steps_ = options.total_steps ? *options.total_steps : *options.epochs * *options.steps_per_epoch;
  check_schedule(total_steps_ >= 1, kind, "total_steps must be at least 1");
  check_schedule(options.pct_start >= 0 && options.pct_start <= 1, kind, "pct_start must be in [0, 1]");
  check_schedule(anneal_strategy_ == "cos" || anneal_strategy_ == "linear", kind,
                 "anneal_strategy must be cos or linear");
  const auto total = static_cast<double>(total_steps_);
  // Steps count from 0, so phases end one step earlier than their length, as in PyTorch.
  phase_ends_ = {options.pct_start * total - 1};
  if (options.three_phase) phase_ends_.push_back(2 * options.pct_start * total - 2);
  phase_ends_.push_back(total - 1);

  const std::size_t groups = base_lrs_.size();
  max_lrs_ = options.max_lr.expand(groups, "max_lr");
  for (const double max_lr : max_lrs_) {
    check_schedule(max_lr > 0, kind, "max_lr must be above 0");
    first_lrs_.push_back(max_lr / options.div_factor);
    min_lrs_.push_back(first_lrs_.back() / options.final_div_factor);
  }
  // The cycle replaces the optimizer's own learning rate.
  base_lrs_ = *initial_lrs_ = first_lrs_;
  if (cycle_momentum_) {
    check_momentum(optimizer, kind);
    use_beta1_ = has_betas(optimizer);
    base_momentums_ = options.base_momentum.expand(groups, "base_momentum");
    max_momentums_ = options.max_momentum.expand(groups, "max_momentum");
  }
  initial_step();
}

std::vector<OneCycleLR::Phase> OneCycleLR::phases() const {
  if (phase_ends_.size() == 2)
    return {{phase_ends_[0], 0, 1, true, false}, {phase_ends_[1], 1, 2, false, true}};
  return {{phase_ends_[0], 0, 1, true, false},
          {phase_ends_[1], 1, 0, false, true},
          {phase_ends_[2], 0, 2, true, true}};
}

std::pair<OneCycleLR::Phase, double> OneCycleLR::position() const {
  const auto step = static_cast<double>(last_epoch_);
  double start = 0;
  const std::vector<Phase> all = phases();
  for (const Phase& phase : all) {
    if (step <= phase.end_step || &phase == &all.back()) {
      // A phase without steps (pct_start = 0) is already at its end.
      const double length = phase.end_step - start;
      return {phase, length == 0 ? 1 : (step - start) / length};
    }
    start = phase.end_step;
  }
  return {all.back(), 1};  // not reached: the last phase always matches
}

double OneCycleLR::anneal(double start, double end, double part) const {
  if (anneal_strategy_ == "linear") return (end - start) * part + start;
  return end + (start - end) / 2 * (std::cos(std::numbers::pi * part) + 1);
}

std::vector<double> OneCycleLR::get_lr() const {
  if (last_epoch_ > total_steps_) {
    throw std::logic_error("OneCycleLR was stepped " + std::to_string(last_epoch_) +
                           " times; its total_steps is " + std::to_string(total_steps_));
  }
  const auto [phase, part] = position();
  // Indexed by Phase::start_lr and Phase::end_lr.
  const std::vector<double>* levels[] = {&first_lrs_, &max_lrs_, &min_lrs_};
  std::vector<double> lr;
  for (std::size_t i = 0; i < max_lrs_.size(); ++i) {
    lr.push_back(anneal((*levels[phase.start_lr])[i], (*levels[phase.end_lr])[i], part));
  }
  return lr;
}

void OneCycleLR::set_others() {
  if (!cycle_momentum_) return;
  const auto [phase, part] = position();
  const auto& start = phase.start_at_max_momentum ? max_momentums_ : base_momentums_;
  const auto& end = phase.end_at_max_momentum ? max_momentums_ : base_momentums_;
  std::vector<double> momentum;
  for (std::size_t i = 0; i < start.size(); ++i) momentum.push_back(anneal(start[i], end[i], part));
  set_momentum(*optimizer_, momentum);
}

std::vector<LRScheduler::Field> OneCycleLR::fields() {
  auto all = fields_and({{"total_steps", &total_steps_},
                         {"_anneal_func_type", &anneal_strategy_, false},
                         {"cycle_momentum", &cycle_momentum_}});
  if (cycle_momentum_) all.push_back({"use_beta1", &use_beta1_});
  return all;
}

Json OneCycleLR::state_dict() const {
  Json out = LRScheduler::state_dict();
  for (const Phase& phase : phases()) {
    out["_schedule_phases"].push_back({{"end_step", phase.end_step},
                                       {"start_lr", kLrNames[phase.start_lr]},
                                       {"end_lr", kLrNames[phase.end_lr]},
                                       {"start_momentum", kMomentumNames[phase.start_at_max_momentum]},
                                       {"end_momentum", kMomentumNames[phase.end_at_max_momentum]}});
  }
  return out;
}

void OneCycleLR::load_state_dict(const Json& state) {
  std::vector<double> ends;
  if (state.is_object() && state.contains("_schedule_phases") && state["_schedule_phases"].is_array()) {
    for (const Json& phase : state["_schedule_phases"]) {
      if (!phase.is_object() || !phase.contains("end_step") || !phase["end_step"].is_number()) break;
      ends.push_back(phase["end_step"].get<double>());
    }
  }
  check_schedule(
      ends.size() == phase_ends_.size(), "state of the learning-rate schedule",
      "_schedule_phases must be a list of " + std::to_string(phase_ends_.size()) + " maps with end_step");
  LRScheduler::load_state_dict(state);
  // Only the ends of phases can differ from those of the constructor; the kinds of phases are fixed.
  phase_ends_ = std::move(ends);
}

CyclicLR::CyclicLR(torch::optim::Optimizer& optimizer, const CyclicLROptions& options)
    : LRScheduler(optimizer),
      gamma_(options.gamma),
      mode_(options.mode),
      scale_mode_(options.scale_mode),
      scale_fn_(options.scale_fn),
      cycle_momentum_(options.cycle_momentum) {
  constexpr const char* kind = "CyclicLR";
  const std::int64_t down = options.step_size_down.value_or(options.step_size_up);
  check_schedule(options.step_size_up >= 1 && down >= 1, kind,
                 "step_size_up and step_size_down must be at least 1");
  total_size_ = static_cast<double>(options.step_size_up) + static_cast<double>(down);
  step_ratio_ = static_cast<double>(options.step_size_up) / total_size_;
  if (!scale_fn_) {
    check_schedule(mode_ == "triangular" || mode_ == "triangular2" || mode_ == "exp_range", kind,
                   "mode must be triangular, triangular2 or exp_range");
    // Each built-in mode has a fixed argument: the cycle, or the step.
    scale_mode_ = mode_ == "exp_range" ? "iterations" : "cycle";
  }
  check_schedule(scale_mode_ == "cycle" || scale_mode_ == "iterations", kind,
                 "scale_mode must be cycle or iterations");
  const std::size_t groups = base_lrs_.size();
  base_lrs_ = options.base_lr.expand(groups, "base_lr");
  // Only the first schedule of an optimizer sets its initial learning rates.
  if (initial_lrs_.use_count() == 1) *initial_lrs_ = base_lrs_;
  max_lrs_ = options.max_lr.expand(groups, "max_lr");
  if (cycle_momentum_) {
    check_momentum(optimizer, kind);
    base_momentums_ = options.base_momentum.expand(groups, "base_momentum");
    max_momentums_ = options.max_momentum.expand(groups, "max_momentum");
  }
  initial_step();
}

double CyclicLR::height() const {
  const double turns = static_cast<double>(last_epoch_) / total_size_;
  // Cycles count from 1; x is the position in the current cycle, in [0, 1).
  const double cycle = std::floor(1 + turns);
  const double x = 1 + turns - cycle;
  const double height = x <= step_ratio_ ? x / step_ratio_ : (x - 1) / (step_ratio_ - 1);
  if (scale_fn_)
    return height * scale_fn_(scale_mode_ == "cycle" ? static_cast<std::int64_t>(cycle) : last_epoch_);
  if (mode_ == "triangular2") return height / std::pow(2, cycle - 1);
  return mode_ == "exp_range" ? height * std::pow(gamma_, static_cast<double>(last_epoch_)) : height;
}

std::vector<double> CyclicLR::get_lr() const {
  std::vector<double> lr = base_lrs_;
  for (std::size_t i = 0; i < lr.size(); ++i) lr[i] += (max_lrs_[i] - base_lrs_[i]) * height();
  return lr;
}

void CyclicLR::set_others() {
  if (!cycle_momentum_) return;
  std::vector<double> momentum = max_momentums_;
  for (std::size_t i = 0; i < momentum.size(); ++i)
    momentum[i] -= (max_momentums_[i] - base_momentums_[i]) * height();
  set_momentum(*optimizer_, momentum);
}

Json CyclicLR::state_dict() const {
  Json out = LRScheduler::state_dict();
  // PyTorch 2 refuses a state without this entry. A custom function is not part of the state.
  out["_scale_fn_custom"] = nullptr;
  return out;
}

std::vector<LRScheduler::Field> CyclicLR::fields() {
  auto all = fields_and({{"max_lrs", &max_lrs_},
                         {"total_size", &total_size_},
                         {"step_ratio", &step_ratio_},
                         {"mode", &mode_},
                         {"gamma", &gamma_},
                         {"scale_mode", &scale_mode_},
                         {"cycle_momentum", &cycle_momentum_}});
  if (cycle_momentum_) {
    all.push_back({"base_momentums", &base_momentums_});
    all.push_back({"max_momentums", &max_momentums_});
  }
  return all;
}

}  // namespace det
