#include "harness/src/optim/lr_stepping.h"

#include <vector>

#include "det/context.h"
#include "harness/src/trainer/plan.h"

// Catch2 must follow LibTorch: both define CHECK.
#include <catch2/catch.hpp>

namespace det {
namespace {

/// Batches (from 1) after which the schedule steps, repeated by the number of steps.
std::vector<std::int64_t> steps(LRStepMode mode, std::int64_t frequency, std::int64_t aggregation,
                                std::int64_t batches_per_epoch, std::int64_t batches) {
  std::vector<std::int64_t> moments;
  for (std::int64_t batch = aggregation - 1; batch < batches; batch += aggregation) {
    const std::int64_t count = lr_steps_after(mode, frequency, batch, aggregation, batches_per_epoch);
    moments.insert(moments.end(), count, batch + 1);
  }
  return moments;
}
using Moments = std::vector<std::int64_t>;

TEST_CASE("kEveryBatch steps after every batch, also when gradients are only aggregated") {
  CHECK(steps(LRStepMode::kEveryBatch, 1, 1, 10, 4) == Moments{1, 2, 3, 4});
  CHECK(steps(LRStepMode::kEveryBatch, 2, 1, 10, 6) == Moments{2, 4, 6});
  CHECK(steps(LRStepMode::kEveryBatch, 1, 4, 10, 8) == Moments{4, 4, 4, 4, 8, 8, 8, 8});
  CHECK(steps(LRStepMode::kEveryBatch, 3, 4, 10, 12) == Moments{4, 8, 12, 12});
}

TEST_CASE("kEveryOptimizerStep counts optimizer steps, with any aggregation") {
  CHECK(steps(LRStepMode::kEveryOptimizerStep, 2, 4, 10, 24) == Moments{8, 16, 24});
  CHECK(steps(LRStepMode::kEveryOptimizerStep, 4, 2, 10, 24) == Moments{8, 16, 24});
  CHECK(steps(LRStepMode::kEveryOptimizerStep, 1, 3, 10, 9) == Moments{3, 6, 9});
}

TEST_CASE("kEveryEpoch steps at the last optimizer step that completes within the epoch") {
  CHECK(steps(LRStepMode::kEveryEpoch, 1, 1, 5, 15) == Moments{5, 10, 15});
  CHECK(steps(LRStepMode::kEveryEpoch, 2, 1, 5, 20) == Moments{10, 20});
  CHECK(steps(LRStepMode::kEveryEpoch, 1, 4, 5, 20) == Moments{4, 8, 12, 20});
  CHECK(steps(LRStepMode::kEveryEpoch, 1, 12, 5, 24) == Moments{12, 12, 24, 24, 24});
}

TEST_CASE("a manual schedule is not stepped") { CHECK(steps(LRStepMode::kManual, 1, 1, 5, 20).empty()); }

TEST_CASE("a period is a number of batches or an explicit list") {
  CHECK(Period{.every = 4}.due(8));
  CHECK_FALSE(Period{.every = 4}.due(9));
  CHECK_FALSE(Period{}.due(1));
  CHECK(Period{.at = {3, 7}}.due(7));
  CHECK_FALSE(Period{.at = {3, 7}}.due(6));
}

}  // namespace
}  // namespace det
