#include "master/db/accounts/users.h"

namespace det::db {

const Columns<User>& user_columns() {
  static const Columns<User> columns(
      column<&User::id>("u.id"), column<&User::name>("u.name"), column<&User::display_name>("u.display_name"),
      column<&User::admin>("u.admin"), column<&User::active>("u.active"), column<&User::created>("u.created"),
      column<&User::last_auth>("u.last_auth"),
      Column<User>{"u.agent_uid, u.agent_gid, u.agent_user, u.agent_group",
                   [](Rows::Row& row, User& out) -> Status {
                     const auto uid = row.next<std::optional<std::int64_t>>();
                     const auto gid = row.next<std::optional<std::int64_t>>();
                     const auto user = row.next<std::optional<std::string>>();
                     const auto group = row.next<std::optional<std::string>>();
                     // The table sets all four columns or none.
                     if (uid) out.agent = {static_cast<int>(*uid), static_cast<int>(*gid), *user, *group};
                     return {};
                   }});
  return columns;
}

Status lock_admins(Connection& connection, const std::vector<std::int64_t>& users) {
  TRY(connection.query(
      "SELECT FROM users WHERE admin AND active OR id = ANY ($1) ORDER BY id FOR NO KEY UPDATE", users));
  return {};
}

Status check_admin(Connection& connection) {
  TRY_ASSIGN(const Rows admins, connection.query("SELECT FROM users WHERE admin AND active LIMIT 1"));
  if (admins.empty())
    return fail(Code::kFailedPrecondition, "the cluster needs an active admin; name another first");
  return {};
}

tl::unexpected<Error> no_user(UserId id) {
  return fail(Code::kNotFound, "user " + std::to_string(id.value) + " not found");
}

Result<bool> create_first_admin(Pool& pool, const std::string& name, const std::string& password_hash) {
  TRY_ASSIGN(const Rows rows, pool.query("INSERT INTO users (name, password_hash, admin) SELECT $1, $2, true"
                                         " WHERE NOT EXISTS (SELECT FROM users) RETURNING id",
                                         name, password_hash));
  return !rows.empty();
}

Result<UserId> create_user(Pool& pool, const std::string& name, const std::string& password_hash, bool admin,
                           const std::string& role) {
  // One statement, so that no user exists without the grant in the default workspace.
  auto rows = pool.query(
      "WITH made AS (INSERT INTO users (name, password_hash, admin) VALUES ($1, $2, $3) RETURNING id),"
      " granted AS (INSERT INTO grants (user_id, role, workspace_id) SELECT id, $4, 1 FROM made"
      "  WHERE $4 <> 'NONE')"
      " SELECT id FROM made",
      name, password_hash, admin, role);
  if (!rows && rows.error().code == Code::kAlreadyExists)
    return fail(Code::kAlreadyExists, "user " + name + " exists already; choose another name");
  TRY(rows);
  return (*rows)[0].next<UserId>();
}

Result<User> find_user(Pool& pool, const std::string& name) {
  static const std::string sql = user_columns().select(" FROM users u WHERE lower(u.name) = lower($1)");
  return user_columns().one(pool.query(sql, name), "user " + name);
}

Result<User> get_user(Pool& pool, UserId id) {
  static const std::string sql = user_columns().select(" FROM users u WHERE u.id = $1");
  return user_columns().one(pool.query(sql, id), "user " + std::to_string(id.value));
}

Result<std::string> password_hash(Pool& pool, UserId id) {
  return value_of<std::string>(pool.query("SELECT password_hash FROM users WHERE id = $1", id),
                               "user " + std::to_string(id.value));
}

Result<Page<User>> list_users(Pool& pool, const UserFilter& filter) {
  static const std::string from =
      " FROM users u WHERE ($1 = '' OR position(lower($1) IN lower(u.name)) > 0)"
      " AND ($2::boolean IS NULL OR u.admin = $2) AND ($3::boolean IS NULL OR u.active = $3)";
  return list_page(pool, from, (filter.by_name ? "lower(u.name)" : "u.id") + direction(filter.window),
                   Params(filter.name, filter.admin, filter.active), filter.window, user_columns());
}

Result<bool> is_name_of_another(Pool& pool, UserId id, const std::string& name) {
  TRY_ASSIGN(const Rows rows, pool.query("SELECT FROM users WHERE id <> $1 AND (lower(name) = lower($2) OR"
                                         " lower(display_name) = lower($2)) LIMIT 1",
                                         id, name));
  return !rows.empty();
}

namespace {

Status change_agent_account(Connection& connection, UserId id, const AgentUserGroup& agent) {
  if (agent.user.empty()) {
    TRY(
        connection.query("UPDATE users SET agent_uid = NULL, agent_gid = NULL, agent_user = NULL,"
                         " agent_group = NULL WHERE id = $1",
                         id));
    return {};
  }
  TRY(connection.query(
      "UPDATE users SET agent_uid = $2, agent_gid = $3, agent_user = $4, agent_group = $5 WHERE id = $1", id,
      std::int64_t{agent.uid}, std::int64_t{agent.gid}, agent.user, agent.group));
  return {};
}

}  // namespace

Status change_user(Pool& pool, UserId id, const UserChange& change, const std::string& keep) {
  const auto work = [&](Connection& connection) -> Status {
    TRY(lock_admins(connection, {id.value}));
    TRY_ASSIGN(const Rows before, connection.query("SELECT admin AND active FROM users WHERE id = $1", id));
    if (before.empty()) return no_user(id);
    TRY(connection.query(
        "UPDATE users SET name = coalesce($2::text, name),"
        " display_name = coalesce($3::text, display_name),"
        " password_hash = coalesce($4::text, password_hash),"
        " admin = coalesce($5::boolean, admin), active = coalesce($6::boolean, active) WHERE id = $1",
        id, change.name, change.display_name, change.password_hash, change.admin, change.active));
    if (change.agent) {
      TRY(change_agent_account(connection, id, *change.agent));
    }
    // Checked after the update: a failure here rolls the change back.
    if (before[0].next<bool>()) TRY(check_admin(connection));
    if (change.password_hash || change.active == false)
      TRY(connection.query("DELETE FROM sessions WHERE user_id = $1 AND token_hash <> $2", id, keep));
    return {};
  };
  Status done = pool.in_transaction(work);
  if (!done && done.error().code == Code::kAlreadyExists)
    return fail(Code::kAlreadyExists,
                "user " + change.name.value_or("") + " exists already; choose another name");
  return done;
}

Result<std::vector<UserSetting>> list_user_settings(Pool& pool, UserId id) {
  static const Columns<UserSetting> kColumns(column<&UserSetting::path>("path"),
                                             column<&UserSetting::key>("key"),
                                             column<&UserSetting::value>("value"));
  static const std::string sql = kColumns.select(" FROM user_settings WHERE user_id = $1 ORDER BY path, key");
  return kColumns.read(pool.query(sql, id));
}

namespace {

Status check_setting_limits(Connection& connection, UserId id) {
  TRY_ASSIGN(const Rows rows,
             connection.query("SELECT count(*), coalesce(sum(octet_length(path) + octet_length(key)"
                              " + octet_length(value)), 0)::bigint FROM user_settings WHERE user_id = $1",
                              id));
  std::int64_t count = 0, bytes = 0;
  rows[0].into(count, bytes);
  if (count <= kMaxStoredSettings && bytes <= kMaxStoredSettingBytes) return {};
  return fail(Code::kFailedPrecondition,
              "settings: at most 2000 and 8 MiB for a user; remove some or reset them first");
}

}  // namespace

Status put_user_settings(Pool& pool, UserId id, const std::vector<UserSetting>& settings) {
  bool adds = false;
  return pool.in_transaction([&](Connection& connection) -> Status {
    // One writer at a time, so that two of them cannot exceed the limits together.
    TRY(connection.query("SELECT FROM users WHERE id = $1 FOR NO KEY UPDATE", id));
    for (const UserSetting& one : settings) {
      if (one.value.empty()) {
        TRY(connection.query("DELETE FROM user_settings WHERE user_id = $1 AND path = $2 AND key = $3", id,
                             one.path, one.key));
      } else {
        TRY(
            connection.query("INSERT INTO user_settings (user_id, path, key, value) VALUES ($1, $2, $3, $4)"
                             " ON CONFLICT (user_id, path, key) DO UPDATE SET value = excluded.value",
                             id, one.path, one.key, one.value));
        adds = true;
      }
    }
    return adds ? check_setting_limits(connection, id) : Status();
  });
}

Status clear_user_settings(Pool& pool, UserId id) {
  TRY(pool.query("DELETE FROM user_settings WHERE user_id = $1", id));
  return {};
}

}  // namespace det::db
