// Detached experiments: the trial runs outside the cluster.
#include <catch2/catch.hpp>

#include "bench.h"

namespace det::core {
namespace {

const ExperimentId kExperiment{1};

struct Outside : Bench {
  Outside() {
    connect("a1", 4);
    REQUIRE(submit_detached("first"));
  }
  std::optional<Result<ReplyValue>> submit_detached(const std::string& request,
                                                    const std::string& searcher = "single") {
    auto settings = config();
    settings->searcher.name = searcher;
    return step(SubmitExperiment{
        .request_id = RequestId(request), .config = settings, .activate = false, .detached = true});
  }
  Result<ReplyValue> alive() { return *step(HarnessAlive{0, kTrial, 1}); }
  Result<ReplyValue> finish(State end, const std::string& message = "", TrialId trial = kTrial) {
    return *step(EndTrial{0, trial, 1, end, message});
  }
  bool logged(const std::string& part) const {
    for (const AppendTaskLog& line : disk().logs)
      if (line.text.find(part) != std::string::npos) return true;
    return false;
  }
};

TEST_CASE("a detached trial is active at once in run 1 and never gets slots") {
  Outside bench;
  CHECK(bench.experiment(kExperiment).detached);
  CHECK(bench.experiment(kExperiment).state == State::kActive);
  CHECK(bench.trial(kTrial).state == State::kActive);
  CHECK(bench.trial(kTrial).run == 1);
  CHECK(bench.sends<StartAllocation>().empty());
  CHECK(bench.disk().allocations.empty());
  bench.connect("a2", 8);
  bench.restart();
  bench.connect("a1", 4);
  CHECK(bench.disk().allocations.empty());
  // Managed experiments are scheduled as usual.
  const ExperimentId managed = bench.submit(bench.config());
  CHECK(bench.experiment(managed).detached == false);
  CHECK(bench.live(TrialId(2)) != nullptr);
}

TEST_CASE("reports of a detached trial are stored like those of a managed one") {
  Outside bench;
  CHECK_FALSE(std::get<Attached>(*bench.attach(kTrial, 1)).preempt);
  REQUIRE(bench.validate(kTrial, 1, 10, 0.5));
  REQUIRE(bench.checkpoint(kTrial, 1, 10, "c"));
  REQUIRE(bench.step(ReportProgress{0, kTrial, 1, 0.5, 10})->has_value());
  CHECK(bench.trial(kTrial).latest_checkpoint == "c");
  CHECK(bench.trial(kTrial).best_metric == 0.5);
  CHECK(bench.experiment(kExperiment).progress == 0.5);
  CHECK(bench.disk().checkpoints.at(CheckpointId("c")).allocation.value ==
        bench.trial(kTrial).task.value + ".1");
  CHECK(bench.validate(kTrial, 2, 10, 0.5).error().code == Code::kAborted);
  CHECK(bench.step(AcknowledgePreemption{0, kTrial, 1})->error().code == Code::kFailedPrecondition);
}

TEST_CASE("a detached trial and its experiment end as the process reports") {
  Outside bench;
  SECTION("completed") {
    REQUIRE(bench.finish(State::kCompleted));
    CHECK(bench.trial(kTrial).state == State::kCompleted);
    CHECK(bench.trial(kTrial).progress == 1);
    CHECK(bench.experiment(kExperiment).state == State::kCompleted);
  }
  SECTION("failed") {
    REQUIRE(bench.finish(State::kError, "the disk is full"));
    CHECK(bench.trial(kTrial).state == State::kError);
    CHECK(bench.trial(kTrial).exit_reason == "the disk is full");
    CHECK(bench.experiment(kExperiment).state == State::kError);
    CHECK(bench.logged("ended: ERROR: the disk is full"));
  }
  SECTION("canceled") {
    REQUIRE(bench.finish(State::kCanceled));
    CHECK(bench.experiment(kExperiment).state == State::kCanceled);
  }
  SECTION("invalid hyperparameters") {
    REQUIRE(bench.step(ReportInvalidHp{0, kTrial, 1})->has_value());
    CHECK(bench.trial(kTrial).state == State::kCompleted);
    CHECK(is_terminal(bench.experiment(kExperiment).state));
  }
  CHECK(bench.finish(State::kCompleted).error().code == Code::kAborted);
  CHECK(bench.alive().error().code == Code::kAborted);
  CHECK_FALSE(bench.core().next_deadline());
}

TEST_CASE("non-terminal end states and end reports for managed trials are refused") {
  Outside bench;
  CHECK(bench.finish(State::kStoppingError).error().code == Code::kInvalidArgument);
  CHECK(bench.finish(State::kActive).error().code == Code::kInvalidArgument);
  CHECK(bench.trial(kTrial).state == State::kActive);
  bench.submit(bench.config());
  REQUIRE(bench.attach(TrialId(2), 1));
  CHECK(bench.finish(State::kCompleted, "", TrialId(2)).error().code == Code::kFailedPrecondition);
  CHECK(bench.trial(TrialId(2)).state == State::kActive);
  CHECK(bench.step(HarnessAlive{0, TrialId(2), 1})->has_value());
}

TEST_CASE("silence beyond the limit ends the trial in error, and any message resets the limit") {
  Outside bench;
  const Duration limit = Options{}.detached_limit, nearly = limit - std::chrono::seconds(1);
  bench.pass(nearly);
  REQUIRE(bench.alive());
  bench.pass(nearly);
  REQUIRE(bench.validate(kTrial, 1, 10, 0.5));
  bench.pass(nearly);
  REQUIRE(bench.attach(kTrial, 1));
  bench.pass(nearly);
  CHECK(bench.trial(kTrial).state == State::kActive);
  bench.pass(std::chrono::seconds(1));
  CHECK(bench.trial(kTrial).state == State::kError);
  CHECK(bench.trial(kTrial).exit_reason == "no report for 300 s");
  CHECK(bench.experiment(kExperiment).state == State::kError);
  CHECK(bench.trial(kTrial).restarts == 0);
}

TEST_CASE("a restart of the master resets the silence limit and keeps all state") {
  Outside bench;
  const Duration limit = Options{}.detached_limit;
  bench.pass(limit - std::chrono::seconds(1));
  bench.restart();
  bench.pass(limit - std::chrono::seconds(1));
  REQUIRE(bench.alive());
  CHECK(bench.core().experiments().at(kExperiment).detached);
  bench.restart();
  bench.pass(limit);
  CHECK(bench.trial(kTrial).state == State::kError);
}

TEST_CASE("users can end a detached experiment at once and cannot pause it") {
  Outside bench;
  CHECK(bench.act(kExperiment, ExperimentAction::kPause)->error().code == Code::kFailedPrecondition);
  CHECK(bench.act(kExperiment, ExperimentAction::kActivate)->has_value());
  CHECK(bench.trial(kTrial).state == State::kActive);
  SECTION("cancel") { REQUIRE(bench.act(kExperiment, ExperimentAction::kCancel)->has_value()); }
  SECTION("kill") { REQUIRE(bench.act(kExperiment, ExperimentAction::kKill)->has_value()); }
  SECTION("kill the trial") { REQUIRE(bench.step(KillTrial{0, kTrial})->has_value()); }
  CHECK(bench.experiment(kExperiment).state == State::kCanceled);
  CHECK(bench.alive().error().code == Code::kAborted);
  CHECK_FALSE(bench.core().next_deadline());
}

TEST_CASE("a repeated submission creates one experiment, and a multi-trial searcher is refused") {
  Outside bench;
  const auto again = bench.submit_detached("first");
  CHECK(std::get<ExperimentCreated>(**again).repeated);
  CHECK(bench.disk().experiments.size() == 1);
  CHECK(bench.submit_detached("search", "random")->error().code == Code::kInvalidArgument);
  CHECK(bench.disk().experiments.size() == 1);
}

TEST_CASE("a continued detached trial begins a new run from its checkpoint") {
  Outside bench;
  REQUIRE(*bench.step(TakeUpTrial{.trial = kTrial, .hparams = R"({"lr":1})", .new_run = false}));
  CHECK(bench.trial(kTrial).run == 1);
  CHECK(bench.trial(kTrial).hparams == R"({"lr":1})");
  REQUIRE(bench.validate(kTrial, 1, 10, 0.5));
  REQUIRE(bench.checkpoint(kTrial, 1, 10, "c"));
  REQUIRE(bench.validate(kTrial, 1, 20, 0.4));
  REQUIRE(*bench.step(TakeUpTrial{.trial = kTrial, .hparams = std::nullopt}));
  CHECK(bench.trial(kTrial).run == 2);
  CHECK(bench.trial(kTrial).steps_completed == 10);
  CHECK(bench.trial(kTrial).last_validation == 10);
  CHECK(bench.step(HarnessAlive{0, kTrial, 1})->error().code == Code::kAborted);
  CHECK(bench.step(HarnessAlive{0, kTrial, 2})->has_value());
  const ExperimentId managed = bench.submit(bench.config());
  (void)managed;
  CHECK(bench.step(TakeUpTrial{.trial = TrialId(2), .hparams = std::nullopt})->error().code ==
        Code::kFailedPrecondition);
  CHECK(bench.step(TakeUpTrial{.trial = TrialId(9), .hparams = std::nullopt})->error().code ==
        Code::kAborted);
}

}  // namespace
}  // namespace det::core
