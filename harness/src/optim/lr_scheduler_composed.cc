// Composed schedules (SequentialLR, ChainedScheduler) and ReduceLROnPlateau.
#include "det/lr_scheduler_composed.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/src/optim/lr_scheduler_check.h"

namespace det {
namespace {

using torch::optim::Optimizer;
using Steps = std::vector<std::int64_t>;
using ScheduleList = std::vector<std::unique_ptr<LRScheduler>>;

template <typename Kind>
bool is(LRScheduler& schedule) {
  return dynamic_cast<Kind*>(&schedule) != nullptr;
}

Optimizer& optimizer_of(const ScheduleList& list, const char* kind) {
  check_schedule(!list.empty(), kind, "there are no schedules");
  for (const auto& schedule : list) {
    check_schedule(schedule != nullptr, kind, "a schedule is null");
    check_schedule(&schedule->optimizer() == &list.front()->optimizer(), kind,
                   "the schedules are of different optimizers");
    check_schedule(!is<ReduceLROnPlateau>(*schedule), kind,
                   "ReduceLROnPlateau needs a metric at each step: step it by hand");
  }
  return list.front()->optimizer();
}

Json states_of(const ScheduleList& list) {
  Json out = Json::array();
  for (const auto& schedule : list) out.push_back(schedule->state_dict());
  return out;
}

/// Loads all states of `_schedulers`, or none.
void load_states(ScheduleList& list, const Json& state) {
  constexpr const char* kind = "state of the learning-rate schedule";
  check_schedule(state.is_object() && state.contains("_schedulers") && state["_schedulers"].is_array() &&
                     state["_schedulers"].size() == list.size(),
                 kind, "_schedulers must be a list of " + std::to_string(list.size()));
  // Strong guarantee: a failure in one schedule restores those that were loaded before it.
  const Json before = states_of(list);
  try {
    for (std::size_t i = 0; i < list.size(); ++i) list[i]->load_state_dict(state["_schedulers"][i]);
  } catch (...) {
    for (std::size_t i = 0; i < list.size(); ++i) list[i]->load_state_dict(before[i]);
    throw;
  }
}

}  // namespace

SequentialLR::SequentialLR(Optimizer& optimizer, Schedules schedules, Steps milestones)
    : LRScheduler(optimizer) {
  schedules_ = std::move(schedules.list_);
  milestones_ = std::move(milestones);
  constexpr const char* kind = "SequentialLR";
  check_schedule(&optimizer_of(schedules_, kind) == &optimizer, kind,
                 "the schedules are of another optimizer");
  check_schedule(milestones_.size() + 1 == schedules_.size(), kind,
                 std::to_string(schedules_.size()) + " schedules need " +
                     std::to_string(schedules_.size() - 1) + " milestones, not " +
                     std::to_string(milestones_.size()));
  check_schedule(std::is_sorted(milestones_.begin(), milestones_.end()), kind, "the milestones must rise");
  for (const auto& schedule : schedules_) {
    check_schedule(!is<SequentialLR>(*schedule) && !is<ChainedScheduler>(*schedule), kind,
                   "a schedule that holds others cannot start again: list its schedules instead");
    // Reverts the first step of the constructor.
    schedule->last_epoch_ -= 1;
  }
  last_epoch_ = 0;
  // The first steps of the schedules' constructors have changed the rates.
  set_lr(*initial_lrs_);
  schedules_.front()->initial_step();
  last_lr_ = schedules_.front()->get_last_lr();
}

void SequentialLR::step() {
  ++last_epoch_;
  const auto next = std::upper_bound(milestones_.begin(), milestones_.end(), last_epoch_);
  LRScheduler& schedule = *schedules_[static_cast<std::size_t>(next - milestones_.begin())];
  // A milestone is the first step of the next schedule.
  const bool begins = next != milestones_.begin() && *std::prev(next) == last_epoch_;
  begins ? schedule.restart() : schedule.step();
  last_lr_ = schedule.get_last_lr();
}

std::vector<LRScheduler::Field> SequentialLR::fields() {
  return {{"_milestones", &milestones_}, {"last_epoch", &last_epoch_}, {"_last_lr", &last_lr_}};
}

Json SequentialLR::state_dict() const {
  Json out = LRScheduler::state_dict();
  out["_schedulers"] = states_of(schedules_);
  return out;
}

void SequentialLR::load_state_dict(const Json& state) {
  check_schedule(state.is_object() && state.contains("_milestones") && state["_milestones"].is_array() &&
                     state["_milestones"].size() == milestones_.size(),
                 "state of the learning-rate schedule",
                 "_milestones must be a list of " + std::to_string(milestones_.size()));
  const Json before = LRScheduler::state_dict();
  LRScheduler::load_state_dict(state);
  try {
    load_states(schedules_, state);
  } catch (...) {
    LRScheduler::load_state_dict(before);
    throw;
  }
}

ChainedScheduler::ChainedScheduler(Schedules schedules)
    : LRScheduler(optimizer_of(schedules.list_, "ChainedScheduler")),
      schedules_(std::move(schedules.list_)) {}

void ChainedScheduler::step() {
  for (const auto& schedule : schedules_) schedule->step();
  last_lr_ = current_lr();
}

std::vector<LRScheduler::Field> ChainedScheduler::fields() { return {{"_last_lr", &last_lr_}}; }

Json ChainedScheduler::state_dict() const {
  Json out = LRScheduler::state_dict();
  out["_schedulers"] = states_of(schedules_);
  return out;
}

void ChainedScheduler::load_state_dict(const Json& state) {
  const Json before = LRScheduler::state_dict();
  LRScheduler::load_state_dict(state);
  try {
    load_states(schedules_, state);
  } catch (...) {
    LRScheduler::load_state_dict(before);
    throw;
  }
}

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options)
    : LRScheduler(optimizer), options_(options), min_lrs_(options.min_lr.expand(base_lrs_.size(), "min_lr")) {
  constexpr const char* kind = "ReduceLROnPlateau";
  check_schedule(options.factor < 1, kind, "factor must be below 1");
  check_schedule(options.mode == "min" || options.mode == "max", kind, "mode must be min or max");
  check_schedule(options.threshold_mode == "rel" || options.threshold_mode == "abs", kind,
                 "threshold_mode must be rel or abs");
  best_ = (options.mode == "min" ? 1 : -1) * std::numeric_limits<double>::infinity();
  last_epoch_ = 0;
}

