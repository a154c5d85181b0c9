// Slots that an agent takes out of service because of their devices, and the check before their return.
#include <catch2/catch.hpp>

#include "bench.h"

namespace det::core {
namespace {

constexpr std::uint64_t kSession = 77;
const AgentId kAgent("a");

/// One agent with two slots that checks them.
struct Slots : Bench {
  explicit Slots(std::map<int, std::string> problems = {}) { join(std::move(problems)); }
  void join(std::map<int, std::string> problems, std::uint64_t session = kSession) {
    AgentConnected input{.agent = kAgent, .instance = "a", .slots = {Device{}, Device{}}, .session = session};
    input.slot_problems = std::move(problems);
    input.checks_slots = true;
    REQUIRE(*step(std::move(input)));
  }
  void report(std::map<int, std::string> problems, std::int64_t checks = 0,
              std::uint64_t session = kSession) {
    step(SlotProblems{kAgent, session, std::move(problems), checks});
  }
  void set(int slot, bool enabled) {
    REQUIRE(*step(SetService{.agent = kAgent, .slot = slot, .enabled = enabled, .drain = true}));
  }
  void end(TrialId trial, Exit exit = {ExitKind::kSucceeded, 0, "exit code 0"}) {
    step(AllocationUpdated{kAgent, kSession, {live(trial)->id, AllocationState::kTerminated, exit}});
  }
  /// The slots of all allocations.
  std::set<int> used() const {
    std::set<int> slots;
    for (const auto& [id, allocation] : core().allocations())
      slots.insert(allocation.parts[0].slots.begin(), allocation.parts[0].slots.end());
    return slots;
  }
  const std::map<int, std::string>& problems() const { return core().agents().at(kAgent).slot_problems; }
};

TEST_CASE("a slot with a problem keeps its allocation and gets no work until the problem ends") {
  Slots bench;
  bench.submit(bench.config(2));
  bench.report({{1, "Xid 79"}});
  CHECK(bench.sends<KillAllocation>().empty());
  bench.end(TrialId(1));
  bench.submit(bench.config(1, 0));
  bench.submit(bench.config(1, 0));
  CHECK(bench.used() == std::set{0});
  SECTION("it ends") {
    bench.report({});
    CHECK(bench.used() == std::set{0, 1});
  }
  SECTION("the next connection has it, too") {
    const HeldAllocation running{bench.live(TrialId(2))->id, AllocationState::kRunning, std::nullopt};
    AgentConnected again{.agent = kAgent, .instance = "a", .slots = {Device{}, Device{}}, .session = 78};
    again.held = {running};
    again.slot_problems = {{1, "Xid 79"}};
    REQUIRE(*bench.step(std::move(again)));
    CHECK(bench.used() == std::set{0});
  }
  SECTION("a report of an older session changes nothing") {
    bench.report({}, 0, kSession - 1);
    CHECK(bench.used() == std::set{0});
  }
}

TEST_CASE("a failure on a slot with a fault consumes no restart") {
  Slots bench;
  bench.submit(bench.config(1, 0));
  const int slot = *bench.used().begin();
  const Exit failed{ExitKind::kFailed, 1, "exit code 1\nerror: CUDA error: unspecified launch failure"};
  SECTION("its own") {
    bench.report({{slot, "Xid 79"}});
    SECTION("failed") { bench.end(TrialId(1), failed); }
    SECTION("hung") { bench.end(TrialId(1), {ExitKind::kHung, 0, "no progress"}); }
    CHECK(bench.trial(TrialId(1)).state == State::kActive);
    CHECK(bench.trial(TrialId(1)).restarts == 0);
    CHECK_THAT(bench.trial(TrialId(1)).exit_reason,
               Catch::Contains(", agent a has a fault on slot " + std::to_string(slot) + ": Xid 79"));
    CHECK(bench.used() == std::set{1 - slot});
  }
  SECTION("in the first message of a connection") {
    AgentConnected again{.agent = kAgent, .instance = "a", .slots = {Device{}, Device{}}, .session = 78};
    again.held = {{bench.live(TrialId(1))->id, AllocationState::kTerminated, failed}};
    again.slot_problems = {{slot, "Xid 79"}};
    REQUIRE(*bench.step(std::move(again)));
    CHECK(bench.trial(TrialId(1)).state == State::kActive);
  }
  SECTION("but one on another slot, or without memory, does") {
    bench.report({{1 - slot, "Xid 79"}});
    SECTION("other slot") { bench.end(TrialId(1), failed); }
    SECTION("memory") {
      bench.report({{slot, "Xid 79"}});
      bench.end(TrialId(1), {ExitKind::kOutOfMemory, 137, "out of memory"});
    }
    CHECK(bench.trial(TrialId(1)).state == State::kError);
  }
}

TEST_CASE("a request that only fits with a slot out of service waits") {
  Slots bench({{0, "Xid 79"}});
  bench.submit(bench.config(2));
  CHECK(bench.used().empty());
  bench.report({});
  CHECK(bench.used() == std::set{0, 1});
}

TEST_CASE("unknown slots in a report are ignored") {
  Slots bench({{-1, "x"}, {2, "x"}});
  CHECK(bench.problems().empty());
  bench.report({{1, "Xid 79"}, {5, "x"}});
  CHECK(bench.problems() == std::map<int, std::string>{{1, "Xid 79"}});
}

TEST_CASE("an enabled slot gets no work before the check of its device has been answered") {
  Slots bench;
  bench.set(0, false);
  bench.set(1, false);
  bench.submit(bench.config(1, 0));
  bench.set(1, true);
  const auto checks = bench.sends<CheckSlot>();
  REQUIRE(checks.size() == 1);
  CHECK((checks[0].agent == kAgent && checks[0].session == kSession && checks[0].slot == 1));
  CHECK(checks[0].number == 1);
  CHECK(bench.used().empty());
  SECTION("it passes") {
    bench.report({{1, "its device is being checked"}}, 1);
    CHECK(bench.used().empty());
    bench.report({}, 1);
    CHECK(bench.used() == std::set{1});
  }
  SECTION("it fails") {
    bench.report({{1, "the check failed: no device"}}, 1);
    CHECK(bench.used().empty());
    CHECK(bench.problems().at(1) == "the check failed: no device");
  }
  SECTION("a report that was on its way is no answer") {
    bench.report({{0, "Xid 79"}}, 0);
    CHECK(bench.used().empty());
    CHECK(bench.problems().size() == 2);
    bench.report({{0, "Xid 79"}}, 1);
    CHECK(bench.used() == std::set{1});
  }
  SECTION("the next connection is asked again") {
    bench.join({}, 78);
    REQUIRE(bench.sends<CheckSlot>().size() == 1);
    CHECK(bench.sends<CheckSlot>()[0].session == 78);
    CHECK(bench.used().empty());
    bench.report({}, 1, 78);
    CHECK(bench.used() == std::set{1});
  }
}

TEST_CASE("enabling a slot with a problem checks it, enabling a healthy one or an older agent's does not") {
  Slots bench({{0, "Xid 79"}});
  bench.set(0, true);
  CHECK(bench.sends<CheckSlot>().size() == 1);
  CHECK(bench.problems().at(0) == "Xid 79");
  bench.set(1, true);
  CHECK(bench.sends<CheckSlot>().empty());
  Bench older;
  older.connect("b", 1);
  const SetService off{.agent = AgentId("b"), .slot = 0, .enabled = false};
  const SetService on{.agent = AgentId("b"), .slot = 0};
  REQUIRE(*older.step(off));
  REQUIRE(*older.step(on));
  CHECK(older.sends<CheckSlot>().empty());
  older.submit(older.config());
  CHECK(older.core().allocations().size() == 1);
}

}  // namespace
}  // namespace det::core
