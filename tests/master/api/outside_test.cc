// Reports of trials that run outside the cluster, authorized by the token of their owner. Needs a database
// for the users.
#include <catch2/catch.hpp>

#include "common/base/wait.h"
#include "common/client/calls.h"
#include "common/expconf/parse.h"
#include "det/v1/harness.methods.h"
#include "det/v1/trial.methods.h"
#include "master/db/accounts/sessions.h"
#include "master/db/accounts/users.h"
#include "server_bench.h"
#include "tests/master/db/database.h"

namespace det::api {
namespace {

const TrialId kTrial{1};

struct Outside {
  test::Database database;
  Bench bench{database.connect()};
  UserId owner{1}, other;

  Outside() {
    other = db::create_user(bench.pool, "eve", "x", false).value();
    log_in(owner, "owner's token");
    log_in(other, "another's token");
  }
  void log_in(UserId user, const std::string& token) {
    REQUIRE(db::create_session(bench.pool, user, token_hash(token), std::chrono::hours(1)));
  }
  void submit(bool detached) {
    auto parsed = expconf::parse(
        "name: test\nentrypoint: x\nsearcher: {name: single, metric: loss}\n"
        "checkpoint_storage: {type: shared_fs, host_path: /tmp}\n",
        "test.yaml", {});
    REQUIRE(parsed);
    auto config = std::make_shared<const expconf::ExperimentConfig>(std::move(parsed->config));
    REQUIRE(bench.loop.ask(core::SubmitExperiment{
        .request_id = RequestId("r1"), .owner = owner, .config = config, .detached = detached}));
  }
  core::State state() {
    // The default covers trials that the core has already dropped.
    auto state = core::State::kCompleted;
    bench.loop.inspect([&](const core::Core& core) {
      if (core.trials().contains(kTrial)) state = core.trials().at(kTrial).state;
    });
    return state;
  }
};

struct Process {
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<v1::HarnessMessage, v1::MasterMessage>> stream;

