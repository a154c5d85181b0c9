// Experiment search: the SQL that it generates and the rows that it finds.
#include "master/db/search/search.h"

#include <catch2/catch.hpp>

#include "master/db/queries/allocations.h"
#include "master/db/queries/projects.h"
#include "tests/master/db/database.h"
#include "tests/master/db/samples.h"

namespace det::test {
namespace {

std::string field(const std::string& column, const std::string& op, const std::string& value) {
  return R"({"kind":"field","columnName":")" + column + R"(","operator":")" + op + R"(","value":)" + value +
         "}";
}
std::string group(const std::string& conjunction, const std::string& children) {
  return R"({"filterGroup":{"kind":"group","conjunction":")" + conjunction + R"(","children":[)" + children +
         "]}}";
}
std::string refusal(const db::ExperimentSearch& search) {
  const auto sql = db::search_sql(search);
  REQUIRE_FALSE(sql);
  CHECK(sql.error().code == Code::kInvalidArgument);
  return sql.error().message;
}

}  // namespace

TEST_CASE("unknown columns, operators and directions of a search are reported together") {
  const std::string message =
      refusal({.filter = group("and", field("bogus", "=", "1") + "," + field("name", "like", "1")),
               .sort = "other=asc,name=sideways"});
  for (const char* part : {"bogus", "like", "other", "sideways"}) CHECK_THAT(message, Catch::Contains(part));
}

TEST_CASE("malformed filters are refused") {
  for (const char* filter : {"[]", "{", "7", R"({"filterGroup":{"kind":7}})", R"({"filterGroup":[]})"})
    CHECK_FALSE(db::search_sql({.filter = filter}));
  std::string deep = field("id", "=", "1");
  for (int i = 0; i < 9; ++i) deep = R"({"kind":"group","children":[)" + deep + "]}";
  CHECK_FALSE(db::search_sql({.filter = R"({"filterGroup":)" + deep + "}"}));
}

TEST_CASE("search text is never part of the SQL text") {
  const auto sql = db::search_sql({.text = "'; DROP TABLE users; --",
                                   .filter = group("or", field("hp.x'y", "contains", R"("a' OR true")")),
                                   .sort = "hp.o'clock=desc"});
  REQUIRE(sql);
  for (const char* part : {"DROP", "x'y", "a' OR", "o'clock"}) {
    CHECK_THAT(sql->page, !Catch::Contains(part));
    CHECK_THAT(sql->count, !Catch::Contains(part));
  }
  CHECK(sql->params.size() == 4);
}

TEST_CASE("a search of runs knows their columns and takes hyperparameters with and without the prefix") {
  const std::string location = R"("LOCATION_TYPE_RUN_HYPERPARAMETERS",)";
  const std::string plain =
      R"({"kind":"field","location":)" + location + R"("columnName":"lr","operator":">=","value":2})";
  const auto bare = db::run_search_sql({.filter = group("and", plain)});
  const auto prefixed = db::run_search_sql({.filter = group("and", field("hp.lr", ">=", "2"))});
  REQUIRE(bare);
  REQUIRE(prefixed);
  CHECK(bare->page == prefixed->page);
  CHECK_THAT(bare->page, Catch::Contains("t.hparams") && Catch::Contains("ORDER BY id"));
  const auto unknown = db::run_search_sql({.filter = group("and", field("numTrials", "=", "1"))});
  REQUIRE_FALSE(unknown);
  CHECK_THAT(unknown.error().message, Catch::Contains("numTrials"));
  // Archived runs match only when they are named or asked for.
  CHECK_THAT(db::run_search_sql({})->page, Catch::Contains("NOT e.archived"));
  CHECK_THAT(db::run_search_sql({.ids = {1}})->page, !Catch::Contains("NOT e.archived"));
}

TEST_CASE("a time that is no time is refused in words") {
  const auto refused = db::search_sql({.filter = group("and", field("startTime", "<", R"("not a time")"))});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kInvalidArgument);
  CHECK_THAT(refused.error().message, Catch::Contains("\"not a time\" is no time"));
  for (const char* good : {R"("2026-01-31")", R"("2026-01-31T12:00:00.5+01:00")"})
    CHECK(db::search_sql({.filter = group("and", field("startTime", "<", good))}));
}

TEST_CASE("checks for missing times compare without a text cast") {
  const auto sql = db::search_sql({.filter = group("and", field("endTime", "notEmpty", "0"))});
  REQUIRE(sql);
  CHECK_THAT(sql->count, Catch::Contains("NOT (e.ended IS NULL)"));
}

TEST_CASE("counting joins no table that only the order needs") {
  const auto sql = db::search_sql({.sort = "hp.lr=asc"});
  REQUIRE(sql);
  CHECK_THAT(sql->page, Catch::Contains("best.hparams"));
  CHECK_THAT(sql->count, !Catch::Contains("best") && !Catch::Contains("users"));
}

TEST_CASE("a search by hyperparameters and metrics reads the summaries only") {
  const auto sql = db::search_sql({.filter = group("and", field("hp.lr", "<", "1")),
                                   .sort = "validation.loss=asc,numTrials=desc",
                                   .project = 3,
                                   .visible = std::vector<std::int64_t>{1}});
  REQUIRE(sql);
  for (const std::string& text : {sql->page, sql->count}) {
    CHECK_THAT(text, Catch::Contains("best.project_id = ") && Catch::Contains("NOT best.archived"));
    CHECK_THAT(text, !Catch::Contains("experiments e"));
  }
}

TEST_CASE("a state is found by its displayed name") {
  const auto sql = db::search_sql({.filter = group("and", field("state", "=", R"("STATE_QUEUED")"))});
  REQUIRE(sql);
  const auto view = sql->params.view();
  REQUIRE(view.values.size() == 1);
  CHECK(std::string(view.values[0], static_cast<std::size_t>(view.lengths[0])) == "ACTIVE");
}

TEST_CASE("experiments are found by text, label, hyperparameter and metric, in any order") {
  Database database;
  RunningStore store(open_store(database));
  db::Pool pool(database.connect());
  core::Trial small = plain_trial(1), large = plain_trial(2);
  small.hparams = R"({"opt":{"lr":0.01},"act":"relu"})";
  small.best_metric = 0.5;
  large.experiment = ExperimentId(2);
  large.hparams = R"({"opt":{"lr":0.5},"act":"gelu"})";
  core::Allocation first = {.id = AllocationId("a.1"), .task = TrialId(1), .run = 1};
  first.state = core::AllocationState::kTerminated;
  first.ended = WallTime{9};
  store.write({core::PutExperiment{plain_experiment(1), true}, core::PutExperiment{plain_experiment(2), true},
               core::PutTrial{small}, core::PutTrial{large}, core::PutAllocation{first},
               core::InsertValidation{TrialId(1), 1, 100, R"({"accuracy":0.5})", 0.5, WallTime{1}}});
  const auto found = [&](const db::ExperimentSearch& search) {
    const auto page = db::search_experiments(pool, search);
    if (!page) FAIL(page.error().message);
    std::vector<std::int64_t> ids;
    for (const auto& one : page->rows) ids.push_back(one.row.id.value);
    CHECK(page->total == static_cast<std::int64_t>(ids.size()));
    return ids;
  };
  using Ids = std::vector<std::int64_t>;
  CHECK(found({}) == Ids{2, 1});
  CHECK(found({.text = "MNIST", .sort = "id=asc"}) == Ids{1, 2});
  CHECK(found({.text = "two WORDS"}) == Ids{2, 1});
  CHECK(found({.text = "2"}) == Ids{2});
  // Characters of patterns stand for themselves.
  for (const char* text : {"%", "_", "\\", "mn_st"}) CHECK(found({.text = text}).empty());
  REQUIRE(pool.query("UPDATE experiments SET name = 'Half 50%', labels = ARRAY['a_b'] WHERE id = 1"));
  CHECK(found({.text = "50%"}) == Ids{1});
  CHECK(found({.text = "A_B"}) == Ids{1});
  CHECK(found({.filter = group("and", field("name", "contains", R"("f 50%")"))}) == Ids{1});
  CHECK(found({.filter = group("and", field("name", "contains", R"("f_50")"))}).empty());
  REQUIRE(
      pool.query("UPDATE experiments o SET name = e.name, labels = e.labels FROM experiments e"
                 " WHERE o.id = 1 AND e.id = 2"));
  CHECK(found({.filter = group("and", field("tags", "=", R"("blue")"))}) == Ids{2, 1});
  CHECK(found({.filter = group("and", field("hp.opt.lr", "<", "0.1"))}) == Ids{1});
  // Values of other types are not compared with numbers.
  for (const char* op : {"=", "!=", "<", "<=", ">", ">="})
    CHECK(found({.filter = group("and", field("hp.act", op, "0.1"))}).empty());
  CHECK(found({.filter = group("and", field("hp.opt.lr", "!=", "0.5"))}) == Ids{1});
  CHECK(found({.filter = group("and", field("hp.opt.lr", "=", "0.50"))}) == Ids{2});
  CHECK(found({.filter = group("or", field("hp.act", "=", R"("gelu")") + "," + field("id", "=", "1"))}) ==
        Ids{2, 1});
  CHECK(found({.filter = group("and", field("validation.accuracy", ">=", "0.5"))}) == Ids{1});
  store.write(
      {core::InsertValidation{TrialId(1), 1, 200, R"({"accuracy":0.25,"f1.max":0.3})", 0.9, WallTime{2}},
       core::InsertValidation{TrialId(1), 1, 300, R"({"accuracy":1.5})", 0.8, WallTime{3}}});
  const auto one = [&](const char* column, const char* value) {
    return found({.filter = group("and", field(column, "=", value)), .sort = column + std::string("=asc")}) ==
           Ids{1};
  };
  CHECK(one("validation.accuracy", "0.5"));  // of the best validation
  CHECK(one("validation.accuracy.min", "0.25"));
  CHECK(one("validation.accuracy.max", "1.5"));
  CHECK(one("validation.accuracy.mean", "0.75"));
  CHECK(one("validation.accuracy.last", "1.5"));
  CHECK_FALSE(one("validation.accuracy.median", "0.5"));
  CHECK_FALSE(one("training.accuracy.max", "1.5"));
  CHECK(found({.filter = group("and", field("searcherMetricsVal", "isEmpty", "0"))}) == Ids{2});
  CHECK(found({.filter = group("and", field("searcherMetricsVal", "notEmpty", "0"))}) == Ids{1});
  CHECK(found({.filter = group("and", field("endTime", "isEmpty", "0"))}) == Ids{2, 1});
  CHECK(found({.filter = group("and", field("endTime", "notEmpty", "0"))}).empty());
  CHECK(found({.filter = group("and", field("name", "notEmpty", "0"))}) == Ids{2, 1});
  CHECK(found({.filter = group("and", field("state", "=", R"(["STATE_RUNNING"])"))}) == Ids{2, 1});
  const auto fields = db::project_fields(pool, db::kDefaultProject);
  REQUIRE(fields);
  std::string names;
  for (const db::ProjectField& each : *fields) names += each.name + (each.numeric ? " number, " : " text, ");
  CHECK(names == "hp.act text, hp.opt.lr number, validation.accuracy number, ");
  REQUIRE(pool.query(R"(INSERT INTO run_metadata VALUES (2, '{"data":{"rows":70}}'))"));
  CHECK(found({.filter = group("and", field("metadata.data.rows", ">", "60"))}) == Ids{2});
  CHECK(found({.sort = "metadata.data.rows=asc"}) == Ids{2, 1});
  CHECK(found({.sort = "hp.opt.lr=desc"}) == Ids{2, 1});
  CHECK(found({.sort = "hp.opt.lr=asc"}) == Ids{1, 2});
  const auto page = db::search_experiments(pool, {.window = {.offset = 1, .limit = 1}});
  REQUIRE(page);
  CHECK((page->total == 2 && page->rows.size() == 1 && page->start == 1));
  CHECK(page->rows[0].best_validation == R"({"accuracy": 0.5})");
  CHECK(found({.sort = "hp.act=asc"}) == Ids{2, 1});
  // With a condition, the page and the number of matches come from one statement.
  for (const std::string text : {"", "MNIST"}) {
    const auto part = [&](db::Window window) {
      const auto found = db::search_experiments(pool, {.text = text, .sort = "id=asc", .window = window});
      if (!found) FAIL(found.error().message);
      CHECK(found->total == 2);
      return std::pair(found->start, found->rows.size());
    };
    CHECK(part({.offset = 1}) == std::pair(std::int64_t{1}, std::size_t{1}));
    CHECK(part({.offset = -1, .limit = 5}) == std::pair(std::int64_t{1}, std::size_t{1}));
    CHECK(part({.offset = 7, .limit = 5}) == std::pair(std::int64_t{2}, std::size_t{0}));
    CHECK(part({.limit = 0}) == std::pair(std::int64_t{0}, std::size_t{0}));
    CHECK(part({.limit = -2}) == std::pair(std::int64_t{0}, std::size_t{0}));
  }
  const auto noted = db::search_experiments(pool, {.sort = "id=desc", .window = {.offset = 0, .limit = 1}});
  REQUIRE(noted);
  CHECK(noted->rows.at(0).best_metadata == R"({"data":{"rows":70}})");

  const auto attempts = db::list_allocations(pool, TrialId(1));
  REQUIRE(attempts);
  REQUIRE(attempts->size() == 1);
  CHECK((attempts->front().id == AllocationId("a.1") && attempts->front().state == "TERMINATED"));
}

TEST_CASE("an experiment without trials is found, and comes last in orders of its trials") {
  Database database;
  RunningStore store(open_store(database));
  db::Pool pool(database.connect());
  core::Trial trial = plain_trial(1);
  trial.hparams = R"({"lr":1})";
  store.write({core::PutExperiment{plain_experiment(1), true}, core::PutExperiment{plain_experiment(2), true},
               core::PutTrial{trial}});
  using Ids = std::vector<std::int64_t>;
  const auto found = [&](const db::ExperimentSearch& search) {
    const auto page = db::search_experiments(pool, search);
    if (!page) FAIL(page.error().message);
    Ids ids;
    for (const auto& one : page->rows) ids.push_back(one.row.id.value);
    return ids;
  };
  CHECK(found({.sort = "hp.lr=asc"}) == Ids{1, 2});
  CHECK(found({.sort = "hp.lr=desc"}) == Ids{1, 2});
  CHECK(found({.filter = group("and", field("numTrials", "=", "0"))}) == Ids{2});
  trial = plain_trial(2);
  trial.experiment = ExperimentId(2);
  trial.hparams = R"({"lr":0.5})";
  store.write({core::PutTrial{trial}});
  CHECK(found({.sort = "hp.lr=asc"}) == Ids{2, 1});
  CHECK(found({.filter = group("and", field("hp.lr", "<", "1")), .sort = "hp.lr=asc,name=desc"}) == Ids{2});
}

TEST_CASE("the search index follows the best trial through validations, rollbacks and checkpoints") {
  Database database;
  RunningStore store(open_store(database));
  db::Pool pool(database.connect());
  core::Experiment experiment = plain_experiment(1);
  core::Trial first = plain_trial(1), second = plain_trial(2);
  second.request_id = RequestId("second");
  first.hparams = R"({"lr":1,"text":"a\\u0000b"})";
  second.hparams = R"({"lr":2})";
  const auto one = [&] {
    const auto page = db::search_experiments(pool, {});
    if (!page) FAIL(page.error().message);
    return page->rows.at(0);
  };
  const auto sorted_by = [&](const char* column) {
    const auto page = db::search_experiments(pool, {.sort = column});
    if (!page) FAIL(page.error().message);
    return page->total;
  };
  const auto validate = [&](core::Trial& trial, std::int64_t steps, double metric) {
    trial.last_validation = steps;
    if (!trial.best_metric || metric > *trial.best_metric) trial.best_metric = metric;
    const std::string metrics = R"({"loss": )" + std::to_string(metric) + "}";
    store.write({core::InsertValidation{trial.id, trial.run, steps, metrics, metric, WallTime{1}},
                 core::PutTrial{trial}});
  };
  store.write({core::PutExperiment{experiment, true}, core::PutTrial{first}, core::PutTrial{second}});
  CHECK((one().row.num_trials == 2 && !one().row.best_trial && one().best_hparams == first.hparams));

  REQUIRE_FALSE(experiment.config->searcher.smaller_is_better);
  REQUIRE(pool.query(
      "INSERT INTO metrics (trial_id, run, grp, steps_completed, reported, metrics) VALUES"
      " (2, $1, 'training', 10, now(), '{\"loss\": 7}'), (2, $1, 'training', 30, now(), '{\"loss\": 8}')",
      second.run));
  validate(first, 10, 0.5);
  CHECK(one().row.best_trial == TrialId(1));
  validate(second, 20, 0.75);
  CHECK((one().row.best_trial == TrialId(2) && one().row.best_metric == 0.75));
  CHECK((one().best_hparams == second.hparams && one().best_training == R"({"loss": 7})"));
  validate(first, 20, 0.25);  // Worse than the current best.
  CHECK(one().best_validation == R"({"loss": 0.750000})");
  validate(second, 30, 0.875);
  CHECK((one().best_validation == R"({"loss": 0.875000})" && one().best_training == R"({"loss": 8})"));

  // The best validation is rolled back and then reported again with the same value.
  second.run += 1;
  second.last_validation = 20;
  store.write({core::ArchiveMetrics{second.id, 20}, core::PutTrial{second}});
  CHECK(one().best_validation == R"({"loss": 0.750000})");
  validate(second, 30, 0.875);
  CHECK(one().best_validation == R"({"loss": 0.875000})");

  core::InsertCheckpoint saved;
  saved.trial = TrialId(2);
  for (const char* uuid : {"a", "b"}) {
    saved.uuid = checkpoint_id(uuid);
    saved.resources = R"({"f":"30"})";
    saved.metadata = "{}";
    store.write({saved});
    store.write({saved});  // A repeated report.
  }
  CHECK((one().row.checkpoint_count == 2 && one().row.checkpoint_size == 60));
  store.write({core::MarkDamaged{checkpoint_id("a")}});
  CHECK((one().row.checkpoint_count == 1 && one().row.checkpoint_size == 30));
  REQUIRE(pool.query("UPDATE checkpoints SET size = 20 WHERE uuid = $1", checkpoint_uuid("b")));
  CHECK((one().row.checkpoint_count == 1 && one().row.checkpoint_size == 20));
  for (const char* column :
       {"hp.lr=asc", "hp.text=desc", "training.loss=asc", "validation.loss=asc", "numTrials=asc",
        "checkpointCount=asc", "checkpointSize=desc", "user=asc", "searcherMetricsVal=desc"})
    CHECK(sorted_by(column) == 1);
  // Archived and moved.
  store.write({core::PutExperiment{[] {
    core::Experiment ended = plain_experiment(1);
    ended.state = core::State::kCompleted;
    return ended;
  }()}});
  const std::string by_metric = "validation.loss=asc";
  REQUIRE(db::set_archived(pool, ExperimentId(1), true));
  CHECK(db::search_experiments(pool, {.sort = by_metric})->total == 0);
  CHECK(db::search_experiments(pool, {.filter = R"({"showArchived":true})", .sort = by_metric})->total == 1);
  REQUIRE(db::set_archived(pool, ExperimentId(1), false));
  REQUIRE(pool.query("INSERT INTO projects (id, workspace_id, name, owner_id) VALUES (9, 1, 'other', 1)"));
  REQUIRE(db::move_experiments(pool, {1}, 9));
  CHECK(db::search_experiments(pool, {.sort = by_metric, .project = 1})->total == 0);
  CHECK(db::search_experiments(pool, {.sort = by_metric, .project = 9})->total == 1);
  CHECK(database.value("SELECT string_agg(s::text, '') FROM experiment_summaries s") ==
        database.value("SELECT string_agg(s::text, '') FROM experiment_summaries s, summarize_best(1)"));
}

}  // namespace det::test
