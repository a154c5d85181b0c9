// Harness reports: fencing, repeats, rollbacks, metrics.
#include <catch2/catch.hpp>
#include <limits>

#include "bench.h"

namespace det::core {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<std::string> searcher_events(const Bench& bench) {
  std::vector<std::string> events;
  for (const auto& [number, event] : bench.disk().searcher_events.at(ExperimentId(1)))
    events.push_back(event);
  return events;
}

struct Running : Bench {
  Running() {
    connect("a1", 1);
    submit(config());
    REQUIRE(attach(kTrial, 1));
  }
};

TEST_CASE("reports of a stale run are refused") {
  Running bench;
  bench.exit(kTrial, ExitKind::kLost);
  REQUIRE(bench.live(kTrial)->run == 2);
  const auto refused = bench.validate(kTrial, 1, 10, 0.5);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kAborted);
  CHECK(refused.error().message == "run 1 of trial 1 is not current (2 is)");
  CHECK(bench.attach(kTrial, 1).error().code == Code::kAborted);
  CHECK(bench.checkpoint(kTrial, 1, 10, "c").error().code == Code::kAborted);
  CHECK(bench.step(ReportProgress{0, kTrial, 1, 0.5, 5})->error().code == Code::kAborted);
  CHECK(bench.step(ReportInvalidHp{0, kTrial, 1})->error().code == Code::kAborted);
  CHECK(bench.step(AcknowledgePreemption{0, kTrial, 1})->error().code == Code::kAborted);
  CHECK(bench.disk().validations.empty());
}

TEST_CASE("reports of an ended run and of its trial are refused") {
  Running bench;
  bench.disconnect("a1");
  bench.pass(Options{}.agent_wait());
  REQUIRE(bench.live(kTrial) == nullptr);
  CHECK(bench.validate(kTrial, 1, 10, 0.5).error().message == "run 1 of trial 1 has ended");
  bench.act(ExperimentId(1), ExperimentAction::kKill);
  CHECK(bench.validate(kTrial, 1, 10, 0.5).error().code == Code::kAborted);
}

TEST_CASE("a repeated validation counts once") {
  Running bench;
  REQUIRE(bench.validate(kTrial, 1, 10, 0.5));
  REQUIRE(bench.validate(kTrial, 1, 10, 0.5));
  REQUIRE(bench.validate(kTrial, 1, 20, 0.4));
  REQUIRE(bench.validate(kTrial, 1, 10, 0.5));
  CHECK(bench.disk().validations.size() == 2);
  CHECK(searcher_events(bench).size() == 3);
  CHECK(bench.trial(kTrial).best_metric == 0.4);
}

TEST_CASE("steps repeated after a resume are stored again but not sent to the searcher") {
  Running bench;
  REQUIRE(bench.validate(kTrial, 1, 10, 0.5));
  REQUIRE(bench.checkpoint(kTrial, 1, 15, "c15"));
  REQUIRE(bench.validate(kTrial, 1, 20, 0.4));
  bench.exit(kTrial, ExitKind::kFailed);
  CHECK(bench.trial(kTrial).steps_completed == 15);
  REQUIRE(bench.attach(kTrial, 2));
  REQUIRE(bench.validate(kTrial, 2, 10, 0.5));
  REQUIRE(bench.validate(kTrial, 2, 20, 0.4));
  REQUIRE(bench.validate(kTrial, 2, 30, 0.3));
  std::vector<std::pair<RunNumber, std::int64_t>> visible;
  for (const auto& [key, row] : bench.disk().validations) {
    if (!row.archived) visible.emplace_back(row.row.run, row.row.steps_completed);
  }
  CHECK(visible == std::vector<std::pair<RunNumber, std::int64_t>>{{1, 10}, {2, 20}, {2, 30}});
  CHECK(searcher_events(bench).size() == 4);  // Started, 10, 20, 30.
}

TEST_CASE("a late checkpoint report does not hide missing validations of its steps") {
  Running bench;
  REQUIRE(bench.checkpoint(kTrial, 1, 10, "c10"));
  REQUIRE(bench.validate(kTrial, 1, 20, 0.5));
  bench.exit(kTrial, ExitKind::kFailed);
  REQUIRE(bench.attach(kTrial, 2));
  REQUIRE(bench.validate(kTrial, 2, 10, 0.5));
  CHECK(bench.disk().validations.contains({kTrial, 2, 10}));
}

TEST_CASE("the newest checkpoint is the one with the most steps") {
  Running bench;
  REQUIRE(bench.checkpoint(kTrial, 1, 10, "c10"));
  REQUIRE(bench.checkpoint(kTrial, 1, 30, "c30"));
  REQUIRE(bench.checkpoint(kTrial, 1, 20, "c20"));
  REQUIRE(bench.checkpoint(kTrial, 1, 30, "c30"));
  CHECK(bench.trial(kTrial).latest_checkpoint == "c30");
  CHECK(bench.trial(kTrial).latest_steps == 30);
  CHECK(bench.disk().checkpoints.size() == 3);
}

TEST_CASE("NaN is stored and never the best") {
  Running bench;
  REQUIRE(bench.validate(kTrial, 1, 10, kNan));
  CHECK_FALSE(bench.trial(kTrial).best_metric);
  REQUIRE(bench.validate(kTrial, 1, 20, 0.5));
  REQUIRE(bench.validate(kTrial, 1, 30, kNan));
  CHECK(bench.trial(kTrial).best_metric == 0.5);
  CHECK(bench.disk().validations.size() == 3);
}