  Process(Bench& bench, const std::string& token, int run = 1) {
    context.AddMetadata("authorization", "Bearer " + token);
    context.set_deadline(std::chrono::system_clock::time_point(std::chrono::microseconds(wall_now().micros)) +
                         std::chrono::seconds(60));
    stream = wire::open(bench.over_socket(), v1::HarnessService::Session, context);
    v1::HarnessMessage message;
    message.mutable_attach()->set_trial_id(1);
    message.mutable_attach()->set_run(run);
    stream->Write(message);
  }
  v1::MasterMessage next() {
    v1::MasterMessage message;
    REQUIRE(stream->Read(&message));
    return message;
  }
  void alive() {
    v1::HarnessMessage message;
    message.mutable_alive();
    stream->Write(message);
  }
  void report(std::int64_t sequence, v1::Report report) {
    v1::HarnessMessage message;
    report.set_sequence(sequence);
    *message.mutable_report() = std::move(report);
    stream->Write(message);
  }
  grpc::StatusCode end() {
    v1::MasterMessage message;
    while (stream->Read(&message)) {
    }
    return stream->Finish().error_code();
  }
};

v1::Report ended(v1::State state) {
  v1::Report report;
  report.mutable_end()->set_state(state);
  return report;
}

TEST_CASE("the owner of a detached trial reports, sends heartbeats, and ends it") {
  Outside outside;
  outside.bench.settings.detached_limit = std::chrono::seconds(20);
  outside.submit(true);
  Process process(outside.bench, "owner's token");
  const v1::MasterMessage attached = process.next();
  REQUIRE(attached.has_attached());
  CHECK(attached.attached().alive_milliseconds() == 2000);
  process.alive();
  v1::Report progress;
  progress.mutable_progress()->set_progress(0.5);
  process.report(1, progress);
  CHECK(process.next().acknowledged().sequence() == 1);
  process.report(2, ended(v1::STATE_COMPLETED));
  CHECK(process.next().acknowledged().sequence() == 2);
  CHECK(outside.state() == core::State::kCompleted);
  // Later messages of this session and later sessions are rejected because the trial has ended.
  process.alive();
  CHECK(process.end() == grpc::StatusCode::ABORTED);
  CHECK(Process(outside.bench, "owner's token").end() == grpc::StatusCode::ABORTED);
}

TEST_CASE("an open session of a detached trial ends with the token of its owner") {
  Outside outside;
  outside.submit(true);
  Process process(outside.bench, "owner's token");
  REQUIRE(process.next().has_attached());
  REQUIRE(db::delete_session(outside.bench.pool, token_hash("owner's token")));
  outside.bench.context.sessions->changed();
  CHECK(process.end() == grpc::StatusCode::UNAUTHENTICATED);
}

TEST_CASE("other users cannot report for a detached trial") {
  Outside outside;
  outside.submit(true);
  CHECK(Process(outside.bench, "another's token").end() == grpc::StatusCode::PERMISSION_DENIED);
  CHECK(Process(outside.bench, "a token of nobody").end() == grpc::StatusCode::UNAUTHENTICATED);
  CHECK(Process(outside.bench, "owner's token", 2).end() == grpc::StatusCode::ABORTED);
  CHECK(outside.state() == core::State::kActive);
}

TEST_CASE("an access token with a lesser role than its owner cannot report") {
  Outside outside;
  outside.submit(true);
  REQUIRE(db::create_token(outside.bench.pool, {.user = outside.owner, .most = db::Role::kViewer},
                           token_hash("limited"), std::chrono::hours(1)));
  CHECK(Process(outside.bench, "limited").end() == grpc::StatusCode::UNAUTHENTICATED);
  CHECK(outside.state() == core::State::kActive);
}

TEST_CASE("a managed trial rejects the token of its owner") {
  Outside outside;
  outside.submit(false);
  CHECK(Process(outside.bench, "owner's token", 0).end() == grpc::StatusCode::PERMISSION_DENIED);
  CHECK(outside.state() == core::State::kActive);
}

/// The rows of the trial, which the bench keeps in memory only.
static void insert_trial(db::Pool& pool) {
  REQUIRE(pool.query(
      "INSERT INTO experiments (id, request_id, job_id, owner_id, project_id, state, config, original_config,"
      " model_definition, progress, submitted, searcher_events, name, description, labels, resource_pool,"
      " searcher_name, searcher_metric, smaller_is_better)"
      " VALUES (1, 'r', 'j', 1, 1, 'ACTIVE', '{}', '', '', 0, now(), 0, '', '', '{}', '', '', '', true)"));
  REQUIRE(pool.query(
      "INSERT INTO trials (id, experiment_id, request_id, task_id, seed, hparams, state, run, restarts,"
      " latest_checkpoint, latest_steps, steps_completed, last_validation, checkpoint_validation,"
      " searcher_steps, early_exit_invalid_hp, progress, exit_reason, started)"
      " VALUES (1, 1, 'r', 't', 1, '{}', 'ACTIVE', 0, 0, '', 0, 0, -1, -1, -1, false, 0, '', now())"));
}

/// Reports a validation of trial 1 over HTTP.
static grpc::StatusCode report_validation(Bench& bench, const std::string& token, int steps) {
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer " + token);
  v1::ReportTrialMetricsRequest request;
  request.set_group("validation");
  request.mutable_metrics()->set_trial_id(1);
  request.mutable_metrics()->set_steps_completed(steps);
  auto& fields = *request.mutable_metrics()->mutable_metrics()->mutable_avg_metrics()->mutable_fields();
  fields["loss"].set_number_value(3.3);
  v1::ReportTrialMetricsResponse response;
  return wire::call(bench.over_socket(), v1::TrialService::ReportTrialMetrics, context, request, response)
      .error_code();
}

TEST_CASE("validations that another user adds to a running trial are stored, and those of the trial count") {
  Outside outside;
  outside.submit(true);
  insert_trial(outside.bench.pool);
  REQUIRE(outside.bench.pool.query("UPDATE trials SET run = 1"));
  CHECK(report_validation(outside.bench, "another's token", 1'000'000) == grpc::StatusCode::OK);
  CHECK(report_validation(outside.bench, "owner's token", 5) == grpc::StatusCode::OK);
  CHECK(report_validation(outside.bench, "another's token", 3) == grpc::StatusCode::OK);
  outside.bench.loop.inspect([&](const core::Core& core) {
    const core::Trial& trial = core.trials().at(kTrial);
    CHECK(trial.last_validation == 5);
    CHECK(trial.steps_completed == 5);
  });
  CHECK(outside.database.value("SELECT string_agg(steps_completed::text, ',' ORDER BY steps_completed)"
                               " FROM metrics") == "3,1000000");
}

TEST_CASE("users report for trials that they may edit, also for those that do not run") {
  Outside outside;
  outside.submit(false);
  insert_trial(outside.bench.pool);
  REQUIRE(outside.bench.pool.query("DELETE FROM grants WHERE user_id = $1", outside.other));
  const auto report = [&](const std::string& token) { return report_validation(outside.bench, token, 10); };
  CHECK(report("another's token") == grpc::StatusCode::NOT_FOUND);
  CHECK(report("a token of nobody") == grpc::StatusCode::UNAUTHENTICATED);
  REQUIRE(outside.bench.pool.query("UPDATE users SET admin = (id = 1)"));
  CHECK(report("owner's token") == grpc::StatusCode::OK);
  // Stored without an effect on the search.
  outside.bench.loop.inspect(
      [&](const core::Core& core) { CHECK(core.trials().at(kTrial).last_validation == -1); });
}

TEST_CASE("an end report with a non-terminal state ends the session instead") {
  Outside outside;
  outside.submit(true);
  for (const v1::State state : {v1::STATE_UNSPECIFIED, v1::STATE_ACTIVE, v1::STATE_STOPPING_ERROR}) {
    Process process(outside.bench, "owner's token");
    CHECK(process.next().has_attached());
    process.report(1, ended(state));
    CHECK(process.end() == grpc::StatusCode::INVALID_ARGUMENT);
  }
  CHECK(outside.state() == core::State::kActive);
}

}  // namespace
}  // namespace det::api
