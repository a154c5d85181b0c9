// Owns the tests of the search: decisions recorded once must come out the same for ever (golden/), also when
// the search is stored and restored between any two events.
#include "master/searcher/searcher.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <limits>
#include <set>
#include <string>

#include "base/json.h"
#include "master/searcher/hyperparameters.h"

namespace det::searcher {
namespace {

using expconf::Hyperparameter;

Hyperparameter range(Hyperparameter::Type type, double low, double high, double base = 0) {
  Hyperparameter parameter;
  parameter.type = type;
  parameter.int_min = static_cast<std::int64_t>(low);
  parameter.int_max = static_cast<std::int64_t>(high);
  parameter.min = low;
  parameter.max = high;
  parameter.base = base;
  return parameter;
}

Hyperparameter constant(nlohmann::json value) {
  Hyperparameter parameter;
  parameter.value = std::move(value);
  return parameter;
}

expconf::HyperparameterMap every_kind() {
  Hyperparameter choice;
  choice.type = Hyperparameter::Type::kCategorical;
  choice.values = {"sgd", "adam", nullptr};
  Hyperparameter nested;
  nested.type = Hyperparameter::Type::kNested;
  nested.children = {{"z", range(Hyperparameter::Type::kDouble, 0, 1)}, {"a", constant(3)}};
  return {{"width", range(Hyperparameter::Type::kInt, 16, 64)},
          {"dropout", range(Hyperparameter::Type::kDouble, 0.25, 0.75)},
          {"rate", range(Hyperparameter::Type::kLog, -4, -1, 10)},
          {"optimizer", choice},
          {"nested", nested},
          {"batch", constant(64)}};
}

std::shared_ptr<expconf::ExperimentConfig> single_config() {
  auto config = std::make_shared<expconf::ExperimentConfig>();
  config->searcher.name = "single";
  config->searcher.metric = "loss";
  config->experiment_seed = 1234;
  config->hyperparameters = every_kind();
  return config;
}

nlohmann::json show(const std::vector<Action>& actions) {
  nlohmann::json all = nlohmann::json::array();
  for (const Action& action : actions) {
    if (auto* create = std::get_if<Create>(&action)) {
      // The logarithmic range goes through pow, whose last bit is the C library's.
      nlohmann::json hparams = create->hparams;
      if (hparams.contains("rate")) hparams["rate"] = std::round(hparams["rate"].get<double>() * 1e9) / 1e9;
      all.push_back(
          {{"create", create->request_id.value}, {"seed", create->trial_seed}, {"hparams", hparams}});
    } else if (auto* stop = std::get_if<Stop>(&action)) {
      all.push_back({{"stop", stop->request_id.value}});
    } else {
      const auto& shutdown = std::get<Shutdown>(action);
      all.push_back({{"shutdown", {{"cancel", shutdown.cancel}, {"failure", shutdown.failure}}}});
    }
  }
  return all;
}

RequestId first_trial(const std::vector<Action>& actions) {
  return std::get<Create>(actions.at(0)).request_id;
}

TEST_CASE("a recorded history is decided the same way again, restored anywhere") {
  std::ifstream file(DET_SOURCE_DIR "/tests/master/searcher/golden/single.history");
  REQUIRE(file);
  const auto config = single_config();
  auto searcher = Searcher::create(config);
  REQUIRE(searcher);
  int events = 0;
  for (std::string line; std::getline(file, line);) {
    const auto tab = line.find('\t');
    auto event = event_from_json(nlohmann::json::parse(line.substr(0, tab)));
    REQUIRE(event);
    auto restored = Searcher::restore(config, nlohmann::json::parse(searcher->snapshot().dump()));
    REQUIRE(restored);
    const auto actions = searcher->handle(*event);
    CHECK(show(actions).dump() == line.substr(tab + 1));
    CHECK(show(restored->handle(*event)) == show(actions));
    CHECK(restored->snapshot() == searcher->snapshot());
    ++events;
  }
  REQUIRE(events == 4);
}

TEST_CASE("a single search ends as its trial did") {
  auto shutdown_after = [](ExitReason reason) {
    auto searcher = Searcher::create(single_config());
    const RequestId id = first_trial(searcher->handle(Started{}));
    return std::get<Shutdown>(searcher->handle(Exited{id, reason}).at(0));
  };
  CHECK_FALSE(shutdown_after(ExitReason::kCompleted).failure);
  CHECK_FALSE(shutdown_after(ExitReason::kCompleted).cancel);
  CHECK(shutdown_after(ExitReason::kErrored).failure);
  CHECK(shutdown_after(ExitReason::kCanceled).cancel);
  CHECK_FALSE(shutdown_after(ExitReason::kInvalidHp).failure);
}

TEST_CASE("what a search has heard or never asked for changes nothing") {
  auto searcher = Searcher::create(single_config());
  CHECK(searcher->handle(Exited{RequestId("nobody"), ExitReason::kErrored}).empty());
  const RequestId id = first_trial(searcher->handle(Started{}));
  CHECK(searcher->handle(Started{}).empty());
  CHECK(searcher->handle(Validated{RequestId("nobody"), 1, 0.5}).empty());
  CHECK(searcher->handle(Exited{id, ExitReason::kCompleted}).size() == 1);
  const auto before = searcher->snapshot();
  CHECK(searcher->handle(Exited{id, ExitReason::kErrored}).empty());
  CHECK(searcher->handle(Validated{id, 9, 0.5}).empty());
  CHECK(searcher->snapshot() == before);
}

TEST_CASE("progress is the trial's, and whole when it has closed") {
  auto searcher = Searcher::create(single_config());
  const RequestId id = first_trial(searcher->handle(Started{}));
  CHECK(searcher->progress({}) == 0);
  CHECK(searcher->progress({{id, 0.25}}) == 0.25);
  CHECK(searcher->progress({{id, 7.0}}) == 1);
  CHECK(searcher->progress({{id, std::numeric_limits<double>::quiet_NaN()}}) == 0);
  searcher->handle(Exited{id, ExitReason::kCompleted});
  CHECK(searcher->progress({{id, 0.25}}) == 1);
}

TEST_CASE("every kind of hyperparameter stays in its range") {
  Random random{7, 0};
  std::set<std::int64_t> widths;
  for (int i = 0; i < 2000; ++i) {
    const auto values = sample(every_kind(), random);
    widths.insert(values["width"].get<std::int64_t>());
    CHECK((values["dropout"] >= 0.25 && values["dropout"] < 0.75));
    CHECK((values["rate"] >= 1e-4 && values["rate"] <= 1e-1));
    CHECK((values["optimizer"] == "sgd" || values["optimizer"] == "adam" || values["optimizer"].is_null()));
    CHECK(values["batch"] == 64);
    CHECK((values["nested"]["a"] == 3 && values["nested"]["z"] < 1.0));
  }
  CHECK(*widths.begin() == 16);
  CHECK(*widths.rbegin() == 64);
  CHECK(widths.size() == 49);
}

TEST_CASE("an int range may span all there is") {
  Random random{7, 0};
  auto parameter = range(Hyperparameter::Type::kInt, 0, 0);
  parameter.int_min = std::numeric_limits<std::int64_t>::min();
  parameter.int_max = std::numeric_limits<std::int64_t>::max();
  const auto a = sample({{"x", parameter}}, random), b = sample({{"x", parameter}}, random);
  CHECK(a != b);
}

TEST_CASE("events survive their stored form, NaN and infinities too") {
  const double metrics[] = {0.1, -0.0, 1e300, std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::quiet_NaN()};
  for (double metric : metrics) {
    const Validated event{RequestId("r"), 300, metric};
    auto read = event_from_json(nlohmann::json::parse(to_json(event).dump()));
    REQUIRE(read);
    const auto& again = std::get<Validated>(*read);
    CHECK(again.request_id == event.request_id);
    CHECK(again.steps_completed == 300);
    CHECK((std::isnan(metric) ? std::isnan(again.metric) : again.metric == metric));
  }
  for (auto reason :
       {ExitReason::kCompleted, ExitReason::kErrored, ExitReason::kCanceled, ExitReason::kInvalidHp}) {
    auto read = event_from_json(to_json(Exited{RequestId("r"), reason}));
    REQUIRE(read);
    CHECK(std::get<Exited>(*read).reason == reason);
  }
  CHECK(std::holds_alternative<Started>(*event_from_json(to_json(Started{}))));
}

TEST_CASE("a damaged stored form is refused, never thrown") {
  for (const char* text : {"null", "[]", "{}", R"({"type":"paused"})", R"({"type":"validated"})",
                           R"({"type":"validated","request_id":1})",
                           R"({"type":"validated","request_id":"r","steps_completed":1,"metric":"x"})",
                           R"({"type":"exited","request_id":"r","reason":"bored"})"}) {
    INFO(text);
    auto event = event_from_json(nlohmann::json::parse(text));
    REQUIRE_FALSE(event);
    CHECK(event.error().code == Code::kDataLoss);
  }
  const auto good = Searcher::create(single_config())->snapshot();
  for (const char* key : {"version", "random", "trials", "shut_down", "method"}) {
    auto bad = good;
    bad.erase(key);
    INFO(key);
    CHECK_FALSE(Searcher::restore(single_config(), bad));
  }
}

TEST_CASE("an unknown searcher is named with what there is") {
  auto config = single_config();
  config->searcher.name = "pbt";
  const auto searcher = Searcher::create(config);
  REQUIRE_FALSE(searcher);
  CHECK(searcher.error().code == Code::kUnimplemented);
  CHECK(searcher.error().message.find("single") != std::string::npos);
}

}  // namespace
}  // namespace det::searcher
