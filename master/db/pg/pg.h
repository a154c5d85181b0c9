// The only user of libpq: connections, statements with parameters, results, pipelines, transactions, and the
// mapping of SQLSTATEs to error codes. SQL is constant text; data travels only as parameters. A Connection
// may be used by one thread at a time.
//
// Every failure has one of these codes (see is_retryable()):
//
//   kUnavailable         server unreachable, shutting down, starting or out of resources: reconnect and retry
//   kAborted             serialization failure, deadlock or lock timeout: run the transaction again
//   kUnknown             the reply to COMMIT was lost: the transaction may or may not have committed
//   kDeadlineExceeded    the statement ran past its timeout
//   kInvalidArgument     invalid data (SQLSTATE 22xxx), including an invalid regular expression
//   kAlreadyExists       unique constraint (23505)
//   kFailedPrecondition  any other constraint (23xxx)
//   kPermissionDenied    missing rights or failed authentication
//   kInternal            anything else: a bug in this program
#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/event.h"
#include "common/base/ids.h"
#include "common/base/result.h"

namespace det::db {

/// True when the same work may succeed later (kUnavailable) or immediately (kAborted).
bool is_retryable(const Error& error);

/// Address of the database. `url` is a libpq connection string: "postgresql://…" or "host=… dbname=…".
struct ConnectOptions {
  std::string url;
  std::string application = "det-master";  ///< Shown in pg_stat_activity; truncated to 63 bytes.
  /// Rounded up to whole seconds; at least 2 s.
  Duration connect_timeout = std::chrono::seconds(5);
  Duration statement_timeout{0};  ///< Millisecond resolution; 0: none.
};

/// Ends ConnectOptions::statement_timeout for the rest of a transaction, for statements that change many
/// rows.
inline constexpr const char* kNoTimeout = "SET LOCAL statement_timeout = 0";

/// A bytea parameter; string types are text parameters. Does not own its bytes.
struct Bytes {
  std::string_view value;
};

/// Constant text of a statement: a literal, or a string that outlives the call.
struct Sql {
  Sql(const char* sql) : text(sql) {}
  Sql(const std::string& sql) : text(sql.c_str()) {}
  const char* text;
};

/// Parameters of one statement, in order, in PostgreSQL's binary format. Text that PostgreSQL would reject
/// (NUL, invalid UTF-8) is repaired, never refused: the store must accept any input that the core accepted.
class Params {
 public:
  template <typename... T>
  explicit Params(const T&... values) {
    (add(values), ...);
  }

  /// Appends one parameter; the SQL type follows from the C++ type (int8, float8, bool, text, bytea,
  /// timestamptz).
  void add(std::int64_t value);
  void add(int value) { add(static_cast<std::int64_t>(value)); }
  void add(std::uint32_t value) { add(static_cast<std::int64_t>(value)); }
  void add(double value);
  void add(bool value);
  void add(std::string_view text);
  void add(const std::string& text) { add(std::string_view(text)); }
  void add(const char* text) { add(std::string_view(text)); }
  void add(Bytes bytes);
  void add(WallTime time);
  /// Strong ids are stored as their value.
  template <typename Tag, typename Value>
  void add(const Id<Tag, Value>& id) {
    add(id.value);
  }
  /// NULL when `value` is empty.
  template <typename T>
  void add(const std::optional<T>& value) {
    add(value.value_or(T{}));
    if (!value) null_last();
  }
  /// One-dimensional arrays: int8[], text[], bytea[], timestamptz[].
  void add(const std::vector<std::int64_t>& values);
  void add(const std::vector<std::string>& values);
  void add(const std::vector<Bytes>& values);
  void add(const std::vector<WallTime>& values);

  /// Number of parameters.
  int size() const { return static_cast<int>(values_.size()); }
  /// The arrays that libpq expects; valid until the next add().
  struct View {
    std::vector<Oid> types;
    std::vector<const char*> values;
    std::vector<int> lengths, formats;
  };
  /// Returns the arrays for a libpq call.
  View view() const;

