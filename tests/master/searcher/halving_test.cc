// Decisions of the halving searches, case by case.
#include <catch2/catch.hpp>
#include <limits>

#include "common/searcher/rung.h"
#include "configs.h"

namespace det::searcher {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

/// A search with rungs 10, 30, 90 and divisor 3, with actions as short text.
struct Told {
  Config config;
  Searcher searcher;
  Told(const std::string& name, std::int64_t trials, std::int64_t concurrent)
      : config(make_config(name, trials, concurrent)), searcher(std::move(*Searcher::create(config))) {
    handle(Started{});
  }
  std::string handle(const Event& event) {
    std::string text;
    for (const auto& action : show(*config, searcher.handle(event))) {
      const std::string word = action.begin().key();
      const auto& value = action.begin().value();
      text += (text.empty() ? "" : " ") + word + (word == "shutdown" ? "" : value.dump());
    }
    return text;
  }
  std::string reports(TrialNumber trial, double metric, double time) {
    return handle(Validated{trial, static_cast<std::int64_t>(time), metric, time});
  }
  std::string exits(TrialNumber trial, ExitReason reason = ExitReason::kCompleted) {
    return handle(Exited{trial, reason});
  }
};

TEST_CASE("a stopping search stops a trial below the best once and creates its replacement at once") {
  Told search("async_halving", 8, 4);
  CHECK(search.reports(0, 0.5, 5) == "");
  CHECK(search.reports(0, 0.5, 10) == "");  // The first trial of a rung continues.
  CHECK(search.reports(1, 0.6, 10) == "stop1 create4");
  CHECK(search.reports(1, 0.1, 30) == "");               // Reports of a stopped trial are ignored.
  CHECK(search.reports(0, 0.4, 20) == "");               // A trial has one entry in a rung.
  CHECK(search.reports(2, 0.5, 10) == "");               // A tie passes.
  CHECK(search.reports(3, 0.1, 95) == "stop3 create5");  // All three rungs in one report.
  CHECK(search.exits(3) == "");
}

TEST_CASE("NaN ranks last in both directions and never ties with the best") {
  for (bool smaller : {true, false}) {
    Told search("async_halving", 9, 9);
    search.config->searcher.smaller_is_better = smaller;
    CHECK(search.reports(0, kNan, 10) == "");  // The only trial of the rung continues.
    CHECK(search.reports(1, kNan, 10) == "stop1");
    CHECK(search.reports(2, kNan, 10) == "stop2");
    CHECK(search.reports(3, smaller ? 1e9 : -1e9, 10) == "");
    CHECK(search.reports(4, kNan, 10) == "stop4");
  }
}

TEST_CASE("a failed trial ranks last in its rung, and an invalid one leaves no entry") {
  Told search("async_halving", 4, 3);
  CHECK(search.reports(0, 0.5, 10) == "");
  CHECK(search.exits(1, ExitReason::kErrored) == "create3");
  CHECK(search.exits(0, ExitReason::kInvalidHp) == "create4");
  CHECK(search.reports(2, 0.9, 10) == "");  // Only the failed trial is in its rung.
  CHECK(search.exits(2) == "");
}

TEST_CASE("a promoting search holds at every rung and promotes from the highest") {
  Told search("async_halving+promote", 9, 1);
  CHECK(search.reports(0, 0.3, 10) == "hold0 create1");
  CHECK(search.reports(1, 0.1, 10) == "hold1 create2");
  CHECK(search.reports(2, 0.2, 10) == "hold2 resume1");
  CHECK(search.reports(1, 0.1, 30) == "hold1 create3");
  CHECK(search.reports(3, 0.25, 10) == "hold3 create4");
  CHECK(search.reports(4, 0.26, 10) == "hold4 create5");
  CHECK(search.reports(5, 0.27, 10) == "hold5 resume2");
  CHECK(search.reports(2, 0.4, 30) == "hold2 create6");
  CHECK(search.exits(6, ExitReason::kErrored) == "create7");
  CHECK(search.exits(0, ExitReason::kCanceled) == "");  // A held trial has no slot to release.
  CHECK(search.reports(7, 0.29, 10) == "hold7 create8");
  CHECK(search.reports(8, 0.28, 10) == "hold8 resume3");
  CHECK(search.reports(3, 0.3, 30) == "hold3 resume1");
  CHECK(search.reports(1, 0.1, 90) == "stop1 stop2 stop3 stop4 stop5 stop7 stop8");
  for (TrialNumber trial : {1, 2, 3, 4, 5, 7}) CHECK(search.exits(trial) == "");
  CHECK(search.exits(8) == "shutdown");
}

TEST_CASE("a promoting search of few trials trains one to its end") {
  Told search("async_halving+promote", 2, 2);
  CHECK(search.reports(0, 0.3, 10) == "hold0");
  CHECK(search.reports(1, 0.2, 10) == "hold1 resume1");
  CHECK(search.reports(1, 0.2, 30) == "hold1 resume1");
  CHECK(search.reports(1, 0.2, 90) == "stop1 stop0");
}

TEST_CASE("a report that passes several rungs promotes its trial without a run") {
  Told search("async_halving+promote", 1, 1);
  CHECK(search.reports(0, 0.3, 95) == "hold0 stop0");
  CHECK(search.exits(0) == "shutdown");
}

TEST_CASE("a finished search with more trials continues and shuts down again") {
  for (const char* name : {"random", "async_halving"}) {
    Told search(name, 2, 2);
    search.exits(0);
    CHECK(search.exits(1) == "shutdown");
    CHECK(search.handle(Extended{3, {}}) == "create2");
    CHECK(search.exits(2) == "shutdown");
  }
}

TEST_CASE("more time resumes all completed trials of a random search within its concurrency") {
  Told search("random", 3, 2);
  search.exits(0);
  search.exits(1, ExitReason::kErrored);
  CHECK(search.exits(2) == "shutdown");
  CHECK(search.handle(Extended{{}, 180}) == "resume0 resume2");
  CHECK(search.exits(0) == "");
  CHECK(search.exits(2) == "shutdown");
}

TEST_CASE("more time resumes the trials that run, once they have completed the old length") {
  for (const char* name : {"random", "async_halving"}) {
    INFO(name);
    Told search(name, 2, 2);
    CHECK(search.handle(Extended{{}, 270, {0}}) == "");
    CHECK(search.exits(0) == "resume0");
    CHECK(search.exits(0) == "");
    CHECK(search.exits(1) == "shutdown");
  }
}

TEST_CASE("a trial that fails or is stopped after an extension is not resumed for it") {
  Told search("random", 2, 2);
  CHECK(search.handle(Extended{{}, 270, {0, 1}}) == "");
  CHECK(search.exits(0, ExitReason::kErrored) == "");
  CHECK(search.handle(Retried{0}) == "resume0");
  CHECK(search.exits(0) == "");
  CHECK(search.exits(1, ExitReason::kCanceled) == "shutdown");
}

TEST_CASE("more time adds rungs above the top of a halving search for its best trials") {
  for (const char* name : {"async_halving", "async_halving+promote"}) {
    Told search(name, 3, 3);
    const bool promotes = search.config->searcher.rung_policy == "promote";
    for (TrialNumber trial : {0, 1, 2})
      search.reports(trial, promotes ? trial : 9 - static_cast<int>(trial), 90);
    for (TrialNumber trial : {0, 1, 2}) search.exits(trial);
    CHECK(search.searcher.progress() == 1);
    const std::string best = promotes ? "0" : "2";
    CHECK(search.handle(Extended{{}, 270}) == "resume" + best);
    CHECK(search.reports(promotes ? 0 : 2, 0, 270) == "stop" + best);
    CHECK(search.exits(promotes ? 0 : 2) == "shutdown");
  }
}

TEST_CASE("more time is refused beyond 100 rungs, and a search with 100 is restored") {
  Told search("async_halving", 3, 3);
  std::int64_t time = 91;
  for (; search.searcher.check(Extended{{}, time}); ++time) {
    REQUIRE(time < 1000);
    search.handle(Extended{{}, time});
  }
  const auto refused = search.searcher.check(Extended{{}, time});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kInvalidArgument);
  CHECK(search.handle(Extended{{}, time}) == "");
  CHECK(search.searcher.brackets().front().rungs.size() == 100);
  CHECK(search.searcher.check(Extended{4, {}}));
  CHECK(Searcher::restore(search.config, nlohmann::json::parse(search.searcher.snapshot().dump())));
}

