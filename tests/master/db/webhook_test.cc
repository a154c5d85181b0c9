// Webhooks in the database: which events are queued, in which order, and what a failure delays.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "common/base/queue.h"
#include "master/db/ingest/bulk.h"
#include "master/db/ingest/log_triggers.h"
#include "master/db/queries/experiments.h"
#include "master/db/queries/projects.h"
#include "master/db/queries/webhooks.h"
#include "master/db/queries/workspaces.h"
#include "tests/master/db/database.h"
#include "tests/master/db/samples.h"

namespace det::test {
namespace {

/// A database with experiment 1 (trial 1) in workspace 2.
struct Lab {
  Database database;
  db::Pool pool{database.connect()};

  Lab() {
    {
      RunningStore store(open_store(database));
      store.write({core::PutExperiment{plain_experiment(), true}, core::PutTrial{plain_trial()}});
    }
    REQUIRE(db::create_workspace(pool, "lab", UserId(1)) == 2);
    REQUIRE(db::create_project(pool, 2, "vision", "", UserId(1)) == 2);
    REQUIRE(db::move_experiments(pool, {1}, 2));
  }
  std::int64_t add(db::Webhook webhook) {
    webhook.name = "hook";
    webhook.url = "https://example.org/";
    const auto id = db::create_webhook(pool, webhook);
    REQUIRE(id);
    return *id;
  }
  void configure(const std::string& integrations) {
    REQUIRE(pool.query("UPDATE experiments SET config = json_build_object('integrations', $1::json)",
                       integrations));
  }
  void become(const std::string& state) { REQUIRE(pool.query("UPDATE experiments SET state = $1", state)); }
  std::int64_t queued() const { return database.number("SELECT count(*) FROM webhook_events"); }
};

const db::WebhookTrigger kCompleted{.kind = "EXPERIMENT_STATE_CHANGE", .condition = "COMPLETED"};
const db::WebhookTrigger kLog{.kind = "TASK_LOG", .condition = "exit code [1-9]"};

void ship(db::BulkWriter& bulk, std::int64_t first, const std::string& text, const std::string& task,
          int run = 1) {
  auto answers = std::make_shared<Queue<Result<std::int64_t>>>(1);
  db::LogLine line{WallTime{1}, 0, "INFO", "stdout", "task", text};
  REQUIRE(bulk.push(db::LogBatch{TaskId(task),
                                 AllocationId(task + "." + std::to_string(run)),
                                 AgentId("agent"),
                                 first,
                                 {line},
                                 [answers](Result<std::int64_t> next) { answers->push(std::move(next)); }}));
  const auto answer = answers->pop_batch(1, std::chrono::seconds(60));
  REQUIRE(answer.size() == 1);
  REQUIRE(answer[0]);
}

void report(db::BulkWriter& bulk, std::int64_t steps, const std::string& metrics) {
  auto answers = std::make_shared<Queue<Status>>(1);
  REQUIRE(bulk.push(
      db::MetricBatch{TrialId(1), 1, {{"training", steps, metrics, WallTime{1}}}, [answers](Status status) {
                        answers->push(std::move(status));
                      }}));
  const auto answer = answers->pop_batch(1, std::chrono::seconds(60));
  REQUIRE(answer.size() == 1);
  REQUIRE(answer[0]);
}

db::WebhookTrigger rule(const std::string& condition) {
  return {.kind = "METRIC_THRESHOLD_EXCEEDED", .condition = condition};
}

}  // namespace

TEST_CASE("a state change queues an event for each webhook that applies") {
  struct Case {
    const char* mode;
    std::optional<std::int64_t> workspace;
    const char* integrations;
    std::int64_t queued;
  };
  // The first webhook of the database has the id 1.
  const std::vector<Case> cases = {
      {"WORKSPACE", {}, "null", 1},
      {"WORKSPACE", 2, "null", 1},
      {"WORKSPACE", 1, "null", 0},
      {"WORKSPACE", 2, R"({"webhooks":{"exclude":true}})", 0},
      {"WORKSPACE", 2, R"({"webhooks":{"exclude":false}})", 1},
      {"SPECIFIC", 2, "null", 0},
      {"SPECIFIC", 2, R"({"webhooks":{"webhook_name":["other"]}})", 0},
      {"SPECIFIC", 2, R"({"webhooks":{"webhook_name":["other","hook"]}})", 1},
      {"SPECIFIC", 2, R"({"webhooks":{"webhook_id":[1]}})", 1},
      {"SPECIFIC", 2, R"({"webhooks":{"webhook_id":[2]}})", 0},
      {"SPECIFIC", 1, R"({"webhooks":{"webhook_id":[1],"webhook_name":["hook"]}})", 0},
      {"SPECIFIC", {}, R"({"webhooks":{"webhook_id":[1]}})", 1}};
  Lab lab;
  for (const Case& each : cases) {
    INFO(each.mode << " " << each.workspace.value_or(0) << " " << each.integrations);
    REQUIRE(lab.pool.query("DELETE FROM webhook_events"));
    REQUIRE(lab.pool.query("TRUNCATE webhooks RESTART IDENTITY CASCADE"));
    REQUIRE(lab.add({.mode = each.mode, .workspace = each.workspace, .triggers = {kCompleted}}) == 1);
    lab.configure(each.integrations);
    lab.become("ACTIVE");
    lab.become("COMPLETED");
    lab.become("COMPLETED");
    CHECK(lab.queued() == each.queued);
  }
}

TEST_CASE("a log trigger fires once per task, also when the lines arrive in several batches") {
  Lab lab;
  lab.add({.triggers = {kLog}});
  const std::string task = lab.database.value("SELECT task_id FROM trials");
  db::BulkWriter bulk({.connect = lab.database.connect()});
  ship(bulk, 1, "exit code 0", task);
  CHECK(lab.queued() == 0);
  ship(bulk, 2, "exit code 7", task);
  ship(bulk, 3, "exit code 8", task);
  ship(bulk, 1, "exit code 9", "other");
  CHECK(lab.queued() == 2);
  CHECK(lab.database.value("SELECT event->>'triggering_log' FROM webhook_events ORDER BY id LIMIT 1") ==
        "exit code 7");
  CHECK(lab.database.number("SELECT experiment_id FROM webhook_events ORDER BY id LIMIT 1") == 1);
}

TEST_CASE(
    "a metric beyond a threshold queues one event for each trigger, from training and from validation") {
  Lab lab;
  lab.add(
      {.triggers = {rule(R"({"metric":"loss","above":2.5})"), rule(R"({"metric":"accuracy","below":0.1})"),
                    rule(R"({"metric":"größe","above":1e300})")}});
  db::BulkWriter bulk({.connect = lab.database.connect()});
  report(bulk, 1, R"({"loss": 2.5, "accuracy": 0.1, "größe": "huge"})");
  report(bulk, 2, R"({"loss": null, "accuracy": {"below": 0}})");
  CHECK(lab.queued() == 0);
  report(bulk, 3, R"({"loss": 3.25})");
  report(bulk, 4, R"({"loss": 4})");
  CHECK(lab.queued() == 1);
  CHECK(Json::parse(lab.database.value("SELECT event FROM webhook_events")) ==
        Json{{"rule", {{"metric", "loss"}, {"above", 2.5}}},
             {"trial_id", 1},
             {"group", "training"},
             {"total_batches", 3},
             {"value", 3.25}});
  // JSON may write the name with escapes; NaN is above each number.
  report(bulk, 5, R"({"gr\u00f6\u00dfe": "NaN"})");
  CHECK(lab.queued() == 2);
  RunningStore store(open_store(lab.database));
  store.write({core::InsertValidation{TrialId(1), 1, 100, R"({"accuracy":0.05})", 0.05, WallTime{1}}});
  CHECK(lab.queued() == 3);
  store.write({core::InsertValidation{TrialId(1), 1, 200, R"({"accuracy":0.01})", 0.01, WallTime{1}}});
  CHECK(lab.queued() == 3);
}

TEST_CASE("a trigger on a metric that is created later is known to the writer, and its scope counts") {
  Lab lab;
  db::BulkWriter bulk({.connect = lab.database.connect()});
  report(bulk, 1, R"({"loss": 9})");
  lab.add({.workspace = 1, .triggers = {rule(R"({"metric":"loss","above":1})")}});
  bulk.triggers_changed();
  report(bulk, 2, R"({"loss": 9})");
  CHECK(lab.queued() == 0);
  lab.add({.workspace = 2, .triggers = {rule(R"({"metric":"loss","above":1})")}});
  bulk.triggers_changed();
  report(bulk, 3, R"({"loss": 9})");
  CHECK(lab.queued() == 1);
}

TEST_CASE("the first named log policy that a line matches is stored once per trial") {
  Lab lab;
  REQUIRE(lab.pool.query("UPDATE experiments SET config = json_build_object('log_policies', $1::json)",
                         R"([{"pattern": "exit"}, {"name": "Code", "pattern": "code [0-9]+"},
                         {"name": "Memory", "pattern": "memory"}])"));
  const std::string task = lab.database.value("SELECT task_id FROM trials");
  db::BulkWriter bulk({.connect = lab.database.connect()});
  ship(bulk, 1, "exit normal", task);
  CHECK(lab.database.number("SELECT count(*) FROM log_policy_matches") == 0);
  ship(bulk, 2, "exit code 7", task);
  ship(bulk, 3, "out of memory", task);
  CHECK(lab.database.value("SELECT policy FROM log_policy_matches") == "Code");
  // A writer that starts later keeps the stored match.
  db::BulkWriter next({.connect = lab.database.connect()});
  ship(next, 4, "out of memory", task);
  CHECK(lab.database.value("SELECT policy FROM log_policy_matches") == "Code");
}

TEST_CASE(
    "a line that matches cancel_retries cancels the restarts of its trial before the batch is answered") {
  Lab lab;
  REQUIRE(lab.pool.query("UPDATE experiments SET config = json_build_object('log_policies', $1::json)",
                         R"([{"pattern": "code 7", "action": "cancel_retries"},
                         {"name": "Code", "pattern": "code [0-9]+"}])"));
  const std::string task = lab.database.value("SELECT task_id FROM trials");
  std::vector<TrialId> canceled;
  db::BulkWriter bulk({.connect = lab.database.connect(),
                       .cancel_retries = [&](TrialId trial) { canceled.push_back(trial); }});
  ship(bulk, 1, "exit code 8", task);
  CHECK(canceled.empty());
  CHECK(lab.database.value("SELECT policy FROM log_policy_matches") == "Code");
  ship(bulk, 2, "exit code 7", task);
  CHECK(canceled == std::vector{TrialId(lab.database.number("SELECT id FROM trials"))});
}

TEST_CASE("a line that matches exclude_node excludes its agent, once for each agent") {
  Lab lab;
  REQUIRE(lab.pool.query("UPDATE experiments SET config = json_build_object('log_policies', $1::json)",
                         R"([{"pattern": "Xid 79", "action": "exclude_node"}])"));
  const std::string task = lab.database.value("SELECT task_id FROM trials");
  std::vector<std::pair<TrialId, AgentId>> excluded;
  db::BulkWriter bulk(
      {.connect = lab.database.connect(),
       .exclude_agent = [&](TrialId trial, const AgentId& agent) { excluded.emplace_back(trial, agent); }});
  ship(bulk, 1, "Xid 13", task);
  CHECK(excluded.empty());
  ship(bulk, 2, "Xid 79", task);
  ship(bulk, 3, "Xid 79", task);
  CHECK(excluded ==
        std::vector{std::pair(TrialId(lab.database.number("SELECT id FROM trials")), AgentId("agent"))});
}

TEST_CASE("each run of a trial has the log policies of that time, and none of them has acted yet") {
  Lab lab;
  const auto set_policies = [&](const std::string& pattern) {
    REQUIRE(lab.pool.query("UPDATE experiments SET config = json_build_object('log_policies', $1::json)",
                           R"([{"pattern": ")" + pattern + R"(", "action": "cancel_retries"},)" +
                               R"({"pattern": ")" + pattern + R"(", "action": "exclude_node"}])"));
  };
  const std::string task = lab.database.value("SELECT task_id FROM trials");
  int canceled = 0, excluded = 0;
  db::BulkWriter bulk({.connect = lab.database.connect(),
                       .cancel_retries = [&](TrialId) { ++canceled; },
                       .exclude_agent = [&](TrialId, const AgentId&) { ++excluded; }});
  set_policies("Xid 79");
  ship(bulk, 1, "Xid 79", task);
  ship(bulk, 2, "Xid 79", task);
  CHECK(std::pair(canceled, excluded) == std::pair(1, 1));
  ship(bulk, 1, "Xid 79", task, 2);
  CHECK(std::pair(canceled, excluded) == std::pair(2, 2));
  set_policies("Xid 48");
  ship(bulk, 1, "Xid 48", task, 3);
  ship(bulk, 2, "Xid 79", task, 3);
  CHECK(std::pair(canceled, excluded) == std::pair(3, 3));
}

TEST_CASE("the matches of a deleted experiment are deleted") {
  Lab lab;
  lab.add({.triggers = {kLog}});
  db::BulkWriter bulk({.connect = lab.database.connect()});
  ship(bulk, 1, "exit code 7", lab.database.value("SELECT task_id FROM trials"));
  ship(bulk, 1, "exit code 7", "other");
  CHECK(lab.database.number("SELECT count(*) FROM webhook_matches") == 2);
  lab.become("COMPLETED");
  REQUIRE(db::delete_experiment(lab.pool, ExperimentId(1)));
  CHECK(lab.database.value("SELECT string_agg(task_id, ',') FROM webhook_matches") == "other");
}

TEST_CASE("log triggers that are added or removed while lines arrive take effect with the next line") {
  Lab lab;
  db::BulkWriter bulk({.connect = lab.database.connect()});
  ship(bulk, 1, "exit code 7", "a");
  const std::int64_t id = lab.add({.triggers = {kLog}});
  bulk.triggers_changed();
  ship(bulk, 1, "exit code 7", "b");
  CHECK(lab.queued() == 1);
  REQUIRE(db::delete_webhook(lab.pool, id));
  ship(bulk, 1, "exit code 7", "c");  // the writer still has the trigger
  CHECK(lab.queued() == 0);
}

TEST_CASE("the log triggers of a workspace run on lines of its own tasks only") {
  Lab lab;
  lab.add({.workspace = 1, .triggers = {kLog}});
  lab.add({.workspace = 2, .triggers = {kLog}});
  lab.add({.triggers = {kLog}});
  db::LogTriggers triggers;
  db::Connection connection = lab.database.connection();
  const auto matching = [&](const std::string& task) {
    const db::LogLine line{WallTime{1}, 0, "INFO", "stdout", "task", "exit code 7"};
    const db::LogBatch batch{TaskId(task), AllocationId(task + ".1"), AgentId("agent"), 1, {line}, nullptr};
    REQUIRE(triggers.load(connection, {batch}));
    std::vector<db::LogMatch> matches;
    triggers.match(batch, line, matches);
    return matches.size();
  };
  CHECK(matching(lab.database.value("SELECT task_id FROM trials")) == 2);
  CHECK(matching("unknown") == 1);
  REQUIRE(db::move_experiments(lab.pool, {1}, 1));
  CHECK(matching(lab.database.value("SELECT task_id FROM trials")) == 2);
}

TEST_CASE("a workspace has at most 64 webhooks") {
  Lab lab;
  db::Webhook webhook{
      .name = "hook", .url = "https://example.org/", .workspace = 2, .triggers = {kCompleted}};
  for (int i = 0; i < 64; ++i) REQUIRE(db::create_webhook(lab.pool, webhook));
  const auto refused = db::create_webhook(lab.pool, webhook);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kResourceExhausted);
  CHECK(lab.database.number("SELECT count(*) FROM webhook_triggers") == 64);
  webhook.workspace = 1;
  CHECK(db::create_webhook(lab.pool, webhook));
  webhook.workspace.reset();
  CHECK(db::create_webhook(lab.pool, webhook));
}

