#include "master/db/store/pg_store.h"

#include <unistd.h>

#include <atomic>
#include <thread>

#include "common/base/log.h"
#include "common/base/queue.h"
#include "master/db/pg/migrate.h"
#include "master/db/store/pg_store_load.h"
#include "master/db/store/pg_writes.h"

namespace det::db {
namespace {

/// Key of the session advisory lock that the active master holds: "det" and "wrt" in ASCII.
constexpr std::int64_t kWriterLock = 0x0064'6574'0077'7274;

/// One queued step group with its sequence number.
struct Group {
  Sequence number = 0;
  std::vector<core::Write> writes;
};

/// The row writer_position.
struct Position {
  std::int64_t epoch = 0, sequence = 0;
};

Result<Position> read_position(Connection& connection) {
  TRY_ASSIGN(const Rows rows, connection.query("SELECT epoch, sequence FROM writer_position"));
  if (rows.empty()) return fail(Code::kDataLoss, "the database has lost its writer_position row");
  Position position;
  rows[0].into(position.epoch, position.sequence);
  return position;
}

/// Returns the application name of the session that holds the lock, "" if none. Terminates that session when
/// it belongs to `application`, that is, to a lost connection of this process.
Result<std::string> find_holder(Connection& connection, const std::string& application) {
  TRY_ASSIGN(
      const Rows rows,
      connection.query("SELECT a.pid, a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
                       " WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1"
                       " AND l.classid::bigint = $1 >> 32 AND l.objid::bigint = $1 & 4294967295"
                       " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())",
                       kWriterLock));
  if (rows.empty()) return std::string();
  std::int64_t pid = 0;
  std::string holder;
  rows[0].into(pid, holder);
  if (holder == application) TRY(connection.query("SELECT pg_terminate_backend($1::int)", pid));
  return holder;
}

/// Polls for the lock. kFailedPrecondition after `patience`: another master holds it.
Status take_lock(Connection& connection, const std::string& application, Duration patience, Pause& pause) {
  const MonoTime deadline = mono_now() + patience;
  for (;;) {
    TRY_ASSIGN(const Rows rows, connection.query("SELECT pg_try_advisory_lock($1)", kWriterLock));
    if (rows[0].next<bool>()) return {};
    TRY_ASSIGN(const std::string holder, find_holder(connection, application));
    if (mono_now() >= deadline || !pause.wait(std::chrono::milliseconds(50)))
      return fail(Code::kFailedPrecondition,
                  "another master uses this database: " + (holder.empty() ? "unknown" : holder) +
                      "; stop that one first, or give this one a database of its own");
  }
}

}  // namespace

struct PgStore::Impl {
  explicit Impl(PgStoreOptions o) : options(std::move(o)), queue(options.queue) {}

  PgStoreOptions options;
  std::optional<Connection> connection;
  std::atomic<int> backend{0};
  std::int64_t epoch = 0;
  Queue<Group> queue;
  // Last sequence number; written by the thread of append().
  Sequence appended = 0;
  Callbacks callbacks;
  Pause pause;
  std::thread thread;

  void run() {
    for (;;) {
      std::vector<Group> batch = queue.pop_batch(options.batch, options.look);
      if (batch.empty() && queue.closed()) return;
      const Sequence last = batch.empty() ? 0 : batch.back().number;
      if (Status status = batch.empty() ? keep_place() : store(batch); !status) {
        // Unblock append(): a closed queue drops pushes, and nothing behind the failure may be stored.
        queue.close();
        while (queue.pop()) {
        }
        log::error("database accepts no more writes", {{"reason", status.error().message}});
        callbacks.failed(status.error());
        return;
      }
      if (last != 0) callbacks.durable(last);
    }
  }

  /// Fails when another master has taken over. An unreachable database is not a failure while there is
  /// nothing to store.
  Status keep_place() {
    if (connection && connection->query("SELECT 1")) return {};
    connection.reset();
    std::vector<Group> nothing;
    Status status = reconnect(nothing);
    if (!status && is_retryable(status.error())) return {};
    return status;
  }

  /// Stores the batch in one transaction. If that fails permanently, stores group by group, so that
  /// everything before the faulty group is kept.
  Status store(std::vector<Group>& batch) {
    Status status = store_whole(batch);
    if (status || batch.size() == 1 || is_retryable(status.error())) return status;
    for (Group& group : batch) {
      std::vector<Group> one;
      one.push_back(std::move(group));
      if (status = store_whole(one); !status) return status;
      if (!one.empty()) callbacks.durable(one.back().number);
    }
    return {};
  }

