// The two bidirectional streams, agent link and harness session, from submission to the end of a trial.
#include <catch2/catch.hpp>
#include <future>
#include <nlohmann/json.hpp>

#include "common/base/wait.h"
#include "common/client/calls.h"
#include "common/expconf/parse.h"
#include "det/v1/agent.methods.h"
#include "det/v1/harness.methods.h"
#include "det/v1/trial.methods.h"
#include "master/api/auth/agent_auth.h"
#include "master/db/accounts/join.h"
#include "server_bench.h"
#include "tests/master/db/database.h"

namespace det::api {
namespace {

constexpr const char* kConfig = R"(
name: test
entrypoint: "true"
hyperparameters: {lr: 0.1}
searcher: {name: single, metric: loss, max_length: {batches: 100}}
checkpoint_storage: {type: shared_fs, host_path: /tmp}
max_restarts: 0
)";

void submit(Bench& bench, const std::string& request = "r1") {
  auto parsed = expconf::parse(kConfig, "test.yaml", {});
  INFO((parsed ? "" : parsed.error().message));
  REQUIRE(parsed);
  auto config = std::make_shared<const expconf::ExperimentConfig>(std::move(parsed->config));
  const auto answer = bench.loop.ask(
      core::SubmitExperiment{.request_id = RequestId(request), .owner = UserId(1), .config = config});
  REQUIRE(answer);
}

/// A master with a database, where the agents a1 and a2 have joined.
struct Cluster {
  test::Database database;
  Bench bench;
  explicit Cluster(bool stores_metrics = true)
      : bench(database.connect(), stores_metrics ? database.connect() : Bench::nowhere(), {}) {
    for (const char* name : {"a1", "a2"}) {
      const std::string fingerprint = agent_token_fingerprint(name);
      REQUIRE(db::admit_local_agent(
          bench.pool, {.fingerprint = fingerprint,
                       .agent = AgentId(name),
                       .key_digest = fingerprint,
                       .expires = {wall_now().micros + Duration(std::chrono::hours(1)).count()}}));
    }
  }
};

/// An agent on this machine, from the master's point of view. Its token is its name.
struct Agent {
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::AgentCommand>> stream;

  explicit Agent(Bench& bench, const std::string& token = "a1", const std::string& address = "127.0.0.1") {
    context.AddMetadata("x-det-peer", address);
    if (!token.empty()) context.AddMetadata("x-agent-token", "Bearer " + token);
    context.set_deadline(std::chrono::system_clock::time_point(std::chrono::microseconds(wall_now().micros)) +
                         std::chrono::seconds(30));
    stream = wire::open(bench.server.channel(), v1::AgentService::Link, context);
  }
  void hello(const std::string& name, const std::string& instance = "i1") {
    v1::AgentMessage message;
    message.mutable_hello()->set_agent_id(name);
    message.mutable_hello()->set_instance(instance);
    message.mutable_hello()->add_devices()->set_type("CPU");
    stream->Write(message);
  }
  void update(const std::string& id, v1::AllocationUpdate::State state,
              v1::AllocationExit::Kind kind = v1::AllocationExit::KIND_UNSPECIFIED) {
    v1::AgentMessage message;
    message.mutable_update()->set_allocation_id(id);
    message.mutable_update()->set_state(state);
    if (kind != v1::AllocationExit::KIND_UNSPECIFIED)
      message.mutable_update()->mutable_exit()->set_kind(kind);
    stream->Write(message);
  }
  v1::AgentCommand next() {
    v1::AgentCommand command;
    REQUIRE(stream->Read(&command));
    return command;
  }
  grpc::Status end() {
    v1::AgentCommand command;
    while (stream->Read(&command)) {
    }
    return stream->Finish();
  }
};

v1::Report metrics_report(const std::string& group, std::int64_t steps, const std::string& json) {
  v1::Report out;
  out.mutable_metrics()->set_group(group);
  out.mutable_metrics()->set_steps_completed(steps);
  out.mutable_metrics()->set_metrics(json);
  return out;
}

struct Harness {
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<v1::HarnessMessage, v1::MasterMessage>> stream;
  std::int64_t sequence = 0;

