#include "master/db/queries/workspaces.h"

#include "master/db/store/at_rest.h"

namespace det::db {
namespace {

/// $1: the user for `pinned`.
const std::string kWorkspacePinned =
    "EXISTS (SELECT FROM workspace_pins n WHERE n.workspace_id = o.id AND n.user_id = $1)";
const std::string kWorkspaceTables = " FROM workspaces o LEFT JOIN users u ON u.id = o.owner_id";

const Columns<WorkspaceRow>& workspace_columns() {
  using W = WorkspaceRow;
  static const Columns<W> columns(
      column<&W::id>("o.id"), column<&W::name>("o.name"), column<&W::owner>("o.owner_id"),
      column<&W::username>("coalesce(u.name, '')"), column<&W::archived>("o.archived"),
      column<&W::num_projects>("(SELECT count(*) FROM projects p WHERE p.workspace_id = o.id)"),
      column<&W::num_experiments>("(SELECT count(*) FROM projects p JOIN experiments e ON e.project_id = p.id"
                                  " WHERE p.workspace_id = o.id)"),
      column<&W::pinned>(kWorkspacePinned), column<&W::deletion>("o.deletion"),
      column<&W::checkpoint_storage>("o.checkpoint_storage"), column<&W::agent_account>("o.agent_account"));
  return columns;
}

std::optional<std::string> sealed(const std::optional<std::string>& storage) {
  return storage ? std::optional(seal_config_text(*storage)) : std::nullopt;
}

std::string workspace_name(std::int64_t id) { return "workspace " + std::to_string(id); }

/// Replaces the error of the unique constraint by one that names the taken name.
Result<Rows> unique_workspace(Result<Rows> rows, const std::string& name) {
  if (!rows && rows.error().code == Code::kAlreadyExists)
    return fail(Code::kAlreadyExists, "there is already a workspace \"" + name + "\"; choose another name");
  return rows;
}

}  // namespace

Result<Page<WorkspaceRow>> list_workspaces(Pool& pool, const WorkspaceFilter& filter) {
  static const std::string from =
      kWorkspaceTables +
      " WHERE ($2::bigint[] IS NULL OR o.id = ANY ($2))"
      " AND ($3 = '' OR lower(o.name) = lower($3)) AND ($4 = '' OR o.name = $4)"
      " AND ($5::boolean IS NULL OR o.archived = $5) AND (cardinality($6::text[]) = 0 OR u.name = ANY ($6))"
      " AND (cardinality($7::bigint[]) = 0 OR o.owner_id = ANY ($7)) AND ($8::boolean IS NULL OR " +
      kWorkspacePinned + " = $8)";
  return list_page(pool, from, (filter.by_name ? "lower(o.name)" : "o.id") + direction(filter.window),
                   Params(filter.viewer, filter.visible, filter.name, filter.exact_name, filter.archived,
                          filter.users, filter.user_ids, filter.pinned),
                   filter.window, workspace_columns());
}

Result<WorkspaceRow> get_workspace(Pool& pool, std::int64_t id, UserId viewer) {
  static const std::string sql = workspace_columns().select(kWorkspaceTables + " WHERE o.id = $2");
  return workspace_columns().one(pool.query(sql, viewer, id), workspace_name(id));
}

Result<std::int64_t> create_workspace(Pool& pool, const std::string& name, UserId owner,
                                      const std::optional<std::string>& checkpoint_storage,
                                      const std::optional<std::string>& agent_account) {
  // One statement, so that no workspace exists without an admin.
  TRY_ASSIGN(
      const Rows rows,
      unique_workspace(pool.query("WITH made AS (INSERT INTO workspaces (name, owner_id, checkpoint_storage,"
                                  "  agent_account) VALUES ($1, $2, $3::json, $4::json) RETURNING id),"
                                  " granted AS (INSERT INTO grants (user_id, role, workspace_id)"
                                  "  SELECT $2, 'WORKSPACE_ADMIN', id FROM made),"
                                  " pinned AS (INSERT INTO workspace_pins (user_id, workspace_id)"
                                  "  SELECT $2, id FROM made)"
                                  " SELECT id FROM made",
                                  name, owner, sealed(checkpoint_storage), agent_account),
                       name));
  return rows[0].next<std::int64_t>();
}

Status rename_workspace(Pool& pool, std::int64_t id, const std::string& name) {
  return found(unique_workspace(pool.query("UPDATE workspaces SET name = $2 WHERE id = $1", id, name), name),
               workspace_name(id));
}

Status set_workspace_storage(Pool& pool, std::int64_t id, const std::optional<std::string>& storage) {
  return found(
      pool.query("UPDATE workspaces SET checkpoint_storage = $2::json WHERE id = $1", id, sealed(storage)),
      workspace_name(id));
}

Status set_workspace_account(Pool& pool, std::int64_t id, const std::optional<std::string>& account) {
  return found(pool.query("UPDATE workspaces SET agent_account = $2::json WHERE id = $1", id, account),
               workspace_name(id));
}

Status archive_workspace(Pool& pool, std::int64_t id, bool archived) {
  return found(pool.query("UPDATE workspaces SET archived = $2 WHERE id = $1", id, archived),
               workspace_name(id));
}

Status pin_workspace(Pool& pool, UserId user, std::int64_t id, bool pinned) {
  TRY(pool.query(
      pinned ? "INSERT INTO workspace_pins (user_id, workspace_id) VALUES ($1, $2) ON CONFLICT DO NOTHING"
             : "DELETE FROM workspace_pins WHERE user_id = $1 AND workspace_id = $2",
      user, id));
  return {};
}

Result<std::vector<std::int64_t>> bound_workspaces(Pool& pool, const std::string& resource_pool) {
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT workspace_id FROM pool_bindings WHERE pool = $1 ORDER BY workspace_id",
                        resource_pool));
  std::vector<std::int64_t> found;
  for (Rows::Row row : rows) found.push_back(row.next<std::int64_t>());
  return found;
}

Result<std::set<std::string>> closed_pools(Pool& pool, std::int64_t workspace) {
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT pool FROM pool_bindings GROUP BY pool HAVING NOT bool_or(workspace_id = $1)",
                        workspace));
  std::set<std::string> found;
  for (Rows::Row row : rows) found.insert(row.next<std::string>());
  return found;
}

Status change_bindings(Pool& pool, const std::string& resource_pool, BindingChange change,
                       const std::vector<std::int64_t>& workspaces) {
  return pool.in_transaction([&](Connection& connection) -> Status {
    if (change == BindingChange::kRemove)
      TRY(connection.query("DELETE FROM pool_bindings WHERE pool = $1 AND workspace_id = ANY ($2)",
                           resource_pool, workspaces));
    if (change == BindingChange::kReplace)
      TRY(connection.query("DELETE FROM pool_bindings WHERE pool = $1", resource_pool));
    if (change != BindingChange::kRemove)
      TRY(
          connection.query("INSERT INTO pool_bindings (pool, workspace_id) SELECT $1, unnest($2::bigint[])"
                           " ON CONFLICT DO NOTHING",
                           resource_pool, workspaces));
    return {};
  });
}

}  // namespace det::db
