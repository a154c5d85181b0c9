#include "master/db/pg/pg.h"

#include <cstring>

#include "common/base/log.h"
#include "common/base/text.h"

namespace det::db {
namespace {

// Raised on purpose by the wrapper of must_touch_row.
constexpr const char* kDivisionByZero = "22012";

using Result_ = std::unique_ptr<PGresult, void (*)(PGresult*)>;

Code code_of(std::string_view state) {
  const std::string_view group = state.substr(0, 2);
  if (state == "40001" || state == "40P01" || state == "55P03") return Code::kAborted;
  if (state == "57014") return Code::kDeadlineExceeded;
  // 57P: shutdown, crash, cannot connect now. 25006: a standby that is not promoted yet. XX000 (internal
  // error) is not retryable.
  if (group == "08" || group == "53" || group == "58" || state.starts_with("57P") || state == "25006")
    return Code::kUnavailable;
  if (state == "23505") return Code::kAlreadyExists;
  if (group == "23") return Code::kFailedPrecondition;
  if (group == "22" || state == "2201B") return Code::kInvalidArgument;
  if (group == "28" || state == "42501") return Code::kPermissionDenied;
  return Code::kInternal;
}

/// Joins the lines of a libpq message and trims it.
std::string one_line(const char* message) {
  std::string text(trim(message == nullptr ? "" : message));
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

void notice(void*, const PGresult* result) {
  log::debug("database notice", {{"text", one_line(PQresultErrorMessage(result))}});
}

}  // namespace

bool is_retryable(const Error& error) {
  return error.code == Code::kUnavailable || error.code == Code::kAborted;
}

Result<Connection> Connection::open(const ConnectOptions& options) {
  // libpq treats a timeout of 1 s as 2 s.
  const std::string timeout = std::to_string(
      std::max<std::int64_t>(2, std::chrono::ceil<std::chrono::seconds>(options.connect_timeout).count()));
  const std::string application = options.application.substr(0, 63);
  const char* keys[] = {"dbname",
                        "application_name",
                        "connect_timeout",
                        "client_encoding",
                        "tcp_user_timeout",
                        "keepalives_idle",
                        "keepalives_interval",
                        "keepalives_count",
                        nullptr};
  const char* values[] = {
      options.url.c_str(), application.c_str(), timeout.c_str(), "UTF8", "20000", "10", "5", "3", nullptr};
  // expand_dbname: the URL is parsed as a connection string; the keywords behind it take precedence.
  Connection connection(PQconnectdbParams(keys, values, 1));
  // libpq always returns an object, which also carries the error text.
  PGconn* raw = connection.connection_.get();
  if (PQstatus(raw) != CONNECTION_OK) {
    // libpq reports no SQLSTATE here; only the text separates wrong credentials from an unreachable server.
    const std::string message = one_line(PQerrorMessage(raw));
    const bool refused =
        PQconnectionNeedsPassword(raw) != 0 || message.find("authentication failed") != std::string::npos ||
        (message.find("does not exist") != std::string::npos && message.find("FATAL") != std::string::npos);
    return fail(refused ? Code::kPermissionDenied : Code::kUnavailable,
                "cannot connect to the database: " + message);
  }
  PQsetNoticeReceiver(raw, notice, nullptr);
  if (PQserverVersion(raw) < 130000)
    return fail(Code::kFailedPrecondition, std::string("the database is PostgreSQL ") +
                                               PQparameterStatus(raw, "server_version") +
                                               "; 13 or newer is needed");
  // jit off: compilation costs more than these short statements. synchronous_commit: the server default may
  // be off and would lose acknowledged commits.
  TRY(connection.script(
      "SET TIME ZONE 'UTC'; SET synchronous_commit = on; SET jit = off; SET tcp_keepalives_idle = 10;"
      " SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; SET statement_timeout = " +
      std::to_string(options.statement_timeout.count() / 1000)));
  return connection;
}

Error Connection::failure(const PGresult* result) const {
  const char* state = result == nullptr ? nullptr : PQresultErrorField(result, PG_DIAG_SQLSTATE);
  std::string message =
      one_line(result == nullptr ? PQerrorMessage(connection_.get()) : PQresultErrorMessage(result));
  if (state == nullptr || PQstatus(connection_.get()) != CONNECTION_OK)
    return Error{Code::kUnavailable, "the database connection was lost: " + message, {}};
  return Error{code_of(state), "database: " + message, {}};
}

Result<Rows> Connection::run(Sql sql, const Params& params) {
  const Params::View view = params.view();
  return rows_of(PQexecParams(connection_.get(), sql.text, params.size(), view.types.data(),
                              view.values.data(), view.lengths.data(), view.formats.data(), 1));
}

Result<Rows> Connection::rows_of(PGresult* result) const {
  const ExecStatusType status = PQresultStatus(result);
  Rows rows(result);
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) return tl::unexpected(failure(result));
  return rows;
}

Result<Rows> Connection::run_prepared(Sql sql, const Params& params) {
  const Params::View view = params.view();
  std::string key(sql.text);
  // The same text with other parameter types is another statement.
  for (const Oid type : view.types) key += ' ' + std::to_string(type);
  auto known = asked_.find(key);
  if (known == asked_.end()) {
    if (asked_.size() >= kMaxPrepared) {
      // The texts are composed from fragments, so their number has no fixed bound. Start over when there are
      // too many.
      asked_.clear();
      prepared_.clear();
      TRY(script("DEALLOCATE ALL"));
    }
    const std::string name = "q" + std::to_string(asked_.size());
    TRY(rows_of(PQprepare(connection_.get(), name.c_str(), sql.text, params.size(), view.types.data())));
    known = asked_.emplace(std::move(key), name).first;
  }
  return rows_of(PQexecPrepared(connection_.get(), known->second.c_str(), params.size(), view.values.data(),
                                view.lengths.data(), view.formats.data(), 1));
}

Status Connection::copy(const char* sql, const CopyRows& rows) {
  PGconn* raw = connection_.get();
  const Result_ begun(PQexec(raw, sql), PQclear);
  if (PQresultStatus(begun.get()) != PGRES_COPY_IN) return tl::unexpected(failure(begun.get()));
  // libpq takes lengths as int.
  constexpr std::size_t kPiece = 1 << 20;
  const std::string& bytes = rows.bytes();
  bool sent = true;
  for (std::size_t at = 0; sent && at < bytes.size(); at += kPiece)
    sent = PQputCopyData(raw, bytes.data() + at, static_cast<int>(std::min(kPiece, bytes.size() - at))) == 1;
  // The trailer of the binary format.
  sent = sent && PQputCopyData(raw, "\377\377", 2) == 1 && PQputCopyEnd(raw, nullptr) == 1;
  Status status;
  if (!sent) status = tl::unexpected(failure(nullptr));
  // Drain all results; one per statement of `sql`.
  while (PGresult* next = PQgetResult(raw)) {
    const Result_ result(next, PQclear);
    if (status && PQresultStatus(next) != PGRES_COMMAND_OK) status = tl::unexpected(failure(next));
    if (!alive() || PQresultStatus(next) == PGRES_COPY_IN) break;
  }
  return status;
}

Result<std::int64_t> Connection::copy_from(Connection& source, Sql out, Sql in,
                                           const std::function<void(std::int64_t rows)>& copied) {
  constexpr std::int64_t kReportEvery = 10'000;
  PGconn *from = source.connection_.get(), *to = connection_.get();
  const Result_ reading(PQexec(from, out.text), PQclear);
  if (PQresultStatus(reading.get()) != PGRES_COPY_OUT) return tl::unexpected(source.failure(reading.get()));
  const Result_ writing(PQexec(to, in.text), PQclear);
  if (PQresultStatus(writing.get()) != PGRES_COPY_IN) return tl::unexpected(failure(writing.get()));
  // libpq collects rows, and blocks when the receiver is slower than the sender.
  std::int64_t rows = 0;
  bool sent = true;
  int length = 0;
  for (char* row = nullptr; sent && (length = PQgetCopyData(from, &row, 0)) > 0; ++rows) {
    sent = PQputCopyData(to, row, length) == 1;
    PQfreemem(row);
    if (copied && rows % kReportEvery == 0) copied(rows);
  }
  Status status;
  if (!sent) status = tl::unexpected(failure(nullptr));
  // -1 is the regular end of the rows; the result behind it says whether the statement succeeded.
  const Result_ read(length == -1 ? PQgetResult(from) : nullptr, PQclear);
  if (status && (!read || PQresultStatus(read.get()) != PGRES_COMMAND_OK))
    status = tl::unexpected(source.failure(read.get()));
  while (length == -1) {
    const Result_ rest(PQgetResult(from), PQclear);
    if (!rest) break;
  }
  (void)PQputCopyEnd(to, status ? nullptr : "the source failed");
  while (PGresult* next = PQgetResult(to)) {
    const Result_ result(next, PQclear);
    if (status && PQresultStatus(next) != PGRES_COMMAND_OK) status = tl::unexpected(failure(next));
    if (!alive() || PQresultStatus(next) == PGRES_COPY_IN) break;
  }
  if (!status) return tl::unexpected(status.error());
  return rows;
}

Status Connection::script(const std::string& sql) {
  const Result_ result(PQexec(connection_.get(), sql.c_str()), PQclear);
  const ExecStatusType status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) return tl::unexpected(failure(result.get()));
  return {};
}

