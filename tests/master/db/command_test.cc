// Queries of commands, on rows that the store wrote.
#include <catch2/catch.hpp>

#include "common/base/files.h"
#include "master/db/accounts/roles.h"
#include "master/db/accounts/sessions.h"
#include "master/db/queries/allocations.h"
#include "master/db/queries/cluster.h"
#include "master/db/queries/commands.h"
#include "master/db/queries/deletions.h"
#include "master/db/queries/workspaces.h"
#include "master/db/store/at_rest.h"
#include "tests/master/db/database.h"
#include "tests/master/db/samples.h"

namespace det::test {
namespace {

core::Command plain_command(std::int64_t id) {
  core::Command row = Sampler(1).command(CommandId(id));
  row.state = core::State::kActive;
  row.run = 1;
  row.ended.reset();
  row.exit.reset();
  return row;
}
core::Allocation allocation_of(std::int64_t id, core::AllocationState state) {
  core::Allocation row = Sampler(2).allocation("command-" + std::to_string(id) + ".1", CommandId(id));
  row.state = state;
  row.run = 1;
  row.workspace = id == 3 ? 2 : 1;
  row.parts.front().token_hash = "hash of " + row.id.value;
  return row;
}

/// Three commands, in workspaces 1, 1 and 2: one waits, one runs, one has ended.
struct Three {
  Database database;
  db::Pool pool{database.connect(), 2};
  Three() {
    REQUIRE(pool.query("INSERT INTO workspaces (id, name) VALUES (2, 'lab')"));
    RunningStore store(open_store(database));
    core::Command ended = plain_command(3);
    ended.workspace = 2;
    ended.state = core::State::kError;
    ended.ended = WallTime{ended.submitted.micros + 5};
    ended.exit = core::Exit{core::ExitKind::kFailed, 7, "exit code 7"};
    store.write({core::PutCommand{plain_command(1)}, core::PutCommand{plain_command(2)},
                 core::PutAllocation{allocation_of(2, core::AllocationState::kRunning)},
                 core::PutCommand{ended},
                 core::PutAllocation{allocation_of(3, core::AllocationState::kTerminated)}});
  }
  std::vector<std::string> listed(const db::CommandFilter& filter) {
    auto page = db::list_commands(pool, filter);
    REQUIRE(page);
    std::vector<std::string> ids;
    for (const db::CommandRow& row : page->rows) ids.push_back(row.command.task.value);
    return ids;
  }
};

using TaskIds = std::vector<std::string>;

TEST_CASE("a command is read with its owner and the state of its allocation") {
  Three three;
  const auto waits = db::get_command(three.pool, TaskId("command-1"));
  REQUIRE(waits);
  CHECK_FALSE(waits->live);
  CHECK(waits->username == three.database.value("SELECT name FROM users WHERE id = 1"));
  CHECK(waits->command.config->entrypoint == TaskIds{"echo", "a b"});
  CHECK(db::get_command(three.pool, TaskId("command-2"))->live == core::AllocationState::kRunning);
  const auto ended = db::get_command(three.pool, TaskId("command-3"));
  REQUIRE(ended);
  CHECK_FALSE(ended->live);
  CHECK(ended->command.exit->code == 7);
  CHECK(db::get_command(three.pool, TaskId("command-4")).error().code == Code::kNotFound);
}

TEST_CASE("the key of a shell is encrypted, kept by a repeated launch, and deleted after the end") {
  Three three;
  const TemporaryDirectory keys = std::move(TemporaryDirectory::create().value());
  auto vault = Vault::open(keys.path() + "/secrets.key");
  REQUIRE(vault);
  db::use_vault(std::make_shared<const Vault>(std::move(*vault)));
  const TaskId runs("command-2"), ended("command-3");
  for (const TaskId& task : {runs, ended}) {
    REQUIRE(db::put_interactive_task(three.pool, task, {.kind = "SHELL", .ssh_key = "canary"}));
    REQUIRE(db::put_interactive_task(three.pool, task, {.kind = "SHELL", .ssh_key = "another"}));
  }
  CHECK(three.database.number("SELECT count(*) FROM interactive_tasks WHERE ssh_key LIKE '%canary%'") == 0);
  CHECK(*db::find_ssh_key(three.pool, runs) == "canary");
  CHECK(db::find_ssh_key(three.pool, ended)->empty());
  CHECK(db::find_ssh_key(three.pool, TaskId("command-1"))->empty());
  REQUIRE(db::drop_ssh_keys(three.pool));
  CHECK(three.database.value("SELECT task_id FROM interactive_tasks WHERE ssh_key <> ''") == runs.value);
  CHECK(*db::find_ssh_key(three.pool, runs) == "canary");
  db::use_vault(nullptr);
}

TEST_CASE("a command that was paused has the state of its newest allocation") {
  Three three;
  RunningStore store(open_store(three.database));
  core::Command again = plain_command(2);
  again.run = 2;
  core::Allocation first = allocation_of(2, core::AllocationState::kTerminated);
  core::Allocation second = allocation_of(2, core::AllocationState::kPulling);
  second.id = AllocationId("command-2.2");
  second.run = 2;
  store.write({core::PutCommand{again}, core::PutAllocation{first}});
  CHECK_FALSE(db::get_command(three.pool, TaskId("command-2"))->live);
  store.write({core::PutAllocation{second}});
  CHECK(db::get_command(three.pool, TaskId("command-2"))->live == core::AllocationState::kPulling);
}

TEST_CASE("commands are filtered by visibility, owner and workspace, sorted, and paged") {
  Three three;
  CHECK(three.listed({}) == TaskIds{"command-1", "command-2", "command-3"});
  CHECK(three.listed({.visible = std::vector<std::int64_t>{2}}) == TaskIds{"command-3"});
  CHECK(three.listed({.visible = std::vector<std::int64_t>{}}).empty());
  CHECK(three.listed({.workspace = 1}) == TaskIds{"command-1", "command-2"});
  CHECK(three.listed({.user_ids = {1}}).size() == 3);
  CHECK(three.listed({.user_ids = {2}}).empty());
  CHECK(three.listed({.users = {"nobody"}}).empty());
  CHECK(three.listed({.sort = db::CommandFilter::Sort::kId, .window = {.descending = true}}) ==
        TaskIds{"command-3", "command-2", "command-1"});
  CHECK(three.listed({.sort = db::CommandFilter::Sort::kWorkspace, .window = {.offset = 1, .limit = 1}}) ==
        TaskIds{"command-2"});
}

TEST_CASE("a task is a trial or a command and ends with it") {
  Three three;
  CHECK_FALSE(db::get_task(three.pool, TaskId("command-2"))->ended);
  CHECK(db::get_task(three.pool, TaskId("command-3"))->ended);
  CHECK(db::get_task(three.pool, TaskId("command-3"))->key == CommandId(3));
  CHECK(db::get_task(three.pool, TaskId("other")).error().code == Code::kNotFound);
  const auto placed = db::workspaces_of(three.pool, db::Placed::kTask, {"command-3", "command-1", "other"});
  REQUIRE(placed);
  CHECK(*placed == std::vector<std::optional<std::int64_t>>{2, 1, std::nullopt});
  CHECK(db::list_allocations(three.pool, CommandId(2))->size() == 1);
}

TEST_CASE("the token of an allocation is a session of its owner, as an Editor, until the allocation ends") {
  Three three;
  REQUIRE(three.pool.query("UPDATE users SET admin = true WHERE id = 1"));
  const AllocationId runs("command-2.1"), ended("command-3.1");
  const auto session = db::find_task_session(three.pool, runs, "hash of command-2.1");
  REQUIRE(session);
  CHECK(session->user.id == UserId(1));
  CHECK(session->limited);
  CHECK(session->grants.everywhere() == db::Role::kEditor);
  for (const auto& [id, hash] :
       {std::pair(runs, "other"), std::pair(runs, ""), std::pair(ended, "hash of command-3.1"),
        std::pair(ended, "hash of command-2.1")})
    CHECK(db::find_task_session(three.pool, id, hash).error().code == Code::kNotFound);
  REQUIRE(three.pool.query("UPDATE users SET active = false WHERE id = 1"));
  CHECK(db::find_task_session(three.pool, runs, "hash of command-2.1").error().code == Code::kNotFound);
}

TEST_CASE("holders of a pool's slots are read with their start times") {
  Three three;
  const core::Allocation runs = allocation_of(2, core::AllocationState::kRunning);
  const auto live = db::live_since(three.pool, runs.pool);
  REQUIRE(live);
  CHECK(*live == std::vector{std::pair(TaskKey(CommandId(2)), runs.started)});
  CHECK(db::live_since(three.pool, "no such pool")->empty());
}

}  // namespace
TEST_CASE("a workspace is deleted with its ended commands, whose usage and ids remain") {
  Three three;
  REQUIRE(db::load_cluster(three.pool));
  const db::Container lab{db::Container::Kind::kWorkspace, 2}, first{db::Container::Kind::kWorkspace, 1};
  CHECK(db::contents_of(three.pool, lab)->live_commands.empty());
  CHECK(db::contents_of(three.pool, first)->live_commands.size() == 2);
  CHECK(db::delete_container(three.pool, first, {}).error().code == Code::kFailedPrecondition);
  REQUIRE(three.pool.query("UPDATE allocations SET slots = 2, ended = started WHERE command_id = 3"));
  REQUIRE(
      three.pool.query("INSERT INTO webhooks (name, url, format, mode, workspace_id)"
                       " VALUES ('hook', 'x', 'DEFAULT', 'WORKSPACE', 2)"));
  REQUIRE(
      three.pool.query("INSERT INTO webhook_triggers (webhook_id, kind, condition)"
                       " SELECT id, 'TASK_LOG', 'x' FROM webhooks"));
  // A match of the deleted command, one of a trigger of the workspace, and another one.
  REQUIRE(
      three.pool.query("INSERT INTO webhook_matches SELECT task_id, 99 FROM commands WHERE id = 3"
                       " UNION ALL SELECT 'elsewhere', id FROM webhook_triggers"
                       " UNION ALL SELECT 'elsewhere', 99"));
  REQUIRE(db::delete_container(three.pool, lab, {}));
  CHECK(three.database.value("SELECT string_agg(task_id || ' ' || trigger_id, ',') FROM webhook_matches") ==
        "elsewhere 99");
  CHECK(three.listed({}).size() == 2);
  CHECK(three.database.number("SELECT count(*) FROM past_usage WHERE workspace_id = 2 AND slots = 2") == 1);
  CHECK(three.database.number("SELECT last_command FROM cluster") == 3);
  CHECK(db::delete_container(three.pool, lab, {}).error().code == Code::kNotFound);
}

TEST_CASE("a deletion is in progress until it fails, and can be repeated") {
  Three three;
  const db::Container lab{db::Container::Kind::kWorkspace, 2};
  CHECK(db::begin_deletion(three.pool, {db::Container::Kind::kProject, 99}).error().code == Code::kNotFound);
  CHECK(db::deletions(three.pool)->empty());
  REQUIRE(db::begin_deletion(three.pool, lab));
  REQUIRE(db::deletions(three.pool)->size() == 1);
  CHECK(db::deletions(three.pool)->front().id == 2);
  CHECK(db::get_workspace(three.pool, 2)->deletion == "");
  REQUIRE(db::fail_deletion(three.pool, lab, "no agent has the files"));
  CHECK(db::deletions(three.pool)->empty());
  CHECK(db::get_workspace(three.pool, 2)->deletion == "no agent has the files");
  REQUIRE(db::begin_deletion(three.pool, lab));
  CHECK(db::deletions(three.pool)->size() == 1);
}

}  // namespace det::test