  Harness(Bench& bench, const v1::StartAllocation& start) {
    context.AddMetadata("x-allocation-token", "Bearer " + start.token());
    context.set_deadline(std::chrono::system_clock::time_point(std::chrono::microseconds(wall_now().micros)) +
                         std::chrono::seconds(60));
    stream = wire::open(bench.over_socket(), v1::HarnessService::Session, context);
    v1::HarnessMessage message;
    message.mutable_attach()->set_allocation_id(start.allocation_id());
    message.mutable_attach()->set_trial_id(start.trial_id());
    message.mutable_attach()->set_run(start.run());
    message.mutable_attach()->set_profiles(true);
    stream->Write(message);
  }
  void report(v1::Report report) {
    v1::HarnessMessage message;
    report.set_sequence(++sequence);
    *message.mutable_report() = std::move(report);
    stream->Write(message);
  }
  void metrics(const std::string& group, std::int64_t steps, const std::string& json) {
    report(metrics_report(group, steps, json));
  }
  void together(std::vector<v1::Report> reports) {
    v1::HarnessMessage message;
    for (v1::Report& report : reports) {
      report.set_sequence(++sequence);
      *message.mutable_reports()->add_reports() = std::move(report);
    }
    stream->Write(message);
  }
  v1::MasterMessage next() {
    v1::MasterMessage message;
    REQUIRE(stream->Read(&message));
    return message;
  }
  void wait_acknowledged(std::int64_t wanted) {
    while (next().acknowledged().sequence() < wanted) {
    }
  }
  grpc::Status end() {
    v1::MasterMessage message;
    while (stream->Read(&message)) {
    }
    return stream->Finish();
  }
};

v1::StartAllocation started(Bench& bench, Agent& agent) {
  submit(bench);
  agent.hello("a1");
  CHECK(agent.next().has_welcome());
  const v1::AgentCommand command = agent.next();
  REQUIRE(command.has_start());
  CHECK(command.start().trial_id() == 1);
  CHECK(command.start().run() == 1);
  CHECK(command.start().hparams() == R"({"lr":0.1})");
  agent.update(command.start().allocation_id(), v1::AllocationUpdate::STATE_RUNNING);
  return command.start();
}

TEST_CASE("a trial runs from submission to its end over both streams") {
  Cluster cluster;
  Bench& bench = cluster.bench;
  Agent agent(bench);
  const v1::StartAllocation start = started(bench, agent);
  Harness harness(bench, start);
  CHECK(harness.next().has_attached());
  v1::Report progress;
  progress.mutable_progress()->set_progress(0.5);
  harness.report(progress);
  harness.metrics("validation", 100, R"({"loss":0.25})");
  v1::Report checkpoint;
  checkpoint.mutable_checkpoint()->set_uuid("00000000-0000-4000-8000-000000000001");
  checkpoint.mutable_checkpoint()->set_steps_completed(100);
  (*checkpoint.mutable_checkpoint()->mutable_resources())["model.pt"] = 12;
  harness.report(checkpoint);
  harness.wait_acknowledged(3);
  // A repeat changes nothing and is acknowledged all the same.
  harness.metrics("validation", 100, R"({"loss":0.25})");
  harness.wait_acknowledged(4);
  bench.loop.inspect([](const core::Core& core) {
    const core::Trial& trial = core.trials().at(TrialId(1));
    CHECK(trial.best_metric == 0.25);
    CHECK(trial.latest_steps == 100);
    CHECK(trial.progress == 0.5);
  });
  int validations = 0;
  for (const auto& group : bench.store.groups()) {
    for (const core::Write& write : group)
      validations += std::holds_alternative<core::InsertValidation>(write);
  }
  CHECK(validations == 1);
  harness.stream->WritesDone();
  agent.update(start.allocation_id(), v1::AllocationUpdate::STATE_TERMINATED,
               v1::AllocationExit::KIND_SUCCEEDED);
  CHECK(agent.next().forget().allocation_id() == start.allocation_id());
  bench.loop.inspect([](const core::Core& core) { CHECK(core.experiments().empty()); });
}

TEST_CASE("several reports in one message are applied in order, up to the first invalid one") {
  Cluster cluster;
  Bench& bench = cluster.bench;
  Agent agent(bench);
  const v1::StartAllocation start = started(bench, agent);
  Harness harness(bench, start);
  CHECK(harness.next().has_attached());
  v1::Report progress;
  progress.mutable_progress()->set_progress(0.5);
  v1::Report checkpoint;
  checkpoint.mutable_checkpoint()->set_uuid("00000000-0000-4000-8000-000000000001");
  checkpoint.mutable_checkpoint()->set_steps_completed(100);
  harness.together({progress, metrics_report("validation", 100, R"({"loss":0.25})"), checkpoint});
  harness.wait_acknowledged(3);
  v1::Report wrong = progress;
  wrong.mutable_progress()->set_progress(7);
  harness.together({progress, wrong, metrics_report("validation", 200, R"({"loss":0.125})")});
  CHECK(harness.end().error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  bench.loop.inspect(
      [](const core::Core& core) { CHECK(core.trials().at(TrialId(1)).last_validation == 100); });
}

TEST_CASE("a pause reaches the harness, a kill reaches the agent") {
  Cluster cluster;
  Bench& bench = cluster.bench;
  Agent agent(bench);
  const v1::StartAllocation start = started(bench, agent);
  Harness harness(bench, start);
  CHECK(harness.next().has_attached());
  REQUIRE(bench.loop.ask(
      core::ActOnExperiment{.experiment = ExperimentId(1), .action = core::ExperimentAction::kPause}));
  CHECK(harness.next().has_preempt());
  REQUIRE(bench.loop.ask(
      core::ActOnExperiment{.experiment = ExperimentId(1), .action = core::ExperimentAction::kKill}));
  CHECK(agent.next().kill().allocation_id() == start.allocation_id());
}

TEST_CASE("an invalid harness message ends the session with the reason") {
  Cluster cluster;
  Bench& bench = cluster.bench;
  Agent agent(bench);
  const v1::StartAllocation start = started(bench, agent);
  const auto refused = [&](const std::function<void(Harness&)>& talk) {
    Harness harness(bench, start);
    CHECK(harness.next().has_attached());
    talk(harness);
    return harness.end().error_code();
  };
  CHECK(refused([](Harness& h) { h.metrics("a.b", 1, "{}"); }) == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(refused([](Harness& h) { h.metrics("training", 1, "[]"); }) == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(refused([](Harness& h) {
          v1::Report nan;
          nan.mutable_progress()->set_progress(std::numeric_limits<double>::quiet_NaN());
          h.report(nan);
        }) == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(refused([](Harness& h) {
          v1::Report report;
          report.mutable_checkpoint()->set_uuid("../../etc");
          h.report(report);
        }) == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(refused([](Harness& h) { h.report({}); }) == grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_CASE("a session without a token is refused, and one with a user's token needs the database") {
  Bench bench;
  submit(bench);
  const auto attach = [&](const std::string& key, const std::string& token) {
    grpc::ClientContext context;
    if (!key.empty()) context.AddMetadata(key, "Bearer " + token);
    const auto stream = wire::open(bench.over_socket(), v1::HarnessService::Session, context);
    v1::HarnessMessage message;
    message.mutable_attach()->set_trial_id(1);
    message.mutable_attach()->set_run(1);
    stream->Write(message);
    v1::MasterMessage answer;
    CHECK_FALSE(stream->Read(&answer));
    return stream->Finish().error_code();
  };
  CHECK(attach("", "") == grpc::StatusCode::UNAUTHENTICATED);
  CHECK(attach("authorization", "a user's") == grpc::StatusCode::UNAVAILABLE);
}

TEST_CASE("a token speaks for its own allocation only, and until that ends") {
  Cluster cluster;
  Bench& bench = cluster.bench;
  Agent agent(bench), other(bench, "a2");
  const v1::StartAllocation start = started(bench, agent);
  submit(bench, "r2");
  other.hello("a2");
  CHECK(other.next().has_welcome());
  const v1::StartAllocation foreign = other.next().start();
  CHECK(foreign.allocation_id() != start.allocation_id());
  for (const std::string& token : {std::string("guessed"), foreign.token(), token_hash(start.token())}) {
    v1::StartAllocation forged = start;
    forged.set_token(token);
    // An unknown token is that of a run that has ended.
    const auto expected =
        token == foreign.token() ? grpc::StatusCode::UNAUTHENTICATED : grpc::StatusCode::ABORTED;
    CHECK(Harness(bench, forged).end().error_code() == expected);
  }
  {
    Harness harness(bench, start);
    CHECK(harness.next().has_attached());
    harness.stream->WritesDone();
  }
  agent.update(start.allocation_id(), v1::AllocationUpdate::STATE_TERMINATED,
               v1::AllocationExit::KIND_SUCCEEDED);
  CHECK(agent.next().has_forget());
  CHECK(Harness(bench, start).end().error_code() == grpc::StatusCode::ABORTED);
}

TEST_CASE("the token of an allocation is confirmed once, and no longer after its end") {
  Cluster cluster;
  Bench& bench = cluster.bench;
  Agent agent(bench);
  const v1::StartAllocation start = started(bench, agent);
  AllocationTokens& tokens = *bench.context.allocation_tokens;
  const std::string hash = token_hash(start.token());
  CHECK(tokens.check(token_hash("guessed")).error().code == Code::kUnauthenticated);
  CHECK_FALSE(tokens.confirmed(token_hash("guessed")));
  // A change of the allocation during a check leaves its result unconfirmed.
  REQUIRE(wait_until([&] { return tokens.check(hash) && tokens.confirmed(hash); }, std::chrono::seconds(5)));
  CHECK(tokens.confirmed(hash)->trial == TrialId(1));
  agent.update(start.allocation_id(), v1::AllocationUpdate::STATE_TERMINATED,
               v1::AllocationExit::KIND_SUCCEEDED);
  CHECK(agent.next().has_forget());
  CHECK(wait_until([&] { return !tokens.confirmed(hash); }, std::chrono::seconds(5)));
  CHECK(tokens.check(hash).error().code == Code::kUnauthenticated);
}

TEST_CASE("a process reports with its allocation token, before and after the token is confirmed") {
  Cluster cluster;
  Bench& bench = cluster.bench;
  Agent agent(bench);
  const v1::StartAllocation start = started(bench, agent);
  const auto report = [&](const std::string& token) {
    grpc::ClientContext context;
    context.AddMetadata("x-allocation-token", "Bearer " + token);
    v1::ReportTrialMetricsRequest request;
    request.set_group("validation");
    request.mutable_metrics()->set_trial_id(1);
    request.mutable_metrics()->set_steps_completed(10);
    auto& fields = *request.mutable_metrics()->mutable_metrics()->mutable_avg_metrics()->mutable_fields();
    fields["loss"].set_number_value(3.5);
    v1::ReportTrialMetricsResponse response;
    return wire::call(bench.over_socket(), v1::TrialService::ReportTrialMetrics, context, request, response)
        .error_code();
  };
  CHECK(report("guessed") == grpc::StatusCode::UNAUTHENTICATED);
  CHECK(report(start.token()) == grpc::StatusCode::OK);
  CHECK(report(start.token()) == grpc::StatusCode::OK);
  bench.loop.inspect(
      [](const core::Core& core) { CHECK(core.trials().at(TrialId(1)).last_validation == 10); });
}

TEST_CASE("metrics that cannot be stored are not acknowledged") {
  Cluster cluster(false);
  Bench& bench = cluster.bench;
  Agent agent(bench);
  const v1::StartAllocation start = started(bench, agent);
  Harness harness(bench, start);
  CHECK(harness.next().has_attached());
  harness.metrics("training", 1, R"({"loss":1})");
  v1::MasterMessage message;
  CHECK_FALSE(harness.stream->Read(&message));
  CHECK(harness.stream->Finish().error_code() == grpc::StatusCode::UNAVAILABLE);
}

TEST_CASE("a newer session of the same allocation takes over") {
  Cluster cluster;
  Bench& bench = cluster.bench;
  Agent agent(bench);
  const v1::StartAllocation start = started(bench, agent);
  Harness first(bench, start);
  CHECK(first.next().has_attached());
  Harness second(bench, start);
  CHECK(second.next().has_attached());
  CHECK(first.end().error_code() == grpc::StatusCode::ABORTED);
}

TEST_CASE("agents without a token, from another address or under the name of another agent are refused") {
  Cluster cluster;
  Bench& bench = cluster.bench;
  CHECK(Agent(bench, "", "127.0.0.1").end().error_code() == grpc::StatusCode::PERMISSION_DENIED);
  CHECK(Agent(bench, "a1", "10.0.0.7").end().error_code() == grpc::StatusCode::PERMISSION_DENIED);
  for (const char* name : {"", "a2"}) {
    Agent pretender(bench);
    pretender.hello(name);
    CHECK(pretender.end().error_code() == grpc::StatusCode::PERMISSION_DENIED);
  }
  Agent unknown(bench, "a3");
  unknown.hello("a3");
  CHECK(unknown.end().error_code() == grpc::StatusCode::PERMISSION_DENIED);
  Agent real(bench), impostor(bench);
  real.hello("a1");
  CHECK(real.next().has_welcome());
  impostor.hello("a1", "another instance");
  CHECK(impostor.end().error_code() == grpc::StatusCode::ALREADY_EXISTS);
}

TEST_CASE("heartbeats are acknowledged, and a silent link is closed") {
  Cluster cluster;
  Bench& bench = cluster.bench;
  bench.settings.heartbeat = std::chrono::milliseconds(100);
  Agent agent(bench);
  agent.hello("a1");
  CHECK(agent.next().has_welcome());
  v1::AgentMessage beat;
  beat.mutable_heartbeat();
  agent.stream->Write(beat);
  CHECK(agent.next().has_heartbeat());
  CHECK(agent.end().error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
  CHECK(wait_until(
      [&] {
        bool connected = true;
        bench.loop.inspect(
            [&](const core::Core& core) { connected = core.agents().at(AgentId("a1")).session != 0; });
        return !connected;
      },
      std::chrono::seconds(5)));
}

TEST_CASE("storage work goes to the newest link of an agent that has reconnected") {
  Cluster cluster;
  Bench& bench = cluster.bench;
  bench.settings.heartbeat = std::chrono::seconds(20);
  Agent older(bench), newer(bench);
  older.hello("a1");
  CHECK(older.next().has_welcome());
  newer.hello("a1");
  CHECK(newer.next().has_welcome());
  auto done = std::async(std::launch::async, [&bench] {
    return bench.server.storage_agents().ask(AgentId("a1"),
                                             {.root = {"/tmp"}, .remove = {"x"}, .list = false});
  });
  const v1::AgentCommand command = newer.next();
  REQUIRE(command.has_storage_work());
  v1::AgentMessage message;
  message.mutable_storage_done()->set_number(command.storage_work().number());
  message.mutable_storage_done()->add_absent("x");
  newer.stream->Write(message);
  const auto result = done.get();
  REQUIRE(result);
  CHECK(result->absent == std::vector<std::string>{"x"});
}

TEST_CASE("when the master stops, both streams end with UNAVAILABLE") {
  Cluster cluster;
  Bench& bench = cluster.bench;
  Agent agent(bench);
  const v1::StartAllocation start = started(bench, agent);
  Harness harness(bench, start);
  CHECK(harness.next().has_attached());
  bench.server.stop(std::chrono::seconds(5));
  CHECK(agent.end().error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(harness.end().error_code() == grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace det::api