Result<std::string> Connection::begin_named() {
  // Both in one round trip.
  TRY_ASSIGN(const Rows rows, rows_of(PQexec(connection_.get(), "BEGIN; SELECT pg_current_xact_id()::text")));
  return rows[0].next<std::string>();
}

Status Connection::commit() {
  const Result_ result(PQexec(connection_.get(), "COMMIT"), PQclear);
  if (PQresultStatus(result.get()) == PGRES_COMMAND_OK) {
    // COMMIT of a failed transaction replies ROLLBACK, which libpq does not report as an error.
    if (std::strcmp(PQcmdStatus(result.get()), "COMMIT") == 0) return {};
    return fail(Code::kAborted, "database: the transaction was rolled back");
  }
  Error error = failure(result.get());
  // A shutdown or crash message (57Pxx) leaves the outcome open as well.
  if (error.code == Code::kUnavailable) error.code = Code::kUnknown;
  return tl::unexpected(std::move(error));
}

void Connection::rollback() {
  if (alive()) (void)script("ROLLBACK");
}

Status Connection::enqueue(const Statement& statement, std::vector<bool>& is_prepare) {
  PGconn* raw = connection_.get();
  const Params::View view = statement.params.view();
  auto [entry, fresh] = prepared_.try_emplace(statement.sql, "s" + std::to_string(prepared_.size()));
  if (fresh) {
    is_prepare.push_back(true);
    // An UPDATE without a row divides by zero, which fails the rest of the pipeline on the server.
    const std::string sql = statement.must_touch_row ? std::string("WITH touched AS (") + statement.sql +
                                                           " RETURNING 1) SELECT 1 / count(*) FROM touched"
                                                     : statement.sql;
    if (!PQsendPrepare(raw, entry->second.c_str(), sql.c_str(), statement.params.size(), view.types.data()))
      return tl::unexpected(failure(nullptr));
  }
  is_prepare.push_back(false);
  if (!PQsendQueryPrepared(raw, entry->second.c_str(), statement.params.size(), view.values.data(),
                           view.lengths.data(), view.formats.data(), 1))
    return tl::unexpected(failure(nullptr));
  return {};
}