  /// Stores a batch exactly once, through lost connections. Returns OK with an empty batch if a reconnect
  /// showed that all of it had been committed.
  Status store_whole(std::vector<Group>& batch) {
    return attempt_patiently(
        connection, pause,
        [&](Duration waited, const Error& error) {
          if (queue.closed()) return waited > std::chrono::seconds(10);
          const bool full = is_disk_full(error) || (options.disk && options.disk->full());
          return waited > options.retry_for && !full;
        },
        [&]() -> Status {
          if (!connection) TRY(reconnect(batch));
          return batch.empty() ? Status() : attempt(batch);
        });
  }

  Status attempt(const std::vector<Group>& batch) {
    std::vector<Statement> statements;
    // Updating the fence first makes a transaction of a superseded epoch fail before it writes anything.
    statements.push_back({"UPDATE writer_position SET sequence = $2 WHERE epoch = $1",
                          Params(epoch, static_cast<std::int64_t>(batch.back().number)), true});
    std::vector<const std::vector<core::Write>*> groups;
    for (const Group& group : batch) groups.push_back(&group.writes);
    for (Statement& statement : statements_for(groups)) statements.push_back(std::move(statement));
    return connection->transact(statements);
  }

  /// All statements address rows by key, so the generic plan is always right: avoid re-planning, and
  /// sequential scans of tables that happen to be small. Best effort; failure only costs time.
  void settle() {
    if (connection)
      (void)connection->script("SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off");
  }

  /// Opens a session with the lock. Removes the groups from `batch` that turn out to be stored.
  Status reconnect(std::vector<Group>& batch) {
    TRY_ASSIGN(Connection fresh, Connection::open(options.connect));
    TRY(take_lock(fresh, options.connect.application, options.lock_patience + std::chrono::seconds(10),
                  pause));
    TRY_ASSIGN(const Position position, read_position(fresh));
    // Another epoch means that a second master has written since; this one must not write again.
    if (position.epoch != epoch)
      return fail(Code::kFailedPrecondition,
                  "another master has taken over this database while it was out of reach");
    std::erase_if(
        batch, [&](const Group& group) { return group.number <= static_cast<Sequence>(position.sequence); });
    log::info("reconnected to the database");
    backend = fresh.backend_pid();
    connection = std::move(fresh);
    settle();
    return {};
  }
};

PgStore::PgStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PgStore::~PgStore() { stop(); }

Result<std::unique_ptr<PgStore>> PgStore::open(PgStoreOptions options) {
  if (options.host.empty()) {
    char name[256] = "localhost";
    gethostname(name, sizeof name - 1);
    options.host = name;
  }
  options.connect.application = "host " + options.host.substr(0, 40) + ", pid " + std::to_string(getpid());
  auto impl = std::make_unique<Impl>(std::move(options));
  const PgStoreOptions& o = impl->options;
  TRY_ASSIGN(Connection connection, open_patiently(o.connect, o.connect_patience, impl->pause));
  // An empty application name: a second store in this process must not terminate the session of the first.
  TRY(take_lock(connection, "", o.lock_patience, impl->pause));
  TRY(migrate(connection));
  TRY_ASSIGN(const Rows rows,
             connection.query("UPDATE writer_position SET epoch = epoch + 1, sequence = 0 RETURNING epoch"));
  if (rows.empty()) return fail(Code::kDataLoss, "the database has lost its writer_position row");
  // Close all capacity rows. Agents that are still connected report soon, and put_capacity() then reopens
  // their row.
  TRY(connection.query("UPDATE capacity SET ended = greatest(started, now()) WHERE ended IS NULL"));
  impl->epoch = rows[0].next<std::int64_t>();
  impl->backend = connection.backend_pid();
  impl->connection = std::move(connection);
  return std::unique_ptr<PgStore>(new PgStore(std::move(impl)));
}

Result<core::Recovered> PgStore::load() { return load_recovered(*impl_->connection); }

Sequence PgStore::append(std::vector<core::Write> group) {
  const Sequence number = ++impl_->appended;
  impl_->queue.push({number, std::move(group)});
  return number;
}

void PgStore::start(Callbacks callbacks) {
  impl_->callbacks = std::move(callbacks);
  impl_->settle();
  impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
}

void PgStore::stop() {
  impl_->queue.close();
  // The writer drains the closed queue before it ends.
  if (impl_->thread.joinable()) impl_->thread.join();
}

int PgStore::backend_pid() const { return impl_->backend; }

}  // namespace det::db
