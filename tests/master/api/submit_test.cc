// Submissions are checked against templates, config policies and the cluster. Needs a database.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "common/client/calls.h"
#include "det/status.pb.h"
#include "det/v1/command.methods.h"
#include "det/v1/experiment.methods.h"
#include "det/v1/job.methods.h"
#include "det/v1/policy.methods.h"
#include "det/v1/project.methods.h"
#include "det/v1/task.methods.h"
#include "det/v1/template.methods.h"
#include "det/v1/user.methods.h"
#include "det/v1/workspace.methods.h"
#include "master/api/experiments/facts.h"
#include "master/db/accounts/sessions.h"
#include "master/db/accounts/users.h"
#include "master/db/queries/projects.h"
#include "master/db/queries/workspaces.h"
#include "server_bench.h"
#include "tests/master/db/database.h"

namespace det::api {
namespace {

/// Returns the experiment with the greatest id; there must be one.
const core::Experiment& newest_in(const core::Core& core) {
  ExperimentId newest;
  for (const auto& [id, experiment] : core.experiments()) newest = std::max(newest, id);
  return core.experiments().at(newest);
}

constexpr const char* kPlain = "name: x\nentrypoint: run\nsearcher: {name: single, metric: loss}\n";

struct Desk {
  test::Database database;
  Bench bench;
  std::shared_ptr<grpc::Channel> channel = bench.over_socket();
  std::string token = "admin's token";

  explicit Desk(core::Options options = {}) : bench(database.connect(), std::move(options)) {
    const auto other = db::create_user(bench.pool, "eve", "x", false).value();
    bench.settings.checkpoint_storage = {{"type", "shared_fs"}, {"host_path", "/tmp"}};
    bench.allow_storage("/tmp");
    REQUIRE(db::create_session(bench.pool, UserId(1), token_hash("admin's token"), std::chrono::hours(1)));
    REQUIRE(db::create_session(bench.pool, other, token_hash("eve's token"), std::chrono::hours(1)));
    REQUIRE(bench.pool.query("UPDATE users SET admin = (id = 1)"));
  }

  void connect_agent(const std::string& name, const std::string& pool, int slots) {
    REQUIRE(bench.loop.ask(
        core::AgentConnected{.agent = AgentId(name),
                             .instance = name,
                             .pool = pool,
                             .slots = std::vector<core::Device>(static_cast<std::size_t>(slots)),
                             .session = ++sessions_}));
  }

  template <typename Request, typename Response>
  grpc::Status call(UnaryMethod<Request, Response> method, const Request& request, Response* response) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + token);
    context.set_deadline(std::chrono::system_clock::time_point(std::chrono::microseconds(wall_now().micros)) +
                         std::chrono::seconds(60));
    return wire::call(channel, method, context, request, *response);
  }

  grpc::Status create(const std::string& config, v1::CreateExperimentResponse* response,
                      const std::string& template_name = "") {
    v1::CreateExperimentRequest request;
    request.set_config(config);
    request.set_config_name("t.yaml");
    request.set_template_(template_name);
    return call(v1::ExperimentService::CreateExperiment, request, response);
  }
  /// The problems that refuse the submission, one a line; "" when it is accepted.
  std::string refused(const std::string& config, const std::string& template_name = "") {
    v1::CreateExperimentResponse response;
    const grpc::Status status = create(config, &response, template_name);
    if (status.ok()) return "";
    CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
    google::rpc::Status details;
    v1::Problems problems;
    REQUIRE(details.ParseFromString(status.error_details()));
    REQUIRE(details.details(0).UnpackTo(&problems));
    std::string lines;
    for (const v1::Problem& each : problems.problems())
      lines += to_string(Problem{each.code(), each.path(), each.message(), each.file(), each.line(),
                                 each.column()}) +
               "\n";
    return lines;
  }
  grpc::Status set_template(const std::string& name, const std::string& text) {
    v1::SetTemplateRequest request;
    request.set_template_name(name);
    request.set_text(text);
    v1::SetTemplateResponse response;
    return call(v1::TemplateService::PutTemplate, request, &response);
  }
  grpc::Status set_policies(const std::string& text) {
    v1::PutGlobalConfigPoliciesRequest request;
    request.set_workload_type("experiment");
    request.set_config_policies(text);
    v1::PutConfigPoliciesResponse response;
    return call(v1::ConfigPolicyService::PutGlobalConfigPolicies, request, &response);
  }
  std::int64_t stored() { return database.number("SELECT count(*) FROM model_definitions"); }
  int experiments() {
    int count = 0;
    REQUIRE(bench.loop.inspect(
        [&](const core::Core& core) { count = static_cast<int>(core.experiments().size()); }));
    return count;
  }

