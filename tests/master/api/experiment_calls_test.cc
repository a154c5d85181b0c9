// Calls on stored experiments: continuation, deletion, moves, long lists, usage. Needs a database.
#include <catch2/catch.hpp>

#include "common/base/event.h"
#include "common/base/files.h"
#include "common/client/calls.h"
#include "det/v1/experiment.methods.h"
#include "det/v1/project.methods.h"
#include "det/v1/run.methods.h"
#include "det/v1/trial.methods.h"
#include "det/v1/usage.methods.h"
#include "master/api/experiments/experiment.h"
#include "master/db/accounts/sessions.h"
#include "master/db/accounts/users.h"
#include "master/db/queries/deletions.h"
#include "master/db/queries/projects.h"
#include "master/db/queries/workspaces.h"
#include "server_bench.h"
#include "tests/master/db/database.h"
#include "tests/master/db/samples.h"

namespace det::api {
namespace {

/// Experiment 1 of ada, which has failed, with trial 1 and a checkpoint in a private storage. ada and eve are
/// editors, root is an administrator. The token of a user is its name.
struct StoredExperiment {
  test::Database database;
  TemporaryDirectory place = TemporaryDirectory::create("calls").value();
  Bench bench{database.connect()};
  std::shared_ptr<grpc::Channel> channel = bench.over_socket();

  StoredExperiment() {
    bench.allow_storage(place.path());
    test::RunningStore store(test::open_store(database));
    core::Experiment experiment = stored(1);
    core::Trial trial = test::plain_trial();
    experiment.state = trial.state = core::State::kError;
    experiment.ended = trial.ended = WallTime{1};
    core::Allocation allocation;
    allocation.id = AllocationId("task.1");
    allocation.task = trial.id;
    allocation.run = 1;
    allocation.state = core::AllocationState::kTerminated;
    allocation.parts.push_back({.agent = AgentId("a1")});
    store.write({core::PutExperiment{experiment, true}, core::PutTrial{trial},
                 core::PutAllocation{allocation},
                 core::InsertCheckpoint{test::checkpoint_id("c"), trial.id, 1, TaskId("task"), allocation.id,
                                        10, "{}", "{}", WallTime{1}}});
    REQUIRE(bench.pool.query("INSERT INTO grants (user_id, role, workspace_id) VALUES (1, 'EDITOR', 1)"));
    const UserId eve = db::create_user(bench.pool, "eve", "x", false).value();
    const UserId root = db::create_user(bench.pool, "root", "x", true).value();
    for (const auto& [name, user] : {std::pair("ada", UserId(1)), {"eve", eve}, {"root", root}})
      REQUIRE(db::create_session(bench.pool, user, token_hash(name), std::chrono::hours(1)));
  }

  /// An experiment with the private storage.
  core::Experiment stored(std::int64_t id) const {
    core::Experiment experiment = test::plain_experiment(id);
    auto config = std::make_shared<expconf::ExperimentConfig>(*experiment.config);
    config->resolved["checkpoint_storage"] = {{"type", "shared_fs"}, {"host_path", place.path()}};
    experiment.config = config;
    return experiment;
  }

  template <typename Request, typename Response>
  grpc::Status call(const std::string& user, UnaryMethod<Request, Response> method, const Request& request,
                    Response* response) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + user);
    context.set_deadline(std::chrono::system_clock::time_point(std::chrono::microseconds(wall_now().micros)) +
                         std::chrono::seconds(30));
    return wire::call(channel, method, context, request, *response);
  }
  grpc::Status resume(const std::string& user, const std::string& config, bool only_check = true) {
    v1::ContinueExperimentRequest request;
    request.set_id(1);
    request.set_override_config(config);
    request.set_validate_only(only_check);
    v1::ContinueExperimentResponse response;
    return call(user, v1::ExperimentService::ContinueExperiment, request, &response);
  }
  grpc::Status remove(int id) {
    v1::DeleteExperimentRequest request;
    request.set_experiment_id(id);
    v1::ExperimentActionResponse response;
    return call("ada", v1::ExperimentService::DeleteExperiment, request, &response);
  }
};

}  // namespace

