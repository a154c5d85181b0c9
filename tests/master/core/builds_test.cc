// Builds of trial classes: without slots, once for an experiment, final when the compiler rejects the code.
#include <catch2/catch.hpp>

#include "bench.h"
#include "common/base/exit_codes.h"
#include "master/core/build_id.h"

namespace det::core {
namespace {

const std::string kDigest(64, 'd');

/// One agent with one slot.
struct Site : Bench {
  explicit Site(Options options = {}) : Bench(std::move(options)) { connect("a", 1); }

  std::shared_ptr<expconf::ExperimentConfig> with_class(int trials = 1) const {
    auto made = config();
    made->entrypoint = {"model_def:Trial"};
    if (trials > 1) {
      made->searcher.name = "random";
      made->searcher.max_trials = trials;
      made->searcher.max_concurrent_trials = trials;
    }
    return made;
  }
  ExperimentId submit_code(std::shared_ptr<const expconf::ExperimentConfig> config,
                           const std::string& archive = "archive") {
    SubmitExperiment input;
    input.request_id = RequestId("code" + std::to_string(++submitted_));
    input.config = std::move(config);
    input.code_archive = archive;
    auto reply = step(std::move(input));
    REQUIRE((reply && *reply));
    return std::get<ExperimentCreated>(**reply).experiment;
  }
  void end_build(TrialId trial, ExitKind kind, int code = 0) {
    update(trial, AllocationState::kTerminated,
           Exit{kind, code, kind == ExitKind::kSucceeded ? kDigest : "model_def.cpp does not compile"});
  }
  bool builds(TrialId trial) const { return live(trial) && is_build(live(trial)->id); }
  bool trains(TrialId trial) const { return live(trial) && !is_build(live(trial)->id); }

