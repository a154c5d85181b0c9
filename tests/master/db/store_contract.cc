// The contract of master/db/store/store.h, checked on each implementation.
#include <catch2/catch.hpp>
#include <functional>

#include "tests/master/db/database.h"
#include "tests/master/db/samples.h"
#include "tests/sim/memory_store.h"

namespace det::test {
namespace {

/// One disk. Each call opens a store on it after the previous one has stopped.
using Open = std::function<std::unique_ptr<db::Store>()>;

core::Recovered load(const Open& open) {
  auto recovered = open()->load();
  if (!recovered) FAIL(recovered.error().message);
  return std::move(*recovered);
}

void an_empty_store_has_nothing_and_begins_at_one(const Open& open) {
  CHECK(describe(load(open)) == describe(core::Recovered{}));
}

void groups_are_numbered_and_reported_in_order(const Open& open) {
  RunningStore running(open());
  db::Sequence last = 0;
  for (int i = 0; i < 200; ++i) {
    // Empty groups are numbered too.
    std::vector<core::Write> group;
    if (i % 3 != 0) group.push_back(core::PutExperiment{plain_experiment(), i == 1});
    const db::Sequence number = running.store().append(std::move(group));
    CHECK(number == last + 1);
    last = number;
  }
  REQUIRE(running.wait_durable(last));
  const std::vector<db::Sequence> reports = running.reports();
  REQUIRE(!reports.empty());
  CHECK(reports.back() == last);
  CHECK(std::is_sorted(reports.begin(), reports.end(), std::less_equal<>()));
  CHECK_FALSE(running.failure());
}

void every_field_comes_back(const Open& open) {
  sim::MemoryDisk expected;
  {
    RunningStore running(open());
    Sampler sampler(7);
    const auto write = [&](std::vector<core::Write> group) {
      for (const core::Write& one : group) expected.apply(one);
      running.write(std::move(group));
    };
    // The second round overwrites all rows of the first.
    for (int round = 0; round < 2; ++round)
      for (std::int64_t i = 1; i <= 20; ++i) {
        const ExperimentId experiment(i);
        write({core::PutExperiment{sampler.experiment(experiment), round == 0},
               core::PutTrial{sampler.trial(TrialId(2 * i), experiment)},
               core::PutTrial{sampler.trial(TrialId(2 * i + 1), experiment)},
               core::PutCommand{sampler.command(CommandId(i))},
               core::PutAllocation{sampler.allocation("a" + std::to_string(i), TrialId(2 * i))},
               core::PutAllocation{sampler.allocation("c" + std::to_string(i), CommandId(i))},
               core::AppendSearcherEvent{experiment, round, sampler.text()},
               core::PutAgentSettings{{.agent = AgentId("agent" + std::to_string(10 + i)),
                                       .enabled = round == 0,
                                       .draining = i % 2 == 0,
                                       .disabled_slots = {round, static_cast<int>(i) + 2}}},
               core::PutPilot{sampler.pilot(i)},
               core::PutQuota{{.of = {static_cast<scheduler::QuotaKey::Scope>(i % 2), i},
                               .resource = core::kQuotaResources[i % 5],
                               .limit = i * (round + 1)}}});
      }
    write({core::PutQuota{
        .row = {.of = {scheduler::QuotaKey::Scope::kUser, 2}, .resource = core::kQuotaResources[2]},
        .removed = true}});
    write({core::DeleteAgent{AgentId("agent11"), WallTime{0}}});
  }
  CHECK(describe(load(open)) == describe(expected.recover()));
}

void what_has_ended_is_not_loaded_but_its_ids_stay_taken(const Open& open) {
  {
    RunningStore running(open());
    core::Experiment ended = plain_experiment(4);
    core::Allocation over;
    over.id = AllocationId("over");
    over.task = TrialId(9);
    over.state = core::AllocationState::kTerminated;
    over.exit = core::Exit{core::ExitKind::kFailed, 7, "exit code 7"};
    running.write(
        {core::PutExperiment{ended, true}, core::PutTrial{plain_trial(9, 4)}, core::PutAllocation{over}});
    ended.state = core::State::kCanceled;
    running.write({core::PutExperiment{ended}});
  }
  const core::Recovered recovered = load(open);
  CHECK(recovered.experiments.empty());
  CHECK(recovered.trials.empty());
  CHECK(recovered.allocations.empty());
  CHECK(recovered.searchers.empty());
  CHECK(recovered.next_experiment == ExperimentId(5));
  CHECK(recovered.next_trial == TrialId(10));
}

void a_search_comes_back_from_its_newest_snapshot_on(const Open& open) {
  {
    RunningStore running(open());
    running.write({core::PutExperiment{plain_experiment(), true}});
    for (std::int64_t i = 0; i < 6; ++i)
      running.write({core::AppendSearcherEvent{ExperimentId(1), i, "event " + std::to_string(i)}});
    running.write({core::PutSearcherSnapshot{ExperimentId(1), 2, "after two"}});
    running.write({core::PutSearcherSnapshot{ExperimentId(1), 4, "after four"}});
  }
  const core::Recovered recovered = load(open);
  REQUIRE(recovered.searchers.size() == 1);
  const auto& log = recovered.searchers.at(ExperimentId(1));
  CHECK(log.snapshot_number == 4);
  CHECK(log.snapshot == "after four");
  CHECK(log.events == std::vector<std::string>{"event 4", "event 5"});
}

void a_group_that_repeats_the_effect_of_another_changes_nothing(const Open& open) {
  const std::vector<core::Write> group = {
      core::PutExperiment{plain_experiment(), true},
      core::PutTrial{plain_trial()},
      core::AppendSearcherEvent{ExperimentId(1), 0, "event"},
      core::PutSearcherSnapshot{ExperimentId(1), 0, "snapshot"},
      core::InsertValidation{TrialId(1), 1, 100, R"({"accuracy":0.5})", 0.5, WallTime{1}},
      core::InsertCheckpoint{checkpoint_id("c"), TrialId(1), 1, TaskId("t"), AllocationId("a"), 100,
                             R"({"f":3})", "{}", WallTime{1}},
      core::ArchiveMetrics{TrialId(1), 1000}};
  std::string first;
  {
    RunningStore running(open());
    running.write(group);
  }
  first = describe(load(open));
  {
    RunningStore running(open());
    running.write(group);
  }
  CHECK(describe(load(open)) == first);
}

void stop_writes_what_is_queued(const Open& open) {
  {
    RunningStore running(open());
    running.store().append({core::PutExperiment{plain_experiment(), true}});
    for (std::int64_t i = 0; i < 500; ++i)
      running.store().append({core::AppendSearcherEvent{ExperimentId(1), i, std::to_string(i)}});
    running.store().stop();
  }
  const core::Recovered recovered = load(open);
  REQUIRE(recovered.searchers.size() == 1);
  CHECK(recovered.searchers.at(ExperimentId(1)).events.size() == 500);
}

void check_contract(const std::function<Open()>& fresh) {
  SECTION("an empty store has no rows and numbers groups from one") {
    an_empty_store_has_nothing_and_begins_at_one(fresh());
  }
  SECTION("groups are numbered and reported in order") { groups_are_numbered_and_reported_in_order(fresh()); }
  SECTION("every field survives the round trip") { every_field_comes_back(fresh()); }
  SECTION("ended experiments are not loaded, but their ids stay taken") {
    what_has_ended_is_not_loaded_but_its_ids_stay_taken(fresh());
  }
  SECTION("a search is restored from its newest snapshot") {
    a_search_comes_back_from_its_newest_snapshot_on(fresh());
  }
  SECTION("a group that repeats the effect of another changes nothing") {
    a_group_that_repeats_the_effect_of_another_changes_nothing(fresh());
  }
  SECTION("stop writes the queued groups") { stop_writes_what_is_queued(fresh()); }
}

}  // namespace

TEST_CASE("the memory store keeps the contract") {
  check_contract([] {
    auto disk = std::make_shared<sim::MemoryDisk>();
    return [disk] { return std::make_unique<sim::MemoryStore>(*disk); };
  });
}

TEST_CASE("the PostgreSQL store keeps the contract") {
  check_contract([] {
    auto database = std::make_shared<Database>();
    return [database] { return open_store(*database); };
  });
}

}  // namespace det::test
