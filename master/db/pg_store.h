// Owns the core's rows in PostgreSQL: one ordered writer thread that commits whatever step groups have queued
// up in one transaction, exactly once, and the fence that keeps a second master out.
//
// The fence: a session advisory lock on the writer's connection, and the row writer_position(epoch,
// sequence), which every transaction updates. When an answer to COMMIT is lost, the writer reconnects, takes
// the lock again (which proves that its old session, and so its transaction, is over), reads the row, and
// knows.
#pragma once

#include <memory>
#include <string>

#include "master/db/pg.h"
#include "master/db/store.h"

namespace det::db {

struct PgStoreOptions {
  ConnectOptions connect;
  std::string host;                                      ///< named to a second master: "<host>", with our pid
  Duration connect_patience = std::chrono::seconds(30);  ///< at start
  Duration give_up = std::chrono::seconds(60);           ///< the database away for longer is a failure
  Duration lock_patience = std::chrono::milliseconds(1500);
  Duration look =
      std::chrono::seconds(5);  ///< without writes: between two looks whether the place is still ours
  std::size_t queue = 4096;     ///< groups; append blocks when it is full
  std::size_t batch = 512;      ///< most groups in one transaction
};

class PgStore final : public Store {
 public:
  /// Connects, takes the lock (kFailedPrecondition with host and pid of the master that holds it, within 2
  /// s), migrates, begins a new epoch.
  static Result<std::unique_ptr<PgStore>> open(PgStoreOptions options);
  ~PgStore() override;

  Result<core::Recovered> load() override;
  /// Called by one thread.
  Sequence append(std::vector<core::Write> group) override;
  void start(Callbacks callbacks) override;
  void stop() override;

  /// Of the writer's connection as it was opened last; for tests that cut it.
  int backend_pid() const;

 private:
  struct Impl;
  explicit PgStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace det::db
