// Pilots: demand, bounds, confirmation, release and leftovers.
#include "master/core/pilots.h"

#include <catch2/catch.hpp>

#include "bench.h"

namespace det::core {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

scheduler::Demand want(int slots, bool single_node = false) { return {TaskKey(), slots, single_node}; }

/// A core with a default pool of pilots of 4 slots a node.
Options supplied(int max_pilots = 2) {
  Options options;
  options.cluster = "c";
  options.providers["default"] = {
      .max_pilots = max_pilots, .slots_per_node = 4, .max_nodes = 3, .idle_timeout = minutes(2)};
  return options;
}

/// The same with a pilot for each allocation.
Options dedicated(int max_pilots = 4) {
  Options options = supplied(max_pilots);
  options.providers["default"].per_allocation = true;
  return options;
}

/// The nodes of each pilot.
std::vector<int> nodes(const std::vector<PilotSize>& sizes) {
  std::vector<int> found;
  for (const PilotSize& size : sizes) found.push_back(size.nodes);
  return found;
}

struct Supplied : Bench {
  explicit Supplied(int max_pilots = 2) : Bench(supplied(max_pilots)) {}
  explicit Supplied(const Options& options) : Bench(options) {}
  void report(const std::string& name, PilotPhase phase, const std::string& reason = "") {
    step(PilotState{.pool = "default", .name = name, .phase = phase, .job = "7", .reason = reason});
  }
  PilotPhase phase(const std::string& name) const { return core().pilots().at(name).phase; }
  std::size_t count() const { return core().pilots().size(); }
};

TEST_CASE("waiting requests are packed into the pilots that are coming, and the rest into further ones") {
  const PilotRules rules{.max_pilots = 9, .slots_per_node = 4, .max_nodes = 3};
  SECTION("small requests share a node") {
    CHECK(nodes(pack({want(2), want(1), want(1), want(1)}, {}, rules, 9).further) == std::vector{1, 1});
  }
  SECTION("a gang has a pilot with enough nodes") {
    CHECK(nodes(pack({want(9)}, {}, rules, 9).further) == std::vector{3});
  }
  SECTION("a coming pilot with room is used") {
    const PilotNeed need = pack({want(3)}, {{{2}, {}}, {{4}, {}}}, rules, 9);
    CHECK(need.used == std::vector{false, true});
    CHECK(need.further.empty());
  }
  SECTION("a request that no pilot could hold needs none") {
    CHECK(pack({want(13), want(5, true)}, {}, rules, 9).further.empty());
  }
  SECTION("a request without slots needs one node") {
    CHECK(nodes(pack({want(0), want(0)}, {}, rules, 9).further) == std::vector{1});
  }
  SECTION("the number is bounded, in the order of the requests") {
    CHECK(nodes(pack({want(8), want(4), want(4)}, {}, rules, 2).further) == std::vector{2, 1});
  }
}

TEST_CASE("a waiting trial has a pilot submitted once, and runs on its agent") {
  Supplied bench;
  bench.submit(bench.config(2));
  const auto submitted = bench.sends<SubmitPilot>();
  REQUIRE(submitted.size() == 1);
  CHECK(submitted[0].name == "det-c-default-1");
  CHECK(submitted[0].nodes == 1);
  CHECK(bench.disk().pilots.at(1).phase == PilotPhase::kSubmitted);
  bench.report("det-c-default-1", PilotPhase::kPending, "Resources");
  CHECK(bench.sends<SubmitPilot>().empty());
  CHECK(bench.disk().pilots.at(1).reason == "Resources");
  REQUIRE(*bench.connect("det-c-default-1-0", 4));
  CHECK(bench.phase("det-c-default-1") == PilotPhase::kRunning);
  REQUIRE(bench.live(kTrial));
  CHECK(bench.live(kTrial)->parts[0].agent == AgentId("det-c-default-1-0"));
}

TEST_CASE("no more pilots than max_pilots are submitted for any queue") {
  Supplied bench(2);
  for (int i = 0; i < 9; ++i) bench.submit(bench.config(4));
  CHECK(bench.count() == 2);
}

TEST_CASE("an unconfirmed submission is repeated, also after a restart, under the same name") {
  Supplied bench;
  bench.submit(bench.config(1));
  SECTION("after a while") { bench.pass(seconds(30)); }
  SECTION("after a restart") {
    bench.restart();
    bench.pass(seconds(0));
  }
  const auto again = bench.sends<SubmitPilot>();
  REQUIRE(again.size() == 1);
  CHECK(again[0].name == "det-c-default-1");
  CHECK(bench.count() == 1);
}

TEST_CASE("an idle pilot is released after its idle time, and its agents take no work from then on") {
  Supplied bench;
  const ExperimentId first = bench.submit(bench.config(1));
  REQUIRE(*bench.connect("det-c-default-1-0", 4));
  REQUIRE(*bench.act(first, ExperimentAction::kKill));
  bench.exit(kTrial, ExitKind::kStopped);
  bench.pass(minutes(2) - seconds(1));
  CHECK(bench.phase("det-c-default-1") == PilotPhase::kRunning);
  bench.pass(seconds(1));
  CHECK(bench.phase("det-c-default-1") == PilotPhase::kCanceling);
  REQUIRE(bench.sends<CancelPilot>().size() == 1);
  // The agent is connected still, but a new trial waits for a pilot of its own.
  bench.submit(bench.config(1));
  CHECK_FALSE(bench.live(TrialId(2)));
  CHECK(bench.phase("det-c-default-2") == PilotPhase::kSubmitted);
  bench.report("det-c-default-1", PilotPhase::kEnded);
  CHECK(bench.disk().pilots.at(1).ended);
  CHECK(bench.disk().pilots.at(1).reason == "it was idle");
}

TEST_CASE("no trial starts on a pilot whose end is nearer than min_time_left") {
  Options options = supplied();
  options.providers["default"].min_time_left = minutes(3);
  Bench bench(options);
  bench.submit(bench.config(1));
  const auto report = [&](const std::string& name, Duration left) {
    bench.step(PilotState{.pool = "default",
                          .name = name,
                          .phase = PilotPhase::kRunning,
                          .job = "7",
                          .until = WallTime{bench.wall().micros + left.count()}});
  };
  const auto phase = [&](const std::string& name) { return bench.core().pilots().at(name).phase; };
  SECTION("while another trial runs there") {
    report("det-c-default-1", minutes(60));
    REQUIRE(*bench.connect("det-c-default-1-0", 4));
    bench.update(kTrial, AllocationState::kRunning);
    bench.pass(minutes(57) - seconds(1));
    bench.submit(bench.config(1));
    CHECK(bench.live(TrialId(2)));
    bench.pass(seconds(1));
    bench.submit(bench.config(1));
    CHECK_FALSE(bench.live(TrialId(3)));
    CHECK(phase("det-c-default-1") == PilotPhase::kRunning);
    CHECK(phase("det-c-default-2") == PilotPhase::kSubmitted);
    // The administrator moves the end.
    report("det-c-default-1", minutes(60));
    CHECK(bench.live(TrialId(3)));
  }
  SECTION("an idle one is released at once, and one that never worked delays the next") {
    report("det-c-default-1", minutes(2));
    CHECK(phase("det-c-default-1") == PilotPhase::kCanceling);
    CHECK_THAT(bench.core().provider_problem("default"), Catch::Contains("too little time is left"));
    CHECK(bench.core().pilots().size() == 1);
    bench.pass(seconds(5));
    CHECK(bench.core().pilots().contains("det-c-default-2"));
  }
}

TEST_CASE("a pilot that works is not released, however long") {
  Supplied bench;
  bench.submit(bench.config(1));
  REQUIRE(*bench.connect("det-c-default-1-0", 4));
  bench.update(kTrial, AllocationState::kRunning);
  bench.pass(minutes(60));
  CHECK(bench.phase("det-c-default-1") == PilotPhase::kRunning);
}

TEST_CASE("a pending pilot whose requests are gone is released") {
  Supplied bench;
  const ExperimentId first = bench.submit(bench.config(1));
  bench.report("det-c-default-1", PilotPhase::kPending);
  REQUIRE(*bench.act(first, ExperimentAction::kKill));
  bench.pass(minutes(2));
  CHECK(bench.phase("det-c-default-1") == PilotPhase::kCanceling);
}

TEST_CASE("a cancellation is repeated until the engine confirms the end") {
  Supplied bench;
  const ExperimentId first = bench.submit(bench.config(1));
  REQUIRE(*bench.act(first, ExperimentAction::kKill));
  bench.pass(minutes(2));
  bench.pass(seconds(30));
  CHECK(bench.sends<CancelPilot>().size() == 1);
  bench.report("det-c-default-1", PilotPhase::kEnded);
  CHECK(bench.count() == 0);
}

TEST_CASE("refused pilots are replaced after growing delays, and the reason is known") {
  Supplied bench;
  bench.submit(bench.config(1));
  bench.report("det-c-default-1", PilotPhase::kEnded, "invalid partition");
  CHECK(bench.count() == 0);
  CHECK_THAT(bench.core().provider_problem("default"), Catch::Contains("invalid partition"));
  bench.pass(seconds(5));
  REQUIRE(bench.count() == 1);
  bench.report("det-c-default-2", PilotPhase::kEnded, "invalid partition");
  bench.pass(seconds(9));
  CHECK(bench.count() == 0);
  bench.pass(seconds(1));
  CHECK(bench.phase("det-c-default-3") == PilotPhase::kSubmitted);
}

TEST_CASE("a pilot that works does not shorten the delay after a refused one") {
  Supplied bench;
  bench.submit(bench.config(4));
  REQUIRE(*bench.connect("det-c-default-1-0", 4));
  bench.update(kTrial, AllocationState::kRunning);
  bench.submit(bench.config(4));
  bench.report("det-c-default-2", PilotPhase::kEnded, "job limit of the account");
  CHECK(bench.count() == 1);
  bench.step(Tick{});
  CHECK(bench.count() == 1);
  bench.pass(seconds(4));
  CHECK(bench.count() == 1);
  bench.pass(seconds(1));
  CHECK(bench.phase("det-c-default-3") == PilotPhase::kSubmitted);
}

TEST_CASE("a job of a pilot that has ended is canceled, and its agent gets no work") {
  Supplied bench(1);
  bench.submit(bench.config(1));
  bench.report("det-c-default-1", PilotPhase::kEnded);
  bench.report("det-c-default-1", PilotPhase::kRunning);
  CHECK(bench.sends<CancelPilot>().size() == 1);
  REQUIRE(*bench.connect("det-c-default-1-0", 4));
  CHECK_FALSE(bench.live(kTrial));
}

TEST_CASE("numbers of ended pilots are not used again after a restart") {
  Supplied bench;
  bench.submit(bench.config(1));
  bench.report("det-c-default-1", PilotPhase::kEnded);
  bench.restart();
  bench.step(Tick{});
  CHECK(bench.core().pilots().contains("det-c-default-2"));
}

TEST_CASE("requests beyond max_slots of their experiment need no pilot") {
  Supplied bench;
  auto limited = bench.config(4);
  limited->resources.max_slots = 2;
  bench.submit(limited);
  CHECK(bench.count() == 0);
}

TEST_CASE("pilots of a pool without a provider end after a restart") {
  Supplied bench;
  bench.submit(bench.config(1));
  Recovered rows = bench.disk().recover();
  Options options = supplied();
  options.providers.clear();
  auto core = Core::restore(options, std::move(rows), {MonoTime{5}, WallTime{5}});
  REQUIRE(core);
  Effects effects;
  core->step(Tick{}, {MonoTime{5}, WallTime{5}}, effects);
  core->schedule({MonoTime{5}, WallTime{5}}, effects);
  CHECK(core->pilots().empty());
}

TEST_CASE("an engine that does not reply is named, and nothing is submitted twice") {
  Supplied bench;
  bench.submit(bench.config(1));
  bench.step(ProviderState{"default", "Connection refused"});
  CHECK_THAT(bench.core().provider_problem("default"), Catch::Contains("Connection refused"));
  CHECK(bench.count() == 1);
  bench.step(ProviderState{"default", ""});
  CHECK(bench.core().provider_problem("default").empty());
}

TEST_CASE("with a pilot for each allocation, each waiting request has a pilot of its own size") {
  const PilotRules rules{.max_pilots = 9, .slots_per_node = 4, .max_nodes = 3, .per_allocation = true};
  CHECK(pack({want(2), want(2), want(9), want(0)}, {}, rules, 9).further ==
        std::vector<PilotSize>{{1, 2}, {1, 2}, {3, 9}, {1, 0}});
  const PilotNeed need = pack({want(2), want(2)}, {{{4}, 1}, {{4}, 2}}, rules, 9);
  CHECK(need.used == std::vector{false, true});
  CHECK(need.further == std::vector<PilotSize>{{1, 2}});
}

TEST_CASE("a pilot for one allocation takes one trial of its size, and is released when that has ended") {
  Supplied bench(dedicated());
  bench.submit(bench.config(2));
  REQUIRE(bench.sends<SubmitPilot>().size() == 1);
  CHECK(bench.sends<SubmitPilot>()[0].slots == 2);
  bench.submit(bench.config(1));
  REQUIRE(bench.sends<SubmitPilot>().size() == 1);
  CHECK(bench.sends<SubmitPilot>()[0].slots == 1);
  // The pilot for 2 slots has 4, but none of them is for the trial with 1 slot.
  REQUIRE(*bench.connect("det-c-default-1-0", 4));
  REQUIRE(bench.live(kTrial));
  CHECK_FALSE(bench.live(TrialId(2)));
  CHECK(bench.disk().pilots.at(1).used);
  bench.submit(bench.config(2));
  CHECK_FALSE(bench.live(TrialId(3)));
  bench.update(kTrial, AllocationState::kRunning);
  bench.pass(minutes(60));
  CHECK(bench.phase("det-c-default-1") == PilotPhase::kRunning);
  bench.exit(kTrial, ExitKind::kStopped);
  CHECK(bench.phase("det-c-default-1") == PilotPhase::kCanceling);
  CHECK(bench.core().pilots().at("det-c-default-1").reason == "its allocation has ended");
  CHECK_FALSE(bench.live(TrialId(3)));
}

TEST_CASE("a gang takes all nodes of its pilot with even shares, once all of them have connected") {
  Supplied bench(dedicated());
  bench.submit(bench.config(10));
  const auto submitted = bench.sends<SubmitPilot>();
  REQUIRE(submitted.size() == 1);
  CHECK(submitted[0].nodes == 3);
  CHECK(submitted[0].slots == 4);
  REQUIRE(*bench.connect("det-c-default-1-0", 4));
  REQUIRE(*bench.connect("det-c-default-1-2", 4));
  CHECK_FALSE(bench.live(kTrial));
  REQUIRE(*bench.connect("det-c-default-1-1", 4));
  REQUIRE(bench.live(kTrial));
  std::vector<std::size_t> shares;
  for (const AllocationPart& part : bench.live(kTrial)->parts) shares.push_back(part.slots.size());
  CHECK(shares == std::vector<std::size_t>{4, 3, 3});
}

TEST_CASE("the first request of the queue takes the first pilot of its size") {
  Supplied bench(dedicated(1));
  bench.submit(bench.config(1));
  auto important = bench.config(1);
  important->resources.priority = 1;
  bench.submit(important);
  REQUIRE(*bench.connect("det-c-default-1-0", 4));
  CHECK(bench.live(TrialId(2)));
  CHECK_FALSE(bench.live(kTrial));
}

TEST_CASE("a used pilot for one allocation takes no work after a restart, and is released") {
  Supplied bench(dedicated());
  bench.submit(bench.config(1));
  REQUIRE(*bench.connect("det-c-default-1-0", 4));
  REQUIRE(bench.live(kTrial));
  bench.update(kTrial, AllocationState::kRunning);
  bench.restart();
  REQUIRE(*bench.connect("det-c-default-1-0", 4));
  CHECK_FALSE(bench.core().admits(AgentId("det-c-default-1-0")));
  // The agent does not have the allocation: it has ended, and its trial waits for another pilot.
  CHECK(bench.phase("det-c-default-1") == PilotPhase::kCanceling);
  CHECK_FALSE(bench.live(kTrial));
  CHECK(bench.phase("det-c-default-2") == PilotPhase::kSubmitted);
}

TEST_CASE("a pilot for one allocation without a request is released after the idle time") {
  Supplied bench(dedicated());
  const ExperimentId first = bench.submit(bench.config(1));
  REQUIRE(*bench.act(first, ExperimentAction::kKill));
  REQUIRE(*bench.connect("det-c-default-1-0", 4));
  bench.pass(minutes(2) - seconds(1));
  CHECK(bench.phase("det-c-default-1") == PilotPhase::kRunning);
  bench.pass(seconds(1));
  CHECK(bench.phase("det-c-default-1") == PilotPhase::kCanceling);
}

TEST_CASE("a pool with pilots accepts what its largest pilot could hold") {
  Supplied bench;
  const auto fits = [&](int slots, bool single_node) {
    return scheduler::fits({bench.core().shape_of("default")}, "default", slots, single_node).has_value();
  };
  CHECK(fits(12, false));
  CHECK(fits(4, true));
  CHECK_FALSE(fits(13, false));
  CHECK_FALSE(fits(5, true));
}

}  // namespace
}  // namespace det::core