 private:
  int submitted_ = 0;
};

TEST_CASE("a trial class is built without slots before its trial trains") {
  Site site;
  site.submit_code(site.with_class());
  REQUIRE(site.builds(kTrial));
  CHECK(site.live(kTrial)->slot_count() == 0);
  CHECK(site.trial(kTrial).run == 1);
  site.end_build(kTrial, ExitKind::kSucceeded);
  REQUIRE(site.trains(kTrial));
  CHECK(site.live(kTrial)->slot_count() == 1);
  // The build belongs to the run that trains with it.
  CHECK(site.trial(kTrial).run == 1);
  CHECK(site.sends<StartAllocation>().at(0).library == kDigest);
}

TEST_CASE("a build starts while all slots are in use") {
  Site site;
  site.submit(site.config());
  REQUIRE(site.live(kTrial));
  site.submit_code(site.with_class());
  CHECK(site.builds(TrialId(2)));
}

TEST_CASE("the same code is not built again") {
  Site site;
  site.submit_code(site.with_class());
  site.end_build(kTrial, ExitKind::kSucceeded);
  site.exit(kTrial, ExitKind::kSucceeded);
  site.submit_code(site.with_class());
  CHECK(site.trains(TrialId(2)));
  auto other = site.with_class();
  other->entrypoint = {"model_def:Other"};
  site.submit_code(other);
  CHECK(site.builds(TrialId(3)));
}

TEST_CASE("entrypoints that name no trial class are not built") {
  Site site;
  auto config = site.config();
  config->entrypoint = {"python3 train.py"};
  site.submit_code(config);
  CHECK(site.trains(kTrial));
}

TEST_CASE("a trial without slots builds where it trains") {
  Site site;
  auto config = site.with_class();
  config->resources.slots_per_trial = 0;
  site.submit_code(config);
  CHECK(site.trains(kTrial));
}

TEST_CASE("a compile error ends the experiment before any slot is taken") {
  Site site;
  const ExperimentId id = site.submit_code(site.with_class(3));
  REQUIRE(site.builds(kTrial));
  CHECK(site.live(TrialId(2)) == nullptr);
  site.end_build(kTrial, ExitKind::kFailed, kExitFinal);
  CHECK(site.experiment(id).state == State::kError);
  CHECK(site.trial(kTrial).exit_reason == "model_def.cpp does not compile");
  CHECK(site.trial(TrialId(2)).exit_reason == "the build by trial 1 failed: model_def.cpp does not compile");
  for (const auto& [name, allocation] : site.disk().allocations) CHECK(allocation.slot_count() == 0);
  CHECK(site.disk().allocations.size() == 1);
}

TEST_CASE("a build on a lost agent is repeated on another one") {
  Site site;
  site.submit_code(site.with_class());
  REQUIRE(site.builds(kTrial));
  site.connect("b", 1);
  site.disconnect("a");
  site.pass(Options().agent_wait() + std::chrono::seconds(1));
  REQUIRE(site.builds(kTrial));
  CHECK(site.live(kTrial)->parts.at(0).agent == AgentId("b"));
  CHECK(site.trial(kTrial).restarts == 0);
  site.end_build(kTrial, ExitKind::kSucceeded);
  CHECK(site.trains(kTrial));
}

TEST_CASE("trials that wait for a lost build train when another experiment has built the code") {
  Site site;
  site.connect("b", 1);
  site.submit_code(site.with_class());
  site.submit_code(site.with_class(3));
  REQUIRE(site.builds(TrialId(2)));
  REQUIRE(site.live(TrialId(2))->parts.at(0).agent == AgentId("b"));
  site.end_build(kTrial, ExitKind::kSucceeded);
  site.disconnect("b");
  site.pass(Options().agent_wait() + std::chrono::seconds(1));
  site.connect("c", 3);
  for (const int id : {2, 3, 4}) {
    INFO(id);
    CHECK(site.trains(TrialId(id)));
  }
}

TEST_CASE("a build continues across a restart of the master") {
  Site site;
  site.submit_code(site.with_class(2));
  const AllocationId build = site.live(kTrial)->id;
  site.restart();
  REQUIRE(site.builds(kTrial));
  CHECK(site.live(TrialId(2)) == nullptr);
  site.connect("a", 1, {{build, AllocationState::kPulling, std::nullopt}});
  site.end_build(kTrial, ExitKind::kSucceeded);
  CHECK(site.trains(kTrial));
}

TEST_CASE("an experiment that has trained is not built again after a restart of the master") {
  Site site;
  site.submit_code(site.with_class());
  site.end_build(kTrial, ExitKind::kSucceeded);
  REQUIRE(site.attach(kTrial, 1));
  REQUIRE(site.checkpoint(kTrial, 1, 10, "5f8c4b0e-0000-4000-8000-000000000001"));
  site.exit(kTrial, ExitKind::kLost);
  site.restart();
  site.connect("a", 1);
  CHECK_FALSE(site.builds(kTrial));
}

TEST_CASE("another trial builds when the builder is killed") {
  Site site;
  site.submit_code(site.with_class(2));
  REQUIRE(site.builds(kTrial));
  site.step(KillTrial{0, kTrial});
  site.exit(kTrial, ExitKind::kStopped);
  CHECK(site.trial(kTrial).state == State::kCanceled);
  CHECK(site.builds(TrialId(2)));
}

TEST_CASE("a build that fails without a compile error leaves the build to the trials") {
  Site site;
  site.submit_code(site.with_class());
  site.end_build(kTrial, ExitKind::kOutOfMemory);
  CHECK(site.trains(kTrial));
  CHECK(site.trial(kTrial).restarts == 0);
}

TEST_CASE("a paused experiment does not build, and builds when it is activated") {
  Site site;
  const ExperimentId id = site.submit_code(site.with_class(2));
  site.act(id, ExperimentAction::kPause);
  site.exit(kTrial, ExitKind::kStopped);
  CHECK(site.live(kTrial) == nullptr);
  site.act(id, ExperimentAction::kActivate);
  CHECK(site.builds(kTrial) != site.builds(TrialId(2)));
}

}  // namespace
}  // namespace det::core
