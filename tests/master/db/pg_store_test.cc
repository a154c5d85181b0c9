// Owns what only the store in PostgreSQL promises: exactly once through lost connections, and one master at a
// time.
#include "master/db/pg_store.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <thread>

#include "base/wait.h"
#include "master/db/experiment_changes.h"
#include "master/db/queries_gc.h"
#include "tests/master/db/database.h"
#include "tests/master/db/proxy.h"
#include "tests/master/db/samples.h"

namespace det::test {
namespace {

/// A write without a key: done twice, it shows.
core::AppendTaskLog line(int number) {
  return {TaskId("task"), AllocationId("task.1"), "INFO", std::to_string(number), WallTime{number}};
}

/// The numbers of all lines, in order of id, joined.
std::string lines(const Database& database) {
  return database.value(
      "SELECT coalesce(string_agg(convert_from(log, 'UTF8'), ' ' ORDER BY id), '') FROM task_logs");
}

std::string numbers(int count) {
  std::string text;
  for (int i = 1; i <= count; ++i) text += (i == 1 ? "" : " ") + std::to_string(i);
  return text;
}

/// Who fails because of a deadlock would be tried again, and nothing would show: from now on that takes half
/// a minute.
void take_long_over_deadlocks(const Database& database) {
  db::Connection connection = database.connection();
  REQUIRE(
      connection.script("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = 30000',"
                        " current_database()); END $$"));
}

core::InsertCheckpoint checkpoint(const char* uuid, std::int64_t trial) {
  return core::InsertCheckpoint{
      CheckpointId(uuid),    TrialId(trial), 1,          TaskId("t"), AllocationId("a"), 5,
      R"({"model.bin":10})", "{}",           WallTime{1}};
}

/// That so many sessions of the database wait for locks.
bool wait_for_waiting(const Database& database, std::int64_t sessions) {
  return wait_until(
      [&] {
        return database.number(
                   "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND"
                   " wait_event_type = 'Lock'") == sessions;
      },
      std::chrono::seconds(20));
}

}  // namespace

TEST_CASE("a COMMIT whose answer is lost is neither forgotten nor repeated") {
  const Database database;
  Proxy proxy(database.url());
  auto opened = db::PgStore::open({.connect = proxy.connect()});
  REQUIRE(opened);
  RunningStore running(std::move(*opened));
  // Also in a session that has committed before.
  for (int i = 1; i <= 20; ++i) {
    proxy.cut(i % 2 == 0 ? Proxy::Cut::kAfterCommit : Proxy::Cut::kBeforeCommit);
    running.write({line(i)});
    CHECK(proxy.cuts() == i);
  }
  for (int i = 21; i <= 40; ++i) {
    if (i % 4 == 0) proxy.cut(i % 8 == 0 ? Proxy::Cut::kAfterCommit : Proxy::Cut::kBeforeCommit);
    running.write({line(i)});
    CHECK(proxy.cuts() == i / 4 + 15);
  }
  CHECK(lines(database) == numbers(40));
}

TEST_CASE("sessions killed while groups queue up lose and double nothing") {
  const Database database;
  auto opened = open_store(database);
  db::PgStore& store = *opened;
  RunningStore running(std::move(opened));
  db::Connection killer = database.connection();
  constexpr int kCount = 2000;
  for (int i = 1; i <= kCount; ++i) {
    store.append({line(i)});
    if (i % 200 == 0) REQUIRE(killer.query("SELECT pg_terminate_backend($1::int)", store.backend_pid()));
  }
  REQUIRE(running.wait_durable(kCount));
  CHECK(lines(database) == numbers(kCount));
}

TEST_CASE("a second master is refused at once, and told who is there") {
  const Database database;
  auto first = open_store(database);
  const MonoTime begun = mono_now();
  const auto second = db::PgStore::open({.connect = database.connect()});
  REQUIRE_FALSE(second);
  CHECK(mono_now() - begun < std::chrono::seconds(2));
  CHECK(second.error().code == Code::kFailedPrecondition);
  CHECK_THAT(second.error().message, Catch::Contains("pid " + std::to_string(getpid())));
  CHECK_THAT(second.error().message, Catch::Contains("host "));
  first.reset();
  CHECK(db::PgStore::open({.connect = database.connect()}));
}

TEST_CASE("a master that was away while another ran fails instead of writing") {
  const Database database;
  auto opened = open_store(database);
  db::PgStore& store = *opened;
  RunningStore running(std::move(opened));
  running.write({line(1)});
  db::Connection other = database.connection();
  REQUIRE(other.query("UPDATE writer_position SET epoch = epoch + 1, sequence = 0"));
  REQUIRE(other.query("SELECT pg_terminate_backend($1::int)", store.backend_pid()));
  store.append({line(2)});
  REQUIRE(running.wait_failed());
  CHECK(running.failure()->code == Code::kFailedPrecondition);
  CHECK(lines(database) == numbers(1));
}

TEST_CASE("a master whose place another has taken writes nothing, though its session lives") {
  const Database database;
  RunningStore running(open_store(database));
  running.write({line(1)});
  db::Connection other = database.connection();
  REQUIRE(other.query("UPDATE writer_position SET epoch = epoch + 1, sequence = 0"));
  running.store().append({line(2)});
  REQUIRE(running.wait_failed());
  CHECK(lines(database) == numbers(1));
}

TEST_CASE(
    "a master without anything to write takes its place again after a lost session, and leaves when another "
    "has it") {
  const Database database;
  Proxy proxy(database.url());
  const auto look = std::chrono::milliseconds(50);
  auto opened = db::PgStore::open(
      {.connect = proxy.connect(), .give_up = std::chrono::milliseconds(300), .look = look});
  REQUIRE(opened);
  db::PgStore& store = **opened;
  RunningStore running(std::move(*opened));
  db::Connection other = database.connection();
  const int before = store.backend_pid();
  REQUIRE(other.query("SELECT pg_terminate_backend($1::int)", before));
  REQUIRE(wait_until([&] { return store.backend_pid() != before; }, std::chrono::seconds(60)));
  CHECK_FALSE(running.failure());

  REQUIRE(other.query("UPDATE writer_position SET epoch = epoch + 1, sequence = 0"));
  REQUIRE(other.query("SELECT pg_terminate_backend($1::int)", store.backend_pid()));
  REQUIRE(running.wait_failed());
  CHECK(running.failure()->code == Code::kFailedPrecondition);
}

TEST_CASE("a database that stays away is waited for, then given up") {
  const Database database;
  Proxy proxy(database.url());
  auto opened = db::PgStore::open({.connect = proxy.connect(), .give_up = std::chrono::milliseconds(300)});
  REQUIRE(opened);
  RunningStore running(std::move(*opened));
  running.write({line(1)});
  proxy.cut(Proxy::Cut::kEverything);
  running.store().append({line(2)});
  REQUIRE(running.wait_failed());
  CHECK(running.failure()->code == Code::kUnavailable);
  CHECK(lines(database) == numbers(1));
}

TEST_CASE("what comes before a write that can never succeed is kept, and nothing after it") {
  const Database database;
  auto opened = open_store(database);
  db::PgStore& store = *opened;
  // Appended before the writer starts: one batch.
  store.append({line(1)});
  store.append({line(2)});
  store.append({line(3), core::PutTrial{plain_trial(1, 77)}});  // there is no experiment 77
  store.append({line(4)});
  RunningStore running(std::move(opened));
  REQUIRE(running.wait_failed());
  CHECK(running.failure()->code == Code::kFailedPrecondition);
  CHECK(running.reports() == std::vector<db::Sequence>{1, 2});
  CHECK(lines(database) == numbers(2));
}

TEST_CASE("text that PostgreSQL cannot hold is repaired, and bytes of a log line are kept") {
  const Database database;
  RunningStore running(open_store(database));
  core::Trial trial = plain_trial();
  trial.exit_reason = std::string("bad \xff and \0 end", 15);
  const std::string raw("raw \xff \0 line", 12);
  running.write({core::PutExperiment{plain_experiment(), true}, core::PutTrial{trial},
                 core::AppendTaskLog{TaskId("t"), AllocationId("a"), "INFO", raw, WallTime{1}}});
  CHECK(database.value("SELECT exit_reason FROM trials") == "bad \xEF\xBF\xBD and \xE2\x90\x80 end");
  CHECK(database.value("SELECT log FROM task_logs") == raw);
}

TEST_CASE("a row that one transaction writes several times is stored as it is in the end") {
  const Database database;
  RunningStore running(open_store(database));
  core::Experiment experiment = plain_experiment(), paused = experiment;
  paused.state = core::State::kPaused;
  core::Trial trial = plain_trial(), begun = trial, other = plain_trial(2);
  begun.steps_completed = 7;
  core::Allocation allocation = Sampler(3).allocation("1.1", TrialId(1)), moved = allocation;
  moved.port = allocation.port + 1;
  running.write({core::PutExperiment{experiment, true, "the user's text"}, core::PutTrial{trial},
                 core::PutAllocation{allocation}, line(1), core::PutTrial{other}, core::PutTrial{begun},
                 line(2), core::PutAllocation{moved}, core::PutExperiment{paused}});
  CHECK(database.value("SELECT state || ' ' || original_config FROM experiments") ==
        "PAUSED the user's text");
  CHECK(database.value("SELECT config->>'name' FROM experiments") == experiment.config->name);
  CHECK(database.value("SELECT string_agg(id || ':' || steps_completed, ' ' ORDER BY id) FROM trials") ==
        "1:7 2:" + std::to_string(other.steps_completed));
  CHECK(database.number("SELECT port FROM allocations") == moved.port);
  CHECK(lines(database) == "1 2");
  CHECK(database.number("SELECT trials FROM experiment_summaries") == 2);
}

TEST_CASE("checkpoints of several experiments are written and removed at once without a deadlock") {
  const Database database;
  take_long_over_deadlocks(database);
  RunningStore running(open_store(database));
  running.write({core::PutExperiment{plain_experiment(1), true}, core::PutTrial{plain_trial(1, 1)},
                 core::PutExperiment{plain_experiment(2), true}, core::PutTrial{plain_trial(2, 2)},
                 checkpoint("a1", 1), checkpoint("a2", 2)});
  // Both come to experiment 1 while it is held, the remover first; the writer has been at experiment 2 by
  // then, were it not for the order.
  db::Connection gate = database.connection();
  REQUIRE(gate.begin());
  REQUIRE(gate.query("SELECT FROM experiment_summaries WHERE experiment_id = 1 FOR UPDATE"));
  db::Pool pool(database.connect());
  std::optional<Result<std::vector<CheckpointId>>> removed;
  std::thread remover([&] {
    removed = db::mark_for_removal(pool, {CheckpointId("a1"), CheckpointId("a2")});
  });
  CHECK(wait_for_waiting(database, 1));
  const db::Sequence written = running.store().append({checkpoint("b2", 2), checkpoint("b1", 1)});
  CHECK(wait_for_waiting(database, 2));
  const MonoTime begun = mono_now();
  REQUIRE(gate.commit());
  CHECK(running.wait_durable(written));
  remover.join();
  CHECK(mono_now() - begun < std::chrono::seconds(25));
  REQUIRE(*removed);
  CHECK((*removed)->size() == 2);
  CHECK(database.value("SELECT string_agg(experiment_id || ':' || checkpoints || ':' || checkpoint_bytes, ' '"
                       " ORDER BY experiment_id) FROM experiment_summaries") == "1:1:10 2:1:10");
}

TEST_CASE("an experiment is deleted while its checkpoints are removed without a deadlock") {
  const Database database;
  take_long_over_deadlocks(database);
  RunningStore running(open_store(database));
  core::Experiment ended = plain_experiment(1);
  ended.state = core::State::kCanceled;
  // As they lie in the table, "b" comes first.
  running.write({core::PutExperiment{ended, true}, core::PutTrial{plain_trial(1, 1)}, checkpoint("b", 1),
                 checkpoint("a", 1)});
  db::Connection gate = database.connection();
  REQUIRE(gate.begin());
  REQUIRE(gate.query("SELECT FROM checkpoints WHERE uuid = 'a' FOR UPDATE"));
  db::Pool pool(database.connect());
  std::optional<Status> removed, deleted;
  std::thread remover([&] { removed = db::set_removed(pool, {CheckpointId("a"), CheckpointId("b")}); });
  CHECK(wait_for_waiting(database, 1));
  std::thread deleter([&] { deleted = db::delete_experiment(pool, ExperimentId(1)); });
  CHECK(wait_for_waiting(database, 2));
  const MonoTime begun = mono_now();
  REQUIRE(gate.commit());
  remover.join();
  deleter.join();
  CHECK(mono_now() - begun < std::chrono::seconds(25));
  CHECK(*removed);
  CHECK(*deleted);
  CHECK(database.number("SELECT count(*) FROM checkpoints") == 0);
  CHECK(database.number("SELECT count(*) FROM experiments") == 0);
}

TEST_CASE("a checkpoint's size is the sum of its files") {
  const Database database;
  RunningStore running(open_store(database));
  running.write({core::PutExperiment{plain_experiment(), true}, core::PutTrial{plain_trial()},
                 core::InsertCheckpoint{CheckpointId("c1"), TrialId(1), 1, TaskId("t"), AllocationId("a"), 5,
                                        R"({"model.bin":1000,"dir/":0,"state.bin":24})", "{}", WallTime{1}},
                 core::InsertCheckpoint{CheckpointId("c2"), TrialId(1), 1, TaskId("t"), AllocationId("a"), 6,
                                        "{}", "{}", WallTime{1}}});
  CHECK(database.number("SELECT size FROM checkpoints WHERE uuid = 'c1'") == 1024);
  CHECK(database.number("SELECT size FROM checkpoints WHERE uuid = 'c2'") == 0);
}

}  // namespace det::test