 private:
  struct Value {
    Oid type;
    std::string bytes;
    bool null = false;
  };
  void null_last() { values_.back().null = true; }
  std::vector<Value> values_;
};

/// Result of a statement in binary format. Reading a column as the wrong type, or NULL into a plain value, is
/// a bug and aborts the process.
class Rows {
 public:
  /// Takes ownership of `result`.
  explicit Rows(PGresult* result) : result_(result, PQclear) {}
  int size() const { return PQntuples(result_.get()); }
  /// True when no row was returned. Also true after statements without a result, such as UPDATE.
  bool empty() const { return size() == 0; }
  /// Number of rows that an INSERT, UPDATE or DELETE touched.
  std::int64_t affected() const;

  /// Reads the columns of one row from left to right.
  class Row {
   public:
    /// Reads the next columns into `fields`.
    template <typename... T>
    void into(T&... fields) {
      (read(fields), ...);
    }
    /// Reads the next column.
    template <typename T>
    T next() {
      T value{};
      read(value);
      return value;
    }

   private:
    friend class Rows;
    Row(const PGresult* result, int row) : result_(result), row_(row) {}
    void read(std::int64_t& value);  ///< int2, int4, int8
    void read(std::int32_t& value);
    void read(std::uint32_t& value);
    void read(double& value);
    void read(bool& value);
    void read(std::string& value);  ///< text, json, bytea
    void read(WallTime& value);
    void read(std::vector<std::int64_t>& value);
    void read(std::vector<std::string>& value);
    // A NULL column resets an optional; every other type aborts on NULL.
    template <typename Tag, typename Value>
    void read(Id<Tag, Value>& id) {
      read(id.value);
    }
    template <typename T>
    void read(std::optional<T>& value) {
      if (PQgetisnull(result_, row_, column_)) {
        value.reset();
        ++column_;
      } else {
        read(value.emplace());
      }
    }
    /// Bytes of the next column, which must not be NULL.
    std::string_view cell();
    const PGresult* result_;
    int row_;
    int column_ = 0;
  };
  /// The Row is valid while this object lives.
  Row operator[](int row) const { return Row(result_.get(), row); }
  /// Iterates over the rows: `for (Rows::Row row : rows)`.
  struct Iterator {
    const Rows& rows;
    int at;
    Row operator*() const { return rows[at]; }
    Iterator& operator++() { return ++at, *this; }
    bool operator!=(const Iterator& other) const { return at != other.at; }
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }
  /// Reads the first column of all rows.
  template <typename T>
  std::vector<T> column() const {
    std::vector<T> values;
    for (Row row : *this) values.push_back(row.template next<T>());
    return values;
  }

 private:
  std::unique_ptr<PGresult, void (*)(PGresult*)> result_;
};

/// Rows in the binary format of COPY: call row(), then add() for each column from left to right. There is no
/// conversion, so each column must have exactly the type of the table. Text is repaired as in Params.
class CopyRows {
 public:
  CopyRows();
  /// Begins a row of `columns` columns.
  void row(int columns);
  void add(std::int64_t value);  ///< bigint
  void add(std::int32_t value);  ///< integer
  void add(std::string_view text);
  void add(WallTime time);
  void add_bytes(std::string_view bytes);  ///< bytea
  /// True before the first row().
  bool empty() const { return empty_; }
  /// The stream so far, without the trailer.
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  bool empty_ = true;
};

/// One statement of a pipeline. It is prepared once per connection and keyed by the address of `sql`, which
/// must be constant text that outlives the connection.
struct Statement {
  const char* sql;
  Params params;
  /// Fail with kInternal when the UPDATE touches no row; the server then skips all statements behind it.
  bool must_touch_row = false;
};

/// One session with the server. Movable; one thread at a time. After kUnavailable or kUnknown, discard it.
class Connection {
 public:
  /// Makes one attempt to connect. Blocks for at most connect_timeout. Errors: kUnavailable;
  /// kPermissionDenied (bad credentials or no such database); kFailedPrecondition (a server older than
  /// PostgreSQL 13).
  static Result<Connection> open(const ConnectOptions& options);
  Connection(Connection&&) noexcept = default;
  Connection& operator=(Connection&&) noexcept = default;

