// Agents that connect, disconnect, reconnect with other devices, or never return.
#include <catch2/catch.hpp>

#include "bench.h"
#include "common/crypto/digest.h"

namespace det::core {
namespace {

HeldAllocation held(const Bench& bench, AllocationState state, std::optional<Exit> exit = std::nullopt) {
  return {bench.live(kTrial)->id, state, std::move(exit)};
}

TEST_CASE("a start that was lost on the way is sent again") {
  Bench bench;
  bench.connect("a1", 1);
  bench.submit(bench.config());
  bench.disconnect("a1");
  bench.connect("a1", 1);
  REQUIRE(bench.sends<StartAllocation>().size() == 1);
  CHECK(bench.live(kTrial)->run == 1);
}

TEST_CASE("an agent that reconnects with its allocation continues it") {
  Bench bench;
  bench.connect("a1", 1);
  bench.submit(bench.config());
  bench.update(kTrial, AllocationState::kRunning);
  bench.disconnect("a1");
  bench.connect("a1", 1, {held(bench, AllocationState::kRunning)});
  CHECK(bench.sends<StartAllocation>().empty());
  bench.pass(Options{}.agent_wait() * 2);
  CHECK(bench.live(kTrial)->run == 1);
}

TEST_CASE("each start has a token of its own, and its hash is stored with the start") {
  Bench bench(Options{.token_key = "key"});
  bench.connect("a1", 1);
  bench.submit(bench.config());
  const auto first = bench.sends<StartAllocation>();
  REQUIRE(first.size() == 1);
  CHECK(first[0].token.size() == 64);
  const auto stored = [&](const std::string& token) {
    return bench.disk().allocations.at(first[0].allocation.id).has_token(sha256_hex(token));
  };
  CHECK(stored(first[0].token));
  CHECK_FALSE(bench.disk().allocations.at(first[0].allocation.id).has_token(""));
  // The start was lost: the repeated one has another token, and the lost one is void.
  bench.disconnect("a1");
  bench.connect("a1", 1);
  const auto second = bench.sends<StartAllocation>();
  REQUIRE(second.size() == 1);
  CHECK(second[0].token != first[0].token);
  CHECK(stored(second[0].token));
  CHECK_FALSE(stored(first[0].token));
  // A process keeps its token when the master and its agent restart.
  bench.restart();
  bench.connect("a1", 1, {held(bench, AllocationState::kRunning)});
  CHECK(bench.live(kTrial)->has_token(sha256_hex(second[0].token)));
}

TEST_CASE("the tokens of another start of the master are others") {
  std::vector<std::string> tokens;
  for (const char* key : {"key 1", "key 2"}) {
    Bench bench(Options{.token_key = key});
    bench.connect("a1", 1);
    bench.submit(bench.config());
    tokens.push_back(bench.sends<StartAllocation>().at(0).token);
  }
  CHECK(tokens[0] != tokens[1]);
}

TEST_CASE("an exit during a disconnect is reported on reconnect") {
  Bench bench;
  bench.connect("a1", 1);
  bench.submit(bench.config());
  bench.update(kTrial, AllocationState::kRunning);
  bench.disconnect("a1");
  bench.connect("a1", 1,
                {held(bench, AllocationState::kTerminated, Exit{ExitKind::kSucceeded, 0, "exit code 0"})});
  CHECK(bench.sends<AllocationForgotten>().size() == 1);
  CHECK(bench.trial(kTrial).state == State::kCompleted);
}

TEST_CASE("an allocation that is missing on reconnect runs again") {
  Bench bench;
  bench.connect("a1", 1);
  bench.submit(bench.config(1, 0));
  bench.update(kTrial, AllocationState::kPulling);
  bench.disconnect("a1");
  bench.connect("a1", 1);
  CHECK(bench.live(kTrial)->run == 2);
  CHECK(bench.trial(kTrial).restarts == 0);
}

TEST_CASE("an ephemeral agent that leaves is removed at once, and its trials go on elsewhere") {
  Bench bench;
  bench.connect("a1", 1, {}, "", true);
  bench.submit(bench.config(1, 0));
  bench.update(kTrial, AllocationState::kRunning);
  bench.connect("a2", 1);
  bench.step(SetService{.agent = AgentId("a1"), .slot = 0, .enabled = true});
  REQUIRE(bench.disk().agents.contains(AgentId("a1")));
  bench.leave("a1");
  CHECK_FALSE(bench.core().agents().contains(AgentId("a1")));
  CHECK_FALSE(bench.core().agent_settings().contains(AgentId("a1")));
  CHECK_FALSE(bench.disk().agents.contains(AgentId("a1")));
  REQUIRE(bench.live(kTrial));
  CHECK(bench.live(kTrial)->run == 2);
  CHECK(bench.live(kTrial)->part_on(AgentId("a2")));
  CHECK(bench.trial(kTrial).restarts == 0);
}

TEST_CASE("only an ephemeral agent leaves, and only in its session") {
  Bench bench;
  bench.connect("a1", 1);
  bench.leave("a1");
  CHECK(bench.core().agents().contains(AgentId("a1")));
  bench.connect("a2", 1, {}, "", true);
  bench.step(AgentLeft{AgentId("a2"), 1});
  CHECK(bench.core().agents().contains(AgentId("a2")));
}

TEST_CASE("killing a trial on an unreachable agent ends it within seconds and frees its slots at the exit") {
  const auto action = GENERATE(ExperimentAction::kKill, ExperimentAction::kCancel);
  const bool asked_before = GENERATE(false, true);
  Bench bench;
  bench.connect("a1", 1);
  const ExperimentId id = bench.submit(bench.config());
  REQUIRE(bench.attach(kTrial, 1));
  if (asked_before) bench.act(id, ExperimentAction::kPause);
  const HeldAllocation old = held(bench, AllocationState::kRunning);
  bench.disconnect("a1");
  bench.pass(std::chrono::seconds(4));
  bench.act(id, action);
  bench.pass(std::chrono::seconds(3));
  CHECK(bench.live(kTrial));
  bench.pass(std::chrono::seconds(1));
  CHECK(bench.experiment(id).state == State::kCanceled);
  CHECK(bench.trial(kTrial).state == State::kCanceled);
  CHECK(bench.disk().allocations.at(old.id).exit->message ==
        "agent a1 is unreachable; it ends its processes when it reconnects");
  bench.submit(bench.config());
  CHECK_FALSE(bench.live(TrialId(2)));

  CHECK_FALSE(*bench.connect("a1", 1, {}, "another machine"));
  bench.connect("a1", 1, {old});
  CHECK(bench.sends<KillAllocation>().size() == 1);
  CHECK_FALSE(bench.live(TrialId(2)));
  const std::uint64_t session = bench.core().agents().at(AgentId("a1")).session;
  bench.step(AllocationUpdated{
      AgentId("a1"), session, {old.id, AllocationState::kTerminated, Exit{ExitKind::kStopped, 0, "killed"}}});
  CHECK(bench.sends<AllocationForgotten>().size() == 1);
  CHECK(bench.live(TrialId(2)));
}

TEST_CASE("a kill ends an allocation of a long silent agent at once, a pause only with the lease") {
  Bench bench;
  bench.connect("a1", 2);
  const ExperimentId killed = bench.submit(bench.config()), paused = bench.submit(bench.config());
  REQUIRE(bench.attach(TrialId(2), 1));
  bench.disconnect("a1");
  bench.act(paused, ExperimentAction::kPause);
  bench.pass(std::chrono::minutes(1));
  CHECK(bench.live(kTrial));
  bench.act(killed, ExperimentAction::kKill);
  bench.pass(Duration(0));
  CHECK(bench.experiment(killed).state == State::kCanceled);
  bench.act(paused, ExperimentAction::kActivate);
  bench.connect("a2", 2);
  CHECK(bench.live(TrialId(2))->run == 1);
  bench.pass(Options{}.agent_wait());
  CHECK(bench.live(TrialId(2))->run == 2);
}

TEST_CASE("killed trials end within seconds when their agent does not return after a restart of the master") {
  Bench bench;
  bench.connect("a1", 1);
  const ExperimentId id = bench.submit(bench.config());
  bench.update(kTrial, AllocationState::kRunning);
  bench.act(id, ExperimentAction::kKill);
  bench.restart();
  bench.pass(std::chrono::seconds(8));
  CHECK(bench.experiment(id).state == State::kCanceled);
}

TEST_CASE("an allocation that cannot start is retried with increasing delay") {
  Bench bench;
  bench.connect("a1", 1);
  bench.submit(bench.config(1, 0));
  const auto lose = [&] { bench.exit(kTrial, ExitKind::kLost); };
  lose();
  // The first retry is immediate: the failure may be a coincidence.
  REQUIRE(bench.live(kTrial) != nullptr);
  for (const int wait : {1, 2, 4, 8, 16, 32, 64, 64}) {
    lose();
    const RunNumber run = bench.trial(kTrial).run;
    bench.pass(std::chrono::milliseconds(wait * 1000 - 1));
    CHECK(bench.live(kTrial) == nullptr);
    bench.pass(std::chrono::milliseconds(1));
    REQUIRE(bench.live(kTrial) != nullptr);
    CHECK(bench.trial(kTrial).run == run + 1);
  }
  REQUIRE(bench.attach(kTrial, bench.trial(kTrial).run));
  lose();
  CHECK(bench.live(kTrial) != nullptr);
  CHECK(bench.trial(kTrial).restarts == 0);
}

TEST_CASE("a trial in back-off may be paused, and starts at once when activated") {
  Bench bench;
  bench.connect("a1", 1);
  const ExperimentId id = bench.submit(bench.config(1, 0));
  for (int i = 0; i < 4; ++i) {
    if (bench.live(kTrial)) bench.exit(kTrial, ExitKind::kLost);
    if (i < 2) bench.pass(std::chrono::seconds(1));
  }
  REQUIRE(bench.live(kTrial) == nullptr);
  bench.act(id, ExperimentAction::kPause);
  bench.pass(std::chrono::minutes(5));
  CHECK(bench.live(kTrial) == nullptr);
  bench.act(id, ExperimentAction::kActivate);
  CHECK(bench.live(kTrial) != nullptr);
}

TEST_CASE("an allocation that was to be killed and never started is gone") {
  Bench bench;
  bench.connect("a1", 1);
  const ExperimentId id = bench.submit(bench.config());
  bench.disconnect("a1");
  bench.act(id, ExperimentAction::kKill);
  CHECK(bench.sends<KillAllocation>().empty());
  bench.connect("a1", 1);
  CHECK(bench.experiment(id).state == State::kCanceled);
}

TEST_CASE("a kill for a disconnected agent is sent when it returns") {
  Bench bench;
  bench.connect("a1", 1);
  const ExperimentId id = bench.submit(bench.config());
  bench.update(kTrial, AllocationState::kRunning);
  bench.disconnect("a1");
  bench.act(id, ExperimentAction::kKill);
  bench.connect("a1", 1, {held(bench, AllocationState::kRunning)});
  CHECK(bench.sends<KillAllocation>().size() == 1);
}

TEST_CASE("unknown allocations are killed, and forgotten after their exit") {
  Bench bench;
  bench.connect("a1", 1, {{AllocationId("9.x.1"), AllocationState::kRunning, std::nullopt}});
  CHECK(bench.sends<KillAllocation>().size() == 1);
  bench.disconnect("a1");
  bench.connect("a1", 1, {{AllocationId("9.x.1"), AllocationState::kTerminated, Exit{}}});
  CHECK(bench.sends<AllocationForgotten>().size() == 1);
}

TEST_CASE("an exit is counted once") {
  Bench bench;
  bench.connect("a1", 1);
  bench.submit(bench.config(1, 5));
  const AllocationId id = bench.live(kTrial)->id;
  const Exit exit{ExitKind::kFailed, 1, "exit code 1"};
  for (int i = 0; i < 3; ++i)
    bench.step(AllocationUpdated{AgentId("a1"), 1, {id, AllocationState::kTerminated, exit}});
  CHECK(bench.trial(kTrial).restarts == 1);
  CHECK(bench.sends<AllocationForgotten>().size() == 1);
}

TEST_CASE("messages of an earlier session are ignored") {
  Bench bench;
  bench.connect("a1", 1);
  bench.submit(bench.config());
  bench.connect("a1", 1);
  const AllocationId id = bench.live(kTrial)->id;
  bench.step(AllocationUpdated{AgentId("a1"), 1, {id, AllocationState::kTerminated, Exit{}}});
  CHECK(bench.live(kTrial));
  bench.step(AgentDisconnected{AgentId("a1"), 1});
  CHECK(bench.core().agents().at(AgentId("a1")).session == 2);
}

TEST_CASE("a silent agent is lost at the end of its lease, not before") {
  Bench bench;
  bench.connect("a1", 1);
  bench.submit(bench.config());
  bench.update(kTrial, AllocationState::kRunning);
  bench.disconnect("a1");
  bench.connect("a2", 1);
  bench.pass(Options{}.agent_wait() - std::chrono::seconds(1));
  CHECK(bench.live(kTrial)->parts[0].agent == AgentId("a1"));
  bench.pass(std::chrono::seconds(1));
  CHECK(bench.live(kTrial)->parts[0].agent == AgentId("a2"));
  CHECK(bench.live(kTrial)->run == 2);
  CHECK_FALSE(bench.core().agents().contains(AgentId("a1")));
}

TEST_CASE("another machine cannot take the name of a busy or connected agent") {
  Bench bench;
  bench.connect("a1", 1);
  CHECK(bench.connect("a1", 1, {}, "impostor")->error().code == Code::kAlreadyExists);
  bench.submit(bench.config());
  bench.disconnect("a1");
  CHECK(bench.connect("a1", 1, {}, "impostor")->error().code == Code::kAlreadyExists);
  bench.restart();
  CHECK(bench.connect("a1", 1, {}, "impostor")->error().code == Code::kAlreadyExists);
  bench.pass(Options{}.agent_wait());
  CHECK(*bench.connect("a1", 1, {}, "impostor"));
}

TEST_CASE("the delayed first message of an earlier connection is refused") {
  Bench bench;
  AgentConnected hello;
  hello.agent = AgentId("a1");
  hello.instance = "machine";
  hello.slots.assign(1, Device{});
  const auto connect = [&](std::uint64_t session, const std::string& boot, std::int64_t connection) {
    hello.session = session;
    hello.boot = boot;
    hello.connection = connection;
    return bench.step(AgentConnected(hello));
  };
  CHECK(*connect(1, "boot", 20));
  bench.submit(bench.config());
  CHECK(connect(2, "boot", 10)->error().code == Code::kAborted);
  // The trial is not lost: it is missing in the old list only.
  CHECK(bench.live(kTrial)->run == 1);
  // The clock begins again with the machine.
  CHECK(*connect(3, "next boot", 5));
  // An older agent sends neither.
  CHECK(*connect(4, "", 0));
}

TEST_CASE("the name of a disconnected idle agent can be taken over") {
  Bench bench;
  bench.connect("a1", 1);
  bench.disconnect("a1");
  CHECK(*bench.connect("a1", 4, {}, "its replacement"));
}

TEST_CASE("an agent cannot reconnect with other devices under running allocations") {
  Bench bench;
  bench.connect("a1", 2);
  bench.submit(bench.config(2));
  bench.disconnect("a1");
  CHECK(bench.connect("a1", 3)->error().code == Code::kFailedPrecondition);
  bench.restart();
  CHECK(bench.connect("a1", 1)->error().code == Code::kFailedPrecondition);
  CHECK(*bench.connect("a1", 2));
}

TEST_CASE("a trial gets slots of one link group, and keeps them when the links change") {
  Bench bench;
  AgentConnected hello{.agent = AgentId("a1"), .instance = "machine", .session = 1};
  for (const int link : {1, 2, 1, 2}) hello.slots.push_back({"CUDA", "b", "", link});
  CHECK(*bench.step(AgentConnected(hello)));
  auto config = bench.config();
  config->resources.slots_per_trial = 2;
  bench.submit(config);
  REQUIRE(bench.live(kTrial));
  CHECK(bench.live(kTrial)->parts[0].slots == std::vector<int>{0, 2});
  hello.session = 2;
  hello.held = {{bench.live(kTrial)->id, AllocationState::kRunning, {}}};
  for (Device& device : hello.slots) device.link = 0;
  CHECK(*bench.step(AgentConnected(hello)));
  hello.session = 3;
  hello.slots[0].uuid = "another";
  CHECK(bench.step(AgentConnected(hello))->error().code == Code::kFailedPrecondition);
}

TEST_CASE("a request for a pool without agents waits") {
  Bench bench;
  bench.connect("a1", 1);
  auto config = bench.config();
  config->resources.resource_pool = "elsewhere";
  bench.submit(config);
  CHECK(bench.live(kTrial) == nullptr);
}

}  // namespace
}  // namespace det::core
