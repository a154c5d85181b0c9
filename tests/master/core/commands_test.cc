// Commands wait like trials, run at most once, and end with the exit of their process.
#include <catch2/catch.hpp>

#include "bench.h"

namespace det::core {
namespace {

struct Commands : Bench {
  explicit Commands(int slots = 1) { connect("a", slots); }

  std::shared_ptr<expconf::CommandConfig> command_config(int slots, int priority = 42) {
    auto config = std::make_shared<expconf::CommandConfig>();
    config->entrypoint = {"echo", "hello"};
    config->slots = slots;
    config->priority = priority;
    return config;
  }
  CommandId launch(const std::string& task, int slots, int priority = 42) {
    REQUIRE(*step(SubmitCommand{.task = TaskId(task), .config = command_config(slots, priority)}));
    for (const auto& [id, row] : disk().commands) {
      if (row.task.value == task) return id;
    }
    FAIL("it is not there");
    return {};
  }
  const Command& row(CommandId id) const { return disk().commands.at(id); }
  State state(CommandId id) const { return row(id).state; }
  std::size_t runs(CommandId id) const {
    std::size_t count = 0;
    for (const auto& [name, allocation] : disk().allocations) count += allocation.task == id;
    return count;
  }
};

TEST_CASE("a command starts as submitted and ends with its exit") {
  Commands bench;
  const CommandId id = bench.launch("c", 1);
  const auto starts = bench.sends<StartAllocation>();
  REQUIRE(starts.size() == 1);
  REQUIRE(starts[0].command);
  CHECK(starts[0].command->task == TaskId("c"));
  CHECK(starts[0].allocation.id == AllocationId("c.1"));
  bench.update(id, AllocationState::kRunning);
  CHECK(bench.state(id) == State::kActive);
  SECTION("exit code 0") {
    bench.exit(id, ExitKind::kSucceeded);
    CHECK(bench.state(id) == State::kCompleted);
  }
  SECTION("another exit code") {
    bench.exit(id, ExitKind::kFailed);
    CHECK(bench.state(id) == State::kError);
    CHECK(bench.row(id).exit->code == 7);
  }
  CHECK(bench.row(id).ended);
  CHECK(bench.core().commands().empty());
}

TEST_CASE("a barred workspace takes no commands") {
  Commands bench;
  REQUIRE(*bench.step(BarContainer{.workspace = 3}));
  const auto config = bench.command_config(1);
  CHECK(code_of(bench.step(SubmitCommand{.task = TaskId("c"), .workspace = 3, .config = config})) ==
        Code::kFailedPrecondition);
  CHECK(bench.disk().commands.empty());
  bench.launch("elsewhere", 1);
}

TEST_CASE("a command without slots starts at once when no slot is free") {
  Commands bench;
  bench.submit(bench.config(1));
  REQUIRE(bench.live(TrialId(1)));
  const CommandId waits = bench.launch("one", 1), starts = bench.launch("none", 0);
  CHECK_FALSE(bench.live(waits));
  REQUIRE(bench.live(starts));
  CHECK(bench.live(starts)->parts.front().slots.empty());
}

TEST_CASE("commands and trials share one queue, ordered by priority") {
  Commands bench;
  bench.submit(bench.config(1));
  bench.submit(bench.config(1));
  const CommandId urgent = bench.launch("urgent", 1, 1);
  // Commands are never preempted, but they may preempt.
  CHECK(bench.core().allocations().begin()->second.kill_requested);
  bench.exit(TrialId(1), ExitKind::kStopped);
  REQUIRE(bench.live(urgent));
  bench.submit(bench.config(1, 2, 1));
  CHECK_FALSE(bench.live(urgent)->kill_requested);
}

TEST_CASE("a repeated submission launches one command") {
  Commands bench;
  const CommandId id = bench.launch("c", 1);
  CHECK(bench.launch("c", 1) == id);
  bench.exit(id, ExitKind::kSucceeded);
  CHECK(bench.launch("c", 1) == id);
  CHECK(bench.disk().commands.size() == 1);
  CHECK(bench.runs(id) == 1);
}

TEST_CASE("a command can be killed while it waits, is about to start, or runs") {
  Commands bench;
  SECTION("while it waits") {
    const CommandId id = bench.launch("c", 2);
    REQUIRE(*bench.step(KillCommand{0, TaskId("c")}));
    CHECK(bench.state(id) == State::kCanceled);
    CHECK_FALSE(bench.row(id).exit);
    CHECK(bench.runs(id) == 0);
  }
  SECTION("with slots assigned") {
    const CommandId id = bench.launch("c", 1);
    REQUIRE(*bench.step(KillCommand{0, TaskId("c")}));
    CHECK(bench.state(id) == State::kStoppingKilled);
    CHECK(bench.sends<KillAllocation>().size() == 1);
    SECTION("exits because of the kill") { bench.exit(id, ExitKind::kStopped); }
    SECTION("exits by itself") { bench.exit(id, ExitKind::kSucceeded); }
    CHECK(bench.state(id) == State::kCanceled);
  }
  CHECK(*bench.step(KillCommand{0, TaskId("c")}));
  CHECK(code_of(bench.step(KillCommand{0, TaskId("other")})) == Code::kNotFound);
}

TEST_CASE("a paused command gives its slots back, and runs again from its beginning when it is resumed") {
  Commands bench;
  const CommandId id = bench.launch("c", 1);
  bench.update(id, AllocationState::kRunning);
  REQUIRE(*bench.step(PauseCommand{0, TaskId("c")}));
  CHECK(bench.sends<KillAllocation>().size() == 1);
  CHECK(bench.state(id) == State::kPaused);
  CHECK(*bench.step(PauseCommand{0, TaskId("c")}));
  CHECK(code_of(bench.step(ResumeCommand{0, TaskId("c")})) == Code::kFailedPrecondition);
  bench.exit(id, ExitKind::kStopped);
  CHECK(bench.state(id) == State::kPaused);
  CHECK_FALSE(bench.row(id).exit);
  bench.restart();
  bench.connect("a", 1);
  CHECK(bench.runs(id) == 1);
  SECTION("resumed") {
    REQUIRE(*bench.step(ResumeCommand{0, TaskId("c")}));
    CHECK(*bench.step(ResumeCommand{0, TaskId("c")}));
    CHECK(bench.state(id) == State::kActive);
    CHECK(bench.runs(id) == 2);
    CHECK(bench.row(id).run == 2);
  }
  SECTION("killed") {
    REQUIRE(*bench.step(KillCommand{0, TaskId("c")}));
    CHECK(bench.state(id) == State::kCanceled);
    CHECK(code_of(bench.step(ResumeCommand{0, TaskId("c")})) == Code::kFailedPrecondition);
  }
  SECTION("unknown") { CHECK(code_of(bench.step(PauseCommand{0, TaskId("other")})) == Code::kNotFound); }
}

TEST_CASE("a lost command is not run again") {
  Commands bench;
  const CommandId id = bench.launch("c", 1);
  bench.update(id, AllocationState::kRunning);
  SECTION("the agent lost the command") { bench.connect("a", 1); }
  SECTION("the agent is lost") {
    bench.disconnect("a");
    bench.pass(std::chrono::hours(1));
  }
  CHECK(bench.state(id) == State::kError);
  CHECK(bench.row(id).exit->kind == ExitKind::kLost);
  CHECK(bench.runs(id) == 1);
}

TEST_CASE("a restarted master continues waiting and running commands") {
  Commands bench;
  const CommandId running = bench.launch("running", 1), waiting = bench.launch("waiting", 1);
  bench.update(running, AllocationState::kRunning);
  bench.restart();
  bench.connect("a", 1, {{AllocationId("running.1"), AllocationState::kRunning, std::nullopt}});
  CHECK(bench.sends<KillAllocation>().empty());
  REQUIRE(*bench.step(KillCommand{0, TaskId("running")}));
  SECTION("a kill survives the restart") {
    bench.restart();
    bench.connect("a", 1, {{AllocationId("running.1"), AllocationState::kRunning, std::nullopt}});
    CHECK(bench.sends<KillAllocation>().size() == 1);
  }
  bench.exit(running, ExitKind::kStopped);
  CHECK(bench.state(running) == State::kCanceled);
  CHECK(bench.live(waiting));
}

TEST_CASE("the queue position of a command can be changed until it runs") {
  Commands bench;
  bench.submit(bench.config(1));
  const CommandId first = bench.launch("first", 1), second = bench.launch("second", 1);
  using Beside = UpdateJob::Beside;
  SECTION("by priority") { REQUIRE(*bench.step(UpdateJob{.job = second, .priority = 41})); }
  SECTION("relative to another job") {
    REQUIRE(*bench.step(UpdateJob{.job = second, .beside = Beside{scheduler::Side::kAhead, first}}));
    bench.restart();
    bench.connect(
        "a", 1,
        {{AllocationId(bench.trial(TrialId(1)).task.value + ".1"), AllocationState::kRunning, std::nullopt}});
  }
  SECTION("by moving it to another pool") {
    REQUIRE(*bench.step(UpdateJob{.job = first, .pool = "elsewhere"}));
    CHECK(bench.row(first).queue.pool == "elsewhere");
  }
  bench.act(ExperimentId(1), ExperimentAction::kKill);
  bench.exit(TrialId(1), ExitKind::kStopped);
  CHECK_FALSE(bench.live(first));
  REQUIRE(bench.live(second));
  CHECK(code_of(bench.step(UpdateJob{.job = second, .pool = "else"})) == Code::kFailedPrecondition);
  CHECK(code_of(bench.step(UpdateJob{.job = CommandId(99), .priority = 3})) == Code::kNotFound);
  CHECK(code_of(bench.step(UpdateJob{.job = second, .priority = 100})) == Code::kInvalidArgument);
}

TEST_CASE("a trial and a command with the same number run side by side") {
  Commands bench;
  REQUIRE(*bench.connect("more", 2));
  bench.submit(bench.config());
  const CommandId id = bench.launch("c", 1);
  REQUIRE(id.value == kTrial.value);
  REQUIRE(bench.live(kTrial));
  REQUIRE(bench.live(id));
  CHECK(bench.live(kTrial)->id != bench.live(id)->id);
  SECTION("the command ends first") {
    bench.exit(id, ExitKind::kSucceeded);
    CHECK(bench.state(id) == State::kCompleted);
    CHECK(bench.trial(kTrial).state == State::kActive);
    CHECK(bench.live(kTrial));
  }
  SECTION("the trial ends first") {
    REQUIRE(*bench.step(KillTrial{0, kTrial}));
    bench.exit(kTrial, ExitKind::kStopped);
    CHECK(bench.trial(kTrial).state == State::kCanceled);
    CHECK(bench.state(id) == State::kActive);
    CHECK(bench.live(id));
  }
  SECTION("the master restarts") {
    bench.restart();
    CHECK(bench.live(kTrial));
    CHECK(bench.live(id));
  }
}

TEST_CASE("trial reports are refused for a command") {
  Commands bench;
  const CommandId id = bench.launch("c", 1);
  CHECK(code_of(bench.step(HarnessAttached{0, TrialId(id.value), 1})) == Code::kAborted);
  CHECK(code_of(bench.step(ReportProgress{0, TrialId(id.value), 1, 0.5, 1})) == Code::kAborted);
}

}  // namespace
}  // namespace det::core
