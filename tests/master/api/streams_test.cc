// Streams closed when their reader loses access, passwords and tokens over the wire, and the session cache.
// Needs a database.
#include <catch2/catch.hpp>
#include <numeric>
#include <thread>

#include "common/base/log_history.h"
#include "common/base/wait.h"
#include "common/client/calls.h"
#include "det/v1/auth.methods.h"
#include "det/v1/log.methods.h"
#include "det/v1/master.methods.h"
#include "det/v1/project.methods.h"
#include "det/v1/role.methods.h"
#include "det/v1/token.methods.h"
#include "det/v1/trial.methods.h"
#include "det/v1/user.methods.h"
#include "master/api/auth/passwords.h"
#include "master/db/queries/projects.h"
#include "master/db/queries/workspaces.h"
#include "server_bench.h"
#include "tests/master/db/database.h"
#include "tests/master/db/samples.h"

namespace det::api {
namespace {

constexpr const char* kPassword = "correct horse battery";

/// A running trial in the default workspace. ada is the admin, eve an editor.
struct Office {
  test::Database database;
  Bench bench{database.connect()};
  std::shared_ptr<grpc::Channel> channel = bench.over_socket();
  UserId eve;

  Office() {
    test::RunningStore store(test::open_store(database));
    store.write({core::PutExperiment{test::plain_experiment(), true}, core::PutTrial{test::plain_trial()}});
    REQUIRE(bench.pool.query("UPDATE users SET admin = true"));
    REQUIRE(db::create_session(bench.pool, UserId(1), token_hash("ada"), std::chrono::hours(1)));
    eve = db::create_user(bench.pool, "eve", hash_password(password_form(kPassword, false).value()), false)
              .value();
  }

  void prepare(grpc::ClientContext& context, const std::string& token) {
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    context.set_deadline(std::chrono::system_clock::time_point(std::chrono::microseconds(wall_now().micros)) +
                         std::chrono::seconds(60));
  }
  template <typename Request, typename Response>
  grpc::Status call(const std::string& token, UnaryMethod<Request, Response> method, const Request& request,
                    Response* response) {
    grpc::ClientContext context;
    prepare(context, token);
    return wire::call(channel, method, context, request, *response);
  }
  std::string log_in(const std::string& password = kPassword) {
    v1::LoginRequest request;
    request.set_username("eve");
    request.set_password(password);
    v1::LoginResponse response;
    (void)call("", v1::AuthService::Login, request, &response);
    return response.token();
  }
  /// Returns "" when refused.
  std::string make_token(const std::string& as, const std::string& role = "",
                         const std::string& lifespan = "") {
    v1::PostAccessTokenRequest request;
    request.set_role(role);
    request.set_lifespan(lifespan);
    v1::PostAccessTokenResponse response;
    (void)call(as, v1::TokenService::PostAccessToken, request, &response);
    return response.token();
  }
  grpc::Status patch_eve(const std::string& as, const v1::PatchUser& change) {
    v1::PatchUserRequest request;
    request.set_user_id(static_cast<int>(eve.value));
    *request.mutable_user() = change;
    v1::PatchUserResponse response;
    return call(as, v1::UserService::PatchUser, request, &response);
  }
  bool works(const std::string& token) {
    v1::CurrentUserResponse response;
    return call(token, v1::AuthService::CurrentUser, v1::CurrentUserRequest(), &response).ok();
  }
};

/// Follows the log of the trial.
struct Follower {
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<v1::LogEntry>> reader;

