#include "master/db/accounts/sessions.h"

namespace det::db {
namespace {

/// Seconds for make_interval(secs => ...) in SQL.
double token_seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

/// Grants of "users u" and of its groups, as g (role, workspace_id).
const std::string kGrantsOfUser =
    " FROM (SELECT role, workspace_id FROM grants WHERE user_id = u.id UNION ALL"
    " SELECT o.role, o.workspace_id FROM group_members m JOIN group_grants o ON o.group_id = m.group_id"
    " WHERE m.user_id = u.id) g ORDER BY g.role, g.workspace_id";

/// The columns of a session, from "live s" and "users u".
const Columns<Session>& session_columns() {
  static const Columns<Session> columns(
      column<&Session::id>("s.id"), column<&Session::expires>("s.expires"),
      Column<Session>{user_columns().sql(),
                      [](Rows::Row& row, Session& out) { return user_columns().read(row, out.user); }},
      // Parallel arrays of roles and workspaces; workspace 0 stands for a cluster-wide grant.
      Column<Session>{"ARRAY(SELECT g.role" + kGrantsOfUser + "), ARRAY(SELECT coalesce(g.workspace_id, 0)" +
                          kGrantsOfUser + ")",
                      [](Rows::Row& row, Session& out) -> Status {
                        const auto roles = row.next<std::vector<std::string>>();
                        const auto workspaces = row.next<std::vector<std::int64_t>>();
                        for (std::size_t i = 0; i < roles.size(); ++i)
                          out.grants.add(role_of(roles[i]),
                                         workspaces[i] == 0 ? std::nullopt : std::optional(workspaces[i]));
                        if (out.user.admin) out.grants.add(Role::kClusterAdmin, std::nullopt);
                        return {};
                      }},
      Column<Session>{"coalesce(s.most, '')", [](Rows::Row& row, Session& out) -> Status {
                        // An unknown name grants nothing.
                        const auto most = row.next<std::string>();
                        out.limited = !most.empty();
                        if (out.limited) out.grants.limit(role_of(most));
                        return {};
                      }});
  return columns;
}

}  // namespace

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
  if (!rows && rows.error().code == Code::kFailedPrecondition) return no_user(user);
  TRY(rows);
  return (*rows)[0].next<std::int64_t>();
}

Result<Session> find_session(Pool& pool, const std::string& token_hash, Duration idle) {
  // last_used changes at most once a minute, so that most lookups write nothing.
  static const std::string sql =
      "WITH live AS (SELECT s.* FROM sessions s WHERE s.token_hash = $1 AND s.expires > now()"
      "  AND NOT s.revoked AND (s.kind <> 'SESSION' OR s.last_used > now() - make_interval(secs => $2))),"
      " used AS (UPDATE sessions s SET last_used = now() FROM live WHERE s.id = live.id"
      "  AND live.last_used < now() - interval '1 minute')"
      " SELECT " +
      session_columns().sql() + " FROM live s JOIN users u ON u.id = s.user_id WHERE u.active";
  auto session = session_columns().one(pool.query(sql, token_hash, token_seconds(idle)), "session");
  if (!session && session.error().code == Code::kNotFound)
    return fail(Code::kNotFound, "no such session; log in again");
  return session;
}

Result<Session> find_task_session(Pool& pool, const AllocationId& allocation, const std::string& token_hash) {
  static const std::string sql =
      "WITH live AS (SELECT 0::bigint AS id, coalesce(e.owner_id, c.owner_id) AS user_id,"
      "  now() + interval '1 hour' AS expires, 'EDITOR' AS most"
      "  FROM allocations a LEFT JOIN trials t ON t.id = a.trial_id"
      "  LEFT JOIN experiments e ON e.id = t.experiment_id LEFT JOIN commands c ON c.id = a.command_id"
      "  WHERE a.id = $1 AND a.state <> 'TERMINATED' AND $2 <> ''"
      "  AND EXISTS (SELECT FROM json_array_elements(a.parts) part WHERE part ->> 'token' = $2))"
      " SELECT " +
      session_columns().sql() + " FROM live s JOIN users u ON u.id = s.user_id WHERE u.active";
  return session_columns().one(pool.query(sql, allocation.value, token_hash), "session");
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
  if (!rows && rows.error().code == Code::kFailedPrecondition) return no_user(row.user);
  TRY(rows);
  return (*rows)[0].next<std::int64_t>();
}

Result<Page<TokenRow>> list_tokens(Pool& pool, const TokenFilter& filter) {
  using T = TokenRow;
  static const Columns<T> kColumns(
      column<&T::id>("s.id"), column<&T::user>("s.user_id"), column<&T::username>("u.name"),
      column<&T::description>("s.description"), column<&T::most>("coalesce(s.most, '')"),
      column<&T::created>("s.created"), column<&T::expires>("s.expires"),
      // last_used starts equal to created: such a token was never used.
      column<&T::last_used>("nullif(s.last_used, s.created)"), column<&T::revoked>("s.revoked"));
  static const std::string from =
      " FROM sessions s JOIN users u ON u.id = s.user_id WHERE s.kind = 'ACCESS_TOKEN'"
      " AND ($1::bigint IS NULL OR s.user_id = $1) AND (cardinality($2::bigint[]) = 0 OR s.id = ANY ($2))"
      " AND ($3 OR (NOT s.revoked AND s.expires > now()))";
  return list_page(pool, from, "s.id" + direction(filter.window),
                   Params(filter.user, filter.ids, filter.ended), filter.window, kColumns);
}

Status change_token(Pool& pool, std::int64_t id, const std::optional<std::string>& description, bool revoke) {
  // Revocation is permanent: `revoked OR $3` never clears it.
  return found(
      pool.query("UPDATE sessions SET description = coalesce($2::text, description), revoked = revoked OR $3"
                 " WHERE id = $1 AND kind = 'ACCESS_TOKEN'",
                 id, description, revoke),
      "token " + std::to_string(id));
}

}  // namespace det::db
