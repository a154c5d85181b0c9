// Queries of the API, on rows that the store and the bulk writer wrote.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "common/base/json.h"
#include "common/base/queue.h"
#include "master/db/queries/checkpoints.h"
#include "master/db/queries/code_archives.h"
#include "master/db/queries/deletions.h"
#include "master/db/queries/experiments.h"
#include "master/db/queries/logs.h"
#include "master/db/queries/trials.h"
#include "master/db/queries/workspaces.h"
#include "tests/master/db/database.h"
#include "tests/master/db/samples.h"

namespace det::test {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

core::InsertValidation validation(std::int64_t trial, std::int64_t steps, double metric, RunNumber run = 1) {
  return {TrialId(trial), run, steps, dump_json({{"accuracy", json_double(metric)}}), metric,
          WallTime{steps}};
}
core::InsertCheckpoint checkpoint(const std::string& uuid, std::int64_t trial, std::int64_t steps) {
  return {checkpoint_id(uuid),
          TrialId(trial),
          1,
          TaskId("task"),
          AllocationId("task.1"),
          steps,
          R"({"a":10,"b":5})",
          R"({"steps_completed":1})",
          WallTime{steps}};
}
core::Allocation allocation(std::int64_t trial, RunNumber run, core::AllocationState state) {
  core::Allocation row;
  row.id = AllocationId("trial" + std::to_string(trial) + "." + std::to_string(run));
  row.task = TrialId(trial);
  row.run = run;
  row.state = state;
  row.started = WallTime{1'000'000};
  if (state == core::AllocationState::kTerminated) row.ended = WallTime{4'500'000};
  return row;
}

/// Experiment 1 (accuracy, larger is better) with trials 1 and 2. Trial 2 waits.
struct World {
  Database database;
  RunningStore store{open_store(database)};
  db::Pool pool{database.connect()};

  World() {
    core::Trial best = plain_trial(1);
    best.best_metric = 0.9;
    store.write(
        {core::PutExperiment{plain_experiment(), true, "name: mine  # as I wrote it"},
         core::PutExperiment{plain_experiment(), false}, core::PutTrial{best}, core::PutTrial{plain_trial(2)},
         core::PutAllocation{allocation(1, 1, core::AllocationState::kTerminated)},
         core::PutAllocation{allocation(1, 2, core::AllocationState::kRunning)}, validation(1, 100, 0.5),
         validation(1, 200, 0.9), validation(1, 300, 0.7), validation(1, 400, kNaN),
         checkpoint("c200", 1, 200), checkpoint("c300", 1, 300), checkpoint("c400", 1, 400)});
    train(100, R"({"loss":2})");
  }

