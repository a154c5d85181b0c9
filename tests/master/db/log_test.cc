// Task logs: every line once, in order, byte for byte, and found by every filter.
#include <catch2/catch.hpp>

#include "common/base/queue.h"
#include "master/db/ingest/bulk.h"
#include "master/db/queries/logs.h"
#include "tests/master/db/database.h"
#include "tests/master/db/proxy.h"
#include "tests/master/db/samples.h"

namespace det::test {
namespace {

constexpr WallTime kTime{1'000'000};

db::LogLine line(std::string text, int rank = 0, std::string level = "INFO", std::string out = "stdout") {
  return {kTime, rank, std::move(level), std::move(out), "task", std::move(text)};
}

std::int64_t ship(db::BulkWriter& bulk, std::int64_t first, std::vector<db::LogLine> lines,
                  const std::string& allocation = "t.1") {
  auto answers = std::make_shared<Queue<Result<std::int64_t>>>(1);
  REQUIRE(
      bulk.push(db::LogBatch{TaskId("t"), AllocationId(allocation), AgentId("agent"), first, std::move(lines),
                             [answers](Result<std::int64_t> next) { answers->push(std::move(next)); }}));
  auto answer = answers->pop_batch(1, std::chrono::seconds(60));
  REQUIRE(answer.size() == 1);
  if (!answer[0]) FAIL(answer[0].error().message);
  return *answer[0];
}

std::vector<std::string> texts(db::Pool& pool, db::LogFilter filter) {
  filter.task = TaskId("t");
  auto rows = db::read_logs(pool, filter);
  if (!rows) FAIL(rows.error().message);
  std::vector<std::string> texts;
  for (const db::LogRow& row : *rows) texts.push_back(row.text);
  return texts;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("repeated log lines are skipped, in whole batches and partial ones") {
  const Database database;
  db::BulkWriter bulk({.connect = database.connect()});
  CHECK(ship(bulk, 1, {line("1"), line("2")}) == 3);
  CHECK(ship(bulk, 1, {line("1"), line("2")}) == 3);
  CHECK(ship(bulk, 2, {line("2"), line("3"), line("4")}) == 5);
  CHECK(ship(bulk, 1, {}) == 5);
  CHECK(ship(bulk, 8, {line("8")}) == 9);  // The agent dropped lines 5 to 7.
  CHECK(ship(bulk, 1, {line("other")}, "t.2") == 2);
  db::Pool pool(database.connect());
  CHECK(texts(pool, {}) == Texts{"1", "2", "3", "4", "8", "other"});
}

TEST_CASE("sent lines are stored once although the reply to COMMIT is lost") {
  const Database database;
  Proxy proxy(database.url());
  db::Pool pool(proxy.connect(), 1);
  int number = 0;
  for (const Proxy::Cut cut : {Proxy::Cut::kAfterCommit, Proxy::Cut::kBeforeCommit}) {
    proxy.cut(cut);
    const Status stored = db::append_lines(pool, TaskId("t"), {{.text = std::to_string(++number)}});
    if (!stored) FAIL(stored.error().message);
    CHECK(proxy.cuts() == number);
  }
  CHECK(texts(pool, {}) == Texts{"1", "2"});
}

TEST_CASE("a line is stored byte for byte") {
  const Database database;
  db::BulkWriter bulk({.connect = database.connect()});
  db::LogLine odd = line(std::string("\xff\x00\\N\t\n\xc3", 7));
  odd.rank = 3;
  odd.level.clear();
  CHECK(ship(bulk, 1, {odd, line("")}) == 3);
  CHECK(
      database.number(
          "SELECT count(*) FROM task_logs WHERE log = '\\xff005c4e090ac3'::bytea AND rank = 3 AND level = ''"
          " AND agent_id = 'agent' AND task_id = 't'") == 1);
  CHECK(database.number("SELECT count(*) FROM task_logs WHERE log = ''::bytea") == 1);
}

TEST_CASE("queued batches keep their order") {
  const Database database;
  db::BulkWriter bulk({.connect = database.connect()});
  for (std::int64_t i = 0; i < 300; ++i)
    REQUIRE(bulk.push(db::LogBatch{TaskId("t"),
                                   AllocationId("t.1"),
                                   AgentId("a"),
                                   i + 1,
                                   {line(std::to_string(i))},
                                   [](const Result<std::int64_t>&) {}}));
  CHECK(ship(bulk, 301, {line("last")}) == 302);
  CHECK(database.number("SELECT count(*) FROM (SELECT convert_from(log, 'UTF8')::int AS n, row_number() OVER "
                        "(ORDER BY id) - 1"
                        " AS place FROM task_logs WHERE log <> 'last') numbered WHERE n = place") == 300);
}

TEST_CASE("logs are read by position, from either end, and by every filter") {
  const Database database;
  db::BulkWriter bulk({.connect = database.connect()});
  const std::string raw("raw \xff\0 bytes", 12);
  ship(bulk, 1,
       {line("epoch 1"), line("Epoch 2", 1), line("warn", 0, "WARNING", "stderr"),
        line(raw, 2, "ERROR", "stderr"), line("100% é (done)", -1, "")});
  db::Pool pool(database.connect());
  CHECK(texts(pool, {.limit = 2}) == Texts{"epoch 1", "Epoch 2"});
  CHECK(texts(pool, {.limit = 2, .descending = true}) == Texts{"100% é (done)", raw});
  CHECK(texts(pool, {.levels = {"ERROR", "WARNING"}}) == Texts{"warn", raw});
  CHECK(texts(pool, {.stdtypes = {"stderr"}}) == Texts{"warn", raw});
  CHECK(texts(pool, {.ranks = {1, 2}}) == Texts{"Epoch 2", raw});
  CHECK(texts(pool, {.agents = {"nobody"}}).empty());
  CHECK(texts(pool, {.allocations = {"t.1"}, .sources = {"task"}}).size() == 5);
  CHECK(texts(pool, {.search = "é (d"}) == Texts{"100% é (done)"});
  CHECK(texts(pool, {.search = "%"}) == Texts{"100% é (done)"});
  CHECK(texts(pool, {.search = "^[Ee]poch [0-9]$", .regex = true}) == Texts{"epoch 1", "Epoch 2"});
  CHECK(texts(pool, {.search = "raw .377", .regex = true}) == Texts{raw});
  CHECK(texts(pool, {.before = WallTime{1'000'000}}).empty());
  CHECK(texts(pool, {.after = WallTime{999'999}}).size() == 5);

  auto first = db::read_logs(pool, {.task = TaskId("t"), .limit = 1});
  REQUIRE(first);
  CHECK((*first)[0].rank == 0);
  CHECK((*first)[0].agent == AgentId("agent"));
  CHECK((*first)[0].time == WallTime{1'000'000});
  CHECK(texts(pool, {.after_id = (*first)[0].id, .limit = 1}) == Texts{"Epoch 2"});
  CHECK(db::read_logs(pool, {.task = TaskId("t"), .search = "(", .regex = true}).error().code ==
        Code::kInvalidArgument);
}

TEST_CASE("a page of logs is bounded by bytes, from either end, and the next one continues it") {
  const Database database;
  db::BulkWriter bulk({.connect = database.connect()});
  const std::string a(60'000, 'a'), b(60'000, 'b'), c(60'000, 'c');
  ship(bulk, 1, {line(a), line(b), line(c)});
  db::Pool pool(database.connect());
  CHECK(texts(pool, {.bytes = 100'000}) == Texts{a, b});
  CHECK(texts(pool, {.bytes = 100'000, .descending = true}) == Texts{c, b});
  // A longer line is a page of its own.
  CHECK(texts(pool, {.bytes = 1}) == Texts{a});
  const std::int64_t middle = database.number("SELECT id FROM task_logs ORDER BY id OFFSET 1 LIMIT 1");
  CHECK(texts(pool, {.before_id = middle, .descending = true}) == Texts{a});
  CHECK(db::tail_start(pool, {.task = TaskId("t"), .limit = 2}) == middle);
  CHECK(db::tail_start(pool, {.task = TaskId("none")}) == 0);
}

TEST_CASE("log retention follows the experiment's configuration, else the master's default") {
  const Database database;
  db::Pool pool(database.connect());
  RunningStore store(open_store(database));
  core::Experiment of_its_own = plain_experiment(2);
  store.write({core::PutExperiment{plain_experiment(1), true}, core::PutExperiment{of_its_own, true}});
  // Days since the end of the trial; -1: the trial runs.
  const std::pair<std::int64_t, std::int64_t> trials[] = {{1, 40}, {1, 20}, {1, -1}, {2, 40}, {2, 400}};
  std::int64_t id = 0;
  for (const auto& [experiment, days] : trials) {
    core::Trial trial = plain_trial(++id, experiment);
    trial.task = TaskId("task-" + std::to_string(id));
    if (days >= 0) trial.ended = WallTime{wall_now().micros - days * 86'400'000'000};
    store.write({core::PutTrial{trial},
                 core::AppendTaskLog{trial.task, AllocationId("x.1"), "INFO", "line", WallTime{1}}});
  }
  REQUIRE(
      pool.query("UPDATE experiments SET config = '{\"retention_policy\": {\"log_retention_days\": 100}}' "
                 "WHERE id = 2"));
  const auto left = [&] {
    return database.value("SELECT string_agg(task_id, ' ' ORDER BY task_id) FROM task_logs");
  };
  CHECK(*db::forget_logs(pool, -1) == 1);
  CHECK(left() == "task-1 task-2 task-3 task-4");
  CHECK(*db::forget_logs(pool, 30) == 1);
  CHECK(left() == "task-2 task-3 task-4");
  REQUIRE(pool.query(
      "UPDATE experiments SET config = '{\"retention_policy\": {\"log_retention_days\": -1}}' WHERE id = 1"));
  CHECK(*db::forget_logs(pool, 0) == 0);
}

TEST_CASE("the remaining days of a log are known once its trial has ended") {
  const Database database;
  db::Pool pool(database.connect());
  RunningStore store(open_store(database));
  core::Trial trial = plain_trial();
  store.write({core::PutExperiment{plain_experiment(), true}, core::PutTrial{trial}});
  using Days = std::optional<std::int64_t>;
  CHECK(db::remaining_log_days(pool, trial.id, 30).value() == Days());
  CHECK(db::remaining_log_days(pool, trial.id, -1).value() == Days(-1));
  trial.ended = WallTime{wall_now().micros - 86'400'000'000};
  store.write({core::PutTrial{trial}});
  CHECK(db::remaining_log_days(pool, trial.id, 30).value() == Days(29));
  CHECK(db::remaining_log_days(pool, trial.id, 0).value() == Days(0));
}

TEST_CASE("a deleted log counts for no quota, and its lines are still recognized") {
  const Database database;
  db::Pool pool(database.connect());
  RunningStore store(open_store(database));
  core::Trial trial = plain_trial();
  trial.task = TaskId("t");
  core::Allocation allocation;
  allocation.id = AllocationId("t.1");
  allocation.task = trial.id;
  allocation.run = 1;
  allocation.parts.push_back({.agent = AgentId("agent")});
  trial.ended = WallTime{1};
  store.write({core::PutExperiment{plain_experiment(), true}, core::PutTrial{trial},
               core::PutAllocation{allocation}});
  db::BulkWriter bulk({.connect = database.connect()});
  CHECK(ship(bulk, 1, {line("one"), line("two")}) == 3);
  ship(bulk, 1, {line("other")}, "other.1");
  const auto bytes = [&](const char* of) {
    return database.number(
        (std::string("SELECT sum(bytes)::bigint FROM log_positions WHERE allocation_id = '") + of + "'")
            .c_str());
  };
  CHECK(bytes("t.1") == 6);
  CHECK(*db::forget_logs(pool, 1) == 1);
  CHECK(bytes("t.1") == 0);
  CHECK(bytes("other.1") == 5);
  CHECK(ship(bulk, 1, {line("one"), line("two")}) == 3);
  CHECK(texts(pool, {}).empty());
}

TEST_CASE("following by id misses no line when two writers commit") {
  const Database database;
  RunningStore store(open_store(database));
  db::BulkWriter bulk({.connect = database.connect()});
  db::Pool pool(database.connect());
  constexpr int kEach = 400;
  for (int i = 1; i <= kEach; ++i) {
    store.store().append(
        {core::AppendTaskLog{TaskId("t"), AllocationId("t.1"), "INFO", "master", WallTime{1}}});
    REQUIRE(bulk.push(db::LogBatch{
        TaskId("t"), AllocationId("t.1"), AgentId("a"), i, {line("agent")}, [](const Result<std::int64_t>&) {
        }}));
  }
  std::int64_t last = 0;
  std::size_t seen = 0;
  const MonoTime deadline = mono_now() + std::chrono::seconds(60);
  while (seen < 2 * kEach && mono_now() < deadline) {
    auto rows = db::read_logs(pool, {.task = TaskId("t"), .after_id = last, .limit = 50});
    REQUIRE(rows);
    for (const db::LogRow& row : *rows) {
      REQUIRE(row.id > last);
      last = row.id;
      ++seen;
    }
  }
  CHECK(seen == 2 * kEach);
  CHECK(database.number("SELECT count(*) FROM task_logs") == 2 * kEach);
}

}  // namespace det::test
