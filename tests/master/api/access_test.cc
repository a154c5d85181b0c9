// Calls each method of each service, found by reflection, as every kind of caller. Expected results are in
// access.case.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>
#include <grpcpp/generic/generic_stub.h>

#include <catch2/catch.hpp>
#include <future>
#include <map>
#include <set>

#include "common/base/files.h"
#include "common/base/text.h"
#include "common/base/wait.h"
#include "master/db/accounts/sessions.h"
#include "master/db/accounts/users.h"
#include "master/db/queries/model_registry.h"
#include "master/db/queries/projects.h"
#include "master/db/queries/templates.h"
#include "master/db/queries/workspaces.h"
#include "server_bench.h"
#include "test_paths.h"
#include "tests/master/db/database.h"
#include "tests/master/db/samples.h"

namespace det::api {
namespace {

namespace pb = google::protobuf;

/// Planted in every text of the workspace "lab"; no stranger may ever receive it.
constexpr const char* kCanary = "canary-4711";
const std::vector<std::string> kCallers = {"stranger", "viewer", "editor", "manager", "admin", "limited"};

struct Line {
  std::string method;
  std::vector<std::string> expected;  ///< In the order of kCallers.
  std::string request;
};

std::vector<Line> read_cases() {
  const auto text = read_file(source_path("/tests/master/api/access.case"));
  REQUIRE(text);
  std::vector<Line> lines;
  for (const std::string& raw : split(*text, '\n')) {
    if (trim(raw).empty() || raw.starts_with('#')) continue;
    const std::size_t first = raw.find('|'), second = raw.find('|', first + 1);
    Line& line = lines.emplace_back();
    line.method = std::string(trim(raw.substr(0, first)));
    for (const std::string& word : split(trim(raw.substr(first + 1, second - first - 1)), ' '))
      if (!word.empty()) line.expected.push_back(word);
    line.request = std::string(trim(raw.substr(second + 1)));
    INFO(line.method);
    REQUIRE(line.expected.size() == kCallers.size());
  }
  return lines;
}

struct Answer {
  grpc::StatusCode code = grpc::StatusCode::OK;
  std::string text;  ///< Message and reply as bytes.
};

/// The workspace "lab" with one object of each kind, and a token for each caller.
struct Lab {
  test::Database database;
  Bench bench{database.connect()};
  std::shared_ptr<grpc::Channel> channel = bench.over_socket();

  Lab() {
    bench.settings.checkpoint_storage = {{"type", "shared_fs"}, {"host_path", "/tmp"}};
    bench.allow_storage("/tmp");
    {
      test::RunningStore store(test::open_store(database));
      core::Experiment experiment = test::plain_experiment();
      experiment.state = core::State::kCompleted;
      core::Trial trial = test::plain_trial();
      trial.state = core::State::kCompleted;
      core::Command command = test::Sampler(1).command(CommandId(1));
      command.state = core::State::kCompleted;
      command.ended = command.submitted;
      store.write({core::PutExperiment{experiment, true}, core::PutTrial{trial}, core::PutCommand{command}});
    }
    db::Pool& pool = bench.pool;
    REQUIRE(pool.query("UPDATE users SET admin = true"));
    REQUIRE(db::create_workspace(pool, "lab", UserId(1)) == 2);
    REQUIRE(db::create_project(pool, 2, "vision", kCanary, UserId(1)) == 2);
    REQUIRE(db::move_experiments(pool, {1}, 2));
    REQUIRE(pool.query("UPDATE experiments SET name = $1, description = $1, original_config = $1", kCanary));
    REQUIRE(pool.query("UPDATE trials SET exit_reason = $1", kCanary));
    REQUIRE(pool.query("UPDATE commands SET workspace_id = 2, exit_message = $1", kCanary));
    REQUIRE(pool.query(
        "INSERT INTO checkpoints (uuid, trial_id, run, task_id, allocation_id, steps_completed, resources,"
        " metadata, size, reported) VALUES ('00000000-0000-4000-8000-000000000001', 1, 1, $1, 'a', 1, '{}', "
        "'{}', 1, now())",
        kCanary));
    REQUIRE(db::create_token(pool, {.user = UserId(1), .description = kCanary}, "x", std::chrono::hours(1)) ==
            1);
    const std::map<std::string, db::Role> roles = {
        {"viewer", db::Role::kViewer}, {"editor", db::Role::kEditor}, {"manager", db::Role::kWorkspaceAdmin}};
    for (const char* const name : {"stranger", "viewer", "editor", "manager"}) {
      users_[name] = db::create_user(pool, name, "x", false).value();
      if (name != std::string("editor"))
        REQUIRE(db::remove_grants(pool, {{users_[name], db::Role::kEditor, 1}}));
      if (roles.contains(name)) REQUIRE(db::add_grants(pool, {{users_[name], roles.at(name), 2}}));
    }
    users_["admin"] = UserId(1);
    users_["limited"] = users_["manager"];
    roles_ = roles;
    log_in();
  }

