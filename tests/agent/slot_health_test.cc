// Slots of the agent that are out of service because of their devices, and the checks before their return.
#include <catch2/catch.hpp>

#include "agent/core/core.h"

using namespace det;
using namespace det::agent;
using namespace std::chrono_literals;

namespace {

const AllocationId kHolder("1.a.1");
const std::string kXid79 = "Xid 79";

/// A core with a clock that the test advances. Collects the effects of the last input.
struct SlotBench {
  MonoTime now{1'000'000};
  Core core{10min, now, {}};
  std::vector<int> checks;  ///< slots of RunCheck
  bool reported = false;    ///< ReportSlots was issued

  SlotBench() { feed(Connected{10min, 5s}); }
  SlotBench& feed(const Input& input) {
    checks.clear();
    reported = false;
    for (const Effect& effect : core.step(input, now)) {
      if (const auto* check = std::get_if<RunCheck>(&effect)) checks.push_back(check->slot);
      reported = reported || std::holds_alternative<ReportSlots>(effect);
    }
    return *this;
  }
  SlotBench& after(Duration time) {
    now = now + time;
    return feed(Tick{});
  }
  std::string problem(int slot) const {
    const auto& problems = core.slot_health().problems();
    const auto found = problems.find(slot);
    return found == problems.end() ? "" : found->second;
  }
  /// An allocation runs on slot 0.
  SlotBench& occupy() {
    return feed(Start{kHolder, nullptr, {0}})
        .feed(Prepared{kHolder, {}})
        .feed(Launched{kHolder, Phase::kRunning});
  }
  /// It fails. The master has the exit and forgets it when `forgotten`.
  SlotBench& vacate(bool forgotten = true) {
    feed(Ended{kHolder, {Exit::Kind::kFailed, 1, "exit code 1"}});
    return forgotten ? feed(LogsShipped{kHolder}).feed(Forget{kHolder}) : *this;
  }
};

}  // namespace

TEST_CASE("a fault takes its slot out of service until a check has passed", "[slots]") {
  SlotBench bench;
  bench.feed(DeviceFault{1, kXid79});
  CHECK(bench.reported);
  CHECK(bench.checks.empty());
  CHECK(bench.problem(1) == kXid79);
  CHECK(bench.problem(0).empty());
  CHECK(bench.after(59s).checks.empty());
  CHECK(bench.core.next_deadline() == bench.now + 1s);
  CHECK(bench.after(1s).checks == std::vector{1});
  CHECK_FALSE(bench.core.next_deadline());
  CHECK(bench.feed(CheckDone{1, ""}).reported);
  CHECK(bench.problem(1).empty());
}

TEST_CASE("a failed check keeps the slot out of service, with its result, and is repeated later and later",
          "[slots]") {
  SlotBench bench;
  bench.feed(DeviceFault{0, kXid79}).after(1min);
  REQUIRE(bench.checks == std::vector{0});
  CHECK(bench.feed(CheckDone{0, "no usable device"}).reported);
  CHECK(bench.problem(0) == "Xid 79; the check failed: no usable device");
  CHECK(bench.core.slot_health().reasons().at(0) == kXid79);
  CHECK(bench.after(119s).checks.empty());
  CHECK(bench.after(1s).checks == std::vector{0});
  // The same result is no news.
  CHECK_FALSE(bench.feed(CheckDone{0, "no usable device"}).reported);
  CHECK(bench.after(4min - 1s).checks.empty());
  CHECK(bench.after(1s).checks == std::vector{0});
  for (int i = 0; i < 10; ++i) bench.feed(CheckDone{0, "no usable device"}).after(SlotHealth::kMaxDelay);
  CHECK(bench.checks == std::vector{0});
}

TEST_CASE("faults of a slot that is out of service keep the first reason and are not reported", "[slots]") {
  SlotBench bench;
  bench.feed(DeviceFault{0, kXid79});
  CHECK_FALSE(bench.feed(DeviceFault{0, "Xid 62"}).reported);
  CHECK(bench.problem(0) == kXid79);
}

