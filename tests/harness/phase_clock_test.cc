#include "harness/src/observability/phase_clock.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace det {
namespace {

TEST_CASE("time counts for the innermost phase, and the rest for none") {
  std::int64_t now = 0;
  PhaseClock clock([&] { return now; });
  const auto pass = [&](std::int64_t seconds) { now += seconds * 1'000'000'000; };
  pass(1);
  {
    const PhaseSpan forward(&clock, Phase::kForward);
    pass(2);
    {
      const PhaseSpan backward(&clock, Phase::kBackward);
      pass(4);
      const PhaseSpan exchange(&clock, Phase::kExchange);
      pass(8);
    }
    pass(16);
  }
  pass(32);
  CHECK(clock.take(2) == Json({{"other", 16.5}, {"forward", 9.0}, {"backward", 2.0}, {"exchange", 4.0}}));
}

TEST_CASE("a running phase is reported up to now and continues") {
  std::int64_t now = 5;
  PhaseClock clock([&] { return now; });
  const PhaseSpan data(&clock, Phase::kData);
  now += 3'000'000'000;
  CHECK(clock.take(1) == Json({{"data", 3.0}}));
  now += 1'000'000'000;
  CHECK(clock.take(1) == Json({{"data", 1.0}}));
}

}  // namespace
}  // namespace det