void ReduceLROnPlateau::step() {
  throw std::logic_error(
      "ReduceLROnPlateau needs the metric it follows: wrap it with manual stepping and call step(metric)");
}

void ReduceLROnPlateau::step(double metric) {
  ++last_epoch_;
  if (is_better(metric)) {
    best_ = metric;
    num_bad_epochs_ = 0;
  } else {
    ++num_bad_epochs_;
  }
  // The order of these conditions is PyTorch's: bad steps are not counted during the cool-down.
  if (cooldown_counter_ > 0) {
    --cooldown_counter_;
    num_bad_epochs_ = 0;
  }
  std::vector<double> lr = current_lr();
  if (num_bad_epochs_ > options_.patience) {
    for (std::size_t i = 0; i < lr.size(); ++i) {
      const double lower = std::max(lr[i] * options_.factor, min_lrs_.at(i));
      // Tiny reductions are skipped, as in PyTorch.
      if (lr[i] - lower > options_.eps) lr[i] = lower;
    }
    cooldown_counter_ = options_.cooldown;
    num_bad_epochs_ = 0;
  }
  set_lr(lr);
}

bool ReduceLROnPlateau::is_better(double metric) const {
  const bool lower = options_.mode == "min";
  if (options_.threshold_mode == "rel") {
    return lower ? metric < best_ * (1 - options_.threshold) : metric > best_ * (options_.threshold + 1);
  }
  return lower ? metric < best_ - options_.threshold : metric > best_ + options_.threshold;
}

std::vector<LRScheduler::Field> ReduceLROnPlateau::fields() {
  return {{"mode", &options_.mode},
          {"factor", &options_.factor},
          {"patience", &options_.patience},
          {"threshold", &options_.threshold},
          {"threshold_mode", &options_.threshold_mode},
          {"cooldown", &options_.cooldown},
          {"cooldown_counter", &cooldown_counter_},
          {"min_lrs", &min_lrs_},
          {"eps", &options_.eps},
          {"best", &best_},
          {"num_bad_epochs", &num_bad_epochs_},
          {"last_epoch", &last_epoch_},
          {"_last_lr", &last_lr_, false}};
}

}  // namespace det
