// Usage accounting. Sums are compared with a second-by-second walk over the same allocations.
#include "master/db/queries/usage.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "common/base/random.h"
#include "master/db/queries/experiments.h"
#include "tests/master/db/database.h"
#include "tests/master/db/samples.h"

namespace det::test {
namespace {

constexpr std::int64_t kSecond = 1'000'000, kDay = 86'400 * kSecond;
constexpr std::int64_t kFirst = 1'767'225'600 * kSecond;  // 2026-01-01.

core::Allocation allocation(const std::string& id, TaskKey task, WallTime started,
                            std::optional<WallTime> ended, int slots) {
  core::Allocation row;
  row.id = AllocationId(id);
  row.task = task;
  row.run = 1;
  row.state = ended ? core::AllocationState::kTerminated : core::AllocationState::kRunning;
  row.pool = task.number() % 2 == 0 ? "even" : "odd";
  row.workspace = task.as<TrialId>() ? task.number() : 1;
  core::AllocationPart& part = row.parts.emplace_back();
  part.agent = AgentId("a");
  for (int slot = 0; slot < slots; ++slot) part.slots.push_back(slot);
  row.started = started;
  row.ended = ended;
  return row;
}

/// Two experiments with a trial each, and a command, in workspaces 1, 2 and 1.
struct Cluster {
  Database database;
  db::Pool pool{database.connect(), 2};
  RunningStore store{open_store(database)};
  Cluster() {
    REQUIRE(pool.query("INSERT INTO users (id, name, password_hash) VALUES (2, 'bob', '')"));
    REQUIRE(pool.query("INSERT INTO workspaces (id, name) VALUES (2, 'lab')"));
    REQUIRE(pool.query("INSERT INTO projects (id, workspace_id, name) VALUES (2, 2, 'p')"));
    core::Experiment first = plain_experiment(1), second = plain_experiment(2);
    second.owner = UserId(2);
    second.project = 2;
    second.state = core::State::kCompleted;
    core::Trial trial = plain_trial(2, 2);
    trial.state = core::State::kCompleted;
    core::Command command = Sampler(1).command(CommandId(1));
    store.write({core::PutExperiment{first, true}, core::PutExperiment{second, true},
                 core::PutTrial{plain_trial(1, 1)}, core::PutTrial{trial}, core::PutCommand{command}});
    REQUIRE(pool.query("UPDATE experiments SET labels = '{blue,red}' WHERE id = 2"));
  }
  void run(const std::string& id, TaskKey task, std::int64_t from, std::int64_t to, int slots) {
    store.write({core::PutAllocation{allocation(id, task, WallTime{from}, WallTime{to}, slots)}});
  }
  std::vector<db::UsagePeriod> days(const std::string& first, const std::string& last, bool monthly = false,
                                    const db::Visible& scope = std::nullopt) {
    auto periods = db::usage_periods(pool, first, last, monthly, scope);
    if (!periods) FAIL(periods.error().message);
    return std::move(*periods);
  }
};

TEST_CASE("an allocation counts in each day it touches, times its slots") {
  Cluster cluster;
  // 1 hour on the first day, 2 on the second, 3 slots.
  cluster.run("a", TrialId(2), kFirst + kDay - 3600 * kSecond, kFirst + kDay + 7200 * kSecond, 3);
  const auto days = cluster.days("2025-12-31", "2026-01-03");
  REQUIRE(days.size() == 4);
  CHECK(days[0].start == "2025-12-31");
  CHECK(days[0].total == 0);
  CHECK(days[1].total == Approx(3 * 3600));
  CHECK(days[2].total == Approx(3 * 7200));
  CHECK(days[3].total == 0);
  CHECK(days[2].by_user == std::map<std::string, double>{{"bob", days[2].total}});
  CHECK(days[2].by_pool == std::map<std::string, double>{{"even", days[2].total}});
  CHECK(days[2].by_label == std::map<std::string, double>{{"blue", days[2].total}, {"red", days[2].total}});
  CHECK(days[2].by_experiment == std::map<std::string, double>{{"2", days[2].total}});
  // A month is clipped to the requested days.
  const auto months = cluster.days("2026-01-02", "2026-02-10", true);
  REQUIRE(months.size() == 2);
  CHECK(months[0].start == "2026-01-01");
  CHECK(months[0].total == Approx(3 * 7200));
}

TEST_CASE("a running allocation counts until now, and one without slots is not counted") {
  Cluster cluster;
  const WallTime begun{wall_now().micros - 3600 * kSecond};
  cluster.store.write({core::PutAllocation{allocation("a", TrialId(1), begun, std::nullopt, 2)},
                       core::PutAllocation{allocation("b", CommandId(1), begun, std::nullopt, 0)}});
  const auto entries = db::usage_entries(cluster.pool, WallTime{begun.micros - kDay},
                                         WallTime{begun.micros + kDay}, std::nullopt);
  REQUIRE(entries);
  REQUIRE(entries->size() == 1);
  CHECK((*entries)[0].slots == 2);
  CHECK_FALSE((*entries)[0].ended);
  CHECK((*entries)[0].seconds == Approx(3600).margin(60));
}

TEST_CASE("a clock that is set back gives no negative usage") {
  Cluster cluster;
  cluster.run("a", TrialId(1), kFirst + 100 * kSecond, kFirst + 10 * kSecond, 1);
  CHECK(cluster.days("2026-01-01", "2026-01-01")[0].total == 0);
}

TEST_CASE("only visible workspaces are counted") {
  Cluster cluster;
  cluster.run("a", TrialId(1), kFirst, kFirst + 100 * kSecond, 1);
  cluster.run("b", TrialId(2), kFirst, kFirst + 10 * kSecond, 1);
  cluster.run("c", CommandId(1), kFirst, kFirst + kSecond, 1);
  CHECK(cluster.days("2026-01-01", "2026-01-01")[0].total == Approx(111));
  CHECK(cluster.days("2026-01-01", "2026-01-01", false, std::vector<std::int64_t>{1})[0].total ==
        Approx(101));
  CHECK(cluster.days("2026-01-01", "2026-01-01", false, std::vector<std::int64_t>{2})[0].total == Approx(10));
  CHECK(cluster.days("2026-01-01", "2026-01-01", false, std::vector<std::int64_t>{})[0].total == 0);
}

TEST_CASE("usage stays in the workspace where it was, when the project moves and the experiment is deleted") {
  Cluster cluster;
  cluster.run("b", TrialId(2), kFirst, kFirst + 10 * kSecond, 1);
  const auto total = [&](std::int64_t workspace) {
    return cluster.days("2026-01-01", "2026-01-01", false, std::vector<std::int64_t>{workspace})[0].total;
  };
  REQUIRE(cluster.pool.query("UPDATE projects SET workspace_id = 1 WHERE id = 2"));
  CHECK(total(1) == 0);
  CHECK(total(2) == Approx(10));
  REQUIRE(db::delete_experiment(cluster.pool, ExperimentId(2)));
  CHECK(total(1) == 0);
  CHECK(total(2) == Approx(10));
}

TEST_CASE("the usage of a deleted experiment is kept") {
  Cluster cluster;
  cluster.run("b", TrialId(2), kFirst, kFirst + 10 * kSecond, 4);
  const auto before = cluster.days("2026-01-01", "2026-01-01")[0];
  REQUIRE(db::delete_experiment(cluster.pool, ExperimentId(2)));
  CHECK(cluster.database.number("SELECT count(*) FROM allocations") == 0);
  const auto after = cluster.days("2026-01-01", "2026-01-01")[0];
  CHECK(after.total == Approx(40));
  CHECK(after.by_user == before.by_user);
  CHECK(after.by_label == before.by_label);
  CHECK(after.by_experiment == before.by_experiment);
}

TEST_CASE("sums equal a walk over random allocations") {
  Cluster cluster;
  Random random{7, 0};
  struct One {
    std::int64_t from, to;
    int slots, who;
  };
  std::vector<One> all;
  for (int i = 0; i < 60; ++i) {
    const auto from = static_cast<std::int64_t>(random.below(9 * 86'400)) - 86'400;
    const One one{from, from + static_cast<std::int64_t>(random.below(3 * 86'400)),
                  static_cast<int>(random.below(4)), static_cast<int>(random.below(3))};
    all.push_back(one);
    const TaskKey who = one.who == 2 ? TaskKey(CommandId(1)) : TaskKey(TrialId(one.who + 1));
    cluster.run("x" + std::to_string(i), who, kFirst + one.from * kSecond, kFirst + one.to * kSecond,
                one.slots);
  }
  const auto days = cluster.days("2026-01-01", "2026-01-07");
  REQUIRE(days.size() == 7);
  for (std::int64_t day = 0; day < 7; ++day) {
    double total = 0, bobs = 0;
    for (const One& one : all) {
      const auto overlap =
          std::max<std::int64_t>(0, std::min(one.to, (day + 1) * 86'400) - std::max(one.from, day * 86'400));
      total += static_cast<double>(overlap * one.slots);
      if (one.who == 1) bobs += static_cast<double>(overlap * one.slots);
    }
    INFO("day " << day);
    const db::UsagePeriod& found = days[static_cast<std::size_t>(day)];
    CHECK(found.total == Approx(total));
    const auto bob = found.by_user.find("bob");
    CHECK((bob == found.by_user.end() ? 0 : bob->second) == Approx(bobs));
  }
}

TEST_CASE("capacity follows connecting and changing agents, and bridges gaps of less than a minute") {
  Cluster cluster;
  const auto offers = [&](const char* agent, std::int64_t seconds, std::int64_t slots,
                          const char* pool = "even") {
    cluster.store.write(
        {core::PutCapacity{AgentId(agent), pool, slots, WallTime{kFirst + seconds * kSecond}}});
  };
  offers("a", 0, 8);
  offers("b", 3600, 4, "odd");
  offers("a", 7200, 0);
  offers("a", 7230, 8);  // Reconnects at once.
  offers("a", 7260, 8);  // Repeated report.
  offers("b", 3 * 3600, 6, "odd");
  offers("b", 4 * 3600, 0);
  offers("b", 4 * 3600, 0);
  offers("a", 86'400 + 3600, 0);
  const auto entries = db::capacity_entries(cluster.pool, WallTime{kFirst}, WallTime{kFirst + 2 * kDay});
  REQUIRE(entries);
  std::string text;
  for (const db::CapacityEntry& one : *entries)
    text += one.agent + " " + one.pool + " " + std::to_string(one.slots) + "x" +
            std::to_string(std::llround(one.seconds)) + "; ";
  CHECK(text == "a even 8x90000; b odd 4x7200; b odd 6x3600; ");
  const auto days = cluster.days("2025-12-31", "2026-01-02");
  CHECK(days[0].capacity.empty());
  CHECK(days[1].capacity ==
        std::map<std::string, double>{{"even", 8 * 86'400}, {"odd", 4 * 7200 + 6 * 3600}});
  CHECK(days[2].capacity == std::map<std::string, double>{{"even", 8 * 3600}});
}

TEST_CASE("a starting master ends open capacity rows, and agents that reconnect continue theirs") {
  Database database;
  const auto rows = [&](const char* of) { return database.number(of); };
  {
    RunningStore first(open_store(database));
    first.write({core::PutCapacity{AgentId("a"), "even", 8, WallTime{kFirst}},
                 core::PutCapacity{AgentId("b"), "even", 8, WallTime{kFirst}}});
  }
  CHECK(rows("SELECT count(*) FROM capacity WHERE ended IS NULL") == 2);
  RunningStore next(open_store(database));
  CHECK(rows("SELECT count(*) FROM capacity WHERE ended IS NULL") == 0);
  const std::int64_t soon = rows("SELECT (extract(epoch FROM now()) * 1000000)::bigint + 1000000");
  next.write({core::PutCapacity{AgentId("a"), "even", 8, WallTime{soon}}});
  CHECK(rows("SELECT count(*) FROM capacity WHERE ended IS NULL AND agent_id = 'a'") == 1);
  CHECK(rows("SELECT count(*) FROM capacity") == 2);
}

}  // namespace
}  // namespace det::test
