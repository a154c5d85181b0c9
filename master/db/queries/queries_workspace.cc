#include "master/db/queries/queries_workspace.h"

// o is the listed table, u its owner. $2 substring of the name, $3 archived, $4 user names, $5 user ids.
#define DET_OWNED                                                                                           \
  " AND ($2 = '' OR position(lower($2) IN lower(o.name)) > 0) AND ($3::boolean IS NULL OR o.archived = $3)" \
  " AND (cardinality($4::text[]) = 0 OR u.name = ANY ($4)) AND (cardinality($5::bigint[]) = 0 OR "          \
  "o.owner_id = ANY ($5))"
// $1 visible workspaces, $6 exact name, $7 viewer, $8 pinned by the viewer.
#define DET_WORKSPACE_FILTER                                   \
  " FROM workspaces o LEFT JOIN users u ON u.id = o.owner_id"  \
  " WHERE ($1::bigint[] IS NULL OR o.id = ANY ($1))" DET_OWNED \
  " AND ($6 = '' OR o.name = $6) AND ($8::boolean IS NULL OR " DET_PINNED("$7") " = $8)"
#define DET_PINNED(user) \
  "EXISTS (SELECT FROM workspace_pins n WHERE n.workspace_id = o.id AND n.user_id = " user ")"
#define DET_WORKSPACE_COLUMNS                                       \
  "o.id, o.name, o.owner_id, coalesce(u.name, ''), o.archived,"     \
  " (SELECT count(*) FROM projects p WHERE p.workspace_id = o.id)," \
  " (SELECT count(*) FROM projects p JOIN experiments e ON e.project_id = p.id WHERE p.workspace_id = o.id)"
// The stored key is NULL until a user sets one.
#define DET_PROJECT_KEY "coalesce(o.key, 'P' || o.id)"
#define DET_PROJECT_TABLES \
  " FROM projects o JOIN workspaces w ON w.id = o.workspace_id LEFT JOIN users u ON u.id = o.owner_id"
#define DET_PROJECT_FILTER DET_PROJECT_TABLES " WHERE o.workspace_id = $1" DET_OWNED
#define DET_PROJECT_COLUMNS                                                                                  \
  "o.id, o.workspace_id, o.name, o.description, w.name, o.owner_id, coalesce(u.name, ''),"                   \
  " o.archived OR w.archived, (SELECT count(*) FROM experiments e WHERE e.project_id = o.id),"               \
  " (SELECT count(*) FROM experiments e WHERE e.project_id = o.id AND e.state NOT IN"                        \
  " ('COMPLETED', 'CANCELED', 'ERROR')),"                                                                    \
  " (SELECT max(e.submitted) FROM experiments e WHERE e.project_id = o.id),"                                 \
  " (SELECT count(*) FROM experiments e JOIN trials t ON t.experiment_id = e.id WHERE e.project_id = o.id)," \
  " " DET_PROJECT_KEY ", o.notes"

