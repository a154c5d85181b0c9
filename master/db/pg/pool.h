// Connection pool of the API threads, for short statements: reads for lists and charts, and rows that bypass
// the core (users, sessions, model definitions). Thread-safe.
#pragma once

#include <functional>
#include <memory>

#include "common/base/queue.h"
#include "master/db/pg/pg.h"

namespace det::db {

/// A fixed number of connections, each lent to one thread at a time.
class Pool {
 public:
  /// Connections open on first use.
  explicit Pool(ConnectOptions options, int connections = 4);

  /// Runs `work` on a connection of its own. Blocks for at most 10 s until one is free (then
  /// kResourceExhausted). On a lost connection or an aborted transaction `work` runs a second time, so it
  /// must be safe to repeat. A transaction that `work` leaves open is rolled back. kUnavailable: the database
  /// cannot be reached.
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
  /// Runs `work` in one transaction and commits when it succeeds. It may run `work` several times but commits
  /// once: after a lost reply to COMMIT it asks the database for the outcome. Errors: kUnavailable (four
  /// COMMITs failed and were rolled back), kUnknown (the database did not answer within 10 s).
  Status in_transaction(const std::function<Status(Connection&)>& work);
  /// Runs one statement in its own transaction. It is prepared and may be sent twice, as in with().
  template <typename... T>
  Result<Rows> query(Sql sql, const T&... values) {
    return run(sql, Params(values...));
  }
  Result<Rows> run(Sql sql, const Params& params);

 private:
  Status lend(const std::function<Status(Connection&)>& work);
  /// Returns true if the transaction committed, false if it was rolled back. kUnknown after 10 s.
  Result<bool> committed(const std::string& transaction);
  const ConnectOptions options_;
  /// Free connections. Null stands for one that is opened on use.
  Queue<std::unique_ptr<Connection>> free_;
};

}  // namespace det::db
