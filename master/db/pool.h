// Owns the few connections that API threads share for short statements: reads for lists and charts, and the
// rows the core does not own (users, sessions, model definitions). Thread-safe.
#pragma once

#include <functional>
#include <memory>

#include "base/queue.h"
#include "master/db/pg.h"

namespace det::db {

class Pool {
 public:
  /// Connects on first use.
  explicit Pool(ConnectOptions options, int connections = 4);

  /// Runs `work` with a connection of its own, waiting at most 10 s for one (then kResourceExhausted). When
  /// the connection turns out to be lost, `work` runs once more on a new one, so it must be safe to repeat. A
  /// database that stays away is kUnavailable.
  template <typename T>
  Result<T> with(const std::function<Result<T>(Connection&)>& work) {
    Result<T> result = fail(Code::kUnknown, "");
    const Status status = lend([&](Connection& connection) -> Status {
      result = work(connection);
      if (!result) return tl::unexpected(result.error());
      return {};
    });
    if (!status) return tl::unexpected(status.error());
    return result;
  }
  /// `work` in one transaction, which commits when it succeeds. Like with(): it must be safe to repeat.
  Status in_transaction(const std::function<Status(Connection&)>& work);
  /// One statement in a transaction of its own.
  template <typename... T>
  Result<Rows> query(const char* sql, const T&... values) {
    return run(sql, Params(values...));
  }
  Result<Rows> run(const char* sql, const Params& params);

 private:
  Status lend(const std::function<Status(Connection&)>& work);
  const ConnectOptions options_;
  /// Free places; an empty one connects when it is used.
  Queue<std::unique_ptr<Connection>> free_;
};

}  // namespace det::db
