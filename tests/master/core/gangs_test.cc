// Gangs over several agents start together, end together, and report the first failure.
#include <catch2/catch.hpp>

#include "bench.h"

namespace det::core {
namespace {

/// Two agents with one slot each, and a trial with two slots.
struct Pair : Bench {
  explicit Pair(Options options = {}) : Bench(std::move(options)) {
    connect("a", 1);
    connect("b", 1);
    experiment_id = submit(config(2));
  }
  void run() {
    update(kTrial, AllocationState::kRunning, std::nullopt, 0);
    update(kTrial, AllocationState::kRunning, std::nullopt, 1);
    attach(kTrial, trial(kTrial).run);
  }
  ExperimentId experiment_id;
};

TEST_CASE("a gang waits until all its parts can be placed") {
  Bench bench;
  bench.connect("a", 1);
  bench.submit(bench.config(2));
  CHECK(bench.live(kTrial) == nullptr);
  bench.connect("b", 1);
  const auto starts = bench.sends<StartAllocation>();
  REQUIRE(starts.size() == 2);
  CHECK(starts[0].agent == AgentId("a"));
  CHECK(starts[0].part == 0);
  CHECK(starts[1].agent == AgentId("b"));
  CHECK(starts[1].part == 1);
  const Allocation& allocation = starts[1].allocation;
  CHECK(allocation.parts.size() == 2);
  CHECK(allocation.parts[0].slots == std::vector<int>{0});
  CHECK(allocation.port > 0);
  CHECK(bench.live(kTrial)->slot_count() == 2);
}

TEST_CASE("a gang limited to one machine is not split") {
  Bench bench;
  bench.connect("a", 1);
  bench.connect("b", 1);
  auto config = bench.config(2);
  config->resources.is_single_node = true;
  bench.submit(config);
  CHECK(bench.live(kTrial) == nullptr);
  bench.connect("c", 2);
  REQUIRE(bench.live(kTrial));
  CHECK(bench.live(kTrial)->parts.size() == 1);
  CHECK(bench.live(kTrial)->port == 0);
}

TEST_CASE("the state of a gang is that of its slowest part") {
  Pair pair;
  pair.update(kTrial, AllocationState::kRunning, std::nullopt, 0);
  CHECK(pair.live(kTrial)->state == AllocationState::kAssigned);
  pair.update(kTrial, AllocationState::kPulling, std::nullopt, 1);
  CHECK(pair.live(kTrial)->state == AllocationState::kPulling);
  pair.attach(kTrial, 1);
  CHECK(pair.live(kTrial)->state == AllocationState::kRunning);
}

TEST_CASE("the failure of one part ends the gang and is kept as its reason") {
  Pair pair;
  pair.run();
  pair.exit(kTrial, ExitKind::kFailed, 1);
  const auto kills = pair.sends<KillAllocation>();
  REQUIRE(kills.size() == 1);
  CHECK(kills[0].agent == AgentId("a"));
  CHECK(pair.live(kTrial)->state == AllocationState::kTerminating);
  pair.submit(pair.config(1));
  // Slots are released when all parts have exited.
  CHECK(pair.live(TrialId(2)) == nullptr);
  pair.exit(kTrial, ExitKind::kStopped, 0);
  const Allocation& ended = pair.disk().allocations.begin()->second;
  CHECK(ended.exit == Exit{ExitKind::kFailed, 7, "exit code 7 (on agent b)"});
  CHECK(pair.trial(kTrial).restarts == 1);
  CHECK(pair.trial(kTrial).run == 2);
}

TEST_CASE("kills of the remaining parts are repeated and survive a restart of the master") {
  Pair pair;
  pair.run();
  pair.disconnect("a");
  pair.exit(kTrial, ExitKind::kFailed, 1);
  CHECK(pair.sends<KillAllocation>().empty());
  const AllocationId id = pair.live(kTrial)->id;
  SECTION("with a restart") {
    pair.restart();
    CHECK(pair.live(kTrial)->exit->message.starts_with("exit code 7"));
  }
  SECTION("without a restart") {}
  pair.connect("a", 1, {{id, AllocationState::kRunning, std::nullopt}});
  CHECK(pair.sends<KillAllocation>().size() == 1);
}

TEST_CASE("peer failures after the loss of an agent do not consume a restart") {
  Pair pair;
  pair.run();
  SECTION("the loss is known when the peers fail") {
    pair.disconnect("a");
    pair.exit(kTrial, ExitKind::kFailed, 1);
  }
  SECTION("the loss is found later") {
    pair.exit(kTrial, ExitKind::kFailed, 1);
    pair.disconnect("a");
  }
  pair.pass(std::chrono::minutes(12));
  CHECK(pair.trial(kTrial).restarts == 0);
  CHECK(pair.disk().allocations.begin()->second.exit->kind == ExitKind::kLost);
}

TEST_CASE("killing a gang whose lost agent was removed waits for the exit of the other part") {
  Pair pair;
  pair.run();
  pair.disconnect("a");
  pair.pass(Options{}.agent_wait());
  REQUIRE(pair.live(kTrial));
  pair.act(pair.experiment_id, ExperimentAction::kKill);
  pair.pass(std::chrono::minutes(1));
  REQUIRE(pair.live(kTrial));
  pair.exit(kTrial, ExitKind::kStopped, 1);
  CHECK(pair.experiment(pair.experiment_id).state == State::kCanceled);
}

TEST_CASE("a preempted gang ends when all its parts have exited") {
  Pair pair;
  pair.run();
  pair.act(pair.experiment_id, ExperimentAction::kPause);
  CHECK(pair.sends<PreemptAllocation>().size() == 1);
  CHECK(pair.sends<KillAllocation>().empty());
  pair.step(AcknowledgePreemption{0, kTrial, 1});
  pair.exit(kTrial, ExitKind::kSucceeded, 0);
  CHECK(pair.live(kTrial));
  pair.exit(kTrial, ExitKind::kSucceeded, 1);
  CHECK(pair.live(kTrial) == nullptr);
  CHECK(pair.trial(kTrial).state == State::kPaused);
}

TEST_CASE("a kill is sent to every part") {
  Pair pair;
  pair.run();
  pair.act(pair.experiment_id, ExperimentAction::kKill);
  CHECK(pair.sends<KillAllocation>().size() == 2);
  pair.exit(kTrial, ExitKind::kStopped, 0);
  CHECK(pair.live(kTrial));
  pair.exit(kTrial, ExitKind::kStopped, 1);
  CHECK(pair.experiment(pair.experiment_id).state == State::kCanceled);
}

TEST_CASE("concurrent gangs use different rendezvous ports") {
  Bench bench;
  for (const char* agent : {"a", "b", "c", "d"}) bench.connect(agent, 1);
  bench.submit(bench.config(2));
  bench.submit(bench.config(2));
  REQUIRE(bench.live(TrialId(1)));
  REQUIRE(bench.live(TrialId(2)));
  CHECK(bench.live(TrialId(1))->port != bench.live(TrialId(2))->port);
}

TEST_CASE("a restarted core restores the pools and decides the same") {
  Bench bench;
  bench.connect("a", 2);
  bench.connect("b", 2);
  bench.submit(bench.config(3, 2, 50));
  bench.submit(bench.config(4, 2, 10));
  auto limited = bench.config(1);
  limited->resources.max_slots = 1;
  limited->resources.weight = 3;
  bench.submit(limited);
  bench.attach(kTrial, 1);
  const auto before = bench.core().pools().at("default").snapshot();
  bench.restart();
  const auto after = bench.core().pools().at("default").snapshot();
  CHECK(after.jobs == before.jobs);
  CHECK(after.requests == before.requests);
  CHECK(after.running == before.running);
}

TEST_CASE("an experiment holds at most max_slots") {
  Bench bench;
  bench.connect("a", 4);
  auto config = bench.config(1);
  config->searcher.name = "random";
  config->searcher.max_trials = 4;
  config->searcher.max_concurrent_trials = 4;
  config->resources.max_slots = 2;
  bench.submit(config);
  CHECK(bench.core().allocations().size() == 2);
}

TEST_CASE("a helper part is ended after the others succeed, and its exit does not count") {
  Pair pair;
  pair.run();
  CHECK(pair.step(MarkDaemon{0, kTrial, 1, 2})->error().code == Code::kInvalidArgument);
  REQUIRE(*pair.step(MarkDaemon{0, kTrial, 1, 1}));
  REQUIRE(*pair.step(MarkDaemon{0, kTrial, 1, 1}));
  CHECK(pair.step(MarkDaemon{0, kTrial, 1, 0})->error().code == Code::kInvalidArgument);
  CHECK(pair.live(kTrial)->parts[1].daemon);
  pair.update(kTrial, AllocationState::kTerminated, Exit{ExitKind::kSucceeded, 0, "exit code 0"}, 0);
  REQUIRE(pair.sends<KillAllocation>().size() == 1);
  CHECK(pair.sends<KillAllocation>()[0].agent == AgentId("b"));
  SECTION("with a restart of the master in between") {
    pair.restart();
    pair.connect("b", 1, {{pair.live(kTrial)->id, AllocationState::kRunning, std::nullopt}});
    CHECK(pair.sends<KillAllocation>().size() == 1);
  }
  pair.update(kTrial, AllocationState::kTerminated, Exit{ExitKind::kStopped, 143, "killed by signal 15"}, 1);
  CHECK(pair.trial(kTrial).state == State::kCompleted);
  CHECK(pair.trial(kTrial).restarts == 0);
}

TEST_CASE("a process that reports its machine's shutdown is preempted and runs again") {
  Pair pair;
  pair.run();
  REQUIRE(*pair.step(AskToLeave{0, kTrial, 1}));
  CHECK(pair.sends<PreemptAllocation>().size() == 1);
  CHECK(std::get<Attached>(*pair.attach(kTrial, 1)).preempt);
  CHECK(pair.step(AskToLeave{0, kTrial, 2})->error().code == Code::kAborted);
}

}  // namespace
}  // namespace det::core
