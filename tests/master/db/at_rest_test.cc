// Secrets of stored configurations, as they lie in the database.
#include "master/db/store/at_rest.h"

#include <catch2/catch.hpp>
#include <optional>

#include "common/base/files.h"
#include "common/expconf/parse.h"
#include "master/db/queries/cluster.h"
#include "master/db/queries/commands.h"
#include "master/db/queries/config_policies.h"
#include "master/db/queries/experiments.h"
#include "master/db/queries/projects.h"
#include "master/db/queries/templates.h"
#include "master/db/queries/webhooks.h"
#include "master/db/queries/workspaces.h"
#include "tests/master/db/database.h"
#include "tests/master/db/samples.h"

namespace det::test {
namespace {

constexpr const char* kWithSecrets = R"(# a comment of mine
name: secretive
entrypoint: "true"
searcher: {name: single, metric: loss, max_length: {batches: 1}}
checkpoint_storage: {type: s3, bucket: backup, access_key: canary-1, secret_key: canary-2}
data: {secrets: {nested: [canary-3, 77123]}}
environment:
  environment_variables: [DB_PASSWORD=canary-4, PLAIN=shown]
  registry_auth: {username: u, password: canary-5}
)";
constexpr const char* kPolicy = "invariant_config: {data: {secrets: canary-6}}\n";
constexpr const char* kStorage =
    R"({"checkpoint_storage":{"type":"s3","bucket":"b","access_key":"canary-8","secret_key":"canary-9"}})";
constexpr const char* kShell = "command-7";
constexpr const char* kShellKey = "canary-11";
constexpr const char* kUrl = "https://hooks.example.org/canary-10";
constexpr const char* kTemplate = "data: {secrets: {key: canary-7}}  # my template\n";

core::PutExperiment experiment(std::int64_t id) {
  auto parsed = expconf::parse(kWithSecrets, "c.yaml", {});
  INFO((parsed ? "" : parsed.error().message));
  REQUIRE(parsed);
  core::PutExperiment put{plain_experiment(id), true, kWithSecrets};
  put.row.config = std::make_shared<const expconf::ExperimentConfig>(std::move(parsed->config));
  return put;
}

/// A database with an experiment, a template, a policy, a storage and a webhook that have secrets.
struct Secretive {
  const TemporaryDirectory folder = std::move(TemporaryDirectory::create().value());
  const std::string& directory = folder.path();
  Database database;
  std::optional<RunningStore> store{std::in_place, open_store(database)};
  db::Pool pool{database.connect()};
  ~Secretive() { db::use_vault(nullptr); }

