#include "agent/core/core.h"

#include <catch2/catch.hpp>

using namespace det;
using namespace det::agent;
using namespace std::chrono_literals;

namespace {

const AllocationId kId("1.a.1");
const Exit kGood{Exit::Kind::kSucceeded, 0, "exit code 0"};
const Exit kBad{Exit::Kind::kFailed, 7, "exit code 7"};

/// A core with a clock that the test advances.
struct World {
  MonoTime now{1'000'000};
  Core core{10min, now, {}};
  std::vector<Effect> last;

  World& feed(const Input& input) {
    last = core.step(input, now);
    return *this;
  }
  World& after(Duration time) {
    now = now + time;
    return feed(Tick{});
  }
  World& connect() { return feed(Connected{60s, 5s}); }
  World& run(Phase phase = Phase::kStarting) {
    return feed(Start{kId, nullptr}).feed(Prepared{kId, {}}).feed(Launched{kId, phase});
  }
  template <typename E>
  const E* said() const {
    for (const Effect& effect : last) {
      if (const E* found = std::get_if<E>(&effect)) return found;
    }
    return nullptr;
  }
};

}  // namespace

TEST_CASE("an allocation passes from preparing to launched, ended, shipped, reported and forgotten",
          "[core]") {
  World world;
  world.connect().feed(Start{kId, nullptr});
  REQUIRE(world.said<Prepare>());
  CHECK(world.said<Report>()->phase == Phase::kPreparing);
  world.feed(Prepared{kId, {}});
  REQUIRE(world.said<Launch>());
  world.feed(Launched{kId, Phase::kStarting});
  CHECK(world.said<Report>()->phase == Phase::kStarting);
  world.feed(Ended{kId, kGood});
  CHECK(world.said<Conclude>()->exit == kGood);
  CHECK_FALSE(world.said<Report>());  // the log is shipped first
  world.feed(LogsShipped{kId});
  CHECK(world.said<Report>()->exit == kGood);
  world.feed(Forget{kId});
  CHECK(world.said<Drop>());
  CHECK(world.core.held().empty());
}

TEST_CASE("a plain command is reported as running", "[core]") {
  World world;
  world.connect().run(Phase::kRunning);
  CHECK(world.said<Report>()->phase == Phase::kRunning);
}

TEST_CASE("a repeated start reports the current state and starts nothing", "[core]") {
  World world;
  world.connect().run().feed(Start{kId, nullptr});
  CHECK_FALSE(world.said<Prepare>());
  CHECK(world.said<Report>()->phase == Phase::kStarting);
}

TEST_CASE("a failed preparation ends the allocation", "[core]") {
  World world;
  world.connect().feed(Start{kId, nullptr}).feed(Prepared{kId, kBad});
  CHECK_FALSE(world.said<Launch>());
  CHECK(world.said<Conclude>()->exit == kBad);
}

TEST_CASE("a kill during preparation cancels it and launches nothing", "[core]") {
  World world;
  world.connect().feed(Start{kId, nullptr}).feed(Kill{kId});
  CHECK(world.said<CancelPreparation>());
  world.feed(Prepared{kId, {}});
  CHECK_FALSE(world.said<Launch>());
  CHECK(world.said<Conclude>()->exit.kind == Exit::Kind::kStopped);
}

TEST_CASE("a kill between a launch and its reply takes effect at the reply", "[core]") {
  World world;
  world.connect().feed(Start{kId, nullptr}).feed(Prepared{kId, {}}).feed(Kill{kId});
  CHECK_FALSE(world.said<Terminate>());
  world.feed(Launched{kId, Phase::kStarting});
  CHECK(world.said<Terminate>());
}

TEST_CASE("a kill terminates once, then kills hard after 15 s without an exit", "[core]") {
  World world;
  world.connect().run().feed(Kill{kId});
  CHECK(world.said<Terminate>()->stop.kind == Exit::Kind::kStopped);
  world.feed(Kill{kId});
  CHECK_FALSE(world.said<Terminate>());
  world.after(14s);
  CHECK_FALSE(world.said<KillHard>());
  REQUIRE(world.core.next_deadline());
  world.after(1s);
  CHECK(world.said<KillHard>());
  world.feed(Ended{kId, {Exit::Kind::kLost, 0, "the supervisor was killed"}});
  CHECK(world.said<Conclude>()->exit.kind == Exit::Kind::kStopped);
}

TEST_CASE("an allocation that ends after a kill is reported as stopped, with any exit code", "[core]") {
  World world;
  world.connect().run().feed(Kill{kId}).feed(Ended{kId, {Exit::Kind::kFailed, 143, "signal 15"}});
  CHECK(world.said<Conclude>()->exit == Exit{Exit::Kind::kStopped, 143, "killed"});
}

