// Owns the PostgreSQL that a master runs for itself when it is given no database: finding the programs,
// initdb, start, stop, and taking over a server that a killed master left behind. Socket only; never as root;
// outlives Ctrl-C, never a graceful stop of the master.
//
// DIR/data the cluster · DIR/log its own log of the last 7 days · DIR/start.log what it said while starting ·
// DIR/socket (or a private directory below /tmp when that path is too long for a socket) · DIR/lock who owns
// all this
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace det::db {

struct PrivateServerOptions {
  std::string directory;                         ///< absolute; made when absent
  Duration patience = std::chrono::seconds(60);  ///< for one start or stop, crash recovery included
};

/// One per directory at a time, across processes. Used by one thread.
class PrivateServer {
 public:
  /// A server that answers: the one left behind, or a new one. kFailedPrecondition: another master uses the
  /// directory, or the data is of a PostgreSQL that is not installed. kNotFound: no PostgreSQL >= 13
  /// installed.
  static Result<PrivateServer> start(const PrivateServerOptions& options);
  PrivateServer(PrivateServer&&) noexcept;
  PrivateServer& operator=(PrivateServer&&) noexcept;
  /// Stops it, like stop().
  ~PrivateServer();

  /// What libpq needs to connect to `database` (made by start(): "det").
  std::string url(const std::string& database = "det") const;
  int pid() const;
  /// Starts it again, with the same url(), when it has ended by itself: to be called every now and then.
  /// Failure: why it does not start; the next call tries again.
  Status keep_up();
  /// Fast shutdown: open transactions are rolled back, everything committed is on disk. Repeats safely.
  Status stop();
  /// Leaves the server running for the next start(), as a killed master does.
  void abandon();

 private:
  struct Impl;
  explicit PrivateServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace det::db