Result<Rows> Connection::pipeline(const std::vector<const Statement*>& statements) {
  PGconn* raw = connection_.get();
  if (!PQenterPipelineMode(raw)) return tl::unexpected(failure(nullptr));
  std::vector<bool> is_prepare;
  Status status;
  Rows last(nullptr);
  for (const Statement* statement : statements)
    if (status = enqueue(*statement, is_prepare); !status) break;
  if (!PQpipelineSync(raw) && status) status = tl::unexpected(failure(nullptr));

  // Results arrive in order; is_prepare separates replies to PREPARE from those to statements.
  std::size_t number = 0;
  for (std::size_t i = 0; status && i < is_prepare.size(); ++i) {
    Result_ result(PQgetResult(raw), PQclear);
    const ExecStatusType got = PQresultStatus(result.get());
    const Statement& statement = *statements[number];
    if (got != PGRES_COMMAND_OK && got != PGRES_TUPLES_OK) {
      const char* state = result ? PQresultErrorField(result.get(), PG_DIAG_SQLSTATE) : nullptr;
      const bool untouched =
          statement.must_touch_row && state != nullptr && std::strcmp(state, kDivisionByZero) == 0;
      status = untouched
                   ? fail(Code::kInternal, std::string("database: no row to change for: ") + statement.sql)
                   : Status(tl::unexpected(failure(result.get())));
    }
    if (!is_prepare[i]) ++number;
    if (!result) continue;
    // The null result that ends each statement.
    PQclear(PQgetResult(raw));
    last = Rows(result.release());
  }
  // Drain a failed pipeline up to its sync point.
  for (int nulls = 0; alive() && nulls < 3;) {
    const Result_ result(PQgetResult(raw), PQclear);
    if (PQresultStatus(result.get()) == PGRES_PIPELINE_SYNC) break;
    nulls = result ? 0 : nulls + 1;
  }
  if (alive() && !PQexitPipelineMode(raw)) status = tl::unexpected(failure(nullptr));
  // It is unknown which statements of a failed pipeline were prepared: drop them all.
  if (!status && !prepared_.empty()) {
    prepared_.clear();
    asked_.clear();
    if (alive()) rollback(), (void)script("DEALLOCATE ALL");
  }
  if (!status) return tl::unexpected(std::move(status).error());
  return last;
}