  void train(std::int64_t steps, const std::string& metrics, const std::string& group = "training") {
    db::BulkWriter bulk({.connect = database.connect()});
    Queue<Status> answers(1);
    bulk.push(db::MetricBatch{TrialId(1), 1, {{group, steps, metrics, WallTime{steps}}}, [&](Status status) {
                                answers.push(std::move(status));
                              }});
    REQUIRE(answers.pop()->has_value());
  }
};

std::vector<std::int64_t> ids(const Result<db::Page<db::ExperimentRow>>& page) {
  if (!page) FAIL(page.error().message);
  std::vector<std::int64_t> ids;
  for (const auto& row : page->rows) ids.push_back(row.id.value);
  return ids;
}
using Ids = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("an experiment is shown with its details") {
  World world;
  const auto digest = db::put_code_archive(world.pool, "archive");
  core::Experiment row = plain_experiment(2);
  row.code_archive = *digest;
  row.state = core::State::kCompleted;
  row.ended = WallTime{row.submitted.micros + 2'500'000};
  row.parent = ExperimentId(1);
  world.store.write({core::PutExperiment{row, true}});

  const auto one = db::get_experiment(world.pool, ExperimentId(1));
  if (!one) FAIL(one.error().message);
  CHECK(one->name == "mnist é");
  CHECK(one->original_config == "name: mine  # as I wrote it");
  CHECK(one->labels == std::vector<std::string>{"blue", "two words"});
  CHECK(one->username == "ada");
  CHECK(one->project_name == "Uncategorized");
  CHECK(one->workspace_name == "Uncategorized");
  CHECK(one->workspace == 1);
  CHECK(one->resource_pool == "big");
  CHECK(one->num_trials == 2);
  CHECK(one->trials == std::vector<TrialId>{TrialId(1), TrialId(2)});
  CHECK(one->best_trial == TrialId(1));
  CHECK(one->best_metric == 0.9);
  CHECK_FALSE(one->smaller_is_better);
  CHECK(one->searcher_name == "single");
  CHECK(one->searcher_metric == "accuracy");
  CHECK(one->checkpoint_count == 3);
  CHECK(one->checkpoint_size == 45);
  CHECK(one->live == core::AllocationState::kRunning);
  CHECK(one->config == dump_json(sample_config()->resolved));
  CHECK(one->model_definition.empty());

  const auto two = db::get_experiment(world.pool, ExperimentId(2));
  REQUIRE(two);
  CHECK(two->duration == 2.5);
  CHECK(two->model_definition_size == 7);
  CHECK(two->parent == ExperimentId(1));
  CHECK_FALSE(two->best_trial);
  CHECK_FALSE(two->live);
  CHECK(db::get_code_archive(world.pool, ExperimentId(2)) == std::string("archive"));
  CHECK(db::get_experiment(world.pool, ExperimentId(3)).error().code == Code::kNotFound);
  CHECK(*db::find_experiment(world.pool, RequestId("request-2")) == ExperimentId(2));
  CHECK_FALSE(*db::find_experiment(world.pool, RequestId("request-9")));
}

TEST_CASE("experiments are filtered, sorted and paged") {
  World world;
  for (std::int64_t i = 2; i <= 5; ++i) {
    core::Experiment row = plain_experiment(i);
    row.state = i % 2 == 0 ? core::State::kCompleted : core::State::kPaused;
    row.progress = 1.0 / static_cast<double>(i);
    world.store.write({core::PutExperiment{row, true}});
  }
  REQUIRE(world.database.connection().query("UPDATE experiments SET name = 'net ' || id, archived = id = 5"));
  const auto list = [&](db::ExperimentFilter filter) {
    return ids(db::list_experiments(world.pool, filter));
  };
  CHECK(list({}) == Ids{1, 2, 3, 4, 5});
  CHECK(list({.window = {.descending = true}}) == Ids{5, 4, 3, 2, 1});
  CHECK(list({.window = {.offset = 1, .limit = 2}}) == Ids{2, 3});
  CHECK(list({.window = {.offset = -2}}) == Ids{4, 5});
  CHECK(list({.window = {.offset = 99}}).empty());
  CHECK(list({.window = {.limit = -2}}).empty());
  CHECK(list({.name = "NET 3"}) == Ids{3});
  CHECK(list({.name = "%"}).empty());
  CHECK(list({.description = "QUOTED"}).size() == 5);
  CHECK(list({.labels = {"blue"}}).size() == 5);
  CHECK(list({.labels = {"blue", "red"}}).empty());
  CHECK(list({.archived = true}) == Ids{5});
  CHECK(list({.archived = false}) == Ids{1, 2, 3, 4});
  CHECK(list({.states = {core::State::kCompleted, core::State::kActive}}) == Ids{1, 2, 4});
  CHECK(list({.users = {"ada"}}).size() == 5);
  CHECK(list({.users = {"bob"}}).empty());
  CHECK(list({.user_ids = {1}, .project = 1}).size() == 5);
  CHECK(list({.project = 2}).empty());
  CHECK(list({.visible = std::vector<std::int64_t>{1}}).size() == 5);
  CHECK(list({.visible = std::vector<std::int64_t>{}}).empty());
  CHECK(list({.first_id = 2, .last_id = 4}) == Ids{2, 3, 4});
  CHECK(list({.ids = {4, 2, 9}, .not_ids = {2}}) == Ids{4});
  CHECK(list({.name = "net",
              .archived = false,
              .states = {core::State::kCompleted},
              .users = {"ada", "bob"},
              .project = 1,
              .first_id = 1,
              .not_ids = {2},
              .sort = db::ExperimentSort::kUser,
              .window = {.limit = 3}}) == Ids{4});
  CHECK(list({.sort = db::ExperimentSort::kProgress}) == Ids{1, 5, 4, 3, 2});
  CHECK(list({.sort = db::ExperimentSort::kNumTrials, .window = {.limit = 1, .descending = true}}) == Ids{1});
  for (int key = 0; key <= static_cast<int>(db::ExperimentSort::kResourcePool); ++key)
    CHECK(list({.sort = static_cast<db::ExperimentSort>(key)}).size() == 5);
  const auto page = db::list_experiments(world.pool, {.window = {.offset = -2, .limit = 1}});
  CHECK(page->total == 5);
  CHECK(page->start == 3);
}

TEST_CASE("a trial is shown with its best and latest validation, and NaN is never best") {
  World world;
  const auto row = db::get_trial(world.pool, TrialId(1));
  if (!row) FAIL(row.error().message);
  CHECK(row->trial.hparams == R"({"lr":0.1})");
  CHECK(row->live == core::AllocationState::kRunning);
  CHECK(row->total_batches == 400);
  CHECK(row->wall_clock > 3.5);
  CHECK(row->checkpoint_count == 3);
  CHECK(row->checkpoint_size == 45);
  CHECK(row->latest_validation->steps_completed == 400);
  CHECK(row->best_validation->steps_completed == 200);
  CHECK(row->best_validation->searcher_metric == 0.9);
  CHECK(row->best_checkpoint->uuid == checkpoint_id("c200"));

  REQUIRE(world.database.connection().query("UPDATE experiments SET smaller_is_better = true"));
  const auto smaller = db::get_trial(world.pool, TrialId(1));
  CHECK(smaller->best_validation->steps_completed == 100);
  CHECK(smaller->best_checkpoint->uuid == checkpoint_id("c300"));

  const auto idle = db::get_trial(world.pool, TrialId(2));
  REQUIRE(idle);
  CHECK_FALSE(idle->live);
  CHECK_FALSE(idle->best_validation);
  CHECK_FALSE(idle->best_checkpoint);
  CHECK(idle->wall_clock == 0);
  CHECK(db::get_trial(world.pool, TrialId(3)).error().code == Code::kNotFound);
}

TEST_CASE("a trial with only NaN has no best validation") {
  World world;
  world.store.write({validation(2, 1, kNaN), checkpoint("n", 2, 1)});
  const auto row = db::get_trial(world.pool, TrialId(2));
  CHECK(row->latest_validation->steps_completed == 1);
  CHECK(std::isnan(*row->latest_validation->searcher_metric));
  CHECK_FALSE(row->best_validation);
  CHECK_FALSE(row->best_checkpoint);
}

TEST_CASE("rows archived by a rollback are never shown") {
  World world;
  world.store.write({core::PutTrial{plain_trial(1, 1, 2)}, core::ArchiveMetrics{TrialId(1), 100}});
  const auto row = db::get_trial(world.pool, TrialId(1));
  CHECK(row->latest_validation->steps_completed == 100);
  CHECK(row->best_validation->steps_completed == 100);
  const auto workloads =
      db::list_workloads(world.pool, {.trial = TrialId(1), .groups = {"validation"}, .checkpoints = false});
  CHECK(workloads->total == 1);
}

TEST_CASE("trials of an experiment are paged") {
  World world;
  const auto all = db::list_trials(world.pool, {.experiment = ExperimentId(1)});
  if (!all) FAIL(all.error().message);
  REQUIRE(all->rows.size() == 2);
  CHECK(all->rows[0].best_checkpoint->uuid == checkpoint_id("c200"));
  CHECK_FALSE(all->rows[1].best_checkpoint);
  const auto last = db::list_trials(
      world.pool, {.experiment = ExperimentId(1), .window = {.limit = 1, .descending = true}});
  CHECK(last->rows[0].trial.id == TrialId(2));
  CHECK(last->total == 2);
  CHECK(db::list_trials(world.pool, {.experiment = ExperimentId(1), .states = {core::State::kError}})
            ->rows.empty());
}

TEST_CASE("workloads are sorted by batches, filtered and paged") {
  World world;
  world.train(200, R"({"loss":1})");
  world.train(150, R"({"x":1})", "custom");
  const auto show = [&](db::WorkloadFilter filter) {
    filter.trial = TrialId(1);
    const auto page = db::list_workloads(world.pool, filter);
    if (!page) FAIL(page.error().message);
    std::string text;
    for (const db::Workload& row : page->rows)
      text += row.kind == db::Workload::Kind::kCheckpoint
                  ? "c" + std::to_string(row.checkpoint.steps_completed) + " "
                  : row.metrics.group.substr(0, 1) + std::to_string(row.metrics.steps_completed) + " ";
    return text;
  };
  CHECK(show({.groups = {"training", "validation"}}) == "t100 v100 t200 v200 c200 v300 c300 v400 c400 ");
  CHECK(show({.groups = {"custom"}, .checkpoints = false}) == "c150 ");
  CHECK(show({}) == "c200 c300 c400 ");
  CHECK(show({.groups = {"validation"}, .checkpoints = false, .window = {.limit = 2, .descending = true}}) ==
        "v400 v300 ");
  CHECK(show({.groups = {"training"}, .window = {.offset = 1, .limit = 2}}) == "t200 c200 ");
  REQUIRE(world.database.connection().query(
      "UPDATE checkpoints SET state = 'DELETED' WHERE steps_completed = 300"));
  CHECK(show({.deleted_checkpoints = false}) == "c200 c400 ");
}

TEST_CASE("checkpoints carry the metrics of their steps") {
  World world;
  const auto one = db::get_checkpoint(world.pool, checkpoint_id("c200"));
  if (!one) FAIL(one.error().message);
  CHECK(one->trial == TrialId(1));
  CHECK(one->experiment == ExperimentId(1));
  CHECK(one->state == "COMPLETED");
  CHECK(one->size == 15);
  CHECK(one->resources == R"({"a":10,"b":5})");
  CHECK(one->searcher_metric == 0.9);
  CHECK(one->validation_metrics == R"({"accuracy":0.9})");
  CHECK(one->training_metrics.empty());
  CHECK(one->hparams == R"({"lr":0.1})");
  CHECK(db::get_checkpoint(world.pool, checkpoint_id("none")).error().code == Code::kNotFound);
  const auto newest = db::list_checkpoints(
      world.pool, {.experiment = ExperimentId(1), .window = {.limit = 1, .descending = true}});
  if (!newest) FAIL(newest.error().message);
  CHECK(newest->rows[0].uuid == checkpoint_id("c400"));
  CHECK(newest->total == 3);
  CHECK(db::list_checkpoints(world.pool, {.trial = TrialId(2)})->rows.empty());
  CHECK(db::list_checkpoints(world.pool, {.trial = TrialId(1), .states = {"DELETED"}})->rows.empty());
  CHECK(db::list_checkpoints(world.pool, {}).error().code == Code::kInvalidArgument);
}

TEST_CASE("a checkpoint whose metric is NaN is never the best") {
  World world;
  REQUIRE(world.pool.query("UPDATE metrics SET searcher_metric = 'NaN' WHERE steps_completed = 300"));
  for (const bool descending : {true, false}) {
    const auto all = db::list_checkpoints(world.pool, {.trial = TrialId(1),
                                                       .window = {.descending = descending},
                                                       .sort = db::CheckpointSort::kSearcherMetric});
    if (!all) FAIL(all.error().message);
    CHECK(all->rows.front().uuid != checkpoint_id("c300"));
  }
}

TEST_CASE("a pool ends long statements, but not those that delete an experiment, a workspace or logs") {
  const Database database;
  db::ConnectOptions limited = database.connect();
  limited.statement_timeout = std::chrono::seconds(60);
  db::Pool pool(limited);
  core::Experiment experiment = plain_experiment();
  core::Trial trial = plain_trial();
  experiment.state = trial.state = core::State::kCompleted;
  experiment.ended = trial.ended = WallTime{1};
  const auto write = [&] {
    RunningStore store(open_store(database));
    store.write({core::PutExperiment{experiment, true}, core::PutTrial{trial},
                 core::AppendTaskLog{trial.task, AllocationId("x.1"), "INFO", "line", WallTime{1}}});
  };
  write();
  CHECK((*pool.query("SELECT current_setting('statement_timeout')"))[0].next<std::string>() == "1min");
  REQUIRE(database.connection().script(
      "CREATE FUNCTION check_limit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
      " IF current_setting('statement_timeout') <> '0' THEN RAISE 'limited'; END IF; RETURN NULL; END $$;"
      "CREATE TRIGGER limit_logs BEFORE DELETE ON task_logs EXECUTE FUNCTION check_limit();"
      "CREATE TRIGGER limit_places BEFORE DELETE ON workspaces EXECUTE FUNCTION check_limit()"));
  CHECK_FALSE(pool.query("DELETE FROM task_logs"));
  CHECK(db::forget_logs(pool, 1) == 1);
  CHECK(db::delete_experiment(pool, ExperimentId(1)));
  const std::int64_t lab = db::create_workspace(pool, "lab", UserId(1)).value();
  CHECK(db::delete_container(pool, {db::Container::Kind::kWorkspace, lab}, {}));
}

TEST_CASE("windows resolve offsets and limits at every edge") {
  const auto span = [](std::int64_t offset, std::int64_t limit, std::int64_t total) {
    const db::Span s = db::resolve({.offset = offset, .limit = limit}, total);
    return std::pair(s.first, s.count);
  };
  CHECK(span(0, -1, 10) == std::pair<std::int64_t, std::int64_t>(0, 10));
  CHECK(span(8, 5, 10) == std::pair<std::int64_t, std::int64_t>(8, 2));
  CHECK(span(-3, 2, 10) == std::pair<std::int64_t, std::int64_t>(7, 2));
  CHECK(span(-30, -1, 10) == std::pair<std::int64_t, std::int64_t>(0, 10));
  CHECK(span(30, 5, 10) == std::pair<std::int64_t, std::int64_t>(10, 0));
  CHECK(span(0, -2, 10) == std::pair<std::int64_t, std::int64_t>(0, 0));
}

TEST_CASE("a detached trial is shown as running until it ends") {
  const Database database;
  RunningStore store(open_store(database));
  db::Pool pool{database.connect()};
  core::Experiment outside = plain_experiment();
  outside.detached = true;
  core::Trial trial = plain_trial(1);
  trial.started = WallTime{1'000'000};
  store.write({core::PutExperiment{outside, true}, core::PutTrial{trial}});
  const auto experiment = db::get_experiment(pool, ExperimentId(1));
  REQUIRE(experiment);
  CHECK(experiment->detached);
  CHECK(experiment->live == core::AllocationState::kRunning);
  CHECK(db::list_experiments(pool, {})->rows.at(0).detached);
  CHECK(db::get_trial(pool, TrialId(1))->live == core::AllocationState::kRunning);
  trial.state = core::State::kCompleted;
  trial.ended = WallTime{4'500'000};
  store.write({core::PutTrial{trial}});
  CHECK(db::get_trial(pool, TrialId(1))->wall_clock == 3.5);
}

TEST_CASE("a damaged checkpoint is replaced by the newest sound one before it") {
  World world;
  const auto older = [&](const char* uuid) {
    return db::older_checkpoint(world.pool, TrialId(1), checkpoint_id(uuid)).value();
  };
  REQUIRE(older("c400"));
  CHECK(older("c400")->uuid == checkpoint_id("c300"));
  CHECK(older("c400")->steps_completed == 300);
  CHECK(older("c400")->validation == 300);
  CHECK(older("c300")->uuid == checkpoint_id("c200"));
  CHECK_FALSE(older("c200"));
  world.store.write({core::MarkDamaged{checkpoint_id("c300"), TrialId(1)}});
  CHECK(world.database.value("SELECT state FROM checkpoints WHERE steps_completed = 300") == "ERROR");
  CHECK(older("c400")->uuid == checkpoint_id("c200"));
  world.store.write({core::ArchiveMetrics{TrialId(1), 100}});
  CHECK(older("c400")->validation == 100);
}

}  // namespace det::test
