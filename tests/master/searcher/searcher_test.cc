// Rules common to all searches: bookkeeping, sampling, stored forms.
#include "common/searcher/searcher.h"

#include <catch2/catch.hpp>
#include <limits>
#include <set>

#include "configs.h"

namespace det::searcher {
namespace {

Searcher make(const Config& config) {
  auto searcher = Searcher::create(config);
  REQUIRE(searcher);
  return std::move(*searcher);
}

TEST_CASE("a single search ends like its trial") {
  auto shutdown_after = [](ExitReason reason) {
    Searcher searcher = make(make_config("single"));
    searcher.handle(Started{});
    return std::get<Shutdown>(searcher.handle(Exited{0, reason}).at(0));
  };
  CHECK_FALSE(shutdown_after(ExitReason::kCompleted).failure);
  CHECK_FALSE(shutdown_after(ExitReason::kCompleted).cancel);
  CHECK(shutdown_after(ExitReason::kErrored).failure);
  CHECK(shutdown_after(ExitReason::kCanceled).cancel);
  CHECK_FALSE(shutdown_after(ExitReason::kInvalidHp).failure);
}

TEST_CASE("repeated and unknown events change nothing") {
  Searcher searcher = make(make_config("single"));
  CHECK(searcher.handle(Exited{7, ExitReason::kErrored}).empty());
  CHECK(searcher.handle(Started{}).size() == 1);
  CHECK(searcher.handle(Started{}).empty());
  CHECK(searcher.handle(Validated{7, 1, 0.5, 1}).empty());
  CHECK(searcher.handle(Exited{0, ExitReason::kCompleted}).size() == 1);
  const auto before = searcher.snapshot();
  CHECK(searcher.handle(Exited{0, ExitReason::kErrored}).empty());
  CHECK(searcher.handle(Validated{0, 9, 0.5, 9}).empty());
  CHECK(searcher.snapshot() == before);
}

TEST_CASE("progress is the sum of the trials' and complete when they are closed") {
  Searcher searcher = make(make_config("random", 4, 4));
  searcher.handle(Started{});
  CHECK(searcher.progress() == 0);
  searcher.set_progress(0, 0.5);
  searcher.set_progress(1, 7);
  searcher.set_progress(2, std::numeric_limits<double>::quiet_NaN());
  searcher.set_progress(99, 1);
  CHECK(searcher.progress() == Approx(1.5 / 4));
  searcher.handle(Exited{0, ExitReason::kErrored});
  CHECK(searcher.progress() == Approx(2.0 / 4));
  for (TrialNumber trial = 1; trial < 4; ++trial) searcher.handle(Exited{trial, ExitReason::kCompleted});
  CHECK(searcher.progress() == 1);
}

TEST_CASE("random search keeps its concurrency and replaces invalid trials") {
  Searcher searcher = make(make_config("random", 5, 2));
  CHECK(searcher.handle(Started{}).size() == 2);
  CHECK(searcher.handle(Exited{0, ExitReason::kInvalidHp}).size() == 1);
  for (TrialNumber trial = 1; trial < 5; ++trial) searcher.handle(Exited{trial, ExitReason::kCompleted});
  CHECK(searcher.created() == 6);
  CHECK(std::holds_alternative<Shutdown>(searcher.handle(Exited{5, ExitReason::kCompleted}).at(0)));
}

TEST_CASE("a constraint that refuses every point ends every replacing search with the reason") {
  for (const char* name : {"random", "async_halving", "async_halving+promote", "adaptive_asha"}) {
    INFO(name);
    Searcher searcher = make(make_config(name, 1000, 4));
    std::vector<Action> last = searcher.handle(Started{});
    TrialNumber trial = 0;
    for (; trial < searcher.created(); ++trial) last = searcher.handle(Exited{trial, ExitReason::kInvalidHp});
    REQUIRE(last.size() == 1);
    const auto& shutdown = std::get<Shutdown>(last.at(0));
    CHECK(shutdown.failure);
    CHECK(shutdown.reason.find("invalid") != std::string::npos);
    CHECK(trial < 60);
  }
}

TEST_CASE("a grid with only refused points fails with the reason") {
  auto config = make_config("grid", 1, 0);
  config->hyperparameters = {{"a", range(Hyperparameter::Type::kInt, 1, 2)}};
  config->hyperparameters["a"].count = 2;
  Searcher searcher = make(config);
  searcher.handle(Started{});
  searcher.handle(Exited{0, ExitReason::kInvalidHp});
  const std::vector<Action> last = searcher.handle(Exited{1, ExitReason::kInvalidHp});
  REQUIRE(last.size() == 1);
  CHECK(std::get<Shutdown>(last.at(0)).failure);
  CHECK(std::get<Shutdown>(last.at(0)).reason.find("2 of 2 trials refused") == 0);
}

TEST_CASE("a grid is the product of its axes with the last axis fastest, taken from the end") {
  auto config = make_config("grid", 1, 0);
  config->hyperparameters = {{"a", range(Hyperparameter::Type::kInt, 1, 3)},
                             {"b", range(Hyperparameter::Type::kDouble, 0, 1)}};
  // Clamped to the three integers.
  config->hyperparameters["a"].count = 9;
  config->hyperparameters["b"].count = 2;
  Searcher searcher = make(config);
  std::string points;
  for (const auto& action : show(*config, searcher.handle(Started{}))) points += action["hparams"].dump();
  CHECK(points ==
        R"({"a":3,"b":1.0}{"a":3,"b":0.0}{"a":2,"b":1.0}{"a":2,"b":0.0}{"a":1,"b":1.0}{"a":1,"b":0.0})");
}

TEST_CASE("a grid without counts, or too large, is refused before it is built") {
  auto config = make_config("grid");
  config->hyperparameters["width"].count.reset();
  config->hyperparameters["nested"].children["z"].count.reset();
  auto refused = Searcher::create(config);
  REQUIRE_FALSE(refused);
  REQUIRE(refused.error().problems.size() == 2);
  CHECK(refused.error().problems[0].path == "hyperparameters.nested.z");
  config = make_config("grid");
  config->hyperparameters["dropout"].count = std::numeric_limits<std::int64_t>::max();
  REQUIRE_FALSE(Searcher::create(config));
}

TEST_CASE("both samplers keep every kind of hyperparameter in its range") {
  for (const char* name : {"random", "random+tpe"}) {
    const auto config = make_config(name, 400, 1);
    Searcher searcher = make(config);
    std::set<std::int64_t> widths;
    auto actions = searcher.handle(Started{});
    for (TrialNumber trial = 0; trial < 400; ++trial) {
      const auto values = hparams(config->hyperparameters, std::get<Create>(actions.at(0)).sample);
      widths.insert(values["width"].get<std::int64_t>());
      CHECK((values["dropout"] >= 0.25 && values["dropout"] <= 0.75));
      CHECK((values["rate"] >= 0.99e-4 && values["rate"] <= 1.01e-1));
      CHECK((values["optimizer"] == "sgd" || values["optimizer"] == "adam" || values["optimizer"].is_null()));
      CHECK((values["batch"] == 64 && values["nested"]["a"] == 3 && values["nested"]["z"] <= 1.0));
      searcher.handle(Validated{trial, 90, values["dropout"].get<double>(), 90});
      actions = searcher.handle(Exited{trial, ExitReason::kCompleted});
    }
    CHECK(*widths.begin() >= 16);
    CHECK(*widths.rbegin() <= 64);
    CHECK(widths.size() > 30);
  }
}

TEST_CASE("an int range may span all integers") {
  Random random{7, 0};
  auto parameter = range(Hyperparameter::Type::kInt, 0, 0);
  parameter.int_min = std::numeric_limits<std::int64_t>::min();
  parameter.int_max = std::numeric_limits<std::int64_t>::max();
  CHECK(draw(parameter, random).whole != draw(parameter, random).whole);
}

TEST_CASE("the name and seed of a trial follow from the experiment's seed and the trial's number") {
  std::set<std::string> ids;
  std::set<std::uint32_t> seeds;
  for (TrialNumber trial = 0; trial < 1000; ++trial) {
    ids.insert(request_id(7, trial).value);
    ids.insert(request_id(8, trial).value);
    seeds.insert(trial_seed(7, trial));
    CHECK(trial_seed(7, trial) < 1u << 31);
  }
  CHECK(ids.size() == 2000);
  CHECK(seeds.size() > 990);
  CHECK(request_id(7, 3) == request_id(7, 3));
}

TEST_CASE("events survive the round trip, including NaN and infinities") {
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               infinity = std::numeric_limits<double>::infinity();
  std::vector<Event> events{Started{},
                            Extended{30, std::nullopt},
                            Extended{std::nullopt, 900},
                            Extended{std::nullopt, 900, {0, 7}},
                            Retried{3},
                            Retried{3, true}};
  for (double metric : {0.1, -0.0, 1e300, infinity, nan}) events.push_back(Validated{4, 300, metric, 12.5});
  for (auto reason :
       {ExitReason::kCompleted, ExitReason::kErrored, ExitReason::kCanceled, ExitReason::kInvalidHp})
    events.push_back(Exited{5, reason});
  for (const Event& event : events) {
    const std::string text = to_json(event).dump();
    INFO(text);
    auto read = event_from_json(nlohmann::json::parse(text));
    REQUIRE(read);
    CHECK(to_json(*read).dump() == text);
  }
}

TEST_CASE("a damaged stored form is refused without an exception") {
  for (const char* text :
       {"null", "[]", "{}", R"({"type":"paused"})", R"({"type":"validated"})",
        R"({"type":"retried","trial":-1})",
        R"({"type":"validated","trial":1,"steps_completed":1,"metric":"x","time":1})",
        R"({"type":"exited","trial":99999999999,"reason":"completed"})",
        R"({"type":"exited","trial":1,"reason":"bored"})", R"({"type":"extended","max_trials":"9"})",
        R"({"type":"extended","max_time":9,"behind":4})",
        R"({"type":"extended","max_time":9,"behind":[-1]})"}) {
    INFO(text);
    auto event = event_from_json(nlohmann::json::parse(text));
    REQUIRE_FALSE(event);
    CHECK(event.error().code == Code::kDataLoss);
  }
  for (const std::string& name : every_search()) {
    const auto config = make_config(name);
    Searcher searcher = make(config);
    searcher.handle(Started{});
    const auto good = searcher.snapshot();
    for (const auto& [key, value] : good.items()) {
      INFO(name << " without " << key);
      auto bad = good;
      bad.erase(key);
      if (key != "sampler" || !value.is_null()) CHECK_FALSE(Searcher::restore(config, bad));
    }
  }
}

TEST_CASE("impossible extensions and retries are refused with the reason") {
  auto reason = [](const char* name, const Event& event) {
    Searcher searcher = make(make_config(name));
    searcher.handle(Started{});
    CHECK(searcher.handle(event).empty());
    const Status status = searcher.check(event);
    return status ? std::string("fine") : status.error().message;
  };
  CHECK(reason("single", Extended{5, {}}).find("one trial") != std::string::npos);
  CHECK(reason("grid", Extended{50, {}}).find("every point") != std::string::npos);
  CHECK(reason("random", Extended{3, {}}).find("only grow") != std::string::npos);
  CHECK(reason("random", Extended{20, {}}).find("larger") != std::string::npos);
  CHECK(reason("async_halving", Extended{{}, 10}).find("only grow") != std::string::npos);
  CHECK(reason("random", Retried{0}).find("did not fail") != std::string::npos);
  CHECK(reason("random", Retried{99}).find("no trial") != std::string::npos);
}

TEST_CASE("the error for an unknown searcher lists the existing ones") {
  auto config = make_config("single");
  config->searcher.name = "pbt";
  const auto searcher = Searcher::create(config);
  REQUIRE_FALSE(searcher);
  CHECK(searcher.error().code == Code::kUnimplemented);
  CHECK(searcher.error().message.find("adaptive_asha") != std::string::npos);
}

}  // namespace
}  // namespace det::searcher