  void use_keys(const std::string& name = "secrets.key") {
    auto vault = Vault::open(directory + "/" + name);
    REQUIRE(vault);
    db::use_vault(std::make_shared<const Vault>(std::move(*vault)));
  }
  void fill(std::int64_t id = 1) {
    core::Command shell = Sampler(1).command(CommandId(7));
    shell.ended.reset();
    store->write({experiment(id), core::PutCommand{shell}});
    REQUIRE(db::put_interactive_task(pool, shell.task, {.kind = "SHELL", .ssh_key = kShellKey}));
    REQUIRE(db::set_template(pool, {.name = "t" + std::to_string(id), .text = kTemplate}, false));
    REQUIRE(db::set_workspace_storage(pool, 1, kStorage));
    REQUIRE(db::set_config_policies(pool, {.workload = "experiment"}, kPolicy, UserId(1)));
    REQUIRE(db::create_webhook(pool, {.name = "hook", .url = kUrl}));
  }
  /// Loads what a restarted master would load.
  Result<core::Recovered> load() {
    store.reset();
    return open_store(database)->load();
  }
  /// Everything that a dump of the tables would show.
  std::string dump() const {
    return database.value(
               "SELECT coalesce(string_agg(config::text || original_config, ' '), '') FROM experiments") +
           database.value("SELECT coalesce(string_agg(text, ' '), '') FROM templates") +
           database.value("SELECT coalesce(string_agg(text, ' '), '') FROM config_policies") +
           database.value("SELECT coalesce(string_agg(checkpoint_storage::text, ' '), '') FROM workspaces") +
           database.value("SELECT coalesce(string_agg(url, ' '), '') FROM webhooks") +
           database.value("SELECT coalesce(string_agg(ssh_key, ' '), '') FROM interactive_tasks") +
           database.value("SELECT coalesce(string_agg(config::text, ' '), '') FROM commands");
  }
  void check_readable(std::int64_t id = 1) {
    const auto got = db::get_experiment(pool, ExperimentId(id));
    REQUIRE(got);
    CHECK(got->original_config == kWithSecrets);
    CHECK(got->config == dump_json(experiment(id).row.config->resolved));
    CHECK(db::get_template(pool, "t" + std::to_string(id))->text == kTemplate);
    CHECK(*db::get_config_policies(pool, {.workload = "experiment"}) == kPolicy);
    const auto hooks = db::list_webhooks(pool, std::nullopt);
    REQUIRE(hooks);
    REQUIRE_FALSE(hooks->empty());
    CHECK(hooks->front().url == kUrl);
    CHECK(db::get_webhook(pool, hooks->front().id)->url == kUrl);
    const auto to = db::find_destination(pool, "experiment", 1);
    REQUIRE(to);
    CHECK(to->checkpoint_storage == kStorage);
    CHECK(*db::find_ssh_key(pool, TaskId(kShell)) == kShellKey);
  }
};

TEST_CASE("stored secrets are encrypted, and come back as they were") {
  Secretive world;
  world.use_keys();
  world.fill();
  const std::string dump = world.dump();
  CHECK(dump.find("canary") == std::string::npos);
  CHECK(dump.find("77123") == std::string::npos);
  CHECK(dump.find("PLAIN=shown") != std::string::npos);
  world.check_readable();
  const auto loaded = world.load();
  REQUIRE(loaded);
  REQUIRE(loaded->experiments.size() == 1);
  CHECK(dump_json(loaded->experiments[0].config->resolved) == dump_json(experiment(1).row.config->resolved));
}

TEST_CASE("secrets that an earlier release stored in plain are encrypted once") {
  Secretive world;
  world.fill();
  CHECK(world.dump().find("canary-7") != std::string::npos);
  world.use_keys();
  // Rows in plain stay readable meanwhile.
  world.check_readable();
  REQUIRE(db::seal_stored_secrets(world.pool));
  const std::string dump = world.dump();
  CHECK(dump.find("canary") == std::string::npos);
  world.check_readable();
  REQUIRE(db::seal_stored_secrets(world.pool));
  CHECK(world.dump() == dump);
}

TEST_CASE("after a rotation everything is encrypted with the new key") {
  Secretive world;
  world.use_keys();
  REQUIRE(db::seal_stored_secrets(world.pool));
  world.fill();
  const std::string file = world.directory + "/secrets.key";
  const std::string old = *read_file(file, 4096);
  REQUIRE(write_file_atomic(file, "rotate\n" + old, 0600));
  world.use_keys();
  world.check_readable();
  REQUIRE(db::seal_stored_secrets(world.pool));
  // The old key is no longer needed.
  const std::string both = *read_file(file, 4096);
  REQUIRE(write_file_atomic(file, both.substr(0, both.find('\n') + 1), 0600));
  world.use_keys();
  world.check_readable();
}

/// What a start of the master does with the key file and the database.
void settle_and_seal(Secretive& world) {
  const auto current = db::stored_key(world.pool);
  REQUIRE(current);
  REQUIRE(Vault::settle(world.directory + "/secrets.key", *current));
  world.use_keys();
  REQUIRE(db::seal_stored_secrets(world.pool));
}

TEST_CASE(
    "a rotation of the secrets leaves either the old state or the new one, wherever it is interrupted") {
  Secretive world;
  REQUIRE(db::load_cluster(world.pool));
  settle_and_seal(world);
  world.fill();
  const std::string file = world.directory + "/secrets.key";
  const std::string secret(32, 's'), old_dump = world.dump(), old_key = *db::stored_key(world.pool);
  REQUIRE(world.pool.query(
      "INSERT INTO sessions (user_id, token_hash, expires) VALUES (1, 'h', now() + interval '1 day')"));
  REQUIRE(
      world.pool.query("INSERT INTO join_tokens (token_hash, pool, agent_id, uses_left, created_by, expires)"
                       " VALUES ('h', '', '', 1, 'admin', now() + interval '1 day')"));
  auto proposed = Vault::propose(file);
  REQUIRE(proposed);
  SECTION("before the transaction") {
    settle_and_seal(world);
    CHECK(world.dump() == old_dump);
    CHECK(*db::stored_key(world.pool) == old_key);
    CHECK(db::load_cluster(world.pool)->secret != secret);
    CHECK(world.database.number("SELECT count(*) FROM sessions") == 1);
  }
  SECTION("after the transaction") {
    const std::string key = proposed->key_id();
    db::use_vault(std::make_shared<const Vault>(std::move(*proposed)));
    const auto done = db::rotate_stored_secrets(world.pool, secret);
    REQUIRE(done);
    CHECK(done->sessions == 1);
    CHECK(done->join_tokens == 1);
    const std::string dump = world.dump();
    CHECK(dump.find(old_key) == std::string::npos);
    CHECK(dump.find("canary") == std::string::npos);
    // The process dies before it settles the key file.
    settle_and_seal(world);
    CHECK(*db::stored_key(world.pool) == key);
    CHECK(world.dump() == dump);
    CHECK(db::load_cluster(world.pool)->secret == secret);
    CHECK(world.database.number("SELECT count(*) FROM sessions") == 0);
  }
  world.check_readable();
}

TEST_CASE("a rotation that meets an unreadable row changes nothing") {
  Secretive world;
  REQUIRE(db::load_cluster(world.pool));
  settle_and_seal(world);
  world.fill();
  REQUIRE(world.pool.query("UPDATE templates SET text = 'sealed:1:0123456789abcdef:AAAA'"));
  const std::string before = world.dump();
  auto proposed = Vault::propose(world.directory + "/secrets.key");
  REQUIRE(proposed);
  db::use_vault(std::make_shared<const Vault>(std::move(*proposed)));
  const auto done = db::rotate_stored_secrets(world.pool, std::string(32, 's'));
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Code::kDataLoss);
  CHECK(world.dump() == before);
}

