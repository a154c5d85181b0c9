// The PostgreSQL server that a master runs for itself when it is given no database: finding the programs,
// initdb, start, stop, and taking over a server that a killed master left running. It listens on a Unix
// socket only, never runs as root, survives Ctrl-C, and stops with the master.
//
//   DIR/data       the database cluster
//   DIR/log        server logs of the last 7 days
//   DIR/start.log  output of the server during start
//   DIR/socket     socket directory; a private one in /tmp if this path is too long for a socket
//   DIR/lock       lock file of the master that uses DIR
#pragma once

#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/result.h"

namespace det::db {

/// Configuration of PrivateServer.
struct PrivateServerOptions {
  std::string directory;                         ///< Absolute path; created when missing.
  Duration patience = std::chrono::seconds(60);  ///< Limit of one start or stop, crash recovery included.
};

/// At most one per directory, across processes. Not thread-safe, except for refuse_restarts() and end_now().
class PrivateServer {
 public:
  /// Returns a running server: the one left behind, or a new one. Blocks for up to `patience`. Errors:
  /// kNotFound (no PostgreSQL >= 13 installed); kFailedPrecondition (another master uses the directory,
  /// initdb failed, or the data needs a PostgreSQL that is not installed); kUnavailable (the server does not
  /// start or does not answer).
  static Result<PrivateServer> start(const PrivateServerOptions& options);
  PrivateServer(PrivateServer&&) noexcept;
  PrivateServer& operator=(PrivateServer&&) noexcept;
  /// Same as stop().
  ~PrivateServer();

  /// Returns the libpq connection string for `database`. start() creates "det".
  std::string url(const std::string& database = "det") const;
  /// Process id of the server, 0 when stopped.
  int pid() const;
  /// Restarts the server, with the same url(), if it has exited. Call it periodically. An error explains why
  /// the server does not start; the next call tries again.
  Status keep_up();
  /// Fast shutdown: open transactions are rolled back, committed data is on disk. Escalates to SIGQUIT and
  /// SIGKILL. Idempotent. kUnavailable: the process does not end.
  Status stop();
  /// Makes keep_up() fail from now on, and soon if it runs on another thread. Any thread.
  void refuse_restarts();
  /// Ends the server within about 2 s, for a stop that hangs: SIGQUIT, then SIGKILL also to its children.
  /// Committed data is on disk. Any thread. The process must exit afterwards.
  void end_now();
  /// Leaves the server running for the next start(), as a killed master does.
  void abandon();

 private:
  struct Impl;
  explicit PrivateServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace det::db
