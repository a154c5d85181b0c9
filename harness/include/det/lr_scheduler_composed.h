// Learning-rate schedules made of schedules: one after another, several at once, and warm-up.
#pragma once

#include <torch/optim/optimizer.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "det/lr_scheduler.h"

namespace det {

/// A list of schedules for SequentialLR and ChainedScheduler, constructed in order: `{LinearLR(optimizer),
/// ExponentialLR(optimizer, {.gamma = 0.9})}`.
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

/// Runs schedules one after another. At each milestone (a step) the next schedule takes over, from its
/// beginning.
class SequentialLR : public LRScheduler {
 public:
  /// Throws std::invalid_argument unless there is one milestone between each two schedules, in ascending
  /// order, and all schedules belong to `optimizer`. Nested SequentialLR and ChainedScheduler, and
  /// ReduceLROnPlateau, are rejected.
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

/// Applies several schedules at every step, each to the result of the previous one.
class ChainedScheduler : public LRScheduler {
 public:
  /// Throws std::invalid_argument for an empty list, for schedules of different optimizers, and for
  /// ReduceLROnPlateau.
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

/// Returns a schedule with linear warm-up: the learning rate rises from `start_factor` of its value in
/// `steps` steps, and then follows `then` from its beginning: `warm_up(optimizer, 500,
/// CosineAnnealingLR(optimizer, {.T_max = 10000}))`.
template <std::derived_from<LRScheduler> Then>
SequentialLR warm_up(torch::optim::Optimizer& optimizer, std::int64_t steps, Then then,
                     double start_factor = 1.0 / 3) {
  return SequentialLR(
      optimizer, {LinearLR(optimizer, {.start_factor = start_factor, .total_iters = steps}), std::move(then)},
      {steps});
}

}  // namespace det