  Follower(Office& office, const std::string& token) {
    office.prepare(context, token);
    v1::TrialLogsRequest request;
    request.set_trial_id(1);
    request.set_follow(true);
    reader = wire::open(office.channel, v1::LogService::TrialLogs, context, request);
    reader->WaitForInitialMetadata();
  }
  grpc::StatusCode end() {
    v1::LogEntry entry;
    while (reader->Read(&entry)) {
    }
    return reader->Finish().error_code();
  }
};

}  // namespace

TEST_CASE("a log that grows faster than it is read ends with the lines that it had") {
  Office office;
  const auto grow = [&] {
    return static_cast<bool>(office.bench.pool.query(
        "INSERT INTO task_logs (task_id, allocation_id, agent_id, rank, time, level, stdtype, source, log)"
        " SELECT task_id, 'a', 'agent', 0, now(), 'INFO', 'stdout', 'task', convert_to('line', 'UTF8')"
        " FROM trials, generate_series(1, 5000)"));
  };
  REQUIRE(grow());
  const std::string token = office.log_in();
  std::jthread writer([&](const std::stop_token& stop) {
    while (!stop.stop_requested() && grow()) {
    }
  });
  grpc::ClientContext context;
  office.prepare(context, token);
  v1::TrialLogsRequest request;
  request.set_trial_id(1);
  const auto reader = wire::open(office.channel, v1::LogService::TrialLogs, context, request);
  std::int64_t lines = 0;
  for (v1::LogEntry entry; lines < 1'000'000 && reader->Read(&entry);) ++lines;
  CHECK(lines >= 5000);
  CHECK(lines < 1'000'000);
  context.TryCancel();
  (void)reader->Finish();
}

TEST_CASE("a tail of many bytes is sent in several pages, newest first, or forward if it is followed") {
  Office office;
  // Lines 3 to 42 have 2.5 MiB together.
  REQUIRE(office.bench.pool.query(
      "INSERT INTO task_logs (task_id, allocation_id, agent_id, rank, time, level, stdtype, source, log)"
      " SELECT task_id, 'a', 'agent', 0, now(), 'INFO', 'stdout', 'task',"
      " convert_to(lpad(n::text, 64000, '0'), 'UTF8') FROM trials, generate_series(1, 42) AS n ORDER BY n"));
  const std::string token = office.log_in();
  const auto read = [&](bool follow) {
    grpc::ClientContext context;
    office.prepare(context, token);
    v1::TrialLogsRequest request;
    request.set_trial_id(1);
    request.set_limit(40);
    request.set_order_by(v1::ORDER_BY_DESC);
    request.set_follow(follow);
    const auto reader = wire::open(office.channel, v1::LogService::TrialLogs, context, request);
    std::vector<int> numbers;
    for (v1::LogEntry entry; numbers.size() < 40 && reader->Read(&entry);)
      numbers.push_back(std::stoi(entry.log().substr(63'000)));
    v1::LogEntry none;
    if (!follow) CHECK_FALSE(reader->Read(&none));
    context.TryCancel();
    (void)reader->Finish();
    return numbers;
  };
  std::vector<int> forward(40);
  std::iota(forward.begin(), forward.end(), 3);
  CHECK(read(true) == forward);
  CHECK(read(false) == std::vector<int>(forward.rbegin(), forward.rend()));
}

TEST_CASE("a followed log ends within a second of losing access") {
  Office office;
  const auto ends_within_a_second = [&](const std::function<void(const std::string&)>& act,
                                        grpc::StatusCode expected) {
    const std::string token = office.log_in();
    REQUIRE_FALSE(token.empty());
    Follower follower(office, token);
    act(token);
    const MonoTime start = mono_now();
    CHECK(follower.end() == expected);
    CHECK(mono_now() - start < std::chrono::seconds(1));
  };
  SECTION("by logging out") {
    ends_within_a_second(
        [&](const std::string& token) {
          v1::LogoutResponse response;
          REQUIRE(office.call(token, v1::AuthService::Logout, v1::LogoutRequest(), &response).ok());
        },
        grpc::StatusCode::UNAUTHENTICATED);
  }
  SECTION("by deactivating the user") {
    ends_within_a_second(
        [&](const std::string&) {
          v1::PatchUser change;
          change.mutable_active()->set_value(false);
          REQUIRE(office.patch_eve("ada", change).ok());
        },
        grpc::StatusCode::UNAUTHENTICATED);
  }
  SECTION("by changing the password") {
    ends_within_a_second(
        [&](const std::string&) {
          v1::PatchUser change;
          change.mutable_password()->set_value("another horse battery");
          REQUIRE(office.patch_eve("ada", change).ok());
        },
        grpc::StatusCode::UNAUTHENTICATED);
  }
  SECTION("by losing the role") {
    ends_within_a_second(
        [&](const std::string&) {
          v1::AssignRolesRequest request;
          v1::UserRoleAssignment* one = request.add_user_role_assignments();
          one->set_user_id(static_cast<int>(office.eve.value));
          one->mutable_role_assignment()->mutable_role()->set_name("editor");
          one->mutable_role_assignment()->mutable_scope_workspace_id()->set_value(1);
          v1::AssignRolesResponse response;
          REQUIRE(office.call("ada", v1::RoleService::RemoveAssignments, request, &response).ok());
        },
        grpc::StatusCode::NOT_FOUND);
  }
  SECTION("by moving the experiment to a workspace without a role") {
    ends_within_a_second(
        [&](const std::string&) {
          const auto lab = db::create_workspace(office.bench.pool, "lab", UserId(1)).value();
          v1::MoveExperimentRequest request;
          request.set_experiment_id(1);
          request.set_destination_project_id(
              static_cast<int>(db::create_project(office.bench.pool, lab, "vision", "", UserId(1)).value()));
          v1::MoveExperimentResponse response;
          REQUIRE(office.call("ada", v1::ProjectService::MoveExperiment, request, &response).ok());
        },
        grpc::StatusCode::NOT_FOUND);
  }
}

TEST_CASE("the session cache reloads a user after a change of rights, after expiry, and periodically") {
  Office office;
  Sessions sessions(office.bench.pool);
  const auto eve = [&] { return sessions.find(token_hash("eve")); };
  const auto make = [&](Duration lifetime) {
    REQUIRE(db::create_session(office.bench.pool, office.eve, token_hash("eve"), lifetime));
  };
  SECTION("unknown tokens are not cached") {
    CHECK(eve().error().code == Code::kNotFound);
    make(std::chrono::hours(1));
    CHECK(eve()->user.name == "eve");
  }
  SECTION("changed rights") {
    make(std::chrono::hours(1));
    REQUIRE(eve());
    REQUIRE(office.bench.pool.query("DELETE FROM sessions WHERE user_id = $1", office.eve));
    CHECK(eve()->user.name == "eve");
    sessions.changed();
    CHECK(eve().error().code == Code::kNotFound);
  }
  SECTION("an expired session") {
    make(std::chrono::seconds(1));
    REQUIRE(eve());
    // The cached session expires by the local clock, even if its row still exists.
    REQUIRE(office.bench.pool.query(
        "UPDATE sessions SET expires = now() + interval '1 hour' WHERE user_id = $1", office.eve));
    REQUIRE(eve());
    REQUIRE(office.bench.pool.query("DELETE FROM sessions WHERE user_id = $1", office.eve));
    CHECK(wait_until([&] { return !eve(); }, std::chrono::seconds(4)));
  }
  SECTION("changes that bypass the master") {
    make(std::chrono::hours(1));
    REQUIRE(eve());
    REQUIRE(office.bench.pool.query("DELETE FROM sessions WHERE user_id = $1", office.eve));
    CHECK(wait_until([&] { return !eve(); }, 2 * Sessions::kMaxAge));
  }
}

TEST_CASE("a followed log ends within a second of revoking its token, and others continue") {
  Office office;
  const std::string login = office.log_in(), token = office.make_token(login);
  REQUIRE_FALSE(token.empty());
  Follower revoked(office, token), other(office, login);
  v1::PatchAccessTokenRequest request;
  request.set_token_id(static_cast<int>(office.database.number("SELECT max(id) FROM sessions")));
  request.set_set_revoked(true);
  v1::PatchAccessTokenResponse response;
  REQUIRE(office.call(login, v1::TokenService::PatchAccessToken, request, &response).ok());
  CHECK(response.token_info().revoked());
  const MonoTime start = mono_now();
  CHECK(revoked.end() == grpc::StatusCode::UNAUTHENTICATED);
  CHECK(mono_now() - start < std::chrono::seconds(1));
  CHECK_FALSE(office.works(token));
  CHECK(office.works(login));
  other.context.TryCancel();
  CHECK(other.end() == grpc::StatusCode::CANCELLED);
}

TEST_CASE("a stream whose client does not read ends by itself and frees its place") {
  Office office;
  office.bench.context.stream_write_time = std::chrono::milliseconds(200);
  // 64 reports of 256 KiB, more than the buffers of both ends.
  REQUIRE(office.bench.pool.query(
      "INSERT INTO metrics SELECT 1, 1, 'training', n, now(), ('{\"x\":\"' ||"
      " (SELECT string_agg(md5(n || '-' || i), '') FROM generate_series(1, 8192) i) || '\"}')::json"
      " FROM generate_series(1, 64) n"));
  struct Reading {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::GetMetricsResponse>> reader;

    explicit Reading(Office& office) {
      office.prepare(context, "ada");
      v1::GetMetricsRequest request;
      request.add_trial_ids(1);
      request.set_group("training");
      reader = wire::open(office.channel, v1::TrialService::GetMetrics, context, request);
    }
    grpc::Status end(int& reports) {
      v1::GetMetricsResponse page;
      while (reader->Read(&page)) reports += page.metrics_size();
      return reader->Finish();
    }
  };
  int reports = 0;
  {
    std::vector<std::unique_ptr<Reading>> stalled;
    for (int i = 0; i < kPacedStreamsPerCaller; ++i) stalled.push_back(std::make_unique<Reading>(office));
    const auto held = [&] { return office.bench.context.paced_streams->held(); };
    REQUIRE(wait_until([&] { return held() == kPacedStreamsPerCaller; }, std::chrono::seconds(10)));
    const grpc::Status beyond = Reading(office).end(reports);
    CHECK(beyond.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
    CHECK(beyond.error_message().starts_with("at most 6 downloads and metric streams"));
    CHECK(wait_until([&] { return held() == 0; }, std::chrono::seconds(20)));
    for (const auto& one : stalled) CHECK_FALSE(one->end(reports).ok());
  }
  // A client that reads gets everything.
  reports = 0;
  CHECK(Reading(office).end(reports).ok());
  CHECK(reports == 64);
}

TEST_CASE("an administrator reads the master's log from any offset, and follows it until the role ends") {
  log::keep_history(1000);
  Office office;
  for (int i = 0; i < 3; ++i) log::warn("told before", {{"number", i}});
  const std::int64_t newest = static_cast<std::int64_t>(log::newest_line());
  const auto read = [&](std::int64_t offset, int limit) {
    grpc::ClientContext context;
    office.prepare(context, "ada");
    v1::MasterLogsRequest request;
    request.set_offset(static_cast<std::int32_t>(offset));
    request.set_limit(limit);
    const auto reader = wire::open(office.channel, v1::MasterService::MasterLogs, context, request);
    std::vector<std::string> lines;
    v1::MasterLogsResponse response;
    while (reader->Read(&response)) lines.push_back(response.log_entry().message());
    CHECK(reader->Finish().ok());
    return lines;
  };
  // Each read is logged too, after the lines that were logged before.
  CHECK(read(newest - 3, 2) == std::vector<std::string>{"told before number=0", "told before number=1"});
  CHECK(read(0, 1).size() == 1);
  CHECK(read(1 << 20, 0).empty());
  const auto last = read(-1, 0);
  REQUIRE(last.size() == 1);
  CHECK(last[0].find("MasterLogs") != std::string::npos);

  grpc::ClientContext context;
  office.prepare(context, "ada");
  v1::MasterLogsRequest request;
  request.set_offset(-1);
  request.set_follow(true);
  const auto reader = wire::open(office.channel, v1::MasterService::MasterLogs, context, request);
  reader->WaitForInitialMetadata();
  log::error("told while somebody follows");
  v1::MasterLogsResponse response;
  while (reader->Read(&response) && response.log_entry().message() != "told while somebody follows") {
  }
  CHECK(response.log_entry().message() == "told while somebody follows");
  CHECK(response.log_entry().level() == v1::LOG_LEVEL_ERROR);
  v1::LogoutResponse out;
  REQUIRE(office.call("ada", v1::AuthService::Logout, v1::LogoutRequest(), &out).ok());
  const MonoTime start = mono_now();
  while (reader->Read(&response)) {
  }
  CHECK(reader->Finish().error_code() == grpc::StatusCode::UNAUTHENTICATED);
  CHECK(mono_now() - start < std::chrono::seconds(1));
}

TEST_CASE("administrators change the master's log level at run time") {
  Office office;
  const auto set = [&](const std::string& as, const std::string& level) {
    v1::PatchMasterConfigRequest request;
    request.mutable_config()->mutable_log()->set_level(level);
    v1::PatchMasterConfigResponse response;
    return office.call(as, v1::MasterService::PatchMasterConfig, request, &response).error_code();
  };
  CHECK(set("ada", "loud") == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(set("ada", "") == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(set(office.log_in(), "debug") == grpc::StatusCode::PERMISSION_DENIED);
  CHECK(log_level() == LogLevel::kInfo);
  CHECK(set("ada", "DEBUG") == grpc::StatusCode::OK);
  CHECK(log_level() == LogLevel::kDebug);
  v1::GetMasterConfigResponse shown;
  REQUIRE(office.call("ada", v1::MasterService::GetMasterConfig, v1::GetMasterConfigRequest(), &shown).ok());
  CHECK(shown.config().fields().at("log").struct_value().fields().at("level").string_value() == "debug");
  CHECK(set("ada", "info") == grpc::StatusCode::OK);
}

TEST_CASE("a token may have fewer rights than its user, never more") {
  Office office;
  const std::string login = office.log_in(), viewer = office.make_token(login, "Viewer");
  REQUIRE_FALSE(viewer.empty());
  CHECK(viewer.starts_with("det_p_"));
  CHECK(office.make_token(viewer).empty());
  CHECK(office.make_token(login, "ClusterAdmin").empty());
  CHECK(office.make_token(login, "Emperor").empty());
  CHECK(office.make_token(login, "", "tomorrow").empty());
  CHECK(office.make_token(login, "", "-5h").empty());
  v1::PatchUser change;
  change.mutable_display_name()->set_value("Eve");
  CHECK(office.patch_eve(viewer, change).error_code() == grpc::StatusCode::PERMISSION_DENIED);
  CHECK(office.patch_eve(login, change).ok());
  change.mutable_admin()->set_value(true);
  CHECK(office.patch_eve(login, change).error_code() == grpc::StatusCode::PERMISSION_DENIED);
  CHECK(office.database.number("SELECT count(*) FROM users WHERE admin") == 1);
  // The database keeps hashes only.
  CHECK(office.database.number("SELECT count(*) FROM sessions WHERE length(token_hash) <> 64") == 0);
}

TEST_CASE("blank, easy and name-like passwords are refused in every encoding") {
  Office office;
  const auto refused = [&](const std::string& password, bool hashed) {
    v1::PostUserRequest request;
    request.mutable_user()->set_username("mallory");
    request.set_password(password);
    request.set_is_hashed(hashed);
    v1::PostUserResponse response;
    return office.call("ada", v1::UserService::PostUser, request, &response).error_code() ==
           grpc::StatusCode::INVALID_ARGUMENT;
  };
  for (const char* password :
       {"", "a", "Sh0rt!", "eightlow", "password", "changeme123", "mallory", "MALLORY", "mallory123"}) {
    INFO(password);
    CHECK(refused(password, false));
  }
  CHECK(refused("", true));
  CHECK(refused("no hash", true));
  for (const char* password : {"password", "determined", "mallory"})
    CHECK(refused(password_form(password, false).value(), true));
  CHECK_FALSE(refused("Gr8 enough", false));
  CHECK(office.database.number("SELECT count(*) FROM users WHERE name = 'mallory'") == 1);
  // In a new cluster, a new user may edit in the default workspace and nothing else.
  CHECK(office.database.value(
            "SELECT role || ' ' || workspace_id FROM grants g JOIN users u ON u.id = g.user_id"
            " WHERE u.name = 'mallory'") == "EDITOR 1");
}

}  // namespace det::api
