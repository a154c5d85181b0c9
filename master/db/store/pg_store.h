// Store of the core on PostgreSQL. One writer thread commits all queued write groups in one transaction,
// exactly once, and holds a fence that keeps a second master out.
//
// The fence is a session advisory lock on the writer's connection, and the row writer_position(epoch,
// sequence) that every transaction updates. When the reply to COMMIT is lost, the writer reconnects and takes
// the lock again. That proves that the old session and its transaction are over, and the row then shows
// whether the transaction committed.
#pragma once

#include <memory>
#include <string>

#include "master/db/pg/disk_watch.h"
#include "master/db/pg/pg.h"
#include "master/db/store/store.h"

namespace det::db {

/// Configuration of PgStore.
struct PgStoreOptions {
  ConnectOptions connect;
  /// Host name shown to a second master; default: this machine.
  std::string host;
  Duration connect_patience = std::chrono::seconds(30);  ///< Wait for the database at start.
  /// A database outage longer than this is a failure, unless a disk is full.
  Duration retry_for = std::chrono::seconds(60);
  /// State of the database's disk; null when the master does not see it. Must outlive the store.
  const DiskWatch* disk = nullptr;
  /// Wait for a lock held by another master.
  Duration lock_patience = std::chrono::milliseconds(1500);
  /// Interval at which an idle writer checks that it still holds the lock.
  Duration look = std::chrono::seconds(5);
  std::size_t queue = 4096;  ///< Capacity in groups; append() blocks when full.
  std::size_t batch = 512;   ///< Maximum groups per transaction.
};

/// Exactly-once store. open() → load() → start() → append() → stop().
class PgStore final : public Store {
 public:
  /// Connects, takes the lock, migrates the schema and begins a new epoch. kFailedPrecondition: another
  /// master holds the lock; the message names its host and pid, within 2 s.
  static Result<std::unique_ptr<PgStore>> open(PgStoreOptions options);
  ~PgStore() override;

  /// Call before start(): it uses the writer's connection.
  Result<core::Recovered> load() override;
  /// Must always be called by the same thread.
  Sequence append(std::vector<core::Write> group) override;
  void start(Callbacks callbacks) override;
  void stop() override;

  /// Server process of the writer's latest connection; for tests that terminate it.
  int backend_pid() const;

 private:
  struct Impl;
  explicit PgStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace det::db
