// A proxy between libpq and PostgreSQL that cuts connections around COMMIT.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "master/db/pg/pg.h"

namespace det::test {

class Proxy {
 public:
  enum class Cut {
    kNever,
    kBeforeCommit,  ///< COMMIT does not reach the server.
    kAfterCommit,   ///< COMMIT is executed, its reply is lost.
    kEverything,    ///< No connection passes.
  };
  /// Forwards to the Unix socket named in `url`.
  explicit Proxy(const std::string& url);
  ~Proxy();
  db::ConnectOptions connect() const;
  /// Applies `how` to the next COMMIT, then returns to kNever. kEverything stays in force.
  void cut(Cut how);
  int cuts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace det::test
