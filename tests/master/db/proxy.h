// Owns a man in the middle between libpq and PostgreSQL that cuts connections at the worst moment.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "master/db/pg.h"

namespace det::test {

class Proxy {
 public:
  enum class Cut {
    kNever,
    kBeforeCommit,  ///< COMMIT does not reach the server
    kAfterCommit,   ///< COMMIT is carried out, its answer does not come back
    kEverything,    ///< no connection gets through
  };
  /// In front of the socket that `url` names.
  explicit Proxy(const std::string& url);
  ~Proxy();
  db::ConnectOptions connect() const;
  /// The next COMMIT is cut so; after it kNever holds again (kEverything stays).
  void cut(Cut how);
  int cuts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace det::test