  /// Renews all sessions and tokens, because logging out is one of the methods under test.
  void log_in() {
    for (const auto& [name, user] : users_) {
      if (name == "limited") continue;
      REQUIRE(db::create_session(bench.pool, user, token_hash(name), std::chrono::hours(1)));
    }
    REQUIRE(bench.pool.query("DELETE FROM sessions WHERE token_hash = $1", token_hash("limited")));
    REQUIRE(db::create_token(bench.pool, {.user = users_["limited"], .most = db::Role::kViewer},
                             token_hash("limited"), std::chrono::hours(1)));
  }
  /// Restores what earlier calls deleted or changed. `deletes`: the method deletes experiments; experiments
  /// then stay active, which blocks deletion for every caller.
  void restore(bool deletes) {
    REQUIRE(bench.pool.query(
        "INSERT INTO webhooks (id, name, url, format, mode, workspace_id) OVERRIDING SYSTEM VALUE"
        " VALUES (1, $1, 'http://127.0.0.1:1/' || $1, 'DEFAULT', 'WORKSPACE', 2) ON CONFLICT (id) DO NOTHING",
        kCanary));
    REQUIRE(bench.pool.query("INSERT INTO user_groups (id, name) VALUES (1, $1) ON CONFLICT DO NOTHING",
                             "audio"));
    (void)db::set_template(bench.pool, {"net", std::string("name: ") + kCanary, 2}, true);
    REQUIRE(bench.pool.query("UPDATE checkpoints SET state = 'COMPLETED'"));
    (void)db::delete_model(bench.pool, "llm");
    REQUIRE(db::create_model(bench.pool, {.name = "llm",
                                          .description = kCanary,
                                          .notes = kCanary,
                                          .metadata = "{}",
                                          .workspace = 2,
                                          .owner = UserId(1)}));
    REQUIRE(db::add_model_version(bench.pool, "llm",
                                  {.checkpoint = CheckpointId("00000000-0000-4000-8000-000000000001"),
                                   .notes = kCanary,
                                   .metadata = "{}",
                                   .owner = UserId(1)}) == 1);
    REQUIRE(bench.pool.query(
        "INSERT INTO generic_tasks (task_id, config) VALUES ('command-1', $1) ON CONFLICT DO NOTHING",
        kCanary));
    restore_spare();
    REQUIRE(db::archive_workspace(bench.pool, 2, false));
    REQUIRE(db::archive_project(bench.pool, 2, false));
    REQUIRE(bench.pool.query("UPDATE experiments SET state = $1, archived = false",
                             deletes ? "ACTIVE" : "COMPLETED"));
  }

  /// Makes command-1 a task of the kind that a method of InteractiveService is about.
  void make_interactive(const std::string& method) {
    for (const std::string kind : {"Notebook", "Shell", "Tensorboard"}) {
      if (!method.starts_with("InteractiveService/") || method.find(kind) == std::string::npos) continue;
      REQUIRE(bench.pool.query("DELETE FROM interactive_tasks"));
      REQUIRE(bench.pool.query(
          "INSERT INTO interactive_tasks (task_id, kind) VALUES ('command-1', upper($1))", kind));
    }
  }