namespace det::db {
namespace {

auto no_workspace(std::int64_t id) {
  return fail(Code::kNotFound, "workspace " + std::to_string(id) + " not found");
}
auto no_project(std::int64_t id) {
  return fail(Code::kNotFound, "project " + std::to_string(id) + " not found");
}

void read(Rows::Row& row, WorkspaceRow& out) {
  row.into(out.id, out.name, out.owner, out.username, out.archived, out.num_projects, out.num_experiments,
           out.pinned);
}
void read(Rows::Row& row, ProjectRow& out) {
  row.into(out.id, out.workspace, out.name, out.description, out.workspace_name, out.owner, out.username,
           out.archived, out.num_experiments, out.num_active_experiments, out.last_experiment, out.num_runs,
           out.key, out.notes);
}

/// Counts and selects one page. `count` and `select` take the same parameters; `select` takes offset and
/// limit after them.
template <typename T>
Result<Page<T>> page_of(Pool& pool, const char* count, const std::string& select, Params params, bool by_name,
                        const Window& window) {
  const std::string offset = std::to_string(params.size() + 1), limit = std::to_string(params.size() + 2);
  TRY_ASSIGN(const Rows counted, pool.run(count, params));
  Page<T> page;
  page.total = counted[0].template next<std::int64_t>();
  const Span span = resolve(window, page.total);
  page.start = span.first;
  if (span.count == 0) return page;
  params.add(span.first);
  params.add(span.count);
  const std::string sql = select + (by_name ? " ORDER BY lower(o.name)" : " ORDER BY o.id") +
                          (window.descending ? " DESC" : "") + " OFFSET $" + offset + " LIMIT $" + limit;
  TRY_ASSIGN(const Rows rows, pool.run(sql.c_str(), params));
  for (int i = 0; i < rows.size(); ++i) {
    Rows::Row row = rows[i];
    read(row, page.rows.emplace_back());
  }
  return page;
}

/// Replaces the error of a unique constraint by one that names the taken name.
Result<Rows> named(Result<Rows> rows, const std::string& what, const std::string& name) {
  if (!rows && rows.error().code == Code::kAlreadyExists)
    return fail(Code::kAlreadyExists,
                "there is already a " + what + " \"" + name + "\"; choose another name");
  return rows;
}

}  // namespace

Result<Page<WorkspaceRow>> list_workspaces(Pool& pool, const WorkspaceFilter& filter) {
  return page_of<WorkspaceRow>(pool, "SELECT count(*)" DET_WORKSPACE_FILTER,
                               "SELECT " DET_WORKSPACE_COLUMNS ", " DET_PINNED("$7") DET_WORKSPACE_FILTER,
                               Params(filter.visible, filter.name, filter.archived, filter.users,
                                      filter.user_ids, filter.exact_name, filter.viewer, filter.pinned),
                               filter.by_name, filter.window);
}

Result<WorkspaceRow> get_workspace(Pool& pool, std::int64_t id, UserId viewer) {
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT " DET_WORKSPACE_COLUMNS ", " DET_PINNED(
                            "$2") " FROM workspaces o LEFT JOIN users u ON u.id = o.owner_id WHERE o.id = $1",
                        id, viewer));
  if (rows.empty()) return no_workspace(id);
  WorkspaceRow out;
  Rows::Row row = rows[0];
  read(row, out);
  return out;
}

Result<std::int64_t> create_workspace(Pool& pool, const std::string& name, UserId owner) {
  // One statement, so that no workspace exists without an admin.
  TRY_ASSIGN(
      const Rows rows,
      named(pool.query("WITH made AS (INSERT INTO workspaces (name, owner_id) VALUES ($1, $2) RETURNING id),"
                       " granted AS (INSERT INTO grants (user_id, role, workspace_id)"
                       "  SELECT $2, 'WORKSPACE_ADMIN', id FROM made)"
                       " SELECT id FROM made",
                       name, owner),
            "workspace", name));
  return rows[0].next<std::int64_t>();
}

Status rename_workspace(Pool& pool, std::int64_t id, const std::string& name) {
  TRY_ASSIGN(const Rows rows,
             named(pool.query("UPDATE workspaces SET name = $2 WHERE id = $1", id, name), "workspace", name));
  if (rows.affected() == 0) return no_workspace(id);
  return {};
}

Status archive_workspace(Pool& pool, std::int64_t id, bool archived) {
  TRY_ASSIGN(const Rows rows, pool.query("UPDATE workspaces SET archived = $2 WHERE id = $1", id, archived));
  if (rows.affected() == 0) return no_workspace(id);
  return {};
}

Status pin_workspace(Pool& pool, UserId user, std::int64_t id, bool pinned) {
  TRY(pool.query(
      pinned ? "INSERT INTO workspace_pins (user_id, workspace_id) VALUES ($1, $2) ON CONFLICT DO NOTHING"
             : "DELETE FROM workspace_pins WHERE user_id = $1 AND workspace_id = $2",
      user, id));
  return {};
}