TEST_CASE("due events of different workspaces take turns, and busy webhooks are left out") {
  Lab lab;
  const std::int64_t first = lab.add({.workspace = 2, .triggers = {kCompleted}});
  const std::int64_t second = lab.add({.workspace = 2, .triggers = {kCompleted}});
  const std::int64_t global = lab.add({.triggers = {kCompleted}});
  for (const char* const state : {"ACTIVE", "COMPLETED"}) lab.become(state);
  const auto due = [&](const std::vector<std::int64_t>& busy) {
    const auto events = db::due_webhook_events(lab.pool, 10, busy);
    REQUIRE(events);
    std::vector<std::int64_t> webhooks;
    for (const db::WebhookEvent& event : *events) webhooks.push_back(event.webhook);
    return webhooks;
  };
  CHECK(due({}) == std::vector{first, global, second});
  CHECK(due({first}) == std::vector{second, global});
  CHECK(due({first, second, global}).empty());
}

TEST_CASE("an event that is queued during a delay of its webhook waits behind the older one") {
  Lab lab;
  const std::int64_t id = lab.add({.triggers = {kCompleted}});
  for (const char* const state : {"ACTIVE", "COMPLETED"}) lab.become(state);
  CHECK(db::delay_webhook(lab.pool, id, "HTTP 500") == 0);
  REQUIRE(lab.pool.query("UPDATE webhook_events SET due = now() + interval '1 hour'"));
  for (const char* const state : {"ACTIVE", "COMPLETED"}) lab.become(state);
  REQUIRE(lab.queued() == 2);
  CHECK(db::due_webhook_events(lab.pool, 10).value().empty());
  REQUIRE(lab.pool.query("UPDATE webhook_events SET due = now()"));
  const auto due = db::due_webhook_events(lab.pool, 10);
  REQUIRE(due);
  REQUIRE(due->size() == 1);
  CHECK((*due)[0].id == lab.database.number("SELECT min(id) FROM webhook_events"));
}

