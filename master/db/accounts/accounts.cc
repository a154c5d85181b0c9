#include "master/db/accounts/accounts.h"

// Columns in the order of read_user().
#define DET_USER_COLUMNS "u.id, u.name, u.display_name, u.admin, u.active, u.created, u.last_auth"
// Filter of list_users(): $1 substring of the name, $2 admin, $3 active.
#define DET_USER_FILTER                                                       \
  " FROM users u WHERE ($1 = '' OR position(lower($1) IN lower(u.name)) > 0)" \
  " AND ($2::boolean IS NULL OR u.admin = $2) AND ($3::boolean IS NULL OR u.active = $3)"
// Filter of list_tokens(): $1 user, $2 ids, $3 include expired and revoked tokens.
#define DET_TOKEN_FILTER                                                                               \
  " FROM sessions s JOIN users u ON u.id = s.user_id WHERE s.kind = 'ACCESS_TOKEN'"                    \
  " AND ($1::bigint IS NULL OR s.user_id = $1) AND (cardinality($2::bigint[]) = 0 OR s.id = ANY ($2))" \
  " AND ($3 OR (NOT s.revoked AND s.expires > now()))"

namespace det::db {
namespace {

User read_user(Rows::Row& row) {
  User user;
  row.into(user.id, user.name, user.display_name, user.admin, user.active, user.created, user.last_auth);
  return user;
}

/// Seconds for make_interval(secs => ...) in SQL.
double token_seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

tl::unexpected<Error> no_user(const std::string& whom) {
  return fail(Code::kNotFound, "user " + whom + " not found");
}

}  // namespace

Result<Cluster> load_cluster(Pool& pool) {
  // When several masters start on a new database, one insert wins and all read its row.
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
  // One statement, so that no user exists without the grant in the default workspace.
  auto rows = pool.query(
      "WITH made AS (INSERT INTO users (name, password_hash, admin) VALUES ($1, $2, $3) RETURNING id),"
      " granted AS (INSERT INTO grants (user_id, role, workspace_id) SELECT id, 'EDITOR', 1 FROM made)"
      " SELECT id FROM made",
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

Result<Page<User>> list_users(Pool& pool, const UserFilter& filter) {
  Params params(filter.name, filter.admin, filter.active);
  TRY_ASSIGN(const Rows counted, pool.run("SELECT count(*)" DET_USER_FILTER, params));
  Page<User> page;
  page.total = counted[0].next<std::int64_t>();
  const Span span = resolve(filter.window, page.total);
  page.start = span.first;
  if (span.count == 0) return page;
  params.add(span.first);
  params.add(span.count);
  const std::string sql = std::string("SELECT " DET_USER_COLUMNS DET_USER_FILTER) +
                          (filter.by_name ? " ORDER BY lower(u.name)" : " ORDER BY u.id") +
                          (filter.window.descending ? " DESC" : "") + " OFFSET $4 LIMIT $5";
  TRY_ASSIGN(const Rows rows, pool.run(sql.c_str(), params));
  for (int i = 0; i < rows.size(); ++i) {
    Rows::Row row = rows[i];
    page.rows.push_back(read_user(row));
  }
  return page;
}

Status change_user(Pool& pool, UserId id, const UserChange& change, const std::string& keep) {
  const auto work = [&](Connection& connection) -> Status {
    // Locks the row: whether the user was an active administrator must not change meanwhile.
    TRY_ASSIGN(const Rows before,
               connection.query("SELECT admin AND active FROM users WHERE id = $1 FOR UPDATE", id));
    if (before.empty()) return no_user(std::to_string(id.value));
    TRY(connection.query(
        "UPDATE users SET name = coalesce($2::text, name),"
        " display_name = coalesce($3::text, display_name),"
        " password_hash = coalesce($4::text, password_hash),"
        " admin = coalesce($5::boolean, admin), active = coalesce($6::boolean, active) WHERE id = $1",
        id, change.name, change.display_name, change.password_hash, change.admin, change.active));
    // Checked after the update: a failure here rolls the change back.
    TRY_ASSIGN(const Rows admins, connection.query("SELECT FROM users WHERE admin AND active LIMIT 1"));
    if (admins.empty() && before[0].next<bool>())
      return fail(Code::kFailedPrecondition, "the cluster needs an active admin; name another first");
    if (change.password_hash || change.active == false)
      TRY(connection.query("DELETE FROM sessions WHERE user_id = $1 AND token_hash <> $2", id, keep));
    return {};
  };
  const Status done = pool.in_transaction(work);
  if (!done && done.error().code == Code::kAlreadyExists)
    return fail(Code::kAlreadyExists,
                "user " + change.name.value_or("") + " exists already; choose another name");
  return done;
}

Result<std::int64_t> create_session(Pool& pool, UserId user, const std::string& token_hash,
                                    Duration lifetime) {
  // A retry after a lost reply finds the row it inserted and returns the same id.
  auto rows = pool.query(
      "WITH seen AS (UPDATE users SET last_auth = now() WHERE id = $1)"
      " INSERT INTO sessions (user_id, token_hash, expires)"
      " VALUES ($1, $2, now() + make_interval(secs => $3))"
      " ON CONFLICT (token_hash) DO UPDATE SET expires = EXCLUDED.expires RETURNING id",
      user, token_hash, token_seconds(lifetime));
  // The foreign key on users failed.
  if (!rows && rows.error().code == Code::kFailedPrecondition) return no_user(std::to_string(user.value));
  TRY(rows);
  return (*rows)[0].next<std::int64_t>();
}

Result<Session> find_session(Pool& pool, const std::string& token_hash, Duration idle) {
  // last_used changes at most once a minute, so that most lookups write nothing.
  TRY_ASSIGN(
      const Rows rows,
      pool.query(
          "WITH live AS (SELECT s.* FROM sessions s WHERE s.token_hash = $1 AND s.expires > now()"
          "  AND NOT s.revoked AND (s.kind <> 'SESSION' OR s.last_used > now() - make_interval(secs => $2))),"
          " used AS (UPDATE sessions s SET last_used = now() FROM live WHERE s.id = live.id"
          "  AND live.last_used < now() - interval '1 minute')"
          " SELECT s.id, s.expires, coalesce(s.most, ''),"
          " ARRAY(SELECT g.role FROM grants g WHERE g.user_id = u.id ORDER BY g.role, g.workspace_id),"
          " ARRAY(SELECT coalesce(g.workspace_id, 0) FROM grants g WHERE g.user_id = u.id ORDER BY g.role, "
          "g.workspace_id), " DET_USER_COLUMNS " FROM live s JOIN users u ON u.id = s.user_id WHERE u.active",
          token_hash, token_seconds(idle)));
  if (rows.empty()) return fail(Code::kNotFound, "no such session; log in again");
  Rows::Row row = rows[0];
  Session session;
  std::string most;
  std::vector<std::string> roles;
  std::vector<std::int64_t> workspaces;
  row.into(session.id, session.expires, most, roles, workspaces);
  session.user = read_user(row);
  // Roles and workspaces are parallel arrays; workspace 0 stands for a cluster-wide grant.
  for (std::size_t i = 0; i < roles.size(); ++i) {
    const std::optional<std::int64_t> where =
        workspaces[i] == 0 ? std::nullopt : std::optional(workspaces[i]);
    session.grants.add(role_of(roles[i]), where);
  }
  if (session.user.admin) session.grants.add(Role::kClusterAdmin, std::nullopt);
  session.limited = !most.empty();
  if (session.limited) session.grants.limit(role_of(most));
  return session;
}

Status delete_session(Pool& pool, const std::string& token_hash) {
  // An access token stays as revoked, so that its owner can still see it in the list.
  TRY(pool.query(
      "WITH ended AS (UPDATE sessions SET revoked = true WHERE token_hash = $1 AND kind <> 'SESSION')"
      " DELETE FROM sessions WHERE token_hash = $1 AND kind = 'SESSION'",
      token_hash));
  return {};
}

Result<std::int64_t> delete_expired_sessions(Pool& pool) {
  TRY_ASSIGN(
      const Rows rows,
      pool.query("DELETE FROM sessions WHERE expires <= now() - CASE kind WHEN 'SESSION' THEN interval '0'"
                 " ELSE interval '30 days' END"));
  return rows.affected();
}

Result<std::int64_t> create_token(Pool& pool, const TokenRow& row, const std::string& token_hash,
                                  Duration lifetime) {
  std::optional<std::string> most;
  if (row.most != Role::kNone) most = std::string(role_name(row.most));
  auto rows = pool.query(
      "INSERT INTO sessions (user_id, token_hash, expires, kind, description, most)"
      " VALUES ($1, $2, now() + make_interval(secs => $3), 'ACCESS_TOKEN', $4, $5) RETURNING id",
      row.user, token_hash, token_seconds(lifetime), row.description, most);
  if (!rows && rows.error().code == Code::kFailedPrecondition) return no_user(std::to_string(row.user.value));
  TRY(rows);
  return (*rows)[0].next<std::int64_t>();
}

Result<Page<TokenRow>> list_tokens(Pool& pool, const TokenFilter& filter) {
  std::optional<std::int64_t> user;
  if (filter.user) user = filter.user->value;
  Params params(user, filter.ids, filter.ended);
  TRY_ASSIGN(const Rows counted, pool.run("SELECT count(*)" DET_TOKEN_FILTER, params));
  Page<TokenRow> page;
  page.total = counted[0].next<std::int64_t>();
  const Span span = resolve(filter.window, page.total);
  page.start = span.first;
  if (span.count == 0) return page;
  params.add(span.first);
  params.add(span.count);
  // last_used starts equal to created; nullif turns a token that was never used into NULL.
  const char* const columns =
      "SELECT s.id, s.user_id, u.name, s.description, coalesce(s.most, ''), s.created, s.expires,"
      " nullif(s.last_used, s.created), s.revoked" DET_TOKEN_FILTER;
  const std::string sql = std::string(columns) + " ORDER BY s.id" +
                          (filter.window.descending ? " DESC" : "") + " OFFSET $4 LIMIT $5";
  TRY_ASSIGN(const Rows rows, pool.run(sql.c_str(), params));
  for (int i = 0; i < rows.size(); ++i) {
    TokenRow& row = page.rows.emplace_back();
    std::string most;
    rows[i].into(row.id, row.user, row.username, row.description, most, row.created, row.expires,
                 row.last_used, row.revoked);
    row.most = role_of(most);
  }
  return page;
}

Status change_token(Pool& pool, std::int64_t id, const std::optional<std::string>& description, bool revoke) {
  // Revocation is permanent: `revoked OR $3` never clears it.
  TRY_ASSIGN(
      const Rows rows,
      pool.query("UPDATE sessions SET description = coalesce($2::text, description), revoked = revoked OR $3"
                 " WHERE id = $1 AND kind = 'ACCESS_TOKEN'",
                 id, description, revoke));
  if (rows.affected() == 0) return fail(Code::kNotFound, "token " + std::to_string(id) + " not found");
  return {};
}

Result<std::vector<UserSetting>> list_user_settings(Pool& pool, UserId id) {
  TRY_ASSIGN(
      const Rows rows,
      pool.query("SELECT path, key, value FROM user_settings WHERE user_id = $1 ORDER BY path, key", id));
  std::vector<UserSetting> out;
  for (int i = 0; i < rows.size(); ++i) {
    UserSetting& one = out.emplace_back();
    rows[i].into(one.path, one.key, one.value);
  }
  return out;
}

Status put_user_settings(Pool& pool, UserId id, const std::vector<UserSetting>& settings) {
  for (const UserSetting& one : settings) {
    if (one.value.empty()) {
      TRY(pool.query("DELETE FROM user_settings WHERE user_id = $1 AND path = $2 AND key = $3", id, one.path,
                     one.key));
    } else {
      TRY(
          pool.query("INSERT INTO user_settings (user_id, path, key, value) VALUES ($1, $2, $3, $4)"
                     " ON CONFLICT (user_id, path, key) DO UPDATE SET value = excluded.value",
                     id, one.path, one.key, one.value));
    }
  }
  return {};
}

Status clear_user_settings(Pool& pool, UserId id) {
  TRY(pool.query("DELETE FROM user_settings WHERE user_id = $1", id));
  return {};
}

}  // namespace det::db
