// Guarantees of the PostgreSQL store beyond the store contract: exactly-once writes across lost connections,
// and a single master.
#include "master/db/store/pg_store.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <functional>
#include <thread>

#include "common/base/wait.h"
#include "master/db/queries/experiments.h"
#include "master/db/queries/gc.h"
#include "master/db/queries/projects.h"
#include "master/db/queries/trials.h"
#include "tests/master/db/database.h"
#include "tests/master/db/proxy.h"
#include "tests/master/db/samples.h"

namespace det::test {
namespace {

/// A write without a key: a repeat is visible as a second row.
core::AppendTaskLog line(int number) {
  return {TaskId("task"), AllocationId("task.1"), "INFO", std::to_string(number), WallTime{number}};
}

/// The numbers of all lines, joined in order of id.
std::string lines(const Database& database) {
  return database.value(
      "SELECT coalesce(string_agg(convert_from(log, 'UTF8'), ' ' ORDER BY id), '') FROM task_logs");
}

std::string numbers(int count) {
  std::string text;
  for (int i = 1; i <= count; ++i) text += (i == 1 ? "" : " ") + std::to_string(i);
  return text;
}

/// Raises the deadlock timeout to 30 s, beyond the time limit of the tests. The store retries a deadlock
/// victim, which would otherwise hide the deadlock.
void take_long_over_deadlocks(const Database& database) {
  db::Connection connection = database.connection();
  REQUIRE(
      connection.script("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = 30000',"
                        " current_database()); END $$"));
}

core::InsertCheckpoint checkpoint(const char* uuid, std::int64_t trial) {
  return core::InsertCheckpoint{
      checkpoint_id(uuid),   TrialId(trial), 1,          TaskId("t"), AllocationId("a"), 5,
      R"({"model.bin":10})", "{}",           WallTime{1}};
}

}  // namespace

TEST_CASE("a COMMIT with a lost reply is neither lost nor repeated") {
  const Database database;
  Proxy proxy(database.url());
  auto opened = db::PgStore::open({.connect = proxy.connect()});
  REQUIRE(opened);
  RunningStore running(std::move(*opened));
  // The same in a session that has committed before.
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

TEST_CASE("sessions killed while groups queue lose and duplicate nothing") {
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

TEST_CASE("a second master is refused at once with the holder's name") {
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

TEST_CASE("a master that lost its session to another master fails instead of writing") {
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

TEST_CASE("a master with a stale epoch writes nothing although its session is open") {
  const Database database;
  RunningStore running(open_store(database));
  running.write({line(1)});
  db::Connection other = database.connection();
  REQUIRE(other.query("UPDATE writer_position SET epoch = epoch + 1, sequence = 0"));
  running.store().append({line(2)});
  REQUIRE(running.wait_failed());
  CHECK(lines(database) == numbers(1));
}

TEST_CASE("an idle master reopens a lost session, and fails if another master took over") {
  const Database database;
  Proxy proxy(database.url());
  const auto look = std::chrono::milliseconds(50);
  auto opened = db::PgStore::open(
      {.connect = proxy.connect(), .retry_for = std::chrono::milliseconds(300), .look = look});
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

TEST_CASE("an unreachable database is retried until the deadline") {
  const Database database;
  Proxy proxy(database.url());
  auto opened = db::PgStore::open({.connect = proxy.connect(), .retry_for = std::chrono::milliseconds(300)});
  REQUIRE(opened);
  RunningStore running(std::move(*opened));
  running.write({line(1)});
  proxy.cut(Proxy::Cut::kEverything);
  running.store().append({line(2)});
  REQUIRE(running.wait_failed());
  CHECK(running.failure()->code == Code::kUnavailable);
  CHECK(lines(database) == numbers(1));
}

TEST_CASE("groups before a permanently failing write are kept, and later groups are not written") {
  const Database database;
  auto opened = open_store(database);
  db::PgStore& store = *opened;
  // Appended before the writer starts, so that they form one batch.
  store.append({line(1)});
  store.append({line(2)});
  // There is no experiment 77.
  store.append({line(3), core::PutTrial{plain_trial(1, 77)}});
  store.append({line(4)});
  RunningStore running(std::move(opened));
  REQUIRE(running.wait_failed());
  CHECK(running.failure()->code == Code::kFailedPrecondition);
  CHECK(running.reports() == std::vector<db::Sequence>{1, 2});
  CHECK(lines(database) == numbers(2));
}

TEST_CASE("text that PostgreSQL cannot hold is repaired, and bytes of log lines are kept") {
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

TEST_CASE("a row that one transaction writes several times is stored in its last version") {
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

TEST_CASE("writing and removing checkpoints of several experiments concurrently does not deadlock") {
  const Database database;
  take_long_over_deadlocks(database);
  RunningStore running(open_store(database));
  running.write({core::PutExperiment{plain_experiment(1), true}, core::PutTrial{plain_trial(1, 1)},
                 core::PutExperiment{plain_experiment(2), true}, core::PutTrial{plain_trial(2, 2)},
                 checkpoint("a1", 1), checkpoint("a2", 2)});
  // Both threads block on experiment 1, the remover first. Without the lock order the writer would already
  // hold experiment 2.
  db::Connection gate = database.connection();
  REQUIRE(gate.begin());
  REQUIRE(gate.query("SELECT FROM experiment_summaries WHERE experiment_id = 1 FOR UPDATE"));
  db::Pool pool(database.connect());
  std::optional<Result<std::vector<CheckpointId>>> removed;
  std::thread remover([&] {
    removed = db::mark_for_removal(pool, {checkpoint_id("a1"), checkpoint_id("a2")});
  });
  CHECK(database.wait_for_waiting(1));
  const db::Sequence written = running.store().append({checkpoint("b2", 2), checkpoint("b1", 1)});
  CHECK(database.wait_for_waiting(2));
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

TEST_CASE("editing and moving experiments while their trials are written does not deadlock") {
  const Database database;
  take_long_over_deadlocks(database);
  db::Pool pool(database.connect());
  const std::function<Status()> edits[] = {
      [&] { return db::patch_experiment(pool, ExperimentId(1), {.name = "renamed"}); },
      [&] {
        return db::move_experiments(pool, {2, 1}, 1);
      }};
  RunningStore running(open_store(database));
  running.write({core::PutExperiment{plain_experiment(1), true}, core::PutTrial{plain_trial(1, 1)},
                 core::PutExperiment{plain_experiment(2), true}, core::PutTrial{plain_trial(2, 2)}});
  for (const auto& edit : edits) {
    db::Connection gate = database.connection();
    REQUIRE(gate.begin());
    REQUIRE(gate.query("SELECT FROM experiment_summaries WHERE experiment_id = 2 FOR UPDATE"));
    const db::Sequence written = running.store().append(
        {core::PutTrial{plain_trial(1, 1)}, core::PutTrial{plain_trial(2, 2)},
         core::PutExperiment{plain_experiment(2)}, core::PutExperiment{plain_experiment(1)}});
    CHECK(database.wait_for_waiting(1));
    std::optional<Status> edited;
    std::thread editor([&] { edited = edit(); });
    CHECK(database.wait_for_waiting(2));
    const MonoTime begun = mono_now();
    REQUIRE(gate.commit());
    CHECK(running.wait_durable(written));
    editor.join();
    CHECK(mono_now() - begun < std::chrono::seconds(25));
    CHECK(*edited);
  }
  CHECK(database.value("SELECT name FROM experiments WHERE id = 1") == "renamed");
}

TEST_CASE("deleting an experiment while its checkpoints are removed does not deadlock") {
  const Database database;
  take_long_over_deadlocks(database);
  RunningStore running(open_store(database));
  core::Experiment ended = plain_experiment(1);
  ended.state = core::State::kCanceled;
  // In table order "b" comes first.
  running.write({core::PutExperiment{ended, true}, core::PutTrial{plain_trial(1, 1)}, checkpoint("b", 1),
                 checkpoint("a", 1)});
  db::Connection gate = database.connection();
  REQUIRE(gate.begin());
  REQUIRE(gate.query("SELECT FROM checkpoints WHERE uuid = $1 FOR UPDATE", checkpoint_uuid("a")));
  db::Pool pool(database.connect());
  std::optional<Status> removed, deleted;
  std::thread remover([&] { removed = db::set_removed(pool, {checkpoint_id("a"), checkpoint_id("b")}); });
  CHECK(database.wait_for_waiting(1));
  std::thread deleter([&] { deleted = db::delete_experiment(pool, ExperimentId(1)); });
  CHECK(database.wait_for_waiting(2));
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

TEST_CASE("the database refuses a checkpoint whose id is no UUID, unless its files are gone") {
  const Database database;
  RunningStore running(open_store(database));
  running.write(
      {core::PutExperiment{plain_experiment(), true}, core::PutTrial{plain_trial()}, checkpoint("a", 1)});
  for (const char* id : {"../../etc", "16384", "", "00000000-0000-4000-8000-00000000000A",
                         "00000000-0000-4000-8000-000000000001/x"}) {
    CAPTURE(id);
    const auto refused = database.connection().query("UPDATE checkpoints SET uuid = $1", std::string(id));
    REQUIRE_FALSE(refused);
    CHECK_THAT(refused.error().message, Catch::Contains("checkpoints_check"));
  }
  CHECK(database.connection().query("UPDATE checkpoints SET uuid = '16384', state = 'DELETED'"));
}

TEST_CASE("the size of a checkpoint is the sum of its files") {
  const Database database;
  RunningStore running(open_store(database));
  running.write({core::PutExperiment{plain_experiment(), true}, core::PutTrial{plain_trial()},
                 core::InsertCheckpoint{checkpoint_id("c1"), TrialId(1), 1, TaskId("t"), AllocationId("a"), 5,
                                        R"({"model.bin":1000,"dir/":0,"state.bin":24})", "{}", WallTime{1}},
                 core::InsertCheckpoint{checkpoint_id("c2"), TrialId(1), 1, TaskId("t"), AllocationId("a"), 6,
                                        "{}", "{}", WallTime{1}}});
  CHECK(database.number("SELECT size FROM checkpoints WHERE steps_completed = 5") == 1024);
  CHECK(database.number("SELECT size FROM checkpoints WHERE steps_completed = 6") == 0);
}

TEST_CASE("sizes of checkpoints beyond 64 bits are stored as their maximum, and the writer goes on") {
  const Database database;
  RunningStore running(open_store(database));
  const auto huge = [](const char* uuid) {
    core::InsertCheckpoint row = checkpoint(uuid, 1);
    row.resources = R"({"a":9223372036854775807,"b":9223372036854775807})";
    return row;
  };
  running.write({core::PutExperiment{plain_experiment(), true}, core::PutTrial{plain_trial()}, huge("h1"),
                 huge("h2"), checkpoint("c1", 1)});
  constexpr const char* kSum = "SELECT checkpoint_bytes FROM experiment_summaries";
  CHECK(database.number(kSum) == INT64_MAX);
  db::Pool pool(database.connect());
  const auto trials = db::list_trials(pool, {.experiment = ExperimentId(1)});
  REQUIRE(trials);
  CHECK(trials->rows.at(0).checkpoint_size == INT64_MAX);
  REQUIRE(db::mark_for_removal(pool, {checkpoint_id("h1"), checkpoint_id("h2")}));
  CHECK(database.number(kSum) == 0);
}

}  // namespace det::test