TEST_CASE("a failure delays the events of its webhook only, and order is kept") {
  Lab lab;
  const std::int64_t bad = lab.add({.triggers = {kCompleted}}), good = lab.add({.triggers = {kCompleted}});
  for (const char* const state : {"ACTIVE", "COMPLETED", "ACTIVE", "COMPLETED"}) lab.become(state);
  REQUIRE(lab.queued() == 4);
  auto due = db::due_webhook_events(lab.pool, 10);
  REQUIRE(due);
  REQUIRE(due->size() == 2);
  CHECK((*due)[0].webhook == bad);
  CHECK((*due)[1].webhook == good);
  CHECK((*due)[1].workspace == "lab");
  CHECK(db::delay_webhook(lab.pool, bad, "HTTP 500") == 0);
  const std::int64_t first = (*due)[1].id;
  REQUIRE(db::end_webhook_event(lab.pool, (*due)[1], "delivered"));
  due = db::due_webhook_events(lab.pool, 10);
  REQUIRE(due);
  REQUIRE(due->size() == 1);
  CHECK((*due)[0].webhook == good);
  CHECK((*due)[0].id > first);
  CHECK(db::get_webhook(lab.pool, bad)->outcome == "HTTP 500");
  CHECK(db::get_webhook(lab.pool, bad)->failures == 1);
  // A new URL is tried at once.
  REQUIRE(db::set_webhook_url(lab.pool, bad, "https://example.com/"));
  CHECK(db::due_webhook_events(lab.pool, 10)->size() == 2);
}