TEST_CASE("the best metric is the largest when smaller_is_better is false") {
  Bench bench;
  bench.connect("a1", 1);
  auto config = bench.config();
  config->searcher.smaller_is_better = false;
  bench.submit(config);
  REQUIRE(bench.validate(kTrial, 1, 10, 0.5));
  REQUIRE(bench.validate(kTrial, 1, 20, 0.7));
  REQUIRE(bench.validate(kTrial, 1, 30, 0.6));
  CHECK(bench.trial(kTrial).best_metric == 0.7);
}

TEST_CASE("a validation without the searcher's metric is stored") {
  Running bench;
  REQUIRE(bench.validate(kTrial, 1, 10, std::nullopt));
  CHECK(bench.disk().validations.size() == 1);
  CHECK(searcher_events(bench).size() == 1);
  CHECK(bench.trial(kTrial).state == State::kActive);
}

TEST_CASE("progress is monotonic within a run and becomes the experiment's") {
  Running bench;
  bench.step(ReportProgress{0, kTrial, 1, 0.5, 50});
  bench.step(ReportProgress{0, kTrial, 1, 0.2, 20});
  CHECK(bench.trial(kTrial).steps_completed == 50);
  CHECK(bench.experiment(ExperimentId(1)).progress == 0.5);
  bench.step(ReportProgress{0, kTrial, 1, kNan, 60});
  CHECK(bench.trial(kTrial).progress == 0);
  bench.step(ReportProgress{0, kTrial, 1, 7, 70});
  CHECK(bench.trial(kTrial).progress == 1);
}

TEST_CASE("invalid hyperparameters complete the trial") {
  Running bench;
  bench.step(ReportInvalidHp{0, kTrial, 1});
  bench.step(ReportInvalidHp{0, kTrial, 1});
  CHECK(bench.trial(kTrial).state == State::kStoppingCompleted);
  SECTION("the process exits by itself") { bench.exit(kTrial, ExitKind::kFailed); }
  SECTION("the process has to be killed") {
    bench.pass(std::chrono::seconds(10));
    CHECK(bench.live(kTrial)->kill_requested);
    bench.exit(kTrial, ExitKind::kStopped);
  }
  CHECK(bench.trial(kTrial).state == State::kCompleted);
  CHECK(bench.trial(kTrial).exit_reason == "the trial rejected its hyperparameters");
  CHECK(searcher_events(bench).back().find("invalid_hp") != std::string::npos);
}

TEST_CASE("acknowledging a preemption that was not requested is refused") {
  Running bench;
  CHECK(bench.step(AcknowledgePreemption{0, kTrial, 1})->error().code == Code::kFailedPrecondition);
}

}  // namespace
TEST_CASE("a run with a damaged checkpoint resumes from the one before and discards later steps") {
  Running bench;
  REQUIRE(bench.validate(kTrial, 1, 10, 0.5));
  REQUIRE(bench.checkpoint(kTrial, 1, 10, "older"));
  REQUIRE(bench.validate(kTrial, 1, 20, 0.4));
  REQUIRE(bench.checkpoint(kTrial, 1, 20, "newest"));
  bench.exit(kTrial, ExitKind::kLost);
  REQUIRE(bench.live(kTrial)->run == 2);
  const ReportDamage damage{0,
                            kTrial,
                            2,
                            CheckpointId("newest"),
                            "a digest differs",
                            ReportDamage::Older{CheckpointId("older"), 10, 10}};
  CHECK(bench.step(ReportDamage{0, kTrial, 1, CheckpointId("newest"), "", std::nullopt})->error().code ==
        Code::kAborted);
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto told = bench.step(damage);
    REQUIRE(told->has_value());
    CHECK(std::get<ResumeFrom>(**told).checkpoint == "older");
    CHECK(std::get<ResumeFrom>(**told).steps_completed == 10);
  }
  CHECK(bench.disk().damaged == std::set{CheckpointId("newest")});
  const Trial& trial = bench.trial(kTrial);
  CHECK(trial.latest_checkpoint == "older");
  CHECK((trial.latest_steps == 10 && trial.steps_completed == 10 && trial.last_validation == 10));
  CHECK_FALSE(bench.disk().validations.at({kTrial, 1, 10}).archived);
  CHECK(bench.disk().validations.at({kTrial, 1, 20}).archived);

  // Reports of the new run count again, and the searcher receives step 20 once.
  const auto heard = searcher_events(bench).size();
  REQUIRE(bench.validate(kTrial, 2, 20, 0.4));
  CHECK_FALSE(bench.disk().validations.at({kTrial, 2, 20}).archived);
  CHECK(searcher_events(bench).size() == heard);
}

TEST_CASE("without a sound checkpoint a trial restarts from zero, unless the run has already trained") {
  Running bench;
  REQUIRE(bench.validate(kTrial, 1, 10, 0.5));
  REQUIRE(bench.checkpoint(kTrial, 1, 10, "only"));
  bench.exit(kTrial, ExitKind::kLost);
  const ReportDamage damage{0, kTrial, 2, CheckpointId("only"), "it is gone", std::nullopt};
  SECTION("the run has trained") {
    REQUIRE(bench.validate(kTrial, 2, 20, 0.4));
    CHECK(bench.step(damage)->error().code == Code::kFailedPrecondition);
    CHECK(bench.trial(kTrial).latest_checkpoint == "only");
    return;
  }
  const auto told = bench.step(damage);
  REQUIRE(told->has_value());
  CHECK(std::get<ResumeFrom>(**told).checkpoint.empty());
  CHECK(bench.trial(kTrial).latest_steps == 0);
  CHECK(bench.disk().validations.at({kTrial, 1, 10}).archived);
  REQUIRE(bench.validate(kTrial, 2, 10, 0.5));
  CHECK_FALSE(bench.disk().validations.at({kTrial, 2, 10}).archived);
}

}  // namespace det::core
