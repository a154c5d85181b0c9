// Recovery of a core from its store.
#include <catch2/catch.hpp>

#include "bench.h"

namespace det::core {
namespace {

TEST_CASE("after a restart, an agent that never reconnects is lost") {
  Bench bench;
  bench.connect("a1", 1);
  bench.submit(bench.config());
  bench.restart();
  REQUIRE(bench.core().agents().at(AgentId("a1")).lost_at);
  bench.connect("a2", 1);
  bench.pass(Options{}.agent_wait());
  CHECK(bench.live(kTrial)->parts[0].agent == AgentId("a2"));
}

TEST_CASE("after a restart, a running trial continues") {
  Bench bench;
  bench.connect("a1", 1);
  bench.submit(bench.config());
  REQUIRE(bench.attach(kTrial, 1));
  bench.restart();
  REQUIRE(bench.validate(kTrial, 1, 10, 0.5));
  bench.connect("a1", 1, {{bench.live(kTrial)->id, AllocationState::kRunning, std::nullopt}});
  bench.exit(kTrial, ExitKind::kSucceeded);
  CHECK(bench.trial(kTrial).state == State::kCompleted);
}

TEST_CASE("an acknowledged preemption survives a restart") {
  Bench bench;
  bench.connect("a1", 1);
  const ExperimentId id = bench.submit(bench.config());
  REQUIRE(bench.attach(kTrial, 1));
  bench.act(id, ExperimentAction::kPause);
  REQUIRE(*bench.step(AcknowledgePreemption{0, kTrial, 1}));
  bench.restart();
  bench.connect(
      "a1", 1,
      {{bench.live(kTrial)->id, AllocationState::kTerminated, Exit{ExitKind::kSucceeded, 0, "exit code 0"}}});
  CHECK(bench.trial(kTrial).state == State::kPaused);
}

TEST_CASE("a preemption request has a deadline again after a restart") {
  Bench bench;
  bench.connect("a1", 1);
  const ExperimentId id = bench.submit(bench.config());
  REQUIRE(bench.attach(kTrial, 1));
  bench.act(id, ExperimentAction::kPause);
  bench.restart();
  bench.connect("a1", 1, {{bench.live(kTrial)->id, AllocationState::kRunning, std::nullopt}});
  CHECK(std::get<Attached>(*bench.attach(kTrial, 1)).preempt);
  bench.pass(std::chrono::seconds(60));
  CHECK(bench.live(kTrial)->kill_requested);
}

TEST_CASE("waiting trials keep their order") {
  Bench bench;
  for (int i = 0; i < 3; ++i) bench.submit(bench.config(1, 2, i == 2 ? 10 : 42));
  bench.restart();
  bench.connect("a1", 2);
  CHECK(bench.live(TrialId(3)));
  CHECK(bench.live(TrialId(1)));
  CHECK(bench.live(TrialId(2)) == nullptr);
}

TEST_CASE("ids continue from the highest stored one") {
  Bench bench;
  bench.act(bench.submit(bench.config()), ExperimentAction::kKill);
  bench.restart();
  CHECK(bench.submit(bench.config()) == ExperimentId(2));
}

TEST_CASE("a search is restored from its snapshot and the events after it") {
  Options options;
  options.searcher_snapshot_every = 2;
  Bench bench(options);
  bench.connect("a1", 1);
  const ExperimentId id = bench.submit(bench.config());
  REQUIRE(bench.attach(kTrial, 1));
  for (int steps : {10, 20, 30, 40}) REQUIRE(bench.validate(kTrial, 1, steps, 0.5));
  const auto before = bench.core().searcher(id)->snapshot();
  CHECK(bench.disk().searcher_snapshots.at(id).number == 4);
  bench.restart();
  CHECK(bench.core().searcher(id)->snapshot() == before);
}

Error refusal(Recovered recovered) {
  auto core = Core::restore({}, std::move(recovered), {});
  REQUIRE_FALSE(core);
  return core.error();
}

TEST_CASE("inconsistent rows are refused") {
  Bench bench;
  bench.connect("a1", 2);
  bench.submit(bench.config());
  bench.submit(bench.config());
  Recovered rows = bench.disk().recover();
  SECTION("an allocation without its trial") { rows.trials.pop_back(); }
  SECTION("a trial without its experiment") { rows.experiments.pop_back(); }
  SECTION("a missing event") { rows.searchers.begin()->second.events.clear(); }
  SECTION("an event that is not JSON") { rows.searchers.begin()->second.events[0] = "{"; }
  SECTION("an allocation of an older run") { rows.trials[0].run = 7; }
  SECTION("one slot used by two allocations") { rows.allocations[1].parts = rows.allocations[0].parts; }
  SECTION("an experiment in a terminal state") { rows.experiments[0].state = State::kCompleted; }
  SECTION("a duplicate trial") { rows.trials.push_back(rows.trials[0]); }
  CHECK(refusal(std::move(rows)).code == Code::kDataLoss);
}

}  // namespace
}  // namespace det::core