TEST_CASE("only the owner and administrators continue an experiment with another program or secrets") {
  StoredExperiment stored_one;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"entrypoint", "entrypoint: cat /proc/self/environ"},
      {"environment", "environment: {environment_variables: [LD_PRELOAD=x.so]}"},
      {"data.secrets", "data: {secrets: {key: x}}"}};
  for (const auto& [section, config] : cases) {
    INFO(section);
    for (const bool only_check : {true, false}) {
      const grpc::Status refused = stored_one.resume("eve", "max_restarts: 1\n" + config, only_check);
      CHECK(refused.error_code() == grpc::StatusCode::PERMISSION_DENIED);
      CHECK_THAT(refused.error_message(), Catch::StartsWith(section + ": only user ada, the owner") &&
                                              Catch::Contains("fork the experiment instead"));
    }
    for (const char* user : {"ada", "root"})
      CHECK(stored_one.resume(user, config).error_code() != grpc::StatusCode::PERMISSION_DENIED);
  }
  for (const char* config : {"", "max_restarts: 1", "hyperparameters: {lr: 0.5}", "data: {batch: 8}"}) {
    INFO(config);
    CHECK(stored_one.resume("eve", config).error_code() != grpc::StatusCode::PERMISSION_DENIED);
  }
}

TEST_CASE("an experiment is kept while an unfinished one starts from its checkpoints") {
  StoredExperiment stored_one;
  core::Experiment fork = stored_one.stored(2);
  auto config = std::make_shared<expconf::ExperimentConfig>(*fork.config);
  config->resolved["searcher"]["source_checkpoint_uuid"] = test::checkpoint_uuid("c");
  fork.config = config;
  {
    test::RunningStore store(test::open_store(stored_one.database));
    store.write({core::PutExperiment{fork, true}});
  }
  const grpc::Status refused = stored_one.remove(1);
  CHECK(refused.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK_THAT(refused.error_message(), Catch::StartsWith("experiment 2 has not ended and starts from"));
  CHECK(stored_one.database.value("SELECT state FROM checkpoints") == "COMPLETED");
  REQUIRE(stored_one.bench.pool.query("UPDATE experiments SET state = 'CANCELED' WHERE id = 2"));
  // Files that were written outside of the cluster do not hold up a deletion.
  REQUIRE(stored_one.bench.pool.query("DELETE FROM allocations"));
  CHECK(stored_one.remove(1).ok());
  CHECK(stored_one.database.number("SELECT count(*) FROM experiments") == 1);
}

TEST_CASE("an experiment whose deletion failed can be continued") {
  StoredExperiment stored_one;
  // The collector of the bench may access no storage.
  const grpc::Status refused = stored_one.remove(1);
  CHECK(refused.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK_THAT(refused.error_message(), Catch::Contains("is not in a storage of this cluster"));
  const grpc::Status resumed = stored_one.resume("ada", "");
  CHECK(resumed.error_code() != grpc::StatusCode::ABORTED);
  CHECK_THAT(resumed.error_message(), !Catch::Contains("is being deleted"));
}

TEST_CASE("deletions do not wait for the threads of media") {
  Event release;
  StoredExperiment stored_one;
  // All threads of the pool are busy.
  for (int i = 0; i < 4; ++i)
    stored_one.bench.pools.outward.post([&] { release.wait_for(std::chrono::minutes(2)); });
  CHECK(stored_one.remove(99).error_code() == grpc::StatusCode::NOT_FOUND);
  release.set();
}

TEST_CASE("bulk calls of runs leave the threads of sign-on alone") {
  Event release;
  StoredExperiment stored_one;
  for (int i = 0; i < 4; ++i)
    stored_one.bench.pools.steer.post([&] { release.wait_for(std::chrono::minutes(2)); });
  v1::RunsActionRequest request;
  request.add_run_ids(99);
  const auto method =
      GENERATE(v1::RunService::DeleteRuns, v1::RunService::PauseRuns, v1::RunService::ArchiveRuns);
  v1::RunsActionResponse response;
  CHECK(stored_one.call("ada", method, request, &response).ok());
  REQUIRE(response.results_size() == 1);
  CHECK(response.results(0).error() == "run 99 not found");
  release.set();
}

TEST_CASE("nothing leaves a project that is being deleted, and what has left it before is kept") {
  StoredExperiment stored_one;
  db::Pool& pool = stored_one.bench.pool;
  const std::int64_t vision = db::create_project(pool, 1, "vision", "", UserId(1)).value();
  const std::int64_t lab = db::create_workspace(pool, "lab", UserId(1)).value();
  const db::Container deleted = GENERATE(db::Container{db::Container::Kind::kProject, 1},
                                         db::Container{db::Container::Kind::kWorkspace, 1});
  REQUIRE(
      pool.query("INSERT INTO trials SELECT (json_populate_record(t, '{\"id\": 2, \"task_id\": \"task2\","
                 " \"request_id\": \"second\"}')).* FROM trials t"));
  REQUIRE(db::begin_deletion(pool, deleted));
  v1::MoveExperimentRequest one;
  one.set_experiment_id(1);
  one.set_destination_project_id(static_cast<int>(vision));
  v1::MoveExperimentResponse moved;
  const grpc::Status refused = stored_one.call("ada", v1::ProjectService::MoveExperiment, one, &moved);
  CHECK(refused.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK_THAT(refused.error_message(), Catch::Contains("is being deleted"));
  // Both runs of the experiment are refused.
  v1::MoveRunsRequest runs;
  runs.add_run_ids(1);
  runs.add_run_ids(2);
  runs.set_source_project_id(1);
  runs.set_destination_project_id(static_cast<int>(vision));
  v1::RunsActionResponse response;
  REQUIRE(stored_one.call("ada", v1::RunService::MoveRuns, runs, &response).ok());
  REQUIRE(response.results_size() == 2);
  for (const auto& result : response.results())
    CHECK_THAT(result.error(), Catch::Contains("is being deleted"));
  CHECK(db::move_project(pool, vision, lab).has_value() == (deleted.kind == db::Container::Kind::kProject));
  CHECK(stored_one.database.number("SELECT project_id FROM experiments") == 1);
  REQUIRE(remove_experiment(stored_one.bench.context, ExperimentId(1),
                            db::Container{db::Container::Kind::kProject, vision}));
  CHECK(stored_one.database.number("SELECT count(*) FROM experiments") == 1);
}

TEST_CASE("the workloads and checkpoints of a trial have at most 10,000 rows a page") {
  StoredExperiment stored_one;
  REQUIRE(stored_one.bench.pool.query(
      "INSERT INTO metrics (trial_id, run, grp, steps_completed, reported, metrics)"
      " SELECT 1, 1, 'training', step, now(), '{}'::json FROM generate_series(1, 10001) AS step"));
  v1::GetTrialWorkloadsRequest request;
  request.set_trial_id(1);
  v1::GetTrialWorkloadsResponse response;
  REQUIRE(stored_one.call("ada", v1::TrialService::GetTrialWorkloads, request, &response).ok());
  // One of the rows is the checkpoint.
  CHECK(response.workloads_size() == 10'000);
  CHECK(response.pagination().total() == 10'002);
  CHECK(response.pagination().end_index() == 10'000);
  request.set_offset(10'000);
  response.Clear();
  REQUIRE(stored_one.call("ada", v1::TrialService::GetTrialWorkloads, request, &response).ok());
  CHECK(response.workloads_size() == 2);
  v1::GetTrialCheckpointsRequest checkpoints;
  checkpoints.set_id(1);
  v1::GetTrialCheckpointsResponse found;
  REQUIRE(stored_one.call("ada", v1::TrialService::GetTrialCheckpoints, checkpoints, &found).ok());
  CHECK(found.checkpoints_size() == 1);
  CHECK(found.pagination().limit() == 10'000);
}

TEST_CASE("usage is summed over at most 1,100 days or ten years of months") {
  StoredExperiment stored_one;
  const auto usage = [&](const std::string& last, bool monthly) {
    v1::ResourceAllocationAggregatedRequest request;
    request.set_start_date("2020-01-01");
    request.set_end_date(last);
    request.set_period(monthly ? v1::RESOURCE_ALLOCATION_AGGREGATION_PERIOD_MONTHLY
                               : v1::RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY);
    v1::ResourceAllocationAggregatedResponse response;
    return stored_one.call("ada", v1::UsageService::ResourceAllocationAggregated, request, &response);
  };
  CHECK(usage("2023-01-04", false).ok());
  const grpc::Status refused = usage("2023-01-05", false);
  CHECK(refused.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK_THAT(refused.error_message(), Catch::Contains("ask for months"));
  CHECK(usage("2023-01-05", true).ok());
  CHECK(usage("2031-01-01", true).error_code() == grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace det::api