TEST_CASE("events older than a day are dropped after a failure") {
  Lab lab;
  const std::int64_t id = lab.add({.triggers = {kCompleted}});
  lab.become("ACTIVE");
  lab.become("COMPLETED");
  REQUIRE(lab.pool.query("UPDATE webhook_events SET created = now() - interval '25 hours'"));
  CHECK(db::delay_webhook(lab.pool, id, "HTTP 500") == 1);
  CHECK(lab.queued() == 0);
}

TEST_CASE("an alert reaches the custom triggers that the experiment names") {
  Lab lab;
  lab.add({.mode = "SPECIFIC", .triggers = {{.kind = "CUSTOM"}}});
  CHECK(db::queue_webhook_alert(lab.pool, {.experiment = 1, .trial = 1, .level = "INFO"}) == 0);
  lab.configure(R"({"webhooks":{"webhook_name":["hook"]}})");
  CHECK(db::queue_webhook_alert(lab.pool, {.experiment = 1, .trial = 1, .level = "INFO", .title = "t"}) == 1);
  CHECK(db::queue_webhook_alert(lab.pool, {.experiment = 99}).error().code == Code::kNotFound);
  CHECK(lab.database.value("SELECT event->>'title' FROM webhook_events") == "t");
}

}  // namespace det::test
