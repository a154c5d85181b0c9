// The migrations produce exactly master/db/schema, and a failed start leaves no intermediate schema.
#include "master/db/pg/migrate.h"

#include <catch2/catch.hpp>

#include "common/base/files.h"
#include "master/db/store/allocation_parts.h"
#include "test_paths.h"
#include "tests/master/db/database.h"

namespace det::test {
namespace {

/// The catalog entries of the schema, one a line, sorted.
std::string catalog(const Database& database) {
  return database.value(R"(
SELECT string_agg(fact, E'\n' ORDER BY fact) FROM (
  SELECT format('column %s.%s %s default %s null %s identity %s storage %s', c.relname, a.attname,
                format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid), NOT a.attnotnull, a.attidentity,
                a.attstorage) AS fact
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
   WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'S', 'v') AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL SELECT format('column order %s %s', c.relname, string_agg(a.attname, ' ' ORDER BY a.attnum))
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
   WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped GROUP BY c.relname
  UNION ALL SELECT format('constraint %s.%s %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint
   WHERE connamespace = 'public'::regnamespace
  UNION ALL SELECT 'index ' || indexdef FROM pg_indexes WHERE schemaname = 'public'
  UNION ALL SELECT 'trigger ' || pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
  UNION ALL SELECT 'function ' || pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace) facts)");
}

/// A user, an experiment and a trial, for the first migrations.
constexpr char kOldTrial[] =
    "INSERT INTO users (id, name, password_hash) VALUES (1, 'u', '');"
    "INSERT INTO experiments (id, request_id, job_id, owner_id, project_id, state, config, original_config,"
    " model_definition, progress, submitted, searcher_events, name, description, labels, resource_pool,"
    " searcher_name, searcher_metric, smaller_is_better)"
    " VALUES (1, 'r', 'j', 1, 1, 'ACTIVE', '{}', '', '', 0, now(), 0, '', '', '{}', '', '', '', true);"
    "INSERT INTO trials (id, experiment_id, request_id, task_id, seed, hparams, state, run, restarts,"
    " latest_checkpoint, latest_steps, steps_completed, last_validation, checkpoint_validation, "
    "searcher_steps,"
    " early_exit_invalid_hp, progress, exit_reason, started)"
    " VALUES (1, 1, 'r', 't', 1, '{}', 'ACTIVE', 1, 0, '', 0, 0, -1, -1, -1, false, 0, '', now());";
/// Number of the first migrations that kOldTrial is for.
constexpr int kOld = 4;

/// Migrates `database` to the first kOld migrations and adds kOldTrial and `rows`.
void make_old(const Database& database, const char* rows) {
  db::Connection connection = database.connection();
  const auto& all = db::migrations();
  REQUIRE(db::migrate(connection, {all.begin(), all.begin() + kOld}));
  for (const char* sql : {kOldTrial, rows}) {
    const Status done = connection.script(sql);
    if (!done) FAIL(done.error().message);
  }
}

}  // namespace

TEST_CASE("the migrations produce exactly the schema for reading") {
  const Database migrated;
  const Database written(false);
  db::Connection connection = written.connection();
  for (const char* file : {"functions.sql", "main.sql", "summaries.sql", "webhooks.sql", "pilots.sql",
                           "tasks.sql", "quotas.sql", "media.sql", "groups.sql"}) {
    const auto sql = read_file(source_path("/master/db/schema/") + file);
    REQUIRE(sql);
    const Status status = connection.script(*sql);
    if (!status) FAIL(status.error().message);
  }
  CHECK(catalog(migrated) == catalog(written));
  CHECK(catalog(migrated).size() > 5000);
}

TEST_CASE("repeating the migrations changes nothing") {
  const Database database;
  const std::string before = catalog(database);
  db::Connection connection = database.connection();
  REQUIRE(db::migrate(connection));
  CHECK(catalog(database) == before);
  CHECK(database.number("SELECT count(*) FROM schema_migrations") ==
        static_cast<std::int64_t>(db::migrations().size()));
}

