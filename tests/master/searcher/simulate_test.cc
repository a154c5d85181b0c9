// Simulated searches: consistent totals, and the savings of asynchronous halving.
#include "common/searcher/simulate.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "configs.h"

namespace det::searcher {
namespace {

Simulation run(const Config& config, std::int64_t workers = 4) {
  auto surface = make_surface("bowl", config->hyperparameters, *config->searcher.max_time);
  REQUIRE(surface);
  auto result = simulate(config, *surface, {.workers = workers});
  REQUIRE(result);
  return std::move(*result);
}

TEST_CASE("a simulated search trains all trials, one at a time on each worker") {
  for (const std::string& name : every_search()) {
    INFO(name);
    const auto config = make_config(name);
    const Simulation result = run(config);
    CHECK_FALSE(result.shutdown.failure);
    double work = 0;
    std::map<std::int64_t, double> free_at;
    for (const Span& span : result.spans) {
      CHECK(span.start >= free_at[span.worker]);
      free_at[span.worker] = span.end;
      work += span.end - span.start;
    }
    CHECK(work == result.work);
    CHECK(result.makespan >= work / 4);
    // At least one trial reached the top rung.
    CHECK(result.stopped_at.rbegin()->first == 90);
    if (name != "single" && name != "grid") CHECK(result.trials >= 20);
  }
}

TEST_CASE("halving trains a fraction of random search, and promotion promotes the expected share") {
  const Simulation all = run(make_config("random", 300, 0), 8);
  for (const char* name :
       {"async_halving", "async_halving+promote", "adaptive_asha", "adaptive_asha+promote"}) {
    INFO(name);
    const Simulation halved = run(make_config(name, 300, 8), 8);
    CHECK(halved.work < all.work / 2);
  }
  const Simulation promoted = run(make_config("async_halving+promote", 300, 8), 8);
  // A third of each rung, plus O(sqrt n) trials that were among the best of the few seen so far (Li et al.,
  // MLSys 2020, section 3.3).
  CHECK(promoted.stopped_at.at(10) == Approx(200).margin(std::sqrt(300)));
  CHECK(promoted.stopped_at.at(90) == Approx(33).margin(20));
}

TEST_CASE("recorded curves are read from JSON and CSV with linear interpolation") {
  for (const char* text :
       {"[[[0, 1.0], [10, 0.5]], [[5, \"NaN\"]]]", "trial,time,metric\n7,0,1.0\n7,10,0.5\n9,5,nan\n"}) {
    auto surface = recorded_surface(text);
    REQUIRE(surface);
    CHECK((*surface)(0, {}, 4) == Approx(0.8));
    CHECK((*surface)(2, {}, 99) == 0.5);
    CHECK(std::isnan((*surface)(1, {}, 1)));
  }
  for (const char* text : {"", "[]", "[[]]", "[[1]]", "trial,time,metric\n1,x,2\n", "[[[0,1]"})
    CHECK_FALSE(recorded_surface(text));
  CHECK_FALSE(make_surface("hill", {}, 10));
}

}  // namespace
}  // namespace det::searcher
