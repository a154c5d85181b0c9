// Random but repeatable rows for store tests.
#pragma once

#include <memory>
#include <string>

#include "common/base/random.h"
#include "master/core/core.h"
#include "master/core/effect.h"

namespace det::test {

std::shared_ptr<const expconf::ExperimentConfig> sample_config();

/// Draws every field of every struct at random, so that a field which a store drops is detected.
class Sampler {
 public:
  explicit Sampler(std::uint64_t seed) : random_{seed} {}
  std::int64_t integer(std::int64_t below = 1'000'000);
  double real() { return random_.uniform() * 1e6 - 5e5; }
  bool coin() { return random_.below(2) == 1; }
  /// ASCII, quotes, backslashes, line ends, and characters beyond ASCII.
  std::string text();
  WallTime time();
  std::optional<WallTime> maybe_time();
  /// A random non-terminal state.
  core::State live_state();
  core::Experiment experiment(ExperimentId id);
  core::Trial trial(TrialId id, ExperimentId experiment);
  core::Command command(CommandId id);
  /// A pilot that has not ended; columns that are written once depend on `id` alone.
  core::Pilot pilot(std::int64_t id);
  core::Allocation allocation(const std::string& id, TaskKey task);

 private:
  Random random_;
};

/// All fields as text, except process-local ones (monotonic times). Equal texts mean equal values.
std::string describe(const core::Recovered& recovered);

/// Minimal parent rows: experiment 1 with trial 1 at run 1.
core::Experiment plain_experiment(std::int64_t id = 1);
core::Trial plain_trial(std::int64_t id = 1, std::int64_t experiment = 1, RunNumber run = 1);

}  // namespace det::test