Result<Rows> Connection::run_all(const std::vector<Statement>& statements) {
  std::vector<const Statement*> all;
  for (const Statement& statement : statements) all.push_back(&statement);
  return pipeline(all);
}

Status Connection::transact(const std::vector<Statement>& statements) {
  const Statement begin{"BEGIN", Params()}, commit{"COMMIT", Params()};
  std::vector<const Statement*> all{&begin};
  for (const Statement& statement : statements) all.push_back(&statement);
  all.push_back(&commit);
  auto rows = pipeline(all);
  if (rows) return {};
  // The connection may have been lost before or after the server executed COMMIT.
  if (rows.error().code == Code::kUnavailable) rows.error().code = Code::kUnknown;
  return tl::unexpected(std::move(rows).error());
}

Duration BackOff::next() {
  const Duration now = next_;
  next_ = std::min<Duration>(next_ * 2, std::chrono::seconds(1));
  return now;
}

Result<Connection> open_patiently(const ConnectOptions& options, Duration patience, Pause& pause) {
  const MonoTime deadline = mono_now() + patience;
  BackOff back_off;
  for (bool told = false;;) {
    Result<Connection> connection = Connection::open(options);
    if (connection || !is_retryable(connection.error())) return connection;
    const Duration left = deadline - mono_now();
    if (left <= Duration(0)) return connection;
    // Log the first failure only.
    if (!std::exchange(told, true))
      log::warn("waiting for the database", {{"reason", connection.error().message}});
    if (!pause.wait(std::min(left, back_off.next())))
      return fail(Code::kCancelled, "stopped waiting for the database");
  }
}

Status attempt_patiently(std::optional<Connection>& connection, Pause& pause,
                         const std::function<bool(Duration, const Error&)>& stop_retrying,
                         const std::function<Status()>& attempt) {
  const MonoTime begun = mono_now();
  BackOff back_off;
  for (;;) {
    Status status = attempt();
    if (status) return status;
    const Code code = status.error().code;
    // A lost connection has nothing to roll back.
    if (connection && code != Code::kUnavailable && code != Code::kUnknown) connection->rollback();
    if (!is_retryable(status.error()) && code != Code::kUnknown) return status;
    if (code != Code::kAborted) connection.reset();
    if (stop_retrying(mono_now() - begun, status.error()))
      return fail(Code::kUnavailable, status.error().message);
    log::warn("a write to the database is repeated", {{"reason", status.error().message}});
    pause.wait(back_off.next());
  }
}

}  // namespace det::db
