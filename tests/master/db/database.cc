#include "tests/master/db/database.h"

#include <atomic>
#include <catch2/catch.hpp>

#include "common/base/files.h"
#include "common/base/queue.h"
#include "common/base/wait.h"
#include "master/db/pg/migrate.h"
#include "master/db/pg/private_server.h"

namespace det::test {
namespace {

struct Server {
  TemporaryDirectory directory;
  db::PrivateServer server;
};

Server start_server() {
  auto directory = TemporaryDirectory::create("det-db-test");
  REQUIRE(directory);
  auto server = db::PrivateServer::start({.directory = directory->path() + "/postgres"});
  if (!server) FAIL(server.error().message);
  // Tests kill processes, not the machine.
  auto admin = db::Connection::open({.url = server->url()});
  REQUIRE(admin);
  for (const char* setting : {"fsync = off", "full_page_writes = off"})
    REQUIRE(admin->script(std::string("ALTER SYSTEM SET ") + setting));
  REQUIRE(admin->script("SELECT pg_reload_conf()"));
  return {std::move(*directory), std::move(*server)};
}

Server& shared_server() {
  static Server server = start_server();
  return server;
}

/// Databases of finished tests, for reuse.
Queue<std::string>& idle_databases() {
  static Queue<std::string> idle(64);
  return idle;
}

}  // namespace

Database::Database(bool migrated) {
  static int made = 0;
  if (auto idle = idle_databases().pop_batch(1, std::chrono::seconds(0)); !idle.empty()) {
    url_ = idle.front();
    // Reuses an emptied database: a new one takes eight megabytes of disk.
    REQUIRE(connection().script(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid(); DROP SCHEMA public CASCADE; CREATE SCHEMA public"));
  } else {
    const std::string name = "test" + std::to_string(++made);
    auto admin = db::Connection::open({.url = shared_server().server.url()});
    REQUIRE(admin);
    REQUIRE(admin->script("CREATE DATABASE " + name));
    url_ = shared_server().server.url(name);
  }
  if (!migrated) return;
  db::Connection fresh = connection();
  const Status status = db::migrate(fresh);
  if (!status) FAIL(status.error().message);
  REQUIRE(fresh.query("INSERT INTO users (name, password_hash) VALUES ('ada', 'x')"));
}

Database::~Database() { idle_databases().try_push(std::string(url_)); }

db::Connection Database::connection() const {
  auto opened = db::Connection::open(connect());
  if (!opened) FAIL(opened.error().message);
  return std::move(*opened);
}

std::string Database::value(const char* sql) const {
  auto rows = connection().query(sql);
  if (!rows) FAIL(rows.error().message);
  REQUIRE(rows->size() == 1);
  return (*rows)[0].next<std::string>();
}

std::int64_t Database::number(const char* sql) const {
  auto rows = connection().query(sql);
  if (!rows) FAIL(rows.error().message);
  REQUIRE(rows->size() == 1);
  return (*rows)[0].next<std::int64_t>();
}

bool Database::wait_for_waiting(std::int64_t sessions, const std::function<bool()>& done) const {
  const auto waiting = [&] {
    return number(
               "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND"
               " wait_event_type = 'Lock'") == sessions;
  };
  return wait_until([&] { return (done && done()) || waiting(); }, std::chrono::seconds(20));
}

/// Reports arrive on the store's thread and are read on the test's thread, through queues.
struct RunningStore::Shared {
  std::atomic<db::Sequence> durable{0};
  Queue<db::Sequence> reports{1 << 20};
  Queue<Error> failures{1};
  std::vector<db::Sequence> seen;
  std::optional<Error> failure;

  void collect() {
    for (db::Sequence number : reports.pop_batch(1 << 20, std::chrono::seconds(0))) seen.push_back(number);
    for (Error& error : failures.pop_batch(1, std::chrono::seconds(0))) failure = std::move(error);
  }
};

RunningStore::RunningStore(std::unique_ptr<db::Store> store)
    : shared_(std::make_shared<Shared>()), store_(std::move(store)) {
  store_->start({.durable =
                     [shared = shared_](db::Sequence number) {
                       shared->reports.try_push(db::Sequence(number));
                       shared->durable = number;
                     },
                 .failed = [shared = shared_](Error error) { shared->failures.try_push(std::move(error)); }});
}
RunningStore::~RunningStore() { store_->stop(); }

bool RunningStore::wait_durable(db::Sequence number) {
  return wait_until([&] { return shared_->durable >= number; }, std::chrono::seconds(60));
}
void RunningStore::write(std::vector<core::Write> group) {
  const db::Sequence number = store_->append(std::move(group));
  const bool durable = wait_durable(number);
  if (const auto error = failure()) FAIL(error->message);
  REQUIRE(durable);
}
std::vector<db::Sequence> RunningStore::reports() const {
  shared_->collect();
  return shared_->seen;
}
std::optional<Error> RunningStore::failure() const {
  shared_->collect();
  return shared_->failure;
}
bool RunningStore::wait_failed() {
  return wait_until([&] { return failure().has_value(); }, std::chrono::seconds(60));
}

std::unique_ptr<db::PgStore> open_store(const Database& database) {
  auto store = db::PgStore::open({.connect = database.connect()});
  if (!store) FAIL(store.error().message);
  return std::move(*store);
}

std::string checkpoint_uuid(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr std::size_t kDigitsOfName = 12;
  std::string digits;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    digits += kDigits[byte >> 4U];
    digits += kDigits[byte & 15U];
  }
  REQUIRE(digits.size() <= kDigitsOfName);
  digits.resize(kDigitsOfName, '0');
  return "00000000-0000-4000-8000-" + digits;
}

}  // namespace det::test