  /// Runs one statement with parameters and returns its rows. Blocks for a round trip.
  template <typename... T>
  Result<Rows> query(Sql sql, const T&... values) {
    return run(sql, Params(values...));
  }
  /// Like query(), with prepared parameters.
  Result<Rows> run(Sql sql, const Params& params);
  /// Like run(), but prepares the statement on first use. For frequent statements; the cache is keyed by text
  /// and parameter types.
  Result<Rows> run_prepared(Sql sql, const Params& params);
  /// Streams rows into "COPY … FROM STDIN (FORMAT binary)". `sql` may end in "; COMMIT" to save a round trip.
  Status copy(const char* sql, const CopyRows& rows);
  /// Streams the rows of `out` ("COPY … TO STDOUT"), run on `source`, into `in` ("COPY … FROM STDIN"), run on
  /// this connection. Both must have the same format. Calls `copied` with the number of rows about once per
  /// 10,000. Returns the number of rows. An error of `source` names it; the connections may then be used only
  /// to roll back.
  Result<std::int64_t> copy_from(Connection& source, Sql out, Sql in,
                                 const std::function<void(std::int64_t rows)>& copied);
  /// Runs several constant statements (migrations, SET); returns no rows.
  Status script(const std::string& sql);
  /// Runs all statements in one round trip and returns the rows of the last. Call it inside a transaction or
  /// begin with "BEGIN". A failure rolls the transaction back.
  Result<Rows> run_all(const std::vector<Statement>& statements);
  /// Runs all statements atomically in one round trip, including BEGIN and COMMIT. kUnknown: the connection
  /// was lost before the reply. Any other failure means that nothing was committed.
  Status transact(const std::vector<Statement>& statements);

  /// Begins a transaction.
  Status begin() { return script("BEGIN"); }
  /// Begins a transaction that writes, and returns its id for pg_xact_status().
  Result<std::string> begin_named();
  /// kUnknown: the connection was lost before the reply. Any other failure means that nothing was committed.
  Status commit();
  /// Never fails: a connection that cannot roll back is broken and its owner reopens it.
  void rollback();

  /// True inside a transaction, also after one of its statements failed.
  bool in_transaction() const { return PQtransactionStatus(connection_.get()) != PQTRANS_IDLE; }
  /// False once the connection has been lost.
  bool alive() const { return PQstatus(connection_.get()) == CONNECTION_OK; }
  /// Process id of the server process behind this session.
  int backend_pid() const { return PQbackendPID(connection_.get()); }

 private:
  explicit Connection(PGconn* connection) : connection_(connection, PQfinish) {}
  Error failure(const PGresult* result) const;
  Result<Rows> rows_of(PGresult* result) const;
  Status enqueue(const Statement& statement, std::vector<bool>& is_prepare);
  Result<Rows> pipeline(const std::vector<const Statement*>& statements);
  std::unique_ptr<PGconn, void (*)(PGconn*)> connection_;
  /// Statements of pipelines: the name of each prepared statement by the address of its text.
  std::map<const char*, std::string> prepared_;
  /// Statements of run_prepared(): name by text and parameter types.
  std::map<std::string, std::string> asked_;
  static constexpr std::size_t kMaxPrepared = 256;
};

/// A wait that another thread can cancel. Thread-safe.
class Pause {
 public:
  /// Sleeps for `time`. Returns false when canceled, before or during the wait.
  bool wait(Duration time) { return !cancel_.wait_for(time); }
  /// Ends the current and all future waits.
  void cancel() { cancel_.set(); }
  bool canceled() const { return cancel_.is_set(); }

 private:
  Event cancel_;
};

/// Exponential back-off from 20 ms to 1 s, without jitter.
class BackOff {
 public:
  /// Returns the next delay.
  Duration next();

 private:
  Duration next_ = std::chrono::milliseconds(20);
};

/// Connects with retries. Blocks until the server answers, `patience` has passed (returns the last error) or
/// `pause` is canceled (kCancelled). Errors that are not retryable return at once.
Result<Connection> open_patiently(const ConnectOptions& options, Duration patience, Pause& pause);

/// Repeats `attempt`, with back-off, until it succeeds or fails permanently; it opens `connection` when that
/// is empty. An unknown outcome is repeated, so `attempt` must detect work that is stored already. On failure
/// the transaction is rolled back, and a connection that may be broken is closed. kUnavailable:
/// stop_retrying(time since the call, error of the attempt) returned true.
Status attempt_patiently(std::optional<Connection>& connection, Pause& pause,
                         const std::function<bool(Duration, const Error&)>& stop_retrying,
                         const std::function<Status()>& attempt);

}  // namespace det::db