  /// Workspace and project 1001 are there to be deleted, which happens in the background.
  void restore_spare() {
    REQUIRE(wait_until(
        [&] {
          const auto rows = bench.pool.query(
              "SELECT FROM workspaces WHERE id = 1001 AND deletion IS NOT NULL"
              " UNION ALL SELECT FROM projects WHERE id = 1001 AND deletion IS NOT NULL");
          return rows && rows->empty();
        },
        std::chrono::seconds(20)));
    const auto made = bench.pool.query(
        "INSERT INTO workspaces (id, name, owner_id) VALUES (1001, 'spare', 1) ON CONFLICT DO NOTHING");
    REQUIRE(made);
    if (made->affected() > 0) {
      for (const auto& [name, role] : roles_)
        REQUIRE(db::add_grants(bench.pool, {{users_[name], role, 1001}}));
    }
    REQUIRE(
        bench.pool.query("INSERT INTO projects (id, workspace_id, name) VALUES (1001, 1001, 'spare')"
                         " ON CONFLICT DO NOTHING"));
  }

  /// Makes the editor one of trials only, in the workspace "lab".
  void restrict_editor() {
    const UserId editor = users_.at("editor");
    REQUIRE(db::remove_grants(bench.pool, {{editor, db::Role::kEditor, 2}}));
    REQUIRE(db::add_grants(bench.pool, {{editor, db::Role::kEditorRestricted, 2}}));
    log_in();
  }

  Answer call(const std::string& method, const std::string& request,
              const std::vector<std::pair<std::string, std::string>>& metadata) {
    grpc::GenericStub stub(channel);
    grpc::ClientContext context;
    for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
    context.set_deadline(std::chrono::system_clock::time_point(std::chrono::microseconds(wall_now().micros)) +
                         std::chrono::seconds(30));
    grpc::Slice slice(request);
    grpc::ByteBuffer body(&slice, 1), reply;
    std::promise<grpc::Status> done;
    stub.UnaryCall(&context, "/det.v1." + method, {}, &body, &reply,
                   [&](grpc::Status status) { done.set_value(std::move(status)); });
    const grpc::Status status = done.get_future().get();
    Answer answer{status.error_code(), status.error_message() + status.error_details()};
    grpc::Slice got;
    if (status.ok() && reply.TrySingleSlice(&got).ok())
      answer.text.append(reinterpret_cast<const char*>(got.begin()), got.size());
    return answer;
  }
  Answer call_as(const std::string& who, const Line& line) {
    return call(line.method, encode(line), {{"authorization", "Bearer " + who}});
  }

  static const pb::MethodDescriptor& method_of(const Line& line) {
    const auto* method = pb::DescriptorPool::generated_pool()->FindMethodByName(
        "det.v1." + join(split(line.method, '/'), "."));
    INFO(line.method);
    REQUIRE(method);
    return *method;
  }
  static std::string encode(const Line& line) {
    const auto* type = method_of(line).input_type();
    const std::unique_ptr<pb::Message> message(
        pb::MessageFactory::generated_factory()->GetPrototype(type)->New());
    INFO(line.method << ": " << line.request);
    REQUIRE(pb::TextFormat::ParseFromString(line.request, message.get()));
    return message->SerializeAsString();
  }

