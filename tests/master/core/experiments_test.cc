// User actions (submit, pause, activate, cancel, kill) and the effects of exits.
#include <catch2/catch.hpp>

#include "bench.h"
#include "common/base/exit_codes.h"

namespace det::core {
namespace {

TEST_CASE("a submission repeated with its request id is the same experiment") {
  Bench bench;
  const ExperimentId id = bench.submit(bench.config(), "mine");
  SubmitExperiment again;
  again.request_id = RequestId("mine");
  again.config = bench.config();
  SECTION("at once") {}
  SECTION("after a restart of the master") { bench.restart(); }
  SECTION("after it has just ended") { bench.act(id, ExperimentAction::kKill); }
  const auto reply = std::get<ExperimentCreated>(**bench.step(again));
  CHECK(reply.experiment == id);
  CHECK(reply.repeated);
  CHECK(bench.disk().experiments.size() == 1);
}

TEST_CASE("a request id can be used again after the deletion of its experiment, and is kept from then on") {
  Bench bench;
  const ExperimentId first = bench.submit(bench.config(), "mine");
  bench.act(first, ExperimentAction::kKill);
  REQUIRE(*bench.step(BarExperiment{.experiment = first}));
  // The row is in the store until the deletion has ended.
  CHECK(bench.submit(bench.config(), "mine") == first);
  REQUIRE(*bench.step(ExperimentDeleted{.experiment = first, .request_id = RequestId("mine")}));
  const ExperimentId second = bench.submit(bench.config(), "mine");
  CHECK(second != first);
  REQUIRE(*bench.step(ExperimentDeleted{.experiment = first, .request_id = RequestId("mine")}));
  CHECK(bench.submit(bench.config(), "mine") == second);
  // More experiments end than the core keeps request ids of.
  for (int i = 0; i < 4100; ++i) bench.act(bench.submit(bench.config()), ExperimentAction::kKill);
  CHECK(bench.submit(bench.config(), "mine") == second);
}

TEST_CASE("a barred project or workspace takes no experiments until every bar is lifted") {
  Bench bench;
  SubmitExperiment inside;
  inside.request_id = RequestId("inside");
  inside.project = 7;
  inside.workspace = 3;
  inside.config = bench.config();
  BarContainer bar;
  SECTION("a project") { bar.projects = {7}; }
  SECTION("a workspace") { bar.workspace = 3; }
  REQUIRE(*bench.step(bar));
  REQUIRE(*bench.step(bar));
  CHECK(code_of(bench.step(inside)) == Code::kFailedPrecondition);
  CHECK(bench.disk().experiments.empty());
  bench.submit(bench.config());  // into project 1
  bar.barred = false;
  REQUIRE(*bench.step(bar));
  CHECK(code_of(bench.step(inside)) == Code::kFailedPrecondition);
  REQUIRE(*bench.step(bar));
  REQUIRE(*bench.step(inside));
  bar.barred = true;
  REQUIRE(*bench.step(bar));
  // A repeat finds the experiment.
  CHECK(*bench.step(inside));
}

TEST_CASE("a trial waits for slots, runs, and completes its experiment") {
  Bench bench;
  const ExperimentId id = bench.submit(bench.config());
  CHECK(bench.live(kTrial) == nullptr);
  bench.connect("a1", 1);
  REQUIRE(bench.sends<StartAllocation>().size() == 1);
  CHECK(bench.sends<StartAllocation>()[0].allocation.id.value == bench.trial(kTrial).task.value + ".1");
  REQUIRE(bench.attach(kTrial, 1));
  CHECK(bench.live(kTrial)->state == AllocationState::kRunning);
  bench.exit(kTrial, ExitKind::kSucceeded);
  CHECK(bench.sends<AllocationForgotten>().size() == 1);
  CHECK(bench.trial(kTrial).state == State::kCompleted);
  CHECK(bench.experiment(id).state == State::kCompleted);
  CHECK(bench.experiment(id).progress == 1);
  CHECK(bench.core().experiments().empty());
  CHECK(bench.core().trials().empty());
  CHECK(bench.core().allocations().empty());
}

TEST_CASE("a failing trial restarts max_restarts times, then ends in error") {
  Bench bench;
  bench.connect("a1", 1);
  const ExperimentId id = bench.submit(bench.config(1, 2));
  for (int run = 1; run <= 3; ++run) {
    REQUIRE(bench.live(kTrial));
    CHECK(bench.live(kTrial)->run == run);
    bench.exit(kTrial, ExitKind::kFailed);
  }
  CHECK(bench.trial(kTrial).state == State::kError);
  CHECK(bench.trial(kTrial).restarts == 2);
  CHECK(bench.trial(kTrial).exit_reason == "exit code 7");
  CHECK(bench.experiment(id).state == State::kError);
}

TEST_CASE("a trial whose retries a log policy canceled fails at its next failure, also after a restart") {
  Bench bench;
  bench.connect("a1", 1);
  bench.submit(bench.config());
  bench.step(CancelRetries{kTrial});
  SECTION("with a restart of the master") {
    const AllocationId running = bench.live(kTrial)->id;
    bench.restart();
    bench.connect("a1", 1, {{running, AllocationState::kRunning, std::nullopt}});
  }
  SECTION("without one") {}
  bench.exit(kTrial, ExitKind::kFailed);
  CHECK(bench.disk().trials.at(kTrial).state == State::kError);
  CHECK(bench.disk().trials.at(kTrial).restarts == 0);
}

TEST_CASE("a trial runs again on another agent after a log policy has excluded its agent") {
  Bench bench;
  bench.connect("a1", 1);
  bench.submit(bench.config(1, 5));
  REQUIRE(bench.live(kTrial));
  const auto places = [&] { return bench.live(kTrial)->parts.front().agent.value; };
  bench.step(ExcludeAgent{kTrial, AgentId("a1")});
  bench.step(ExcludeAgent{kTrial, AgentId("a1")});
  CHECK(bench.trial(kTrial).excluded == std::vector{AgentId("a1")});
  SECTION("it waits for one") {
    bench.exit(kTrial, ExitKind::kFailed);
    CHECK_FALSE(bench.live(kTrial));
    SECTION("also after a restart of the master") {
      bench.restart();
      bench.connect("a1", 1);
      CHECK_FALSE(bench.live(kTrial));
    }
    bench.connect("a2", 1);
    CHECK(places() == "a2");
    CHECK(bench.trial(kTrial).restarts == 1);
  }
  SECTION("it goes on where the excluded agent has the better place") {
    bench.connect("a2", 4);
    bench.exit(kTrial, ExitKind::kFailed);
    CHECK(places() == "a2");
  }
}

TEST_CASE("a waiting trial does not start on an agent that a log policy excludes meanwhile") {
  Bench bench;
  bench.submit(bench.config());
  bench.step(ExcludeAgent{kTrial, AgentId("a1")});
  bench.connect("a1", 1);
  CHECK_FALSE(bench.live(kTrial));
  bench.step(ExcludeAgent{TrialId(99), AgentId("a1")});
}

TEST_CASE("a trial that calls its failure final is not restarted") {
  Bench bench;
  bench.connect("a1", 1);
  bench.submit(bench.config(1, 5));
  REQUIRE(bench.live(kTrial));
  bench.update(kTrial, AllocationState::kTerminated,
               Exit{ExitKind::kFailed, kExitFinal, "exit code 81\nerror: start: no hyperparameter \"lr\""});
  CHECK(bench.trial(kTrial).state == State::kError);
  CHECK(bench.trial(kTrial).restarts == 0);
  CHECK(bench.trial(kTrial).exit_reason ==
        "exit code 81 (not restarted: another run would fail in the same way)\n"
        "error: start: no hyperparameter \"lr\"");
}

TEST_CASE("a trial that fails twice at the same batch with the same error is not restarted again") {
  Bench bench;
  bench.connect("a1", 1);
  bench.submit(bench.config(1, 5));
  const auto fails = [&](int code, const std::string& line) {
    REQUIRE(bench.live(kTrial));
    bench.update(kTrial, AllocationState::kTerminated,
                 Exit{ExitKind::kFailed, code, "exit code " + std::to_string(code) + "\nframe\n" + line});
    return bench.trial(kTrial).state == State::kError;
  };
  const std::string error = "error: train_batch (batch 37): the loss is nan";
  CHECK_FALSE(fails(kExitRepeatable, error));
  CHECK_FALSE(fails(kExitRepeatable, "error: train_batch (batch 38): the loss is nan"));
  CHECK_FALSE(fails(kExitFailed, error));
  CHECK_FALSE(fails(kExitFailed, error));
  // The rank in front of a line depends on which process failed first.
  CHECK(fails(kExitRepeatable, "[rank=1] " + error));
  CHECK(bench.trial(kTrial).restarts == 4);
  CHECK(bench.trial(kTrial).exit_reason.starts_with(
      "exit code 83 (not restarted: the previous run failed at the same batch with the same error)\n"));
}

TEST_CASE("repeatable failures without an error line consume every restart") {
  Bench bench;
  bench.connect("a1", 1);
  bench.submit(bench.config(1, 2));
  for (int run = 1; run <= 3; ++run) {
    REQUIRE(bench.live(kTrial));
    bench.update(kTrial, AllocationState::kTerminated,
                 Exit{ExitKind::kFailed, kExitRepeatable, "exit code 83"});
  }
  CHECK(bench.trial(kTrial).restarts == 2);
}

TEST_CASE("out-of-memory and hangs consume a restart, while a full storage backs off and does not") {
  Bench bench;
  bench.connect("a1", 1);
  bench.submit(bench.config(1, 1));
  const Exit full{ExitKind::kStorageFull, 1, "storage full: exit code 1\nno space"};
  for (const int wait : {0, 1, 2, 4}) {
    bench.pass(std::chrono::seconds(wait));
    REQUIRE(bench.live(kTrial));
    REQUIRE(bench.attach(kTrial, bench.trial(kTrial).run));
    bench.update(kTrial, AllocationState::kTerminated, full);
    CHECK(bench.trial(kTrial).exit_reason == full.message);
  }
  CHECK(bench.trial(kTrial).restarts == 0);
  bench.pass(std::chrono::seconds(8));
  for (const ExitKind kind : {ExitKind::kHung, ExitKind::kOutOfMemory}) {
    REQUIRE(bench.live(kTrial));
    bench.update(kTrial, AllocationState::kTerminated, Exit{kind, 137, "out of memory"});
  }
  CHECK(bench.trial(kTrial).state == State::kError);
  CHECK(bench.trial(kTrial).restarts == 1);
  CHECK(bench.trial(kTrial).exit_reason == "out of memory");
}

TEST_CASE("a full storage consumes a restart after hours, unless a checkpoint was saved meanwhile") {
  Bench bench;
  bench.connect("a1", 1);
  const ExperimentId id = bench.submit(bench.config(1, 1));
  const Exit full{ExitKind::kStorageFull, 1, "storage full: exit code 1\nno space"};
  const auto fails = [&](int wait) {
    if (wait > 0) {
      bench.pass(std::chrono::seconds(wait) - std::chrono::milliseconds(1));
      CHECK_FALSE(bench.live(kTrial));
      bench.pass(std::chrono::milliseconds(1));
    }
    REQUIRE(bench.live(kTrial));
    REQUIRE(bench.attach(kTrial, bench.trial(kTrial).run));
    bench.update(kTrial, AllocationState::kTerminated, full);
  };
  fails(0);
  fails(0);
  bench.pass(std::chrono::seconds(1));
  REQUIRE(bench.checkpoint(kTrial, bench.trial(kTrial).run, 30, "c30"));
  fails(0);
  fails(0);
  for (int wait = 1; wait <= 1024; wait *= 2) {
    fails(wait);
    CHECK(bench.trial(kTrial).restarts == 0);
  }
  fails(2048);
  CHECK(bench.trial(kTrial).restarts == 1);
  fails(4096);
  CHECK(bench.trial(kTrial).state == State::kError);
  CHECK(bench.trial(kTrial).exit_reason == full.message);
  CHECK(bench.experiment(id).state == State::kError);
}

TEST_CASE("losses consume a restart after twenty in a row, unless a checkpoint was saved meanwhile") {
  Bench bench;
  bench.connect("a1", 1);
  const ExperimentId id = bench.submit(bench.config(1, 1));
  const Exit lost{ExitKind::kLost, 0, "the supervisor is gone"};
  const auto lose = [&](int times) {
    for (int i = 0; i < times; ++i) {
      REQUIRE(bench.live(kTrial));
      REQUIRE(bench.attach(kTrial, bench.trial(kTrial).run));
      bench.update(kTrial, AllocationState::kTerminated, lost);
    }
  };
  lose(19);
  REQUIRE(bench.checkpoint(kTrial, bench.trial(kTrial).run, 30, "c30"));
  lose(20);
  CHECK(bench.trial(kTrial).restarts == 0);
  lose(1);
  CHECK(bench.trial(kTrial).restarts == 1);
  lose(1);
  CHECK(bench.trial(kTrial).state == State::kError);
  CHECK(bench.trial(kTrial).exit_reason == lost.message);
  CHECK(bench.experiment(id).state == State::kError);
}

TEST_CASE("losing the machine does not consume a restart") {
  Bench bench;
  bench.connect("a1", 1);
  bench.submit(bench.config(1, 0));
  for (int i = 0; i < 5; ++i) {
    REQUIRE(bench.attach(kTrial, bench.trial(kTrial).run));
    bench.exit(kTrial, ExitKind::kLost);
  }
  CHECK(bench.trial(kTrial).restarts == 0);
  CHECK(bench.live(kTrial)->run == 6);
}

TEST_CASE("pause preempts an attached harness, and the trial resumes from its checkpoint") {
  Bench bench;
  bench.connect("a1", 1);
  const ExperimentId id = bench.submit(bench.config());
  REQUIRE(bench.attach(kTrial, 1));
  bench.act(id, ExperimentAction::kPause);
  CHECK(bench.sends<PreemptAllocation>().size() == 1);
  CHECK(std::get<Attached>(*bench.attach(kTrial, 1)).preempt);
  REQUIRE(bench.checkpoint(kTrial, 1, 30, "c30"));
  REQUIRE(*bench.step(AcknowledgePreemption{0, kTrial, 1}));
  bench.exit(kTrial, ExitKind::kSucceeded);
  CHECK(bench.disk().allocations.begin()->second.exit->kind == ExitKind::kPreempted);
  CHECK(bench.trial(kTrial).state == State::kPaused);
  CHECK(bench.live(kTrial) == nullptr);
  bench.act(id, ExperimentAction::kActivate);
  REQUIRE(bench.sends<StartAllocation>().size() == 1);
  CHECK(bench.sends<StartAllocation>()[0].trial.latest_checkpoint == "c30");
  CHECK(bench.sends<StartAllocation>()[0].trial.steps_completed == 30);
}

TEST_CASE("pause kills an allocation without a harness and does not consume a restart") {
  Bench bench;
  bench.connect("a1", 1);
  const ExperimentId id = bench.submit(bench.config(1, 0));
  bench.update(kTrial, AllocationState::kStarting);
  bench.act(id, ExperimentAction::kPause);
  CHECK(bench.sends<KillAllocation>().size() == 1);
  bench.exit(kTrial, ExitKind::kFailed);
  CHECK(bench.trial(kTrial).state == State::kPaused);
  CHECK(bench.trial(kTrial).restarts == 0);
}

TEST_CASE("a trial that finishes despite a preemption request is complete") {
  Bench bench;
  bench.connect("a1", 1);
  const ExperimentId id = bench.submit(bench.config());
  REQUIRE(bench.attach(kTrial, 1));
  bench.act(id, ExperimentAction::kPause);
  bench.exit(kTrial, ExitKind::kSucceeded);
  CHECK(bench.trial(kTrial).state == State::kCompleted);
  CHECK(bench.experiment(id).state == State::kCompleted);
}

TEST_CASE("a trial that ignores preemption is killed repeatedly") {
  Bench bench;
  bench.connect("a1", 1);
  const ExperimentId id = bench.submit(bench.config());
  REQUIRE(bench.attach(kTrial, 1));
  bench.act(id, ExperimentAction::kPause);
  bench.pass(std::chrono::seconds(59));
  CHECK_FALSE(bench.live(kTrial)->kill_requested);
  bench.pass(std::chrono::seconds(1));
  CHECK(bench.live(kTrial)->kill_requested);
  bench.pass(std::chrono::seconds(30));
  CHECK(bench.sends<KillAllocation>().size() == 1);
}

TEST_CASE("slots are released at the exit, not at the kill") {
  Bench bench;
  bench.connect("a1", 1);
  const ExperimentId first = bench.submit(bench.config());
  bench.submit(bench.config());
  bench.act(first, ExperimentAction::kKill);
  CHECK(bench.sends<KillAllocation>().size() == 1);
  CHECK(bench.sends<StartAllocation>().empty());
  bench.exit(kTrial, ExitKind::kStopped);
  CHECK(bench.sends<StartAllocation>().size() == 1);
  CHECK(bench.experiment(first).state == State::kCanceled);
}

TEST_CASE("cancel requests preemption, a later kill does not") {
  Bench bench;
  bench.connect("a1", 1);
  const ExperimentId id = bench.submit(bench.config());
  REQUIRE(bench.attach(kTrial, 1));
  bench.act(id, ExperimentAction::kCancel);
  CHECK(bench.experiment(id).state == State::kStoppingCanceled);
  CHECK(bench.sends<PreemptAllocation>().size() == 1);
  bench.act(id, ExperimentAction::kKill);
  CHECK(bench.experiment(id).state == State::kStoppingKilled);
  CHECK(bench.sends<KillAllocation>().size() == 1);
  bench.act(id, ExperimentAction::kCancel);
  CHECK(bench.experiment(id).state == State::kStoppingKilled);
  bench.exit(kTrial, ExitKind::kStopped);
  CHECK(bench.trial(kTrial).state == State::kCanceled);
  CHECK(bench.experiment(id).state == State::kCanceled);
}

TEST_CASE("a waiting experiment ends at once") {
  Bench bench;
  const ExperimentId id = bench.submit(bench.config());
  SECTION("canceled") { bench.act(id, ExperimentAction::kCancel); }
  SECTION("killed") { bench.act(id, ExperimentAction::kKill); }
  SECTION("its only trial killed") { bench.step(KillTrial{0, kTrial}); }
  SECTION("killed while paused") {
    bench.act(id, ExperimentAction::kPause);
    bench.act(id, ExperimentAction::kKill);
  }
  CHECK(bench.experiment(id).state == State::kCanceled);
  CHECK(bench.trial(kTrial).state == State::kCanceled);
  CHECK(bench.core().experiments().empty());
}

TEST_CASE("impossible actions are refused, and completed ones can be repeated") {
  Bench bench;
  bench.connect("a1", 1);
  const ExperimentId id = bench.submit(bench.config());
  CHECK(*bench.act(id, ExperimentAction::kActivate));
  CHECK(*bench.act(id, ExperimentAction::kPause));
  CHECK(*bench.act(id, ExperimentAction::kPause));
  CHECK(*bench.act(id, ExperimentAction::kKill));
  CHECK(*bench.act(id, ExperimentAction::kKill));
  CHECK(bench.act(id, ExperimentAction::kPause)->error().code == Code::kFailedPrecondition);
  CHECK(bench.act(id, ExperimentAction::kActivate)->error().code == Code::kFailedPrecondition);
  bench.exit(kTrial, ExitKind::kStopped);
  CHECK(bench.act(id, ExperimentAction::kKill)->error().code == Code::kNotFound);
  CHECK(bench.step(KillTrial{0, TrialId(99)})->error().code == Code::kNotFound);
}

TEST_CASE("a higher priority preempts, and the preempted trial resumes afterwards") {
  Bench bench;
  bench.connect("a1", 1);
  bench.submit(bench.config(1, 2, 50));
  REQUIRE(bench.attach(kTrial, 1));
  bench.submit(bench.config(1, 2, 10));
  REQUIRE(bench.sends<PreemptAllocation>().size() == 1);
  REQUIRE(*bench.step(AcknowledgePreemption{0, kTrial, 1}));
  bench.exit(kTrial, ExitKind::kSucceeded);
  REQUIRE(bench.live(TrialId(2)));
  CHECK(bench.live(kTrial) == nullptr);
  bench.exit(TrialId(2), ExitKind::kSucceeded);
  REQUIRE(bench.live(kTrial));
  CHECK(bench.live(kTrial)->run == 2);
}

TEST_CASE("the task log records the lifecycle") {
  Bench bench;
  bench.connect("a1", 1);
  bench.submit(bench.config(1, 1));
  bench.exit(kTrial, ExitKind::kFailed);
  std::string all;
  for (const auto& line : bench.disk().logs) all += line.text + "\n";
  CHECK(all ==
        "scheduling trial 1 (experiment 1, run 1)\n"
        "New trial runner: trial 1 was assigned to agent a1 (1 slot)\n"
        "exited: exit code 7\n"
        "restarting (1 of 1)\n"
        "scheduling trial 1 (experiment 1, run 2)\n"
        "New trial runner: trial 1 was assigned to agent a1 (1 slot)\n");
}

}  // namespace
}  // namespace det::core
