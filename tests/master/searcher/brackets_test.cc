// Test vectors of the rung, bracket and concurrency arithmetic, taken from Determined 0.38.
#include "common/searcher/brackets.h"

#include <catch2/catch.hpp>

#include "common/searcher/simulate.h"
#include "configs.h"

namespace det::searcher {
namespace {

using Numbers = std::vector<std::int64_t>;

struct Row {
  std::string mode;
  std::int64_t max_trials, max_time, limit;
  double divisor;
  /// The concurrency is capped at the bracket's trials, the number that it begins with.
  std::vector<Bracket> brackets;
};

TEST_CASE("brackets equal those of Determined, with exact integers instead of logarithms") {
  const std::vector<Row> rows{
      {"standard", 16, 937, 16, 4, {{{58, 234, 937}, 12, 8}, {{234, 937}, 4, 4}}},
      {"standard",
       100,
       1000,
       16,
       4,
       {{{15, 62, 250, 1000}, 70, 6}, {{62, 250, 1000}, 22, 5}, {{250, 1000}, 8, 5}}},
      {"standard",
       500,
       1000,
       16,
       4,
       {{{3, 15, 62, 250, 1000}, 354, 6}, {{15, 62, 250, 1000}, 110, 5}, {{62, 250, 1000}, 36, 5}}},
      {"aggressive", 100, 1000, 16, 4, {{{15, 62, 250, 1000}, 100, 16}}},
      {"conservative",
       100,
       1000,
       16,
       4,
       {{{15, 62, 250, 1000}, 67, 4}, {{62, 250, 1000}, 21, 4}, {{250, 1000}, 8, 4}, {{1000}, 4, 4}}},
      {"standard",
       100,
       1000,
       0,
       4,
       {{{15, 62, 250, 1000}, 70, 8}, {{62, 250, 1000}, 22, 8}, {{250, 1000}, 8, 8}}},
      {"aggressive", 1000, 1000, 16, 10, {{{1, 10, 100, 1000}, 1000, 16}}},
      {"aggressive", 1000, 243, 16, 3, {{{3, 9, 27, 81, 243}, 1000, 16}}},
  };
  for (const Row& row : rows) {
    INFO(row.mode << ' ' << row.max_trials << ' ' << row.max_time << ' ' << row.limit << ' ' << row.divisor);
    expconf::SearcherConfig config;
    config.name = "adaptive_asha";
    config.mode = row.mode;
    config.max_trials = row.max_trials;
    config.max_time = row.max_time;
    config.max_concurrent_trials = row.limit;
    config.divisor = row.divisor;
    auto plan = plan_brackets(config);
    REQUIRE(plan);
    for (Bracket& bracket : *plan) bracket.concurrency = std::min(bracket.concurrency, bracket.max_trials);
    CHECK(*plan == row.brackets);
  }
}

TEST_CASE("trials and concurrency are shared as in Determined's unit tests") {
  CHECK(share_trials(20, 3, {3, 2, 1}) == Numbers{12, 5, 3});
  CHECK(share_trials(50, 3, {4, 3}) == Numbers{35, 15});
  CHECK(share_trials(50, 4, {3, 2}) == Numbers{37, 13});
  CHECK(share_trials(100, 4, {4, 3, 2}) == Numbers{70, 22, 8});
  CHECK(share_concurrency(0, 3, {9, 3, 1}) == Numbers{3, 3, 3});
  CHECK(share_concurrency(11, 3, {9, 3, 1}) == Numbers{4, 4, 3});
  CHECK(share_concurrency(0, 4, {40, 10}) == Numbers{10, 10});
}

TEST_CASE("exact powers of the divisor do not lose a rung to rounding") {
  expconf::SearcherConfig config;
  config.name = "adaptive_asha";
  config.mode = "aggressive";
  config.max_rungs = 10;
  config.max_trials = config.max_time.emplace(243);
  config.divisor = 3;
  CHECK(plan_brackets(config)->front().rungs == Numbers{1, 3, 9, 27, 81, 243});
}

TEST_CASE("a longer search gets rungs above its top") {
  CHECK(rungs_above(1000, 16000, 4) == Numbers{4000, 16000});
  CHECK(rungs_above(1000, 1001, 4) == Numbers{1001});
  CHECK(rungs_above(1, 10, 2.5) == Numbers{2, 6, 10});
}

TEST_CASE("a divisor just above 1 takes bounded work") {
  constexpr double kDivisor = 1.0000000000001;
  expconf::SearcherConfig config;
  config.name = "adaptive_asha";
  config.mode = "aggressive";
  config.max_trials = config.max_time.emplace(1000);
  config.divisor = kDivisor;
  const auto plan = plan_brackets(config);
  REQUIRE(plan);
  CHECK(plan->front().rungs.size() == 5);
  CHECK(rungs_above(90, 1000, kDivisor) == Numbers{90, 1000});
}

TEST_CASE("a preview lists how many trials end at each length") {
  auto config = make_config("adaptive_asha", 16, 16);
  config->searcher.divisor = 4;
  config->searcher.max_time = 937;
  CHECK(*preview(*config) == std::vector<PreviewLine>{{9, 58}, {5, 234}, {2, 937}});
  CHECK(*preview(*make_config("random", 7)) == std::vector<PreviewLine>{{7, 0}});
  CHECK(*preview(*make_config("single")) == std::vector<PreviewLine>{{1, 0}});
  CHECK(*preview(*make_config("grid")) == std::vector<PreviewLine>{{36, 0}});
}

}  // namespace
}  // namespace det::searcher