TEST_CASE("a kill of an unknown allocation reports it as stopped", "[core]") {
  World world;
  world.connect().feed(Kill{kId});
  CHECK(world.said<Report>()->exit->kind == Exit::Kind::kStopped);
}

TEST_CASE("a disconnection shorter than the lease changes nothing", "[core]") {
  World world;
  world.connect().run().feed(Disconnected{}).after(59s);
  CHECK(world.last.empty());
}

TEST_CASE("a disconnection longer than the lease stops every allocation", "[core]") {
  World world;
  world.connect().run().feed(Disconnected{});
  CHECK(*world.core.next_deadline() == world.now + 60s);
  world.after(60s);
  REQUIRE(world.said<Terminate>());
  CHECK(world.said<Terminate>()->stop.kind == Exit::Kind::kStopped);
  CHECK(world.said<Terminate>()->stop.message == "no contact with the master for 1m");
  CHECK_FALSE(world.after(1s).said<Terminate>());
}

TEST_CASE("every message from the master renews the lease", "[core]") {
  World world;
  world.connect().run();
  for (int i = 0; i < 10; ++i) world.after(50s).feed(MessageReceived{});
  CHECK(world.core.held().front().phase == Phase::kStarting);
  CHECK_FALSE(world.after(59s).said<Terminate>());
}

TEST_CASE("an exit while the master is away is reported after the reconnection", "[core]") {
  World world;
  world.connect().run().feed(Disconnected{}).feed(Ended{kId, kBad});
  CHECK(world.core.held().front().phase == Phase::kStarting);  // the log has not reached the master yet
  world.after(10min);
  CHECK_FALSE(world.said<Report>());
  world.connect().feed(LogsShipped{kId});
  CHECK(world.said<Report>()->exit == kBad);
  world.feed(Disconnected{}).connect();
  CHECK(world.said<Report>()->exit == kBad);  // until Forget arrives
}

TEST_CASE("the report of an exit waits at most 30 s for the log", "[core]") {
  World world;
  world.connect().run().feed(Ended{kId, kGood});
  CHECK_FALSE(world.after(29s).said<Report>());
  CHECK(world.after(1s).said<Report>()->exit == kGood);
  world.feed(Forget{kId});
  CHECK_FALSE(world.said<Drop>());  // the log is still being shipped
  CHECK(world.feed(LogsShipped{kId}).said<Drop>());
}

TEST_CASE("the exit of a killed allocation is reported within 2 s although its log is still being shipped",
          "[core]") {
  World world;
  world.connect().run().feed(Kill{kId}).feed(Ended{kId, kBad});
  CHECK_FALSE(world.after(1s).said<Report>());
  CHECK(world.after(1s).said<Report>()->exit->kind == Exit::Kind::kStopped);
  world.feed(Forget{kId});
  CHECK_FALSE(world.said<Drop>());
  CHECK(world.feed(LogsShipped{kId}).said<Drop>());
}

TEST_CASE("allocations found after a restart are reported, and an unfinished kill is repeated", "[core]") {
  World world;
  world.feed(Found{AllocationId("1.a.1"), Phase::kStarting, {}, {}});
  world.feed(Found{AllocationId("1.b.1"), Phase::kRunning, Exit{Exit::Kind::kStopped, 0, "killed"}, {}});
  CHECK(world.said<Terminate>()->id == AllocationId("1.b.1"));
  world.feed(Found{AllocationId("1.c.1"), Phase::kRunning, {}, kBad});
  CHECK(world.said<Conclude>()->exit == kBad);
  const auto held = world.core.held();
  REQUIRE(held.size() == 3);
  CHECK(held[0].phase == Phase::kStarting);
}

TEST_CASE("an exit found together with a pending kill is reported as stopped", "[core]") {
  World world;
  world.feed(Found{kId, Phase::kRunning, Exit{Exit::Kind::kStopped, 0, "killed"}, kBad});
  CHECK(world.said<Conclude>()->exit == Exit{Exit::Kind::kStopped, 7, "killed"});
}

TEST_CASE("a shutdown reports every allocation as lost and waits at most 5 s for the master", "[core]") {
  World world;
  world.connect().run().feed(ShutDown{});
  CHECK(world.said<Terminate>()->stop.kind == Exit::Kind::kLost);
  CHECK_FALSE(world.said<Finish>());
  world.feed(Start{AllocationId("2.a.1"), nullptr});
  CHECK(world.last.empty());
  world.feed(Ended{kId, {Exit::Kind::kFailed, 143, ""}});
  CHECK_FALSE(world.said<Finish>());
  world.feed(LogsShipped{kId});
  CHECK(world.said<Report>()->exit->kind == Exit::Kind::kLost);
  SECTION("the master answers") {
    world.feed(Forget{kId});
    CHECK(world.said<Drop>());
    CHECK(world.said<Finish>());
  }
  SECTION("the master does not answer") { CHECK(world.after(5s).said<Finish>()); }
  SECTION("the master disconnects") { CHECK(world.feed(Disconnected{}).said<Finish>()); }
}

