// Users, sessions, roles, tokens, workspaces, the cluster's identity, and stored contexts.
#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <thread>

#include "common/base/random.h"
#include "master/db/accounts/groups.h"
#include "master/db/accounts/sessions.h"
#include "master/db/accounts/users.h"
#include "master/db/queries/cluster.h"
#include "master/db/queries/code_archives.h"
#include "master/db/queries/config_policies.h"
#include "master/db/queries/deletions.h"
#include "master/db/queries/projects.h"
#include "master/db/queries/workspaces.h"
#include "tests/master/db/database.h"

namespace det::test {

TEST_CASE("the cluster's identity is created once") {
  const Database database;
  db::Pool pool(database.connect());
  const auto first = db::load_cluster(pool);
  REQUIRE(first);
  CHECK(first->id.size() == 36);
  CHECK(first->secret.size() == 32);
  const auto second = db::load_cluster(pool);
  REQUIRE(second);
  CHECK(second->id == first->id);
  CHECK(second->secret == first->secret);
}

TEST_CASE("the first admin is created only in an empty cluster") {
  const Database database;
  db::Pool pool(database.connect());
  // The test's own user exists already.
  CHECK(db::create_first_admin(pool, "admin", "hash") == false);
  REQUIRE(database.connection().query("DELETE FROM users"));
  CHECK(db::create_first_admin(pool, "admin", "hash") == true);
  CHECK(db::create_first_admin(pool, "admin", "other") == false);
  const auto admin = db::find_user(pool, "ADMIN");
  REQUIRE(admin);
  CHECK(admin->name == "admin");
  CHECK(admin->admin);
  CHECK(db::password_hash(pool, admin->id) == std::string("hash"));
  REQUIRE(db::change_user(pool, admin->id, {.password_hash = "new"}, ""));
  CHECK(db::password_hash(pool, admin->id) == std::string("new"));
  CHECK(db::change_user(pool, UserId(99), {.password_hash = "x"}, "").error().code == Code::kNotFound);
}

TEST_CASE("user names are unique regardless of case") {
  const Database database;
  db::Pool pool(database.connect());
  const auto bob = db::create_user(pool, "Bob", "hash", false);
  REQUIRE(bob);
  CHECK(db::create_user(pool, "bob", "hash", false).error().code == Code::kAlreadyExists);
  CHECK(db::get_user(pool, *bob)->name == "Bob");
  CHECK_FALSE(db::get_user(pool, *bob)->admin);
  CHECK(db::find_user(pool, "nobody").error().code == Code::kNotFound);
}

TEST_CASE("a session lives until it expires, is deleted, or its user is deactivated") {
  const Database database;
  db::Pool pool(database.connect());
  const UserId ada(1);
  const auto id = db::create_session(pool, ada, "token-a", std::chrono::hours(1));
  REQUIRE(id);
  auto session = db::find_session(pool, "token-a");
  REQUIRE(session);
  CHECK(session->id == *id);
  CHECK(session->user.name == "ada");
  CHECK(session->user.last_auth);

  REQUIRE(db::create_session(pool, ada, "token-b", std::chrono::hours(-1)));
  CHECK(db::find_session(pool, "token-b").error().code == Code::kNotFound);
  CHECK(db::delete_expired_sessions(pool) == 1);

  REQUIRE(database.connection().query("UPDATE users SET active = false"));
  CHECK_FALSE(db::find_session(pool, "token-a"));
  REQUIRE(database.connection().query("UPDATE users SET active = true"));
  CHECK(db::find_session(pool, "token-a"));
  REQUIRE(db::delete_session(pool, "token-a"));
  REQUIRE(db::delete_session(pool, "token-a"));
  CHECK_FALSE(db::find_session(pool, "token-a"));
  CHECK(db::create_session(pool, UserId(99), "token-c", std::chrono::hours(1)).error().code ==
        Code::kNotFound);
}

TEST_CASE("an unused login expires, and each use is recorded") {
  const Database database;
  db::Pool pool(database.connect());
  REQUIRE(db::create_session(pool, UserId(1), "token-a", std::chrono::hours(1)));
  REQUIRE(pool.query("UPDATE sessions SET last_used = now() - interval '2 hours'"));
  CHECK_FALSE(db::find_session(pool, "token-a", std::chrono::hours(1)));
  CHECK(db::find_session(pool, "token-a", std::chrono::hours(3)));
  CHECK(db::find_session(pool, "token-a", std::chrono::hours(1)));
}

TEST_CASE("a new password and a deactivation end all sessions except the caller's") {
  const Database database;
  db::Pool pool(database.connect());
  const UserId bob = db::create_user(pool, "bob", "hash", false).value();
  const auto log_in = [&] {
    REQUIRE(pool.query("DELETE FROM sessions"));
    REQUIRE(db::create_session(pool, bob, "one", std::chrono::hours(1)));
    REQUIRE(db::create_session(pool, bob, "two", std::chrono::hours(1)));
    REQUIRE(db::create_token(pool, {.user = bob}, "three", std::chrono::hours(1)));
  };
  log_in();
  REQUIRE(db::change_user(pool, bob, {.password_hash = "new"}, "one"));
  CHECK(db::find_session(pool, "one"));
  CHECK_FALSE(db::find_session(pool, "two"));
  CHECK_FALSE(db::find_session(pool, "three"));
  log_in();
  REQUIRE(db::change_user(pool, bob, {.active = false}, ""));
  REQUIRE(db::change_user(pool, bob, {.active = true}, ""));
  CHECK(database.number("SELECT count(*) FROM sessions") == 0);
  log_in();
  REQUIRE(db::change_user(pool, bob, {.name = "robert", .display_name = "Robert"}, ""));
  CHECK(db::find_session(pool, "two")->user.display_name == "Robert");
  CHECK(db::change_user(pool, bob, {.name = "ADA"}, "").error().code == Code::kAlreadyExists);
}

TEST_CASE("the last active admin cannot be deactivated or lose the role") {
  const Database database;
  db::Pool pool(database.connect());
  REQUIRE(db::add_grants(pool, {{UserId(1), db::Role::kClusterAdmin, std::nullopt}}));
  CHECK(db::change_user(pool, UserId(1), {.active = false}, "").error().code == Code::kFailedPrecondition);
  CHECK(db::change_user(pool, UserId(1), {.admin = false}, "").error().code == Code::kFailedPrecondition);
  CHECK(db::remove_grants(pool, {{UserId(1), db::Role::kClusterAdmin, std::nullopt}}).error().code ==
        Code::kFailedPrecondition);
  CHECK(db::get_user(pool, UserId(1))->admin);
  const UserId bob = db::create_user(pool, "bob", "hash", true).value();
  CHECK(db::change_user(pool, UserId(1), {.admin = false}, ""));
  CHECK(db::change_user(pool, bob, {.admin = false}, "").error().code == Code::kFailedPrecondition);
}

TEST_CASE("concurrent changes leave an active admin") {
  const Database database;
  db::Pool pool(database.connect());
  const UserId ada(1);
  REQUIRE(db::add_grants(pool, {{ada, db::Role::kClusterAdmin, std::nullopt}}));
  const UserId bob = db::create_user(pool, "bob", "hash", true).value();
  const std::function<Status()> changes[] = {
      [&] { return db::change_user(pool, bob, {.active = false}, ""); },
      [&] { return db::change_user(pool, bob, {.admin = false}, ""); },
      [&] {
        return db::remove_grants(pool, {{bob, db::Role::kClusterAdmin, std::nullopt}});
      }};
  for (const auto& change : changes) {
    db::Connection first = database.connection();
    REQUIRE(first.begin());
    REQUIRE(first.query("UPDATE users SET active = false WHERE id = $1", ada));
    std::atomic<bool> done{false};
    std::optional<Status> second;
    std::thread other([&] {
      second = change();
      done = true;
    });
    CHECK(database.wait_for_waiting(1, [&] { return done.load(); }));
    REQUIRE(first.commit());
    other.join();
    CHECK_FALSE(*second);
    CHECK(database.number("SELECT count(*) FROM users WHERE admin AND active") == 1);
    REQUIRE(pool.query("UPDATE users SET admin = true, active = true"));
  }
}

TEST_CASE("settings of a user are stored together or not at all") {
  const Database database;
  db::Pool pool(database.connect());
  // A key beyond the size limit of an index row; random, so that it does not compress.
  std::string key;
  Random random{1};
  while (key.size() < 20'000) key += random.uuid();
  CHECK_FALSE(db::put_user_settings(pool, UserId(1), {{"theme", "mode", "dark"}, {"theme", key, "1"}}));
  CHECK(db::list_user_settings(pool, UserId(1))->empty());
  REQUIRE(db::put_user_settings(pool, UserId(1), {{"theme", "mode", "dark"}, {"theme", "size", "1"}}));
  REQUIRE(db::put_user_settings(pool, UserId(1), {{"theme", "size", ""}}));
  CHECK(db::list_user_settings(pool, UserId(1))->size() == 1);
}

TEST_CASE("settings of a user are bounded in bytes, and can always be removed") {
  const Database database;
  db::Pool pool(database.connect());
  const std::string large(1 << 20, 'x');
  for (int i = 0; i < 7; ++i)
    REQUIRE(db::put_user_settings(pool, UserId(1), {{"views", std::to_string(i), large}}));
  CHECK(
      db::put_user_settings(pool, UserId(1), {{"views", "small", "1"}, {"views", "large", large}}).error() ==
      Error{Code::kFailedPrecondition,
            "settings: at most 2000 and 8 MiB for a user; remove some or reset them first",
            {}});
  CHECK(db::list_user_settings(pool, UserId(1))->size() == 7);
  REQUIRE(pool.query("UPDATE user_settings SET value = repeat('x', 2 << 20)"));
  REQUIRE(db::put_user_settings(pool, UserId(1), {{"views", "0", ""}}));
  CHECK(db::list_user_settings(pool, UserId(1))->size() == 6);
}

TEST_CASE("notes of a project are bounded together, and lists of projects have none") {
  const Database database;
  db::Pool pool(database.connect());
  const std::string note = R"([{"name":"n","contents":")" + std::string(1 << 20, 'x') + "\"}]";
  for (int i = 0; i < 7; ++i) REQUIRE(db::add_project_notes(pool, db::kDefaultProject, note));
  CHECK(db::add_project_notes(pool, db::kDefaultProject, note).error().code == Code::kFailedPrecondition);
  CHECK(db::add_project_notes(pool, 99, note).error().code == Code::kNotFound);
  CHECK(db::get_project(pool, db::kDefaultProject)->notes.size() > 7 << 20);
  CHECK(db::list_projects(pool, {.workspace = 1})->rows.at(0).notes == "[]");
  REQUIRE(db::set_project_notes(pool, db::kDefaultProject, "[]"));
  for (int i = 0; i < 100; ++i)
    REQUIRE(db::add_project_notes(pool, db::kDefaultProject, R"([{"name":"","contents":""}])"));
  CHECK(db::add_project_notes(pool, db::kDefaultProject, "[{}]").error().code == Code::kFailedPrecondition);
}

TEST_CASE("roles accumulate, apply to their scope, and are capped by the token") {
  const Database database;
  db::Pool pool(database.connect());
  const UserId bob = db::create_user(pool, "bob", "hash", false).value();
  const std::int64_t lab = db::create_workspace(pool, "lab", UserId(1)).value();
  REQUIRE(db::create_session(pool, bob, "login", std::chrono::hours(1)));
  auto grants = db::find_session(pool, "login")->grants;
  CHECK(grants.in(1) == db::Role::kEditor);
  CHECK(grants.in(lab) == db::Role::kNone);
  CHECK(grants.visible() == std::vector<std::int64_t>{1});
  REQUIRE(db::add_grants(pool, {{bob, db::Role::kViewer, lab}, {bob, db::Role::kWorkspaceAdmin, lab}}));
  CHECK(db::add_grants(pool, {{bob, db::Role::kViewer, lab}}).error().code == Code::kAlreadyExists);
  CHECK(db::find_session(pool, "login")->grants.in(lab) == db::Role::kWorkspaceAdmin);
  REQUIRE(db::create_token(pool, {.user = bob, .most = db::Role::kViewer}, "token", std::chrono::hours(1)));
  const auto limited = db::find_session(pool, "token");
  REQUIRE(limited);
  CHECK(limited->limited);
  CHECK(limited->grants.in(lab) == db::Role::kViewer);
  CHECK(limited->grants.in(1) == db::Role::kViewer);
  REQUIRE(db::remove_grants(pool, {{bob, db::Role::kWorkspaceAdmin, lab}}));
  CHECK(db::find_session(pool, "login")->grants.in(lab) == db::Role::kViewer);
  REQUIRE(db::add_grants(pool, {{bob, db::Role::kViewer, std::nullopt}}));
  grants = db::find_session(pool, "login")->grants;
  CHECK_FALSE(grants.visible());
  CHECK(grants.everywhere() == db::Role::kViewer);
  CHECK(grants.in(99) == db::Role::kViewer);
  CHECK(db::add_grants(pool, {{bob, db::Role::kViewer, 99}}).error().code == Code::kNotFound);
  CHECK(db::add_grants(pool, {{bob, db::Role::kEditor, lab}, {UserId(99), db::Role::kViewer, lab}})
            .error()
            .code == Code::kNotFound);
  CHECK(db::remove_grants(pool, {{bob, db::Role::kEditor, lab}}).error().code == Code::kNotFound);
  CHECK(db::list_grants(pool, {.user = bob, .workspace = lab})->size() ==
        2);  // The grant in lab and the global one.
}

TEST_CASE("members have the roles of their groups until they or the group leave") {
  const Database database;
  db::Pool pool(database.connect());
  const UserId bob = db::create_user(pool, "bob", "hash", false, "NONE").value();
  const std::int64_t lab = db::create_workspace(pool, "lab", UserId(1)).value();
  REQUIRE(db::create_session(pool, bob, "login", std::chrono::hours(1)));
  const auto role = [&](std::int64_t workspace) {
    return db::find_session(pool, "login")->grants.in(workspace);
  };
  CHECK(role(1) == db::Role::kNone);
  const std::int64_t vision = db::create_group(pool, "vision", {bob}).value();
  CHECK(db::create_group(pool, "vision", {}).error().code == Code::kAlreadyExists);
  CHECK(db::create_group(pool, "audio", {UserId(99)}).error().code == Code::kNotFound);
  const db::Grant editor{UserId(0), db::Role::kEditor, lab, vision};
  REQUIRE(db::add_grants(pool, {editor}));
  CHECK(db::add_grants(pool, {editor}).error().code == Code::kAlreadyExists);
  CHECK(db::add_grants(pool, {{UserId(0), db::Role::kClusterAdmin, std::nullopt, vision}}).error().code ==
        Code::kInvalidArgument);
  CHECK(role(lab) == db::Role::kEditor);
  CHECK(db::list_grants(pool, {.user = bob}).value().at(0).group == vision);
  CHECK(db::list_grants(pool, {.group = vision})->size() == 1);
  CHECK(db::list_groups(pool, {.user = UserId(1)})->rows.empty());
  CHECK(db::list_groups(pool, {.name = "vision"})->rows.at(0).members == 1);
  REQUIRE(db::change_group(pool, vision, {.name = "images", .remove = {bob}}));
  CHECK(role(lab) == db::Role::kNone);
  CHECK(db::change_group(pool, vision, {.remove = {bob}}).error().code == Code::kNotFound);
  for (int repeat = 0; repeat < 2; ++repeat) REQUIRE(db::assign_groups(pool, {bob}, {vision}, {}));
  CHECK(role(lab) == db::Role::kEditor);
  CHECK(db::assign_groups(pool, {bob}, {vision + 1}, {}).error().code == Code::kNotFound);
  REQUIRE(db::delete_group(pool, vision));
  CHECK(role(lab) == db::Role::kNone);
  CHECK(db::delete_group(pool, vision).error().code == Code::kNotFound);
  CHECK(database.number("SELECT count(*) FROM group_grants") == 0);
}

TEST_CASE("WorkspaceCreator and ModelRegistryViewer have their own permissions only") {
  const Database database;
  db::Pool pool(database.connect());
  const UserId bob = db::create_user(pool, "bob", "hash", false, "NONE").value();
  REQUIRE(db::create_session(pool, bob, "login", std::chrono::hours(1)));
  REQUIRE(db::add_grants(pool, {{bob, db::Role::kModelRegistryViewer, 1}}));
  auto grants = db::find_session(pool, "login")->grants;
  CHECK(grants.visible()->empty());
  CHECK(grants.visible(db::Role::kModelRegistryViewer) == std::vector<std::int64_t>{1});
  CHECK_FALSE(grants.creates_workspaces());
  REQUIRE(db::add_grants(pool, {{bob, db::Role::kWorkspaceCreator, std::nullopt}}));
  grants = db::find_session(pool, "login")->grants;
  CHECK(grants.creates_workspaces());
  CHECK(grants.visible()->empty());
  grants.limit(db::Role::kViewer);
  CHECK_FALSE(grants.creates_workspaces());
}

TEST_CASE("a token is listed until it expires, and stays revoked") {
  const Database database;
  db::Pool pool(database.connect());
  const auto id =
      db::create_token(pool, {.user = UserId(1), .description = "ci"}, "t", std::chrono::hours(1));
  REQUIRE(id);
  REQUIRE(db::create_token(pool, {.user = UserId(1)}, "old", std::chrono::hours(-1)));
  REQUIRE(db::create_session(pool, UserId(1), "login", std::chrono::hours(1)));
  CHECK(db::list_tokens(pool, {})->total == 1);
  CHECK(db::list_tokens(pool, {.ended = true})->total == 2);
  CHECK(db::list_tokens(pool, {.user = UserId(2), .ended = true})->total == 0);
  CHECK(db::find_session(pool, "t"));
  REQUIRE(db::change_token(pool, *id, "ci, revoked", true));
  REQUIRE(db::change_token(pool, *id, std::nullopt, false));
  CHECK_FALSE(db::find_session(pool, "t"));
  const auto listed = db::list_tokens(pool, {.ids = {*id}, .ended = true});
  REQUIRE(listed->rows.size() == 1);
  CHECK(listed->rows[0].revoked);
  CHECK(listed->rows[0].description == "ci, revoked");
  CHECK(db::change_token(pool, 99, std::nullopt, true).error().code == Code::kNotFound);
  CHECK(db::find_session(pool, "login"));
}

TEST_CASE("projects are found through their workspace") {
  const Database database;
  db::Pool pool(database.connect());
  const std::int64_t lab = db::create_workspace(pool, "lab", UserId(1)).value();
  CHECK(db::create_workspace(pool, "lab", UserId(1)).error().code == Code::kAlreadyExists);
  const std::int64_t vision = db::create_project(pool, lab, "vision", "eyes", UserId(1)).value();
  CHECK(db::create_project(pool, lab, "vision", "", UserId(1)).error().code == Code::kAlreadyExists);
  const auto found = db::workspaces_of(pool, db::Placed::kProject, {std::to_string(vision), "99", "1"});
  REQUIRE(found);
  CHECK(*found == std::vector<std::optional<std::int64_t>>{lab, std::nullopt, 1});
  CHECK(db::find_project(pool, "lab", "vision", std::nullopt) == vision);
  CHECK(db::find_project(pool, "lab", "vision", std::vector<std::int64_t>{1}).error().code ==
        Code::kNotFound);
  CHECK(db::list_workspaces(pool, {.visible = std::vector<std::int64_t>{1}})->total == 1);
  CHECK(db::list_workspaces(pool, {.name = "LAB"})->rows.at(0).num_projects == 1);
  CHECK(db::list_workspaces(pool, {.name = "la"})->rows.empty());
  CHECK(db::list_projects(pool, {.workspace = lab, .users = {"ada"}})->rows.at(0).description == "eyes");
  REQUIRE(db::archive_workspace(pool, lab, true));
  CHECK(db::get_project(pool, vision)->archived);
  const auto archived = db::find_destination(pool, "EXPERIMENT", "lab", "vision", std::nullopt);
  REQUIRE(archived);
  CHECK(archived->project == vision);
  CHECK(archived->archived);
  const db::Container container{db::Container::Kind::kWorkspace, lab};
  CHECK(db::projects_in(pool, container) == std::vector<std::int64_t>{vision});
  // A project that arrived after the list was made keeps the workspace.
  CHECK(db::delete_container(pool, container, {}).error().code == Code::kFailedPrecondition);
  CHECK(db::get_project(pool, vision));
  REQUIRE(db::move_project(pool, vision, 1));
  CHECK(db::projects_in(pool, container)->empty());
  REQUIRE(db::delete_container(pool, container, {}));
  CHECK(db::delete_container(pool, container, {}).error().code == Code::kNotFound);
  CHECK(db::projects_in(pool, container).error().code == Code::kNotFound);
  CHECK(db::list_grants(pool, {.user = UserId(1), .workspace = lab})->empty());
}

TEST_CASE("the destination of an experiment is returned with its policies") {
  const Database database;
  db::Pool pool(database.connect());
  const std::int64_t lab = db::create_workspace(pool, "lab", UserId(1)).value();
  const std::int64_t vision = db::create_project(pool, lab, "vision", "", UserId(1)).value();
  const auto by_name = [&](const char* project, const db::Visible& visible) {
    return db::find_destination(pool, "EXPERIMENT", "lab", project, visible).value();
  };
  CHECK(by_name("vision", std::nullopt).cluster_policies.empty());
  REQUIRE(db::set_config_policies(pool, {"EXPERIMENT", std::nullopt}, "all", UserId(1)));
  REQUIRE(db::set_config_policies(pool, {"NTSC", std::nullopt}, "tasks", UserId(1)));
  REQUIRE(db::set_config_policies(pool, {"EXPERIMENT", lab}, "theirs", UserId(1)));
  for (const db::Destination& to :
       {by_name("vision", std::nullopt), by_name("vision", std::vector<std::int64_t>{lab}),
        db::find_destination(pool, "EXPERIMENT", vision).value()}) {
    CHECK(to.project == vision);
    CHECK(to.workspace == lab);
    CHECK(to.name == "vision");
    CHECK(to.workspace_name == "lab");
    CHECK_FALSE(to.archived);
    CHECK_FALSE(to.deleting);
    CHECK(to.cluster_policies == "all");
    CHECK(to.workspace_policies == "theirs");
  }
  // Invisible and missing destinations return the cluster's policies only.
  for (const db::Destination& to :
       {by_name("sound", std::nullopt), by_name("vision", std::vector<std::int64_t>{1}),
        db::find_destination(pool, "EXPERIMENT", 99).value()}) {
    CHECK(to.project == 0);
    CHECK(to.cluster_policies == "all");
    CHECK(to.workspace_policies.empty());
  }
  CHECK(db::find_destination(pool, "EXPERIMENT", db::kDefaultProject)->workspace_policies.empty());
  REQUIRE(db::begin_deletion(pool, {db::Container::Kind::kWorkspace, lab}));
  CHECK(by_name("vision", std::nullopt).deleting);
}

TEST_CASE("a project whose deletion failed shows the later deletion of its workspace") {
  const Database database;
  db::Pool pool(database.connect());
  const std::int64_t lab = db::create_workspace(pool, "lab", UserId(1)).value();
  const std::int64_t vision = db::create_project(pool, lab, "vision", "", UserId(1)).value();
  const db::Container project{db::Container::Kind::kProject, vision};
  const db::Container workspace{db::Container::Kind::kWorkspace, lab};
  REQUIRE(db::fail_deletion(pool, project, "no agent has the files"));
  CHECK(db::get_project(pool, vision)->deletion == "no agent has the files");
  REQUIRE(db::begin_deletion(pool, workspace));
  CHECK(db::get_project(pool, vision)->deletion == "");
  REQUIRE(db::fail_deletion(pool, workspace, "it has models"));
  CHECK(db::get_project(pool, vision)->deletion == "no agent has the files");
}

TEST_CASE("equal contexts are stored once") {
  const Database database;
  db::Pool pool(database.connect());
  const std::string tgz("\x1f\x8b\0binary\xff", 10);
  const auto digest = db::put_code_archive(pool, tgz);
  REQUIRE(digest);
  // A repeat makes it young again: an old one may be deleted with the last experiment that has it.
  REQUIRE(pool.query("UPDATE model_definitions SET created = now() - interval '1 day'"));
  CHECK(db::put_code_archive(pool, tgz) == *digest);
  CHECK(database.number("SELECT count(*) FROM model_definitions WHERE created > now() - interval '1 hour'") ==
        1);
  CHECK(digest->size() == 64);
  CHECK(db::get_code_archive(pool, *digest) == tgz);
  CHECK(db::get_code_archive(pool, "no such").error().code == Code::kNotFound);
  CHECK(db::get_code_archive(pool, ExperimentId(1)).error().code == Code::kNotFound);
}

}  // namespace det::test