TEST_CASE("a retried trial removes its failure from the rung and runs again") {
  Told search("async_halving", 2, 2);
  CHECK(search.exits(0, ExitReason::kErrored) == "");
  CHECK(search.exits(1, ExitReason::kErrored) == "shutdown");
  CHECK(search.handle(Retried{1}) == "resume1");
  CHECK(search.handle(Retried{1}) == "");
  CHECK(search.reports(1, 0.5, 10) == "");
  CHECK(search.reports(1, 0.5, 30) == "");
  CHECK(search.reports(1, 0.5, 90) == "stop1");
  CHECK(search.exits(1) == "shutdown");
}

TEST_CASE("a search reports the trials of each bracket and the results of each rung") {
  Told search("adaptive_asha", 12, 6);
  const auto said = [&](const Searcher& searcher) {
    std::string text;
    for (const BracketState& bracket : searcher.brackets()) {
      text += text.empty() ? "" : " | ";
      for (const auto& rung : bracket.rungs)
        text += std::to_string(rung.length) + ":" + std::to_string(rung.results) + " ";
      text += "of " + std::to_string(bracket.max_trials) + ":";
      for (const TrialNumber trial : bracket.trials) text += " " + std::to_string(trial);
    }
    return text;
  };
  CHECK(said(search.searcher) == "10:0 30:0 90:0 of 8: 0 1 2 | 30:0 90:0 of 4: 3 4 5");
  search.reports(0, 0.5, 10);
  search.reports(0, 0.5, 30);
  const auto restored =
      Searcher::restore(search.config, nlohmann::json::parse(search.searcher.snapshot().dump()));
  REQUIRE(restored);
  CHECK(said(*restored) == said(search.searcher));
  search.handle(Extended{.max_trials = 24, .max_time = 270});
  CHECK(said(search.searcher) == "10:1 30:1 90:0 270:0 of 16: 0 1 2 | 30:0 90:0 270:0 of 8: 3 4 5");
  CHECK(Told("random", 4, 2).searcher.brackets().empty());
}

TEST_CASE("a rung ranks like a sorted list under insertions and removals") {
  for (double divisor : {2.0, 2.5, 4.0}) {
    for (std::size_t least : {0u, 1u}) {
      Random random{17, 0};
      Rung rung(Divisor(divisor), least);
      std::vector<Entry> all;
      for (TrialNumber trial = 0; trial < 400; ++trial) {
        if (!all.empty() && random.below(3) == 0) {
          const auto gone = all.begin() + static_cast<std::ptrdiff_t>(random.below(all.size()));
          rung.erase(*gone);
          all.erase(gone);
        }
        const Entry entry{static_cast<double>(random.below(50)), trial};
        rung.insert(entry);
        all.insert(std::lower_bound(all.begin(), all.end(), entry), entry);
        const auto keep =
            std::max(static_cast<std::size_t>(static_cast<double>(all.size()) / divisor), least);
        for (std::size_t i = 0; i < all.size(); ++i) REQUIRE(rung.among_best(all[i]) == (i < keep));
        REQUIRE(rung.size() == all.size());
      }
    }
  }
}

}  // namespace
}  // namespace det::searcher