TEST_CASE("a stopping agent waits for the master to move its allocations", "[core]") {
  World world;
  world.connect().run().feed(StopRequest{30s});
  CHECK(world.said<Announce>());
  CHECK_FALSE(world.said<Terminate>());
  SECTION("and shuts down when they have ended") {
    world.feed(Ended{kId, {Exit::Kind::kSucceeded, 0, ""}});
    world.feed(LogsShipped{kId});
    CHECK(world.said<Report>()->exit->kind == Exit::Kind::kSucceeded);
    CHECK(world.feed(Forget{kId}).said<Finish>());
  }
  SECTION("and ends those that are left after its timeout") {
    CHECK_FALSE(world.after(29s).said<Terminate>());
    CHECK(world.after(1s).said<Terminate>()->stop.kind == Exit::Kind::kLost);
  }
  SECTION("and ends them at once when it is told a second time") {
    CHECK(world.feed(StopRequest{30s}).said<Terminate>()->stop.kind == Exit::Kind::kLost);
  }
  SECTION("and announces itself again on a new link") {
    world.feed(Disconnected{});
    CHECK(world.connect().said<Announce>());
  }
}

TEST_CASE("a signal that arrives twice within 3 s is one request", "[core]") {
  World world;
  world.connect().run().feed(StopRequest{30s, true});
  world.now = world.now + 2s;
  CHECK_FALSE(world.feed(StopRequest{30s, true}).said<Terminate>());
  world.now = world.now + 1s;
  CHECK(world.feed(StopRequest{30s, true}).said<Terminate>());
}

TEST_CASE("an agent stops early enough before its machine is taken away", "[core]") {
  World world;
  // Of the 100 s, 10 s are for trials to save, 5 s for the kill grace and 5 s for the farewell.
  world.core = Core(10min, world.now, {.until = world.now + 100s, .stop_timeout = 10s});
  world.connect().run();
  CHECK(world.core.next_deadline() == world.now + 60s);  // the lease
  world.feed(MessageReceived{});
  CHECK_FALSE(world.after(59s).said<Announce>());
  world.feed(MessageReceived{});
  CHECK(world.core.next_deadline() == world.now + 21s);
  CHECK(world.after(21s).said<Announce>());
  CHECK_FALSE(world.said<Terminate>());
  SECTION("and ends what is left") {
    CHECK_FALSE(world.after(9s).said<Terminate>());
    CHECK(world.after(1s).said<Terminate>()->stop.kind == Exit::Kind::kLost);
  }
  SECTION("and a signal in between neither ends anything at once nor prolongs the stop") {
    CHECK_FALSE(world.feed(StopRequest{60s, true}).said<Terminate>());
    CHECK(world.after(10s).said<Terminate>());
  }
  SECTION("and announces itself once") { CHECK_FALSE(world.after(1s).said<Announce>()); }
}

TEST_CASE("an agent leaves when it had no allocation for its idle time", "[core]") {
  World world;
  world.core = Core(10min, world.now, {.stop_timeout = 10s, .idle = 60s});
  world.connect();
  SECTION("from the start") {
    CHECK_FALSE(world.after(59s).said<Announce>());
    CHECK(world.core.next_deadline() == world.now + 1s);
    world.after(1s);
    CHECK(world.said<Announce>());
    CHECK(world.said<Finish>());
  }
  SECTION("counted from the end of its last allocation") {
    world.after(50s);
    world.run().after(50s);
    world.feed(Ended{kId, kGood}).feed(LogsShipped{kId}).feed(Forget{kId});
    CHECK_FALSE(world.after(59s).said<Finish>());
    CHECK(world.after(1s).said<Finish>());
  }
  SECTION("even without a connection") {
    world.feed(Disconnected{});
    CHECK(world.after(60s).said<Finish>());
    CHECK_FALSE(world.said<Announce>());
  }
}

TEST_CASE("a problem of the agent that changes before the Welcome is reported after it", "[core]") {
  World world;
  world.connect().feed(AgentProblem{"the disk is full"});
  CHECK(world.said<ReportProblem>());
  world.feed(Disconnected{});
  // Hello is on its way with the problem, which ends now.
  CHECK_FALSE(world.feed(AgentProblem{""}).said<ReportProblem>());
  CHECK(world.connect().said<ReportProblem>());
  CHECK(world.core.problem().empty());
  CHECK_FALSE(world.feed(Disconnected{}).connect().said<ReportProblem>());
}

TEST_CASE("a shutdown without allocations finishes at once", "[core]") {
  World world;
  CHECK(world.feed(ShutDown{}).said<Finish>());
  CHECK_FALSE(world.core.next_deadline());
}
