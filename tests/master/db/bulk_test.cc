// Bulk ingest guarantees: an acknowledged row is stored exactly once and never by a stale run.
#include "master/db/ingest/bulk.h"

#include <atomic>
#include <catch2/catch.hpp>

#include "common/base/queue.h"
#include "tests/master/db/database.h"
#include "tests/master/db/samples.h"

namespace det::test {
namespace {

db::MetricRow row(std::int64_t steps, std::string metrics = R"({"loss":0.5})",
                  std::string group = "training") {
  return {std::move(group), steps, std::move(metrics), WallTime{steps}};
}

/// Pushes a batch and waits for its status.
Status send(db::BulkWriter& bulk, RunNumber run, std::vector<db::MetricRow> rows, std::int64_t trial = 1) {
  auto answers = std::make_shared<Queue<Status>>(1);
  REQUIRE(bulk.push(db::MetricBatch{TrialId(trial), run, std::move(rows),
                                    [answers](Status status) { answers->push(std::move(status)); }}));
  auto answer = answers->pop_batch(1, std::chrono::seconds(60));
  REQUIRE(answer.size() == 1);
  return answer[0];
}

void create_trial(RunningStore& store, RunNumber run = 1) {
  store.write({core::PutExperiment{plain_experiment(), true}, core::PutTrial{plain_trial(1, 1, run)}});
}

}  // namespace

TEST_CASE("a repeated metric report keeps the first version") {
  const Database database;
  RunningStore store(open_store(database));
  create_trial(store);
  db::BulkWriter bulk({.connect = database.connect()});
  const std::string exact = R"({"loss":  1e-300, "b":-0.0, "nan":"NaN"})";
  for (int i = 0; i < 3; ++i) CHECK(send(bulk, 1, {row(1, exact), row(2)}));
  CHECK(send(bulk, 1, {row(2, R"({"loss":9})"), row(3)}));
  CHECK(database.number("SELECT count(*) FROM metrics") == 3);
  CHECK(database.value("SELECT metrics FROM metrics WHERE steps_completed = 1") == exact);
  CHECK(database.value("SELECT metrics FROM metrics WHERE steps_completed = 2") == R"({"loss":0.5})");
}

TEST_CASE("a second report at a step adds metrics with new names and changes no value") {
  const Database database;
  RunningStore store(open_store(database));
  create_trial(store);
  db::BulkWriter bulk({.connect = database.connect()});
  CHECK(send(bulk, 1, {row(1, R"({"loss":1e-300})"), row(2)}));
  CHECK(send(bulk, 1, {row(2, R"({"loss":9,"mine":"NaN"})"), row(2, R"({"mine":3,"more":4.50})"), row(3)}));
  const auto at = [&](int steps, const std::string& name) {
    const std::string stored = "SELECT (metrics->'" + name + "')::text FROM metrics WHERE steps_completed = ";
    return database.value((stored + std::to_string(steps)).c_str());
  };
  CHECK(at(2, "loss") == "0.5");
  CHECK(at(2, "mine") == R"("NaN")");
  CHECK(at(2, "more") == "4.50");
  // Also to a row of an earlier run.
  store.write({core::ArchiveMetrics{TrialId(1), 2}, core::PutTrial{plain_trial(1, 1, 2)}});
  CHECK(send(bulk, 2, {row(1, R"({"mine":7})")}));
  CHECK(at(1, "loss") == "1e-300");
  CHECK(at(1, "mine") == "7");
  CHECK(database.number("SELECT count(*) FROM metrics WHERE NOT archived") == 2);
}

TEST_CASE("stale runs, future runs and unknown trials are refused without failing the rest of the batch") {
  const Database database;
  RunningStore store(open_store(database));
  create_trial(store, 2);
  db::BulkWriter bulk({.connect = database.connect()});
  CHECK(send(bulk, 1, {row(1)}).error().code == Code::kAborted);
  CHECK(send(bulk, 3, {row(1)}).error().code == Code::kAborted);
  CHECK(send(bulk, 1, {row(1)}, 99).error().code == Code::kNotFound);
  CHECK(send(bulk, 2, {row(1)}));
  CHECK(database.number("SELECT count(*) FROM metrics WHERE run = 2") == 1);
  CHECK(database.number("SELECT count(*) FROM metrics") == 1);
}

TEST_CASE("an invalid row fails alone") {
  const Database database;
  RunningStore store(open_store(database));
  create_trial(store);
  db::BulkWriter bulk({.connect = database.connect()});
  auto answers = std::make_shared<Queue<std::pair<int, Status>>>(64);
  for (int i = 0; i < 20; ++i)
    REQUIRE(bulk.push(
        db::MetricBatch{TrialId(1), 1, {row(i, i == 7 ? "{not json" : "{}")}, [answers, i](Status status) {
                          answers->push({i, std::move(status)});
                        }}));
  for (int n = 0; n < 20; ++n) {
    auto answer = answers->pop();
    REQUIRE(answer);
    CHECK(answer->second.has_value() == (answer->first != 7));
    if (answer->first == 7) CHECK(answer->second.error().code == Code::kInvalidArgument);
  }
  CHECK(database.number("SELECT count(*) FROM metrics") == 19);
}

TEST_CASE("a new run hides the old run's rows beyond its checkpoint despite races") {
  const Database database;
  RunningStore store(open_store(database));
  create_trial(store);
  db::BulkWriter bulk({.connect = database.connect()});
  auto stored = std::make_shared<std::atomic<int>>(0);
  auto stale = std::make_shared<std::atomic<int>>(0);
  constexpr int kReports = 3000;
  for (int i = 1; i <= kReports; ++i) {
    REQUIRE(bulk.push(
        db::MetricBatch{TrialId(1), 1, {row(i)}, [=](Status status) { ++*(status ? stored : stale); }}));
    if (i == kReports / 2)
      store.store().append({core::ArchiveMetrics{TrialId(1), 10}, core::PutTrial{plain_trial(1, 1, 2)}});
  }
  REQUIRE(store.wait_durable(2));
  CHECK(send(bulk, 2, {row(11), row(5)}));
  CHECK(*stored + *stale == kReports);
  CHECK(*stale > 0);
  // Each acknowledged row is stored, archived or not. Beyond the checkpoint only rows of the new run are
  // visible, and each step has one visible row.
  CHECK(database.number("SELECT count(*) FROM metrics WHERE run = 1") == *stored);
  CHECK(database.number(
            "SELECT count(*) FROM metrics WHERE run = 1 AND steps_completed > 10 AND NOT archived") == 0);
  CHECK(database.number(
            "SELECT count(*) FROM metrics WHERE run = 1 AND steps_completed <= 10 AND NOT archived") == 10);
  CHECK(database.number("SELECT count(*) FROM metrics WHERE run = 2 AND NOT archived") == 1);
}

TEST_CASE("system metrics stay visible when a new run starts from an earlier step") {
  const Database database;
  RunningStore store(open_store(database));
  create_trial(store);
  db::BulkWriter bulk({.connect = database.connect()});
  auto of_group = [](const char* group) {
    db::MetricRow metrics = row(1'700'000'000);
    metrics.group = group;
    return metrics;
  };
  CHECK(send(bulk, 1, {of_group("cpu"), of_group("gpu"), of_group("training"), of_group("mine")}));
  store.store().append({core::ArchiveMetrics{TrialId(1), 10}, core::PutTrial{plain_trial(1, 1, 2)}});
  REQUIRE(store.wait_durable(2));
  CHECK(database.number("SELECT count(*) FROM metrics WHERE NOT archived AND grp IN ('cpu', 'gpu')") == 2);
  CHECK(database.number("SELECT count(*) FROM metrics WHERE NOT archived") == 2);
}

TEST_CASE("acknowledged rows are stored once although sessions are killed") {
  const Database database;
  RunningStore store(open_store(database));
  create_trial(store);
  db::BulkWriter bulk({.connect = database.connect()});
  auto answers = std::make_shared<Queue<std::pair<int, Status>>>(4096);
  db::Connection killer = database.connection();
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(bulk.push(db::MetricBatch{TrialId(1), 1, {row(i)}, [answers, i](Status status) {
                                        answers->push({i, std::move(status)});
                                      }}));
    if (i % 100 == 50)
      REQUIRE(killer.query(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '% metrics'"
          " AND datname = current_database()"));
  }
  for (int n = 0; n < 1000; ++n) {
    auto answer = answers->pop();
    REQUIRE(answer);
    CHECK(answer->second);
  }
  CHECK(database.number("SELECT count(DISTINCT steps_completed) FROM metrics") == 1000);
}

TEST_CASE("a bulk writer without its database reports unavailability and stops") {
  db::BulkWriter bulk({.connect = {.url = "host='/nonexistent' user=x dbname=x"},
                       .retry_for = std::chrono::milliseconds(100)});
  CHECK(send(bulk, 1, {row(1)}).error().code == Code::kUnavailable);
  bulk.stop();
  db::MetricBatch late{TrialId(1), 1, {row(1)}, [](const Status&) {}};
  CHECK_FALSE(bulk.try_push(std::move(late)));
}

TEST_CASE("JSON that PostgreSQL cannot read back is refused") {
  CHECK(db::check_json_object(R"({"a":1,"b":"NaN","c":[1e-300, 0.0, 0e0],"é":"日"})"));
  CHECK_FALSE(db::check_json_object(R"({"a":"nul \u0000"})"));
  CHECK_FALSE(db::check_json_object("{\"a\\u0000\":1}"));
  CHECK_FALSE(db::check_json_object(R"({"a":1e-400})"));
  CHECK_FALSE(db::check_json_object(R"({"a":1e400})"));
  CHECK_FALSE(db::check_json_object(R"([1])"));
  CHECK_FALSE(db::check_json_object(R"({"a":1)"));
  CHECK_FALSE(db::check_json_object("{\"a\":\"\xff\"}"));
  CHECK_FALSE(db::check_json_object(R"({"a":1,"a":2})"));
  CHECK_FALSE(db::check_json_object(std::string(100, '[') + std::string(100, ']')));
  CHECK_FALSE(db::check_json_object(R"({"long":1})", 5));
}

}  // namespace det::test