TEST_CASE("migrations are numbered from one without gaps") {
  std::int64_t version = 0;
  for (const db::Migration& step : db::migrations()) CHECK(step.version == ++version);
}

TEST_CASE("a newer schema is refused with a one-line error") {
  const Database database;
  db::Connection connection = database.connection();
  REQUIRE(connection.query("INSERT INTO schema_migrations (version, name) VALUES (999, 'later')"));
  const Status status = db::migrate(connection);
  REQUIRE_FALSE(status);
  CHECK(status.error().code == Code::kFailedPrecondition);
  CHECK_THAT(status.error().message,
             Catch::Contains("999") && Catch::Contains("newer") && !Catch::Contains("\n"));
}

TEST_CASE("a failed or killed migration leaves the previous step and resumes from there") {
  const Database database(false);
  const std::vector<db::Migration> good = {
      {1, "0001_a", "CREATE TABLE a (x int);"},
      {2, "0002_b", "CREATE TABLE b (x int); INSERT INTO b VALUES (1);"}};
  std::vector<db::Migration> bad = good;
  bad[1].sql = "CREATE TABLE b (x int); INSERT INTO nowhere VALUES (1);";
  db::Connection connection = database.connection();
  const Status status = db::migrate(connection, bad);
  REQUIRE_FALSE(status);
  CHECK_THAT(status.error().message, Catch::Contains("0002_b"));
  CHECK(database.number("SELECT max(version) FROM schema_migrations") == 1);
  CHECK(database.number("SELECT count(*) FROM pg_tables WHERE tablename = 'b'") == 0);

  bad[1].sql = "CREATE TABLE b (x int); SELECT pg_terminate_backend(pg_backend_pid());";
  CHECK_FALSE(db::migrate(connection, bad));
  CHECK(database.number("SELECT count(*) FROM pg_tables WHERE tablename = 'b'") == 0);

  db::Connection fresh = database.connection();
  REQUIRE(db::migrate(fresh, good));
  CHECK(database.number("SELECT count(*) FROM b") == 1);
}

TEST_CASE("allocations from before multi-agent gangs are migrated to one part") {
  const Database database(false);
  make_old(
      database,
      "INSERT INTO allocations (id, trial_id, run, state, pool, agent_id, agent_instance, slots, attached,"
      " preempt_requested, preempt_acknowledged, kill_requested, started)"
      " VALUES ('t.1', 1, 1, 'RUNNING', 'default', 'a', 'i', '{0,2}', true, false, false, false, now());"
      "INSERT INTO log_positions VALUES ('t.1', 7)");
  db::Connection connection = database.connection();
  REQUIRE(db::migrate(connection));
  auto rows = connection.query("SELECT parts::text FROM allocations");
  REQUIRE(rows);
  const auto parts = db::read_parts((*rows)[0].next<std::string>());
  REQUIRE(parts);
  CHECK(*parts == std::vector<core::AllocationPart>{{.agent = AgentId("a"),
                                                     .agent_instance = "i",
                                                     .slots = {0, 2},
                                                     .state = core::AllocationState::kRunning}});
  CHECK(database.number("SELECT next_line FROM log_positions WHERE agent_id = 'a'") == 7);
}

TEST_CASE("checkpoints with ids of earlier releases that are no UUIDs become deleted") {
  const Database database(false);
  make_old(database,
           "INSERT INTO checkpoints (uuid, trial_id, run, task_id, allocation_id, steps_completed, resources,"
           " metadata, size, reported) VALUES ('16384', 1, 1, 't', 'a', 1, '{}', '{}', 5, now()),"
           " ('00000000-0000-4000-8000-000000000001', 1, 1, 't', 'a', 2, '{}', '{}', 7, now())");
  db::Connection connection = database.connection();
  const Status migrated = db::migrate(connection);
  if (!migrated) FAIL(migrated.error().message);
  CHECK(database.value("SELECT string_agg(state, ' ' ORDER BY steps_completed) FROM checkpoints") ==
        "DELETED COMPLETED");
  CHECK(database.number("SELECT checkpoint_bytes FROM experiment_summaries") == 7);
}

}  // namespace det::test
