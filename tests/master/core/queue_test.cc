// Queue positions and agent availability as set by users, across restarts.
#include <catch2/catch.hpp>

#include "bench.h"

namespace det::core {
namespace {

/// One agent with one slot. The first experiment runs, two wait.
struct Line : Bench {
  Line() {
    connect("a", 1);
    first = submit(config());
    second = submit(config());
    third = submit(config());
  }
  /// The trial that gets the slot after trial 1 ends.
  TaskKey next() {
    act(first, ExperimentAction::kKill);
    exit(TrialId(1), ExitKind::kStopped);
    REQUIRE(core().allocations().size() == 1);
    return core().allocations().begin()->second.task;
  }
  ExperimentId first, second, third;
};

TEST_CASE("a job moved ahead runs first, also after a restart") {
  Line line;
  REQUIRE(*line.step(
      UpdateJob{.job = line.third, .beside = UpdateJob::Beside{scheduler::Side::kAhead, line.second}}));
  const AllocationId running = line.live(TrialId(1))->id;
  SECTION("with a restart") {
    line.restart();
    line.connect("a", 1, {{running, AllocationState::kRunning, std::nullopt}});
  }
  SECTION("without a restart") {}
  CHECK(line.next() == TrialId(3));
}

TEST_CASE("the queue runs in submission order by default") { CHECK(Line().next() == TrialId(2)); }

TEST_CASE("a better priority preempts, and the preempted trial returns to its submission position") {
  Line line;
  REQUIRE(*line.step(UpdateJob{.job = line.third, .priority = 1}));
  CHECK(line.sends<KillAllocation>().size() == 1);
  CHECK(line.experiment(line.third).queue.priority == 1);
  line.exit(TrialId(1), ExitKind::kStopped);
  CHECK(line.live(TrialId(3)));
}

TEST_CASE("waiting and running jobs can be moved to another pool") {
  Line line;
  AgentConnected other{
      .agent = AgentId("b"), .instance = "b", .pool = "other", .slots = {Device{}}, .session = 99};
  line.step(other);
  REQUIRE(*line.step(UpdateJob{.job = line.second, .pool = "other"}));
  CHECK(line.live(TrialId(2))->parts[0].agent == AgentId("b"));
  REQUIRE(*line.step(UpdateJob{.job = line.first, .pool = "other"}));
  CHECK(line.live(TrialId(1))->kill_requested);
  line.exit(TrialId(1), ExitKind::kStopped);
  CHECK(line.live(TrialId(1)) == nullptr);  // Trial 1 waits behind trial 2.
  CHECK(line.live(TrialId(3))->parts[0].agent == AgentId("a"));
  CHECK(line.trial(TrialId(1)).restarts == 0);
}

TEST_CASE("invalid job changes are refused") {
  Line line;
  CHECK(code_of(line.step(UpdateJob{.job = ExperimentId(9), .priority = 1})) == Code::kNotFound);
  CHECK(code_of(line.step(UpdateJob{.job = line.first, .priority = 0})) == Code::kInvalidArgument);
  CHECK(code_of(line.step(UpdateJob{.job = line.first, .weight = 0})) == Code::kInvalidArgument);
  auto pair = line.submit(line.config(2));
  CHECK(code_of(line.step(UpdateJob{.job = pair, .max_slots = 1})) == Code::kInvalidArgument);
  CHECK(*line.step(UpdateJob{.job = pair, .max_slots = 2}));
  CHECK(code_of(line.step(UpdateJob{.job = line.first,
                                    .beside = UpdateJob::Beside{scheduler::Side::kAhead, line.first}})) ==
        Code::kInvalidArgument);
  // The position is one in the pool that the job would leave.
  CHECK(code_of(line.step(UpdateJob{.job = line.third,
                                    .pool = "other",
                                    .beside = UpdateJob::Beside{scheduler::Side::kAhead, line.second}})) ==
        Code::kInvalidArgument);
}

TEST_CASE("a disabled agent is vacated and gets no work until it is enabled") {
  Line line;
  REQUIRE(*line.step(SetService{.agent = AgentId("a"), .enabled = false}));
  CHECK(line.sends<KillAllocation>().size() == 1);
  line.exit(TrialId(1), ExitKind::kStopped);
  CHECK(line.core().allocations().empty());
  line.restart();
  line.connect("a", 1);
  CHECK(line.core().allocations().empty());
  REQUIRE(*line.step(SetService{.agent = AgentId("a")}));
  CHECK(line.live(TrialId(1)));
}

TEST_CASE("a trial on a disabled agent has ten seconds for its checkpoint") {
  Line line;
  REQUIRE(line.attach(TrialId(1), 1));
  REQUIRE(*line.step(SetService{.agent = AgentId("a"), .enabled = false}));
  CHECK(line.sends<KillAllocation>().empty());
  line.pass(std::chrono::seconds(9));
  CHECK(line.sends<KillAllocation>().empty());
  line.pass(std::chrono::seconds(2));
  CHECK(line.sends<KillAllocation>().size() == 1);
  line.exit(TrialId(1), ExitKind::kStopped);
  CHECK(line.live(TrialId(1)) == nullptr);
  REQUIRE(*line.step(SetService{.agent = AgentId("a")}));
  REQUIRE(line.live(TrialId(1)));
  CHECK(line.core().trial(TrialId(1))->restarts == 0);
}

TEST_CASE("an agent with a problem keeps its allocations and gets no work until the problem ends") {
  Line line;
  line.report_problem("a", "the disk is full");
  CHECK(line.sends<KillAllocation>().empty());
  line.exit(TrialId(1), ExitKind::kSucceeded);
  CHECK(line.core().allocations().empty());
  SECTION("it ends") {
    line.report_problem("a", "");
    CHECK(line.live(TrialId(2)));
  }
  SECTION("another session has none") {
    line.connect("a", 1);
    CHECK(line.live(TrialId(2)));
  }
}

TEST_CASE("a stopping agent is vacated and gets no work until its next session") {
  Line line;
  line.connect("a", 1, {{line.live(TrialId(1))->id, AllocationState::kRunning, std::nullopt}});
  line.announce_stop("a", true);
  CHECK(line.sends<KillAllocation>().empty());
  line.announce_stop("a");
  CHECK(line.sends<KillAllocation>().size() == 1);
  line.exit(TrialId(1), ExitKind::kStopped);
  CHECK(line.core().allocations().empty());
  CHECK(line.trial(TrialId(1)).restarts == 0);
  line.connect("a", 1);
  CHECK(line.live(TrialId(1)));
}

TEST_CASE("a draining agent keeps its running allocations") {
  Line line;
  REQUIRE(*line.step(SetService{.agent = AgentId("a"), .enabled = false, .drain = true}));
  CHECK(line.sends<KillAllocation>().empty());
  CHECK(line.core().agent_settings().at(AgentId("a")).draining);
  line.exit(TrialId(1), ExitKind::kSucceeded);
  CHECK(line.core().allocations().empty());
}

TEST_CASE("a disabled slot is vacated, and its neighbor is not") {
  Bench bench;
  bench.connect("a", 2);
  bench.submit(bench.config());
  bench.submit(bench.config());
  REQUIRE(*bench.step(SetService{.agent = AgentId("a"), .slot = 1, .enabled = false}));
  const auto kills = bench.sends<KillAllocation>();
  REQUIRE(kills.size() == 1);
  CHECK(bench.core().allocations().at(kills[0].allocation).parts[0].slots == std::vector<int>{1});
  CHECK(code_of(bench.step(SetService{.agent = AgentId("a"), .slot = 2, .enabled = false})) ==
        Code::kNotFound);
  CHECK(code_of(bench.step(SetService{.agent = AgentId("b"), .enabled = false})) == Code::kNotFound);
}

}  // namespace
}  // namespace det::core