Status delete_workspace(Pool& pool, std::int64_t id) {
  const auto gone = pool.with<bool>([&](Connection& connection) -> Result<bool> {
    TRY(connection.begin());
    // Foreign keys from experiments, models and commands reject the deletion; the whole transaction is rolled
    // back.
    const auto work = [&]() -> Result<bool> {
      TRY(connection.query("DELETE FROM templates WHERE workspace_id = $1", id));
      TRY(connection.query("DELETE FROM projects WHERE workspace_id = $1", id));
      TRY_ASSIGN(const Rows rows, connection.query("DELETE FROM workspaces WHERE id = $1", id));
      TRY(connection.commit());
      return rows.affected() > 0;
    };
    Result<bool> done = work();
    if (!done) connection.rollback();
    return done;
  });
  if (!gone && gone.error().code == Code::kFailedPrecondition) {
    return fail(Code::kFailedPrecondition,
                "workspace " + std::to_string(id) +
                    " still has experiments or models; move them to another one first");
  }
  TRY(gone);
  if (!*gone) return no_workspace(id);
  return {};
}

Result<Page<ProjectRow>> list_projects(Pool& pool, const ProjectFilter& filter) {
  // DET_PROJECT_FILTER takes the same parameters for the count and the page.
  return page_of<ProjectRow>(
      pool, "SELECT count(*)" DET_PROJECT_FILTER, "SELECT " DET_PROJECT_COLUMNS DET_PROJECT_FILTER,
      Params(filter.workspace, filter.name, filter.archived, filter.users, filter.user_ids), filter.by_name,
      filter.window);
}

Result<ProjectRow> get_project(Pool& pool, std::int64_t id) {
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT " DET_PROJECT_COLUMNS DET_PROJECT_TABLES " WHERE o.id = $1", id));
  if (rows.empty()) return no_project(id);
  ProjectRow out;
  Rows::Row row = rows[0];
  read(row, out);
  return out;
}

Result<std::int64_t> find_project(Pool& pool, const std::string& workspace, const std::string& project,
                                  const Visible& visible) {
  TRY_ASSIGN(
      const Rows rows,
      pool.query("SELECT p.id FROM projects p JOIN workspaces w ON w.id = p.workspace_id WHERE w.name = $1"
                 " AND p.name = $2 AND ($3::bigint[] IS NULL OR w.id = ANY ($3))",
                 workspace, project, visible));
  if (rows.empty())
    return fail(Code::kNotFound, "project \"" + project + "\" in workspace \"" + workspace + "\" not found");
  return rows[0].next<std::int64_t>();
}

namespace {

/// `chosen` is a condition on p and w. The VALUES row keeps the result at one row when no project matches.
#define DET_DESTINATION(chosen)                                                                          \
  "SELECT coalesce(c.text, ''), coalesce(p.id, 0), coalesce(p.workspace, 0), coalesce(p.name, ''),"      \
  " coalesce(p.workspace_name, ''), coalesce(p.archived, false), coalesce(l.text, '')"                   \
  " FROM (VALUES ($1)) AS asked (workload)"                                                              \
  " LEFT JOIN config_policies c ON c.workload = asked.workload AND coalesce(c.workspace_id, 0) = 0"      \
  " LEFT JOIN (SELECT p.id, p.name, p.archived OR w.archived AS archived, w.id AS workspace,"            \
  "   w.name AS workspace_name FROM projects p JOIN workspaces w ON w.id = p.workspace_id WHERE " chosen \
  ") p ON true"                                                                                          \
  " LEFT JOIN config_policies l ON l.workload = asked.workload AND coalesce(l.workspace_id, 0) = "       \
  "p.workspace"

Result<Destination> read_destination(Result<Rows> rows) {
  TRY(rows);
  Destination to;
  (*rows)[0].into(to.cluster_policies, to.project, to.workspace, to.name, to.workspace_name, to.archived,
                  to.workspace_policies);
  return to;
}

}  // namespace

Result<Destination> find_destination(Pool& pool, const std::string& workload, std::int64_t project) {
  return read_destination(pool.query(DET_DESTINATION("p.id = $2"), workload, project));
}