TEST_CASE("a configuration whose key is missing is an error that names the file") {
  Secretive world;
  world.use_keys();
  world.fill();
  world.use_keys("other.key");
  const auto got = db::get_experiment(world.pool, ExperimentId(1));
  REQUIRE_FALSE(got);
  CHECK(got.error().code == Code::kDataLoss);
  CHECK(got.error().message.find("other.key") != std::string::npos);
  CHECK(db::seal_stored_secrets(world.pool).error().code == Code::kDataLoss);
  CHECK(world.load().error().code == Code::kDataLoss);
}

TEST_CASE("a sealed value that a user copies into a configuration is not decrypted for that user") {
  Secretive world;
  world.use_keys();
  const Json secret = "canary-8";
  const std::string stolen = Vault::open(world.directory + "/secrets.key")->seal(dump_json(secret));
  const Json config{{"data", {{"secrets", stolen}}}, {"labels", stolen}};
  CHECK(*db::open_config(db::seal_config(config)) == dump_json(config));
}

TEST_CASE("a stored configuration is replaced only while it is the one that was read") {
  Secretive world;
  world.use_keys();
  world.fill();
  const std::string before = db::get_experiment(world.pool, ExperimentId(1))->config;
  Json changed = *parse_json(before);
  changed["data"]["secrets"] = "canary-9";
  REQUIRE(db::replace_config(world.pool, ExperimentId(1), before, dump_json(changed)));
  CHECK(world.dump().find("canary") == std::string::npos);
  CHECK(db::get_experiment(world.pool, ExperimentId(1))->config == dump_json(changed));
  CHECK(db::replace_config(world.pool, ExperimentId(1), before, before).error().code == Code::kAborted);
}

}  // namespace
}  // namespace det::test