TEST_CASE("a check proves nothing about a fault that comes while it runs", "[slots]") {
  SlotBench bench;
  bench.feed(DeviceFault{0, kXid79}).after(1min);
  bench.feed(DeviceFault{0, kXid79}).feed(CheckDone{0, ""});
  CHECK(bench.problem(0) == kXid79);
  CHECK(bench.after(1min).checks == std::vector{0});
  bench.feed(CheckDone{0, ""});
  CHECK(bench.problem(0).empty());
}

TEST_CASE("no check runs beside an allocation or while a condition lasts", "[slots]") {
  SlotBench bench;
  SECTION("an allocation on the slot") {
    bench.occupy().feed(DeviceFault{0, kXid79});
    CHECK(bench.after(5min).checks.empty());
    CHECK(bench.vacate().checks == std::vector{0});
  }
  SECTION("an allocation whose exit the master does not have") {
    bench.occupy().feed(DeviceFault{0, kXid79}).vacate(false);
    CHECK(bench.after(5min).checks.empty());
    CHECK(bench.feed(LogsShipped{kHolder}).feed(Forget{kHolder}).checks == std::vector{0});
  }
  SECTION("an allocation that an earlier agent has started") {
    bench.feed(Found{kHolder, Phase::kRunning, {}, {}, {0}}).feed(DeviceFault{0, kXid79});
    CHECK(bench.after(5min).checks.empty());
  }
  SECTION("a condition of the device") {
    bench.feed(DeviceCondition{0, "reset needed"});
    CHECK(bench.problem(0) == "reset needed");
    CHECK(bench.after(5min).checks.empty());
    CHECK_FALSE(bench.core.next_deadline());
    CHECK_FALSE(bench.feed(CheckRequest{0, 1}).after(1s).checks == std::vector{0});
    bench.feed(DeviceCondition{0, ""});
    CHECK(bench.problem(0) == "reset needed");
    CHECK(bench.after(1min).checks == std::vector{0});
    bench.feed(CheckDone{0, ""});
    CHECK(bench.problem(0).empty());
  }
  SECTION("the agent's shutdown") {
    bench.feed(DeviceFault{0, kXid79}).feed(ShutDown{});
    CHECK(bench.after(5min).checks.empty());
  }
}

TEST_CASE("a check on request begins at once, and the slot is out of service until it has passed",
          "[slots]") {
  SlotBench bench;
  SECTION("of a healthy slot") {
    bench.feed(CheckRequest{0, 7});
    CHECK(bench.reported);
    CHECK(bench.core.check_number() == 7);
    CHECK(bench.checks == std::vector{0});
    CHECK(bench.problem(0) == "its device is being checked");
    CHECK(bench.feed(CheckDone{0, "a matrix product is wrong"}).reported);
    CHECK(bench.problem(0) == "the check failed: a matrix product is wrong");
  }
  SECTION("of a slot with a fault") {
    bench.feed(DeviceFault{0, kXid79}).feed(CheckRequest{0, 1});
    CHECK(bench.reported);
    CHECK(bench.checks == std::vector{0});
    CHECK(bench.problem(0) == kXid79);
  }
  SECTION("of a healthy slot in use: it is answered, not checked") {
    bench.occupy().feed(CheckRequest{0, 1});
    CHECK(bench.reported);
    CHECK(bench.problem(0).empty());
    CHECK(bench.vacate().checks.empty());
  }
  SECTION("the number counts the requests of one connection") {
    bench.feed(CheckRequest{0, 3}).feed(Disconnected{}).feed(Connected{10min, 5s});
    CHECK(bench.core.check_number() == 0);
  }
}

TEST_CASE("a change while the link is down or opening is reported on the new connection", "[slots]") {
  SlotBench bench;
  bench.feed(Disconnected{}).feed(DeviceFault{0, kXid79});
  CHECK(bench.reported);  // it is stored
  CHECK(bench.feed(Connected{10min, 5s}).reported);
  bench.feed(Disconnected{});
  CHECK_FALSE(bench.feed(Connected{10min, 5s}).reported);
}