Result<Destination> find_destination(Pool& pool, const std::string& workload, const std::string& workspace,
                                     const std::string& project, const Visible& visible) {
  // Names are matched among visible projects only, so that hidden ones look as if they did not exist.
  return read_destination(
      pool.query(DET_DESTINATION("w.name = $2 AND p.name = $3 AND ($4::bigint[] IS NULL OR w.id = ANY ($4))"),
                 workload, workspace, project, visible));
}

Result<std::int64_t> find_project_by_key(Pool& pool, const std::string& key, const Visible& visible) {
  TRY_ASSIGN(const Rows rows, pool.query("SELECT o.id FROM projects o WHERE " DET_PROJECT_KEY " = $1"
                                         " AND ($2::bigint[] IS NULL OR o.workspace_id = ANY ($2))",
                                         key, visible));
  if (rows.empty()) return fail(Code::kNotFound, "project with key " + key + " not found");
  return rows[0].next<std::int64_t>();
}

Result<std::int64_t> create_project(Pool& pool, std::int64_t workspace, const std::string& name,
                                    const std::string& description, UserId owner, const std::string& key) {
  TRY_ASSIGN(const Rows rows,
             named(pool.query("INSERT INTO projects (workspace_id, name, description, owner_id, key)"
                              " VALUES ($1, $2, $3, $4, nullif($5, '')) RETURNING id",
                              workspace, name, description, owner, key),
                   "project", name + "\" or of key \"" + key));
  return rows[0].next<std::int64_t>();
}

Status change_project(Pool& pool, std::int64_t id, const std::optional<std::string>& name,
                      const std::optional<std::string>& description, const std::optional<std::string>& key) {
  TRY_ASSIGN(const Rows rows, named(pool.query("UPDATE projects SET name = coalesce($2::text, name),"
                                               " description = coalesce($3::text, description),"
                                               " key = coalesce($4::text, key) WHERE id = $1",
                                               id, name, description, key),
                                    "project", name ? *name : key.value_or("")));
  if (rows.affected() == 0) return no_project(id);
  return {};
}

Status set_project_notes(Pool& pool, std::int64_t id, const std::string& notes) {
  TRY_ASSIGN(const Rows rows, pool.query("UPDATE projects SET notes = $2::json WHERE id = $1", id, notes));
  if (rows.affected() == 0) return no_project(id);
  return {};
}

Status add_project_notes(Pool& pool, std::int64_t id, const std::string& notes) {
  // jsonb has the concatenation operator; the column stays json to keep the text as it was sent.
  TRY_ASSIGN(
      const Rows rows,
      pool.query("UPDATE projects SET notes = (notes::jsonb || $2::jsonb)::json WHERE id = $1", id, notes));
  if (rows.affected() == 0) return no_project(id);
  return {};
}

Status archive_project(Pool& pool, std::int64_t id, bool archived) {
  TRY_ASSIGN(const Rows rows, pool.query("UPDATE projects SET archived = $2 WHERE id = $1", id, archived));
  if (rows.affected() == 0) return no_project(id);
  return {};
}

Status move_project(Pool& pool, std::int64_t id, std::int64_t workspace) {
  TRY_ASSIGN(const Rows rows,
             named(pool.query("UPDATE projects SET workspace_id = $2 WHERE id = $1", id, workspace),
                   "project of this name in workspace", std::to_string(workspace)));
  if (rows.affected() == 0) return no_project(id);
  return {};
}

Status delete_project(Pool& pool, std::int64_t id) {
  auto rows = pool.query("DELETE FROM projects WHERE id = $1", id);
  if (!rows && rows.error().code == Code::kFailedPrecondition) {
    return fail(Code::kFailedPrecondition,
                "project " + std::to_string(id) + " still has experiments; move them to another one first");
  }
  TRY(rows);
  if (rows->affected() == 0) return no_project(id);
  return {};
}

Status move_experiments(Pool& pool, const std::vector<std::int64_t>& ids, std::int64_t project) {
  TRY(pool.query("UPDATE experiments SET project_id = $2 WHERE id = ANY ($1)", ids, project));
  return {};
}

}  // namespace det::db
