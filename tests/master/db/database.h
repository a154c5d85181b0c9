// One private PostgreSQL server for a test program, and a separate database for each test.
#pragma once

#include <functional>
#include <string>

#include "master/db/ingest/bulk.h"
#include "master/db/pg/pg.h"
#include "master/db/pg/pool.h"
#include "master/db/store/pg_store.h"

namespace det::test {

/// A private database, empty or with the schema and one user (id 1).
class Database {
 public:
  explicit Database(bool migrated = true);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  db::ConnectOptions connect() const { return {.url = url_}; }
  const std::string& url() const { return url_; }
  db::Connection connection() const;
  /// One value of one row as text, for checks that bypass the code under test.
  std::string value(const char* sql) const;
  std::int64_t number(const char* sql) const;
  /// Waits until `sessions` sessions wait for locks, or `done` returns true. False after 20 s.
  bool wait_for_waiting(std::int64_t sessions, const std::function<bool()>& done = nullptr) const;

 private:
  std::string url_;
};

/// A started store and everything that it has reported.
class RunningStore {
 public:
  explicit RunningStore(std::unique_ptr<db::Store> store);
  ~RunningStore();
  db::Store& store() { return *store_; }
  /// Appends a group and waits until it is durable. Fails the test after 60 s.
  void write(std::vector<core::Write> group);
  bool wait_durable(db::Sequence number);
  std::vector<db::Sequence> reports() const;
  std::optional<Error> failure() const;
  bool wait_failed();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::unique_ptr<db::Store> store_;
};
std::unique_ptr<db::PgStore> open_store(const Database& database);

/// Returns the UUID of a checkpoint that a test calls `name` (at most six characters). Keeps the order of
/// names.
std::string checkpoint_uuid(std::string_view name);
inline CheckpointId checkpoint_id(std::string_view name) { return CheckpointId(checkpoint_uuid(name)); }

}  // namespace det::test
