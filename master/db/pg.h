// Owns every call to libpq: connections, statements with parameters, results, pipelines, transactions, and
// what a failure means. SQL is constant text; data travels as parameters only. A Connection belongs to one
// thread at a time.
//
// A failure is one of (see is_retryable):
//   kUnavailable        the server is away, going down, starting or out of resources: reconnect and try again
//   later kAborted            serialization failure or deadlock: run the transaction again kUnknown the
//   answer to COMMIT was lost: it may or may not have happened kDeadlineExceeded   the statement ran past its
//   timeout kInvalidArgument    the data itself (SQLSTATE 22…), a bad regular expression among it
//   kAlreadyExists, kFailedPrecondition, kPermissionDenied   a constraint (23505, other 23…), rights
//   kInternal           everything else: a bug of ours
#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/queue.h"
#include "base/result.h"

namespace det::db {

/// True when the same work may succeed later (kUnavailable) or at once (kAborted).
bool is_retryable(const Error& error);

/// Where the database is. `url` is what libpq takes: "postgresql://…" or "host=… dbname=…".
struct ConnectOptions {
  std::string url;
  std::string application = "det-master";  ///< shown in pg_stat_activity; at most 63 bytes
  Duration connect_timeout = std::chrono::seconds(5);
  Duration statement_timeout{0};  ///< 0: none
};

/// A byte string parameter (bytea); text parameters are std::string and friends.
struct Bytes {
  std::string_view value;
};

/// The parameters of one statement, in order, in PostgreSQL's binary form. Text that PostgreSQL could not
/// take (NUL, ill-formed UTF-8) is repaired, never refused: a store has to take what it is given.
class Params {
 public:
  template <typename... T>
  explicit Params(const T&... values) {
    (add(values), ...);
  }

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
  template <typename Tag, typename Value>
  void add(const Id<Tag, Value>& id) {
    add(id.value);
  }
  template <typename T>
  void add(const std::optional<T>& value) {
    add(value.value_or(T{}));
    if (!value) null_last();
  }
  /// One-dimensional arrays: int8[], float8[], text[], bytea[], timestamptz[].
  void add(const std::vector<std::int64_t>& values);
  void add(const std::vector<std::string>& values);
  void add(const std::vector<Bytes>& values);
  void add(const std::vector<WallTime>& values);

  int size() const { return static_cast<int>(values_.size()); }
  /// The arrays libpq wants; valid while this object is unchanged.
  struct View {
    std::vector<Oid> types;
    std::vector<const char*> values;
    std::vector<int> lengths, formats;
  };
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

/// What a statement returned, in binary form. Reading a column as the wrong type is a bug and ends the
/// process.
class Rows {
 public:
  explicit Rows(PGresult* result) : result_(result, PQclear) {}
  int size() const { return PQntuples(result_.get()); }
  bool empty() const { return size() == 0; }
  /// How many rows an INSERT, UPDATE or DELETE touched.
  std::int64_t affected() const;

  /// Reads the columns of one row from left to right.
  class Row {
   public:
    template <typename... T>
    void into(T&... fields) {
      (read(fields), ...);
    }
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
    std::string_view cell();
    const PGresult* result_;
    int row_;
    int column_ = 0;
  };
  Row operator[](int row) const { return Row(result_.get(), row); }

 private:
  std::unique_ptr<PGresult, void (*)(PGresult*)> result_;
};

/// Rows in COPY's binary form: each begins with row(), then its columns from left to right. Nothing is
/// converted on the way, so a column's type must be the table's. Text is repaired as Params do.
class CopyRows {
 public:
  CopyRows();
  void row(int columns);
  void add(std::int64_t value);  ///< bigint
  void add(std::int32_t value);  ///< integer
  void add(std::string_view text);
  void add(WallTime time);
  void add_bytes(std::string_view bytes);  ///< bytea
  bool empty() const { return empty_; }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  bool empty_ = true;
};

/// One statement of a pipeline. `sql` must live as long as the connection (constant text): it is prepared
/// once.
struct Statement {
  const char* sql;
  Params params;
  /// An UPDATE that touches no row is a failure (kInternal): the server then takes nothing that follows.
  bool must_touch_row = false;
};

class Connection {
 public:
  /// One attempt. Refuses servers older than PostgreSQL 13 (kFailedPrecondition).
  static Result<Connection> open(const ConnectOptions& options);
  Connection(Connection&&) noexcept = default;
  Connection& operator=(Connection&&) noexcept = default;

  /// One statement with parameters.
  template <typename... T>
  Result<Rows> query(const char* sql, const T&... values) {
    return run(sql, Params(values...));
  }
  Result<Rows> run(const char* sql, const Params& params);
  /// The same for what is asked again and again: PostgreSQL reads and plans the text once.
  Result<Rows> run_prepared(const char* sql, const Params& params);
  /// `sql` is COPY … FROM STDIN (FORMAT binary); behind it may stand COMMIT, which is then not another round
  /// trip.
  Status copy(const char* sql, const CopyRows& rows);
  /// Several statements of our own in one text (migrations, SET); no results.
  Status script(const std::string& sql);
  /// All in one round trip; the rows of the last. Inside a transaction, or beginning with "BEGIN"; after a
  /// failure the transaction is over.
  Result<Rows> run_all(const std::vector<Statement>& statements);
  /// All in a transaction of its own, whole or not at all, BEGIN and COMMIT among them in one round trip.
  /// kUnknown when the connection was lost before the answer; any other failure means nothing was committed.
  Status transact(const std::vector<Statement>& statements);

  Status begin() { return script("BEGIN"); }
  /// kUnknown when the connection was lost before the answer; any other failure means nothing was committed.
  Status commit();
  /// Never fails: a connection that cannot roll back is broken, and is reopened by its owner.
  void rollback();

  /// False once the connection has been lost.
  bool alive() const { return PQstatus(connection_.get()) == CONNECTION_OK; }
  int backend_pid() const { return PQbackendPID(connection_.get()); }

 private:
  explicit Connection(PGconn* connection) : connection_(connection, PQfinish) {}
  Error failure(const PGresult* result) const;
  Result<Rows> rows_of(PGresult* result) const;
  Status enqueue(const Statement& statement, std::vector<bool>& is_prepare);
  Result<Rows> pipeline(const std::vector<const Statement*>& statements);
  std::unique_ptr<PGconn, void (*)(PGconn*)> connection_;
  std::map<const char*, std::string> prepared_;  ///< of pipelines
  std::map<std::string, std::string> asked_;     ///< of run_prepared, by text and types of parameters
  static constexpr std::size_t kMostAsked = 256;
};

/// A wait that another thread can end.
class Pause {
 public:
  /// False when ended by cancel().
  bool wait(Duration time) {
    cancel_.pop_batch(1, time);
    return !cancel_.closed();
  }
  void cancel() { cancel_.close(); }
  bool canceled() const { return cancel_.closed(); }

 private:
  Queue<char> cancel_{1};
};

/// Grows from 20 ms to 1 s.
class BackOff {
 public:
  Duration next();

 private:
  Duration next_ = std::chrono::milliseconds(20);
};

/// Tries until the server answers, `patience` has passed (the last failure) or `pause` is canceled
/// (kCancelled).
Result<Connection> open_patiently(const ConnectOptions& options, Duration patience, Pause& pause);

}  // namespace det::db
