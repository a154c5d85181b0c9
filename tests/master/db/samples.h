// Owns random but repeatable rows for the tests of stores.
#pragma once

#include <memory>
#include <string>

#include "base/random.h"
#include "master/core/core.h"
#include "master/core/effect.h"

namespace det::test {

std::shared_ptr<const expconf::ExperimentConfig> sample_config();

/// Every field of every struct, drawn anew: a field that a store forgets shows.
class Sampler {
 public:
  explicit Sampler(std::uint64_t seed) : random_{seed} {}
  std::int64_t integer(std::int64_t below = 1'000'000);
  double real() { return random_.uniform() * 1e6 - 5e5; }
  bool coin() { return random_.below(2) == 1; }
  /// ASCII, quotes, backslashes, line ends, and letters beyond ASCII.
  std::string text();
  WallTime time();
  std::optional<WallTime> maybe_time();
  /// Never a terminal one.
  core::State live_state();
  core::Experiment experiment(ExperimentId id);
  core::Trial trial(TrialId id, ExperimentId experiment);
  core::Command command(core::CommandId id);
  core::Allocation allocation(const std::string& id, TrialId trial);

 private:
  Random random_;
};

/// Everything of it as text, fields of one process (monotonic times) aside: equal texts, equal values.
std::string describe(const core::Recovered& recovered);

/// Small rows to hang others on: experiment 1 with trial 1 at run 1.
core::Experiment plain_experiment(std::int64_t id = 1);
core::Trial plain_trial(std::int64_t id = 1, std::int64_t experiment = 1, RunNumber run = 1);

}  // namespace det::test
