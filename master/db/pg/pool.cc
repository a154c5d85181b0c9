#include "master/db/pg/pool.h"

namespace det::db {

Pool::Pool(ConnectOptions options, int connections)
    : options_(std::move(options)), free_(static_cast<std::size_t>(connections)) {
  for (int i = 0; i < connections; ++i) free_.push(nullptr);
}

Result<Rows> Pool::run(Sql sql, const Params& params) {
  return with<Rows>([&](Connection& connection) { return connection.run_prepared(sql, params); });
}

Status Pool::in_transaction(const std::function<Status(Connection&)>& work) {
  constexpr int kMaxAttempts = 4;
  Pause pause;
  BackOff back_off;
  for (int attempt = 1;; ++attempt) {
    std::string transaction;
    Status status = lend([&](Connection& connection) -> Status {
      TRY_ASSIGN(transaction, connection.begin_named());
      TRY(work(connection));
      return connection.commit();
    });
    if (status || status.error().code != Code::kUnknown) return status;
    TRY_ASSIGN(const bool done, committed(transaction));
    if (done) return {};
    // Rolled back: the server restarted, or could not commit, for example because its disk is full.
    if (attempt == kMaxAttempts) return fail(Code::kUnavailable, status.error().message);
    pause.wait(back_off.next());
  }
}

Result<bool> Pool::committed(const std::string& transaction) {
  const MonoTime deadline = mono_now() + std::chrono::seconds(10);
  Pause pause;
  BackOff back_off;
  for (;;) {
    const auto rows = query("SELECT coalesce(pg_xact_status($1::text::xid8), '')", transaction);
    const std::string state = rows ? (*rows)[0].next<std::string>() : "";
    if (state == "committed" || state == "aborted") return state == "committed";
    // In progress: the server has not noticed yet that its client is gone.
    if (mono_now() > deadline || (!rows && !is_retryable(rows.error())))
      return fail(Code::kUnknown, "the reply of the database to COMMIT was lost");
    pause.wait(back_off.next());
  }
}

Status Pool::lend(const std::function<Status(Connection&)>& work) {
  auto taken = free_.pop_batch(1, std::chrono::seconds(10));
  if (taken.empty())
    return fail(Code::kResourceExhausted, "all database connections for reading are busy; try again");
  std::unique_ptr<Connection> place = std::move(taken.front());
  Status status;
  // The first use of a connection that was idle while the database restarted fails: retry once.
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (!place || !place->alive()) {
      auto opened = Connection::open(options_);
      status = opened ? Status() : Status(tl::unexpected(opened.error()));
      if (!opened) break;
      place = std::make_unique<Connection>(std::move(*opened));
    }
    status = work(*place);
    if (place->in_transaction()) place->rollback();
    if (status || !is_retryable(status.error())) break;
  }
  if (place && !place->alive()) place.reset();
  // Reuse the most recently used connection first: its statements are prepared and its server process is
  // warm.
  free_.push_front(std::move(place));
  return status;
}

}  // namespace det::db
