#include "master/db/accounts.h"

#define DET_USER_COLUMNS "u.id, u.name, u.display_name, u.admin, u.active, u.created, u.last_auth"

namespace det::db {
namespace {

User read_user(Rows::Row& row) {
  User user;
  row.into(user.id, user.name, user.display_name, user.admin, user.active, user.created, user.last_auth);
  return user;
}

/// PostgreSQL adds it to now() as microseconds of an interval.
double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

tl::unexpected<Error> no_user(const std::string& whom) {
  return fail(Code::kNotFound, "user " + whom + " not found");
}

}  // namespace

Result<Cluster> load_cluster(Pool& pool) {
  const std::string secret = random_bytes(32);
  TRY(pool.query("INSERT INTO cluster (id, secret) VALUES ($1, $2) ON CONFLICT DO NOTHING", uuid4(),
                 Bytes{secret}));
  TRY_ASSIGN(const Rows rows, pool.query("SELECT id, secret FROM cluster"));
  Cluster cluster;
  rows[0].into(cluster.id, cluster.secret);
  return cluster;
}

Result<bool> create_first_admin(Pool& pool, const std::string& name, const std::string& password_hash) {
  TRY_ASSIGN(const Rows rows, pool.query("INSERT INTO users (name, password_hash, admin) SELECT $1, $2, true"
                                         " WHERE NOT EXISTS (SELECT FROM users) RETURNING id",
                                         name, password_hash));
  return !rows.empty();
}

Result<UserId> create_user(Pool& pool, const std::string& name, const std::string& password_hash,
                           bool admin) {
  auto rows = pool.query("INSERT INTO users (name, password_hash, admin) VALUES ($1, $2, $3) RETURNING id",
                         name, password_hash, admin);
  if (!rows && rows.error().code == Code::kAlreadyExists)
    return fail(Code::kAlreadyExists, "user " + name + " exists already; choose another name");
  TRY(rows);
  return (*rows)[0].next<UserId>();
}

Result<User> find_user(Pool& pool, const std::string& name) {
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT " DET_USER_COLUMNS " FROM users u WHERE lower(u.name) = lower($1)", name));
  if (rows.empty()) return no_user(name);
  Rows::Row row = rows[0];
  return read_user(row);
}

Result<User> get_user(Pool& pool, UserId id) {
  TRY_ASSIGN(const Rows rows, pool.query("SELECT " DET_USER_COLUMNS " FROM users u WHERE u.id = $1", id));
  if (rows.empty()) return no_user(std::to_string(id.value));
  Rows::Row row = rows[0];
  return read_user(row);
}

Result<std::string> password_hash(Pool& pool, UserId id) {
  TRY_ASSIGN(const Rows rows, pool.query("SELECT password_hash FROM users WHERE id = $1", id));
  if (rows.empty()) return no_user(std::to_string(id.value));
  return rows[0].next<std::string>();
}

Status set_password_hash(Pool& pool, UserId id, const std::string& hash) {
  TRY_ASSIGN(const Rows rows, pool.query("UPDATE users SET password_hash = $2 WHERE id = $1", id, hash));
  if (rows.affected() == 0) return no_user(std::to_string(id.value));
  return {};
}

Result<std::int64_t> create_session(Pool& pool, UserId user, const std::string& token_hash,
                                    Duration lifetime) {
  // A repeat after a lost answer meets its own row.
  auto rows = pool.query(
      "WITH seen AS (UPDATE users SET last_auth = now() WHERE id = $1)"
      " INSERT INTO sessions (user_id, token_hash, expires)"
      " VALUES ($1, $2, now() + make_interval(secs => $3))"
      " ON CONFLICT (token_hash) DO UPDATE SET expires = EXCLUDED.expires RETURNING id",
      user, token_hash, seconds(lifetime));
  if (!rows && rows.error().code == Code::kFailedPrecondition) return no_user(std::to_string(user.value));
  TRY(rows);
  return (*rows)[0].next<std::int64_t>();
}

Result<Session> find_session(Pool& pool, const std::string& token_hash) {
  TRY_ASSIGN(const Rows rows, pool.query("SELECT s.id, s.expires, " DET_USER_COLUMNS
                                         " FROM sessions s JOIN users u ON u.id = s.user_id"
                                         " WHERE s.token_hash = $1 AND s.expires > now() AND u.active",
                                         token_hash));
  if (rows.empty()) return fail(Code::kNotFound, "no such session; log in again");
  Rows::Row row = rows[0];
  Session session;
  row.into(session.id, session.expires);
  session.user = read_user(row);
  return session;
}

Status touch_session(Pool& pool, std::int64_t id, Duration lifetime) {
  TRY(pool.query(
      "UPDATE sessions SET expires = now() + make_interval(secs => $2) WHERE id = $1 AND expires > now()", id,
      seconds(lifetime)));
  return {};
}

Status delete_session(Pool& pool, const std::string& token_hash) {
  TRY(pool.query("DELETE FROM sessions WHERE token_hash = $1", token_hash));
  return {};
}

Result<std::int64_t> delete_expired_sessions(Pool& pool) {
  TRY_ASSIGN(const Rows rows, pool.query("DELETE FROM sessions WHERE expires <= now()"));
  return rows.affected();
}

}  // namespace det::db