 private:
  std::map<std::string, UserId> users_;
  std::map<std::string, db::Role> roles_;
};

std::string outcome_of(const Answer& answer) {
  switch (answer.code) {
    case grpc::StatusCode::PERMISSION_DENIED:
      return "no";
    case grpc::StatusCode::NOT_FOUND:
      return "hidden";
    case grpc::StatusCode::UNAUTHENTICATED:
      return "unauthenticated";
    case grpc::StatusCode::ABORTED:
      return "gone";
    case grpc::StatusCode::UNAVAILABLE:
      return "unavailable";
    default:
      return "ok";
  }
}

bool is_user_method(const std::string& method) {
  return access("/det.v1." + method)->requirement == Requirement::kUser;
}

}  // namespace

TEST_CASE("every method of every service has exactly one line in access.case") {
  std::set<std::string> written, offered;
  for (const Line& line : read_cases()) CHECK(written.insert(line.method).second);
  for (const auto* service : services())
    for (int i = 0; i < service->method_count(); ++i)
      offered.insert(service->name() + "/" + service->method(i)->name());
  CHECK(written == offered);
}

TEST_CASE("every method admits exactly the callers listed in access.case") {
  Lab lab;
  for (const Line& line : read_cases()) {
    for (std::size_t i = 0; i < kCallers.size(); ++i) {
      lab.restore(line.method.find("/DeleteExperiment") != std::string::npos);
      lab.make_interactive(line.method);
      const Answer answer = lab.call_as(kCallers[i], line);
      INFO(line.method << " as " << kCallers[i] << ": " << answer.code << " " << answer.text);
      // Traces, and agents, experiments and commands that exist only in the core, are absent for every
      // caller. A role is removed by the first caller that may.
      const bool absent =
          answer.code == grpc::StatusCode::NOT_FOUND && line.expected[i] == "ok" &&
          (line.method.starts_with("ClusterService/") || line.method.ends_with("/GetAllocation") ||
           (line.method.ends_with("/RemoveAssignments") && i > 0 && line.expected[i - 1] == "ok") ||
           line.method.ends_with("/CreateGenericTask") || line.method.ends_with("/DownloadTrialFile") ||
           line.method.ends_with("/GetTrialProfile") ||
           line.method.find("/GetModelDef") != std::string::npos ||
           line.method.ends_with("/GetBestSearcherValidationMetric"));
      const bool login = line.method == "AuthService/Login";
      if (!absent && !login) CHECK(outcome_of(answer) == line.expected[i]);
      if (kCallers[i] == "stranger") CHECK(answer.text.find(kCanary) == std::string::npos);
    }
  }
}

TEST_CASE("a restricted editor starts, changes and enters no tasks that are no trials") {
  const std::set<std::string> more{"TaskService/CreateGenericTask", "TaskService/KillGenericTask",
                                   "TaskService/PauseGenericTask", "TaskService/UnpauseGenericTask",
                                   "TaskService/Connect"};
  Lab lab;
  lab.restrict_editor();
  std::size_t refused = 0;
  for (const Line& line : read_cases()) {
    const bool of_tasks = line.method.starts_with("CommandService/") ||
                          line.method.starts_with("InteractiveService/") || more.contains(line.method);
    // The editor may, and the viewer may not.
    if (!of_tasks || line.expected[2] != "ok" || line.expected[1] != "no") continue;
    lab.make_interactive(line.method);
    INFO(line.method);
    CHECK(outcome_of(lab.call_as("editor", line)) == "no");
    ++refused;
  }
  CHECK(refused >= 16);
}

TEST_CASE("a viewer of a task does not fork it, with its secrets, into a workspace of its own") {
  Lab lab;
  lab.restore(false);
  REQUIRE(lab.bench.pool.query("UPDATE generic_tasks SET config = 'entrypoint: [env]'"));
  REQUIRE(
      lab.bench.pool.query("INSERT INTO grants (user_id, role, workspace_id)"
                           " SELECT id, 'EDITOR', 1 FROM users WHERE name = 'viewer'"));
  const Line fork{.method = "TaskService/CreateGenericTask",
                  .expected = {},
                  .request = "project_id: 1 forked_from: \"command-1\""};
  CHECK(outcome_of(lab.call_as("viewer", fork)) == "no");
  CHECK(outcome_of(lab.call_as("editor", fork)) != "no");
}

TEST_CASE("an editor deletes its own experiments and models, and no others") {
  Lab lab;
  lab.restore(false);
  const Line experiment{
      .method = "ExperimentService/DeleteExperiment", .expected = {}, .request = "experiment_id: 1"};
  const Line model{.method = "ModelService/DeleteModel", .expected = {}, .request = "model_name: \"llm\""};
  CHECK(outcome_of(lab.call_as("editor", model)) == "no");
  CHECK(outcome_of(lab.call_as("editor", experiment)) == "no");
  const Answer bulk = lab.call_as(
      "editor",
      {.method = "ExperimentService/DeleteExperiments", .expected = {}, .request = "experiment_ids: 1"});
  CHECK(bulk.text.find("access denied") != std::string::npos);
  for (const char* table : {"experiments", "models"})
    REQUIRE(lab.bench.pool.query(std::string("UPDATE ") + table +
                                 " SET owner_id = (SELECT id FROM users WHERE name = 'editor')"));
  CHECK(lab.call_as("editor", model).code == grpc::StatusCode::OK);
  CHECK(outcome_of(lab.call_as("editor", experiment)) == "ok");
}

TEST_CASE("GetAllocation reports a failure of the database as such") {
  Lab lab;
  REQUIRE(lab.bench.pool.query("ALTER TABLE commands RENAME COLUMN ended TO finished"));
  const Line line{.method = "AllocationService/GetAllocation",
                  .expected = {},
                  .request = "allocation_id: \"1.task-1.1\""};
  CHECK(lab.call_as("admin", line).code == grpc::StatusCode::INTERNAL);
}

TEST_CASE("the body of a request is read only for a known caller") {
  Lab lab;
  const std::string garbage = "\xff\xff\xff";
  const Answer stranger = lab.call("ModelService/GetModels", garbage, {});
  CHECK(stranger.code == grpc::StatusCode::UNAUTHENTICATED);
  const Answer known = lab.call("ModelService/GetModels", garbage, {{"authorization", "Bearer stranger"}});
  CHECK(known.code == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(known.text.find("the request is not a det.v1.GetModelsRequest") != std::string::npos);
}
TEST_CASE("hidden objects and missing objects give a stranger the same reply") {
  Lab lab;
  for (const Line& line : read_cases()) {
    // As in Determined AI, these refuse what is hidden.
    const bool refused = line.method.starts_with("TemplateService/P") ||
                         line.method.starts_with("WebhookService/") ||
                         line.method == "ModelService/PostModel";
    if ((line.expected[0] != "hidden" && !(refused && line.expected[0] == "no")) ||
        line.request.find("config:") != std::string::npos)
      continue;
    lab.restore(line.method.find("/DeleteExperiment") != std::string::npos);
    Line nowhere = line;
    // The same request for an object that does not exist.
    for (const auto& [id, other] : {std::pair<std::string, std::string>{": 1001", ": 4242"},
                                    {": 1", ": 4242"},
                                    {": 2", ": 4242"},
                                    {"\"00000000-0000-4000-8000-000000000001\"", "\"4242\""},
                                    {"\"command-1\"", "\"4242\""},
                                    {"template_name: \"net\"", "template_name: \"4242\""},
                                    {"old_name: \"net\"", "old_name: \"4242\""},
                                    {"model_name: \"llm\"", "model_name: \"4242\""}}) {
      for (std::size_t at = 0; (at = nowhere.request.find(id, at)) != std::string::npos; at += other.size())
        nowhere.request.replace(at, id.size(), other);
    }
    const Answer hidden = lab.call_as("stranger", line), absent = lab.call_as("stranger", nowhere);
    INFO(line.method << ": " << hidden.text << " / " << absent.text);
    CHECK(hidden.code == absent.code);
    std::string text = hidden.text;
    for (const std::string id :
         {"workspace 1001", "project 1001", "workspace 1", "workspace 2", "project 2", "experiment 1",
          "trial 1", "token 1", "checkpoint 00000000-0000-4000-8000-000000000001", "task command-1",
          "webhook 1"}) {
      if (const std::size_t at = text.find(id); at != std::string::npos)
        text.replace(at, id.size(), id.substr(0, id.find(' ')) + " 4242");
    }
    if (const std::size_t at = text.find("\"llm\""); at != std::string::npos) text.replace(at, 5, "\"4242\"");
    if (const std::size_t at = text.find("\"net\""); at != std::string::npos) text.replace(at, 5, "\"4242\"");
    if (line.method != "WorkspaceService/PostWorkspace") CHECK(text == absent.text);
  }
}

TEST_CASE("no method takes a token that is missing, made up, expired or revoked, or an ended allocation's") {
  Lab lab;
  REQUIRE(db::create_session(lab.bench.pool, UserId(1), token_hash("expired"), std::chrono::hours(-1)));
  const auto revoked =
      db::create_token(lab.bench.pool, {.user = UserId(1)}, token_hash("revoked"), std::chrono::hours(1));
  REQUIRE(db::change_token(lab.bench.pool, *revoked, std::nullopt, true));
  const std::string allocation = token_hash("an allocation that has ended");
  const std::vector<std::vector<std::pair<std::string, std::string>>> ways = {
      {},
      {{"authorization", "Bearer "}},
      {{"authorization", "Bearer guessed"}},
      {{"authorization", "admin"}},
      {{"authorization", "Basic admin"}},
      {{"authorization", "Bearer expired"}},
      {{"authorization", "Bearer revoked"}},
      {{"x-user-token", "Bearer expired"}},
      {{"authorization", "Bearer " + token_hash("admin")}},  // The stored hash is not a token.
      {{"authorization", "Bearer " + allocation}},
      {{"x-allocation-token", "Bearer " + allocation}},
      {{"x-det-peer", "127.0.0.1"}},  // Only the gateway may set this header.
  };
  for (const Line& line : read_cases()) {
    if (line.method == "AuthService/Login" || line.method == "ClusterService/GetMaster") continue;
    for (const auto& way : ways) {
      const Answer answer = lab.call(line.method, Lab::encode(line), way);
      INFO(line.method << (way.empty() ? "" : " with " + way[0].first + ": " + way[0].second) << ": "
                       << answer.code << " " << answer.text);
      const std::string outcome = outcome_of(answer);
      if (is_user_method(line.method))
        CHECK(outcome == "unauthenticated");
      else
        CHECK((outcome == "unauthenticated" || outcome == "no" || outcome == "gone" ||
               answer.code == grpc::StatusCode::INVALID_ARGUMENT));
      CHECK(answer.text.find(kCanary) == std::string::npos);
    }
  }
}

TEST_CASE("changes and refusals are in the audit log, reads are not") {
  Lab lab;
  const std::vector<Line> lines = read_cases();
  const auto call = [&](const std::string& method, const std::string& who) {
    for (const Line& line : lines)
      if (line.method == method) (void)lab.call_as(who, line);
  };
  call("ExperimentService/GetExperiment", "editor");
  CHECK(lab.database.number("SELECT count(*) FROM audit") == 0);
  call("ExperimentService/KillExperiment", "viewer");
  call("ExperimentService/KillExperiment", "stranger");
  call("UserService/PatchUser", "admin");
  CHECK(lab.database.value(
            "SELECT string_agg(username || ' ' || action || ' ' || object || ' ' || outcome, ',' ORDER BY id)"
            " FROM audit") ==
        "viewer ExperimentService/KillExperiment experiment 1 PermissionDenied,"
        "stranger ExperimentService/KillExperiment experiment 1 NotFound,"
        "ada UserService/PatchUser user 1 OK");
}

TEST_CASE("the audit log names the objects of a call") {
  Lab lab;
  const auto object_of = [&](const std::string& method, const std::string& request) {
    (void)lab.call_as("admin", {method, {}, request});
    return lab.database.value("SELECT object FROM audit ORDER BY id DESC LIMIT 1");
  };
  CHECK(object_of("ExperimentService/ContinueExperiment", "id: 1 validate_only: true") ==
        "experiment 1, check only");
  CHECK(object_of("ExperimentService/ArchiveExperiments", "experiment_ids: [1, 999]") == "1, 999 (refused)");
  const std::string assignments =
      "user_role_assignments { user_id: 1 role_assignment { role { role_id: 5 }"
      " scope_workspace_id { value: 2 } } } group_role_assignments { group_id: 77"
      " role_assignment { role { name: \"Viewer\" } } }";
  CHECK(object_of("RoleService/AssignRoles", assignments) ==
        "role Editor for user 1 in workspace 2, role Viewer for group 77");
  std::string ids;
  for (int id = 101; id <= 999; ++id) ids += "experiment_ids: " + std::to_string(id) + " ";
  CHECK_THAT(object_of("ExperimentService/ArchiveExperiments", ids),
             Catch::StartsWith("101 (refused), 102 (refused), ") && Catch::EndsWith(" more"));
}

TEST_CASE("the audit log names what a call has created") {
  Lab lab;
  const auto made = lab.call_as("admin", {"ProjectService/PostProject", {}, "workspace_id: 2 name: 'fresh'"});
  REQUIRE(made.code == grpc::StatusCode::OK);
  (void)lab.call_as("admin", {"TokenService/PostAccessToken", {}, "user_id: 1"});
  const std::string project = lab.database.value("SELECT id::text FROM projects WHERE name = 'fresh'");
  CHECK_THAT(lab.database.value("SELECT string_agg(object || ' ' || outcome, ',' ORDER BY id) FROM audit"),
             Catch::Contains("project " + project + " OK,") && Catch::Contains("token "));
}

}  // namespace det::api