 private:
  std::uint64_t sessions_ = 0;
};

}  // namespace

TEST_CASE("marks that reorder or hide text are replaced in errors") {
  Desk desk;
  const std::string said = desk.refused(std::string(kPlain) + "\"a\\u202Eb\": 1\n\"c\\u200Bd\": 1\n");
  CHECK(said.find("a\uFFFDb") != std::string::npos);
  CHECK(said.find("c\uFFFDd") != std::string::npos);
}

TEST_CASE("settings of a user that are replaced count once") {
  Desk desk;
  v1::PostUserSettingRequest request;
  for (int i = 0; i < 1000; ++i) {
    v1::UserWebSetting* one = request.add_settings();
    one->set_storage_path("ui");
    one->set_key("key" + std::to_string(i));
    one->set_value("1");
  }
  v1::PostUserSettingResponse response;
  for (int i = 0; i < 3; ++i) CHECK(desk.call(v1::UserService::PostUserSetting, request, &response).ok());
  for (auto& one : *request.mutable_settings()) one.set_storage_path("other");
  CHECK(desk.call(v1::UserService::PostUserSetting, request, &response).ok());
  for (auto& one : *request.mutable_settings()) one.set_storage_path("too many");
  CHECK(desk.call(v1::UserService::PostUserSetting, request, &response).error_code() ==
        grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_CASE("a submission that no agent of the pool can run is refused with every problem and not stored") {
  Desk desk;
  desk.connect_agent("a1", "default", 4);
  desk.connect_agent("a2", "default", 4);
  const std::string told = desk.refused(std::string(kPlain) +
                                        "resources: {slots_per_trial: 9}\nmax_restarts: -1\n"
                                        "workspace: Research\nproject: Vision\n");
  CHECK_THAT(told,
             Catch::Contains("t.yaml:4:30") && Catch::Contains("E-CFG-UNSAT") &&
                 Catch::Contains(
                     "9 slots; pool default has 8 on 2 agents; would fit: 4 slots on one agent, or 8 over 2 "
                     "agents"));
  CHECK_THAT(told, Catch::Contains("t.yaml:5:15") && Catch::Contains("E-CFG-RANGE"));
  CHECK_THAT(told, Catch::Contains("t.yaml:7:10") && Catch::Contains("E-CFG-REF"));
  CHECK_THAT(desk.refused(std::string(kPlain) + "resources: {resource_pool: defualt}\n"),
             Catch::Contains("E-CFG-REF") && Catch::Contains("did you mean \"default\"?"));
  CHECK_THAT(
      desk.refused("name: x\nentrypoint: run\nsearcher: {name: single, metric: m, source_trial_id: 9}\n"),
      Catch::Contains("no trial 9"));
  CHECK(desk.experiments() == 0);
  CHECK(desk.stored() == 0);
}

TEST_CASE("a source of a submission is refused while the right to see it cannot be checked") {
  Desk desk;
  Pools pools(desk.bench.context);
  const Caller stranger{};
  const auto facts = cluster_facts(desk.bench.context, stranger, pools, 1);
  REQUIRE(facts);
  REQUIRE(desk.bench.pool.query("ALTER TABLE trials RENAME TO unreadable"));
  CHECK_FALSE(facts->has_trial(1));
  CHECK_FALSE(facts->has_checkpoint("00000000-0000-4000-8000-000000000001"));
}

TEST_CASE("a pool that has never had an agent accepts submissions") {
  Desk desk;
  v1::CreateExperimentResponse response;
  const auto status = desk.create(std::string(kPlain) + "resources: {slots_per_trial: 64}\n", &response);
  // The reply reads the row from the database, which this bench's store does not write to.
  CHECK(status.error_code() == grpc::StatusCode::NOT_FOUND);
  CHECK(desk.experiments() == 1);
}

TEST_CASE("a template is checked when set, fills in defaults, and is reported when missing") {
  Desk desk;
  const grpc::Status wrong = desk.set_template("net", "name: y\nresources: {priority: 300}\n");
  CHECK(wrong.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK_THAT(wrong.error_message(), Catch::Contains("template \"net\":2:23"));
  REQUIRE(desk.set_template("net", "searcher: {name: single, metric: loss}\nentrypoint: run\n").ok());
  REQUIRE(desk.set_template("net", "searcher: {name: single, metric: loss}\n").ok());

  v1::GetTemplatesResponse list;
  REQUIRE(desk.call(v1::TemplateService::GetTemplates, v1::GetTemplatesRequest(), &list).ok());
  REQUIRE(list.templates_size() == 1);
  CHECK(list.templates(0).name() == "net");
  CHECK(list.templates(0).config().fields().contains("searcher"));

  v1::CreateExperimentResponse none;
  const grpc::Status unknown = desk.create("name: x\n", &none, "nett");
  CHECK(unknown.error_code() == grpc::StatusCode::NOT_FOUND);
  CHECK_THAT(unknown.error_message(),
             Catch::Contains("there is no template \"nett\"; did you mean \"net\"?"));
  CHECK_THAT(desk.refused("name: x\n", "net"), Catch::Contains("entrypoint") && !Catch::Contains("searcher"));
  CHECK(desk.experiments() == 0);
  v1::CreateExperimentResponse response;
  (void)desk.create("entrypoint: run\n", &response, "net");
  CHECK(desk.experiments() == 1);

  v1::DeleteTemplateRequest gone;
  gone.set_template_name("net");
  v1::DeleteTemplateResponse nothing;
  CHECK(desk.call(v1::TemplateService::DeleteTemplate, gone, &nothing).ok());
  CHECK(desk.call(v1::TemplateService::DeleteTemplate, gone, &nothing).error_code() ==
        grpc::StatusCode::NOT_FOUND);
}

TEST_CASE("the use of a template with secrets needs the right to edit in its workspace") {
  Desk desk;
  REQUIRE(desk.bench.pool.query("INSERT INTO workspaces (id, name, owner_id) VALUES (77, 'other', 1)"));
  REQUIRE(
      desk.bench.pool.query("INSERT INTO grants (user_id, role, workspace_id) SELECT id, 'VIEWER', 77 FROM "
                            "users WHERE name = 'eve'"));
  const std::string plain = "searcher: {name: single, metric: loss}\n";
  const std::string secret =
      plain + "checkpoint_storage: {type: s3, bucket: b, access_key: public, secret_key: private}\n";
  for (const auto& [name, text] : {std::pair{"plain", plain}, {"secret", secret}})
    REQUIRE(desk.bench.pool.query("INSERT INTO templates (name, text, workspace_id) VALUES ($1, $2, 77)",
                                  std::string(name), text));
  desk.token = "eve's token";
  v1::CreateExperimentResponse none;
  const grpc::Status refused = desk.create("name: x\n", &none, "secret");
  CHECK(refused.error_code() == grpc::StatusCode::PERMISSION_DENIED);
  CHECK_THAT(refused.error_message(), Catch::Contains("template \"secret\" has secrets"));
  CHECK_THAT(desk.refused("name: x\n", "plain"), Catch::Contains("entrypoint"));
  desk.token = "admin's token";
  CHECK_THAT(desk.refused("name: x\n", "secret"), Catch::Contains("entrypoint"));
}

TEST_CASE("policies are set by admins and bind all users") {
  Desk desk;
  desk.token = "eve's token";
  CHECK(desk.set_policies("constraints: {priority_limit: 40}\n").error_code() ==
        grpc::StatusCode::PERMISSION_DENIED);
  desk.token = "admin's token";
  CHECK_THAT(desk.set_policies("constraint: {}\n").error_message(),
             Catch::Contains("did you mean \"constraints\"?"));
  REQUIRE(desk.set_policies("invariant_config: {max_restarts: 1}\nconstraints: {priority_limit: 40}\n").ok());
  CHECK_THAT(desk.refused(std::string(kPlain) + "resources: {priority: 3}\n"),
             Catch::Contains("t.yaml:4:23") && Catch::Contains("E-CFG-SECURITY") &&
                 Catch::Contains("priority_limit is set by config policy:2:31"));
  v1::CreateExperimentRequest request;
  request.set_config(std::string(kPlain) + "max_restarts: 9\n");
  request.set_config_name("t.yaml");
  request.set_validate_only(true);
  v1::CreateExperimentResponse response;
  REQUIRE(desk.call(v1::ExperimentService::CreateExperiment, request, &response).ok());
  CHECK(response.config().fields().at("max_restarts").number_value() == 1);
  REQUIRE(response.config_warnings_size() == 1);
  CHECK_THAT(response.config_warnings(0), Catch::Contains("is not heeded: config policy:1:34 sets it"));
  CHECK(desk.experiments() == 0);

  v1::DeleteGlobalConfigPoliciesRequest gone;
  gone.set_workload_type("EXPERIMENT");
  v1::DeleteConfigPoliciesResponse nothing;
  REQUIRE(desk.call(v1::ConfigPolicyService::DeleteGlobalConfigPolicies, gone, &nothing).ok());
  CHECK(desk.refused(std::string(kPlain) + "resources: {priority: 300}\n").find("config policy") ==
        std::string::npos);
}

TEST_CASE("workspace policies apply to their workspace, and cluster policies override them") {
  Desk desk;
  const std::int64_t lab = db::create_workspace(desk.bench.pool, "lab", UserId(1)).value();
  REQUIRE(db::create_project(desk.bench.pool, lab, "vision", "", UserId(1)));
  v1::PutWorkspaceConfigPoliciesRequest put;
  put.set_workspace_id(static_cast<int>(lab));
  put.set_workload_type("EXPERIMENT");
  put.set_config_policies(
      "invariant_config: {max_restarts: 2, description: lab's}\nconstraints: {priority_limit: 30}\n");
  v1::PutConfigPoliciesResponse stored;
  REQUIRE(desk.call(v1::ConfigPolicyService::PutWorkspaceConfigPolicies, put, &stored).ok());
  REQUIRE(desk.set_policies("invariant_config: {max_restarts: 1}\n").ok());

  const std::string inside = std::string(kPlain) + "workspace: lab\nproject: vision\n";
  v1::CreateExperimentRequest request;
  request.set_validate_only(true);
  v1::CreateExperimentResponse response;
  request.set_config(inside);
  REQUIRE(desk.call(v1::ExperimentService::CreateExperiment, request, &response).ok());
  CHECK(response.config().fields().at("max_restarts").number_value() == 1);
  CHECK(response.config().fields().at("description").string_value() == "lab's");
  CHECK_THAT(desk.refused(inside + "resources: {priority: 3}\n"),
             Catch::Contains("priority_limit is set by config policy of workspace \"lab\":2:31"));
  request.set_config(std::string(kPlain) + "resources: {priority: 3}\n");
  response.Clear();
  REQUIRE(desk.call(v1::ExperimentService::CreateExperiment, request, &response).ok());
  CHECK(response.config().fields().at("description").string_value().empty());

  v1::DeleteWorkspaceConfigPoliciesRequest gone;
  gone.set_workspace_id(static_cast<int>(lab));
  gone.set_workload_type("EXPERIMENT");
  v1::DeleteConfigPoliciesResponse nothing;
  REQUIRE(desk.call(v1::ConfigPolicyService::DeleteWorkspaceConfigPolicies, gone, &nothing).ok());
  v1::GetWorkspaceConfigPoliciesRequest get;
  get.set_workspace_id(static_cast<int>(lab));
  get.set_workload_type("EXPERIMENT");
  v1::GetConfigPoliciesResponse none;
  REQUIRE(desk.call(v1::ConfigPolicyService::GetWorkspaceConfigPolicies, get, &none).ok());
  CHECK(none.text().empty());
}

TEST_CASE("the destination comes from the request, then the cluster's policy, then the file") {
  Desk desk;
  const std::int64_t lab = db::create_workspace(desk.bench.pool, "lab", UserId(1)).value();
  const std::int64_t vision = db::create_project(desk.bench.pool, lab, "vision", "", UserId(1)).value();
  const std::int64_t sound = db::create_project(desk.bench.pool, lab, "sound", "", UserId(1)).value();
  v1::CreateExperimentRequest request;
  request.set_config(std::string(kPlain) + "workspace: lab\nproject: vision\n");
  const auto goes_to = [&] {
    v1::CreateExperimentResponse response;
    const int before = desk.experiments();
    const grpc::Status status = desk.call(v1::ExperimentService::CreateExperiment, request, &response);
    if (desk.experiments() == before) return status.error_message();
    // The core keeps its rows in memory, so the reply does not find them in the database.
    std::int64_t project = 0;
    REQUIRE(desk.bench.loop.inspect([&](const core::Core& core) { project = newest_in(core).project; }));
    return std::to_string(project);
  };
  CHECK(goes_to() == std::to_string(vision));
  REQUIRE(desk.set_policies("invariant_config: {workspace: lab, project: sound}\n").ok());
  CHECK(goes_to() == std::to_string(sound));
  request.set_project_id(1);
  CHECK(goes_to() == "1");
  request.set_project_id(99);
  CHECK_THAT(goes_to(), Catch::Contains("project 99 not found"));
  request.set_project_id(0);
  REQUIRE(db::archive_project(desk.bench.pool, sound, true));
  CHECK_THAT(goes_to(), Catch::Contains("project sound is archived; unarchive it first"));
  REQUIRE(desk.set_policies("invariant_config: {project: none}\n").ok());
  CHECK_THAT(goes_to(), Catch::Contains("no project \"none\" in a workspace \"lab\" is open to you"));
}

TEST_CASE("a submission that was checked before the deletion of its project or workspace is refused") {
  Desk desk;
  const std::int64_t lab = db::create_workspace(desk.bench.pool, "lab", UserId(1)).value();
  const std::int64_t vision = db::create_project(desk.bench.pool, lab, "vision", "", UserId(1)).value();
  const core::SubmitExperiment experiment{.request_id = RequestId("r"),
                                          .project = vision,
                                          .workspace = lab,
                                          .config = std::make_shared<const expconf::ExperimentConfig>()};
  v1::ProjectActionRequest project;
  project.set_id(static_cast<int>(vision));
  v1::DeleteProjectResponse deleted;
  REQUIRE(desk.call(v1::ProjectService::DeleteProject, project, &deleted).ok());
  REQUIRE(deleted.completed());
  CHECK_THAT(desk.bench.loop.ask(experiment).error().message,
             Catch::Contains("project " + std::to_string(vision) + " is being deleted"));
  v1::WorkspaceActionRequest workspace;
  workspace.set_id(static_cast<int>(lab));
  v1::DeleteWorkspaceResponse gone;
  REQUIRE(desk.call(v1::WorkspaceService::DeleteWorkspace, workspace, &gone).ok());
  REQUIRE(gone.completed());
  const core::SubmitCommand command{
      .task = TaskId("c"), .workspace = lab, .config = std::make_shared<const expconf::CommandConfig>()};
  CHECK_THAT(desk.bench.loop.ask(command).error().message,
             Catch::Contains("workspace " + std::to_string(lab) + " is being deleted"));
}

TEST_CASE("a task names the scheduling policy of its pool") {
  Desk desk(core::Options{.pool_rules = {.policy = scheduler::Policy::kFairShare}});
  desk.connect_agent("a1", "default", 1);
  v1::LaunchCommandRequest launch;
  v1::LaunchCommandResponse launched;
  launch.set_text("entrypoint: [x]\nresources: {slots: 1}\n");
  // The bench's store keeps nothing, so that the reply finds no row.
  (void)desk.call(v1::CommandService::LaunchCommand, launch, &launched);
  v1::GetTasksResponse tasks;
  REQUIRE(desk.call(v1::TaskService::GetTasks, v1::GetTasksRequest(), &tasks).ok());
  REQUIRE(tasks.allocation_id_to_summary_size() == 1);
  CHECK(tasks.allocation_id_to_summary().begin()->second.scheduler_type() == "fair_share");
}

TEST_CASE("queue changes cannot bypass a policy") {
  Desk desk;
  v1::CreateExperimentResponse response;
  (void)desk.create(std::string(kPlain) + "resources: {priority: 42}\n", &response);
  (void)desk.create(std::string(kPlain) + "resources: {priority: 5}\n", &response);
  REQUIRE(desk.set_policies("constraints: {priority_limit: 40, resources: {max_slots: 4}}\n").ok());
  std::map<ExperimentId, std::string> jobs;
  REQUIRE(desk.bench.loop.inspect([&](const core::Core& core) {
    for (const auto& [id, experiment] : core.experiments()) jobs[id] = experiment.job_id;
  }));
  REQUIRE(jobs.size() == 2);
  const auto told = [&](auto change) {
    v1::UpdateJobQueueRequest request;
    v1::QueueControl* control = request.add_updates();
    control->set_job_id(jobs.begin()->second);
    change(control);
    v1::UpdateJobQueueResponse nothing;
    return desk.call(v1::JobService::UpdateJobQueue, request, &nothing).error_message();
  };
  CHECK_THAT(
      told([](auto* control) { control->set_priority(39); }),
      Catch::Contains(
          "priority must be at least 40 (smaller goes first), the limit set by config policy:1:31, not 39"));
  CHECK_THAT(told([](auto* control) { control->set_max_slots(5); }),
             Catch::Contains("max_slots must be at most 4, the limit set by config policy:1:58, not 5"));
  CHECK_THAT(told([](auto* control) { control->set_max_slots(0); }), Catch::Contains("not 0 (no limit)"));
  CHECK_THAT(told([&](auto* control) { control->set_ahead_of(jobs.rbegin()->second); }),
             Catch::Contains("not 5, that of the job it would stand beside"));
  CHECK(told([](auto* control) { control->set_priority(40); }).empty());
  CHECK(told([](auto* control) { control->set_max_slots(4); }).empty());
}

TEST_CASE("task policies of cluster and workspace bind commands, and queue changes cannot bypass them") {
  Desk desk;
  v1::PutConfigPoliciesResponse stored;
  v1::PutWorkspaceConfigPoliciesRequest lab;
  lab.set_workspace_id(1);
  lab.set_workload_type("NTSC");
  lab.set_config_policies("constraints: {priority_limit: 30}\n");
  REQUIRE(desk.call(v1::ConfigPolicyService::PutWorkspaceConfigPolicies, lab, &stored).ok());
  v1::PutGlobalConfigPoliciesRequest all;
  all.set_workload_type("ntsc");
  all.set_config_policies("invariant_config: {max_restarts: 1}\n");
  CHECK(desk.call(v1::ConfigPolicyService::PutGlobalConfigPolicies, all, &stored).error_code() ==
        grpc::StatusCode::INVALID_ARGUMENT);
  all.set_config_policies("invariant_config: {description: fixed}\nconstraints: {priority_limit: 20}\n");
  REQUIRE(desk.call(v1::ConfigPolicyService::PutGlobalConfigPolicies, all, &stored).ok());

  v1::LaunchCommandRequest launch;
  v1::LaunchCommandResponse launched;
  launch.set_text("entrypoint: [x]\nresources: {slots: 0, priority: 25}\n");
  const auto refused = desk.call(v1::CommandService::LaunchCommand, launch, &launched);
  CHECK(refused.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK_THAT(refused.error_details(),
             Catch::Contains("task config policy of workspace \"Uncategorized\":1:31"));
  launch.set_text("entrypoint: [x]\ndescription: mine\nresources: {slots: 0, priority: 35}\n");
  // The bench's store keeps nothing: reading the row back fails, although the core launched the command.
  (void)desk.call(v1::CommandService::LaunchCommand, launch, &launched);
  std::string job, description;
  REQUIRE(desk.bench.loop.inspect([&](const core::Core& core) {
    for (const auto& [id, command] : core.commands()) {
      job = command.job_id;
      description = command.config->description;
    }
  }));
  CHECK(description == "fixed");
  v1::UpdateJobQueueRequest request;
  v1::QueueControl* control = request.add_updates();
  control->set_job_id(job);
  control->set_priority(29);
  v1::UpdateJobQueueResponse nothing;
  CHECK_THAT(desk.call(v1::JobService::UpdateJobQueue, request, &nothing).error_message(),
             Catch::Contains("priority must be at least 30"));
  control->set_priority(31);
  CHECK(desk.call(v1::JobService::UpdateJobQueue, request, &nothing).ok());
}

TEST_CASE("a restricted editor changes no command in a queue") {
  Desk desk;
  v1::LaunchCommandRequest launch;
  v1::LaunchCommandResponse launched;
  launch.set_text("entrypoint: [x]\nresources: {slots: 0}\n");
  // The bench's store keeps nothing: reading the row back fails, although the core launched the command.
  (void)desk.call(v1::CommandService::LaunchCommand, launch, &launched);
  std::optional<core::Command> command;
  REQUIRE(
      desk.bench.loop.inspect([&](const core::Core& core) { command = core.commands().begin()->second; }));
  REQUIRE(command);
  {
    test::RunningStore store(test::open_store(desk.database));
    store.write({core::PutCommand{*command}});
  }
  REQUIRE(
      desk.bench.pool.query("UPDATE grants SET role = 'EDITOR_RESTRICTED' WHERE user_id ="
                            " (SELECT id FROM users WHERE name = 'eve')"));
  v1::UpdateJobQueueRequest request;
  v1::QueueControl* control = request.add_updates();
  control->set_job_id(command->job_id);
  control->set_priority(50);
  v1::UpdateJobQueueResponse nothing;
  desk.token = "eve's token";
  CHECK(desk.call(v1::JobService::UpdateJobQueue, request, &nothing).error_code() ==
        grpc::StatusCode::PERMISSION_DENIED);
  desk.token = "admin's token";
  CHECK(desk.call(v1::JobService::UpdateJobQueue, request, &nothing).ok());
}

}  // namespace det::api
