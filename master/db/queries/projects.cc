#include "master/db/queries/projects.h"

#include "master/db/store/at_rest.h"

namespace det::db {
namespace {

/// The stored key is NULL until a user sets one.
const std::string kProjectKey = "coalesce(o.key, 'P' || o.id)";
const std::string kProjectTables =
    " FROM projects o JOIN workspaces w ON w.id = o.workspace_id LEFT JOIN users u ON u.id = o.owner_id";

/// `notes`: the expression for the notes.
Columns<ProjectRow> make_project_columns(const char* notes) {
  using P = ProjectRow;
  return Columns<P>(
      column<&P::id>("o.id"), column<&P::workspace>("o.workspace_id"), column<&P::name>("o.name"),
      column<&P::description>("o.description"), column<&P::workspace_name>("w.name"),
      column<&P::owner>("o.owner_id"), column<&P::username>("coalesce(u.name, '')"),
      column<&P::archived>("o.archived OR w.archived"),
      column<&P::num_experiments>("(SELECT count(*) FROM experiments e WHERE e.project_id = o.id)"),
      column<&P::num_active_experiments>(
          "(SELECT count(*) FROM experiments e WHERE e.project_id = o.id AND e.state NOT IN"
          " ('COMPLETED', 'CANCELED', 'ERROR'))"),
      column<&P::last_experiment>("(SELECT max(e.submitted) FROM experiments e WHERE e.project_id = o.id)"),
      column<&P::num_runs>("(SELECT count(*) FROM experiments e JOIN trials t ON t.experiment_id = e.id"
                           " WHERE e.project_id = o.id)"),
      column<&P::key>(kProjectKey), column<&P::notes>(notes),
      // A deletion of the workspace in progress precedes an earlier failure of the project.
      column<&P::deletion>("CASE WHEN w.deletion = '' THEN w.deletion"
                           " ELSE coalesce(o.deletion, w.deletion) END"));
}

const Columns<ProjectRow>& project_columns() {
  static const Columns<ProjectRow> columns = make_project_columns("o.notes");
  return columns;
}

/// The columns of lists. They have no notes, which may be large.
const Columns<ProjectRow>& listed_columns() {
  static const Columns<ProjectRow> columns = make_project_columns("'[]'::json");
  return columns;
}

std::string project_name(std::int64_t id) { return "project " + std::to_string(id); }

/// Replaces the error of a unique constraint by one that names the taken name.
Result<Rows> unique_project(Result<Rows> rows, const std::string& name) {
  if (!rows && rows.error().code == Code::kAlreadyExists)
    return fail(Code::kAlreadyExists, "there is already a project " + name + "; choose another name");
  return rows;
}

/// A statement for read_destination(). `chosen` is a condition on p and w. The VALUES row keeps the result at
/// one row when no project matches.
std::string destination_sql(const char* chosen) {
  return std::string(
             "SELECT coalesce(c.text, ''), coalesce(p.id, 0), coalesce(p.workspace, 0), coalesce(p.name, ''),"
             " coalesce(p.workspace_name, ''), coalesce(p.archived, false), coalesce(l.text, ''),"
             " coalesce(p.checkpoint_storage::text, ''), coalesce(p.agent_account::text, ''),"
             " coalesce(p.deleting, false)"
             " FROM (VALUES ($1)) AS asked (workload)"
             " LEFT JOIN config_policies c ON c.workload = asked.workload AND coalesce(c.workspace_id, 0) = 0"
             " LEFT JOIN (SELECT p.id, p.name, p.archived OR w.archived AS archived, w.id AS workspace,"
             "   p.deletion = '' OR w.deletion = '' AS deleting,"
             "   w.name AS workspace_name, w.checkpoint_storage, w.agent_account FROM projects p"
             "   JOIN workspaces w ON w.id = p.workspace_id WHERE ") +
         chosen +
         ") p ON true LEFT JOIN config_policies l ON l.workload = asked.workload"
         " AND coalesce(l.workspace_id, 0) = p.workspace";
}

Result<Destination> read_destination(Result<Rows> rows) {
  TRY(rows);
  Destination to;
  std::string storage;
  (*rows)[0].into(to.cluster_policies, to.project, to.workspace, to.name, to.workspace_name, to.archived,
                  to.workspace_policies, storage, to.agent_account, to.deleting);
  TRY_ASSIGN(to.checkpoint_storage, open_config(std::move(storage)));
  return to;
}

}  // namespace

Result<Page<ProjectRow>> list_projects(Pool& pool, const ProjectFilter& filter) {
  static const std::string from =
      kProjectTables +
      " WHERE o.workspace_id = $1 AND ($2 = '' OR position(lower($2) IN lower(o.name)) > 0)"
      " AND ($3::boolean IS NULL OR o.archived = $3) AND (cardinality($4::text[]) = 0 OR u.name = ANY ($4))"
      " AND (cardinality($5::bigint[]) = 0 OR o.owner_id = ANY ($5))";
  return list_page(pool, from, (filter.by_name ? "lower(o.name)" : "o.id") + direction(filter.window),
                   Params(filter.workspace, filter.name, filter.archived, filter.users, filter.user_ids),
                   filter.window, listed_columns());
}

Status visit_project(Pool& pool, UserId user, std::int64_t project) {
  TRY(
      pool.query("INSERT INTO project_visits (user_id, project_id, visited) VALUES ($1, $2, now())"
                 " ON CONFLICT (user_id, project_id) DO UPDATE SET visited = EXCLUDED.visited",
                 user, project));
  return {};
}

Result<std::vector<ProjectRow>> visited_projects(Pool& pool, UserId user, const Visible& visible,
                                                 std::int64_t limit) {
  static const std::string sql = listed_columns().select(
      kProjectTables +
      " JOIN project_visits visit ON visit.project_id = o.id WHERE visit.user_id = $1"
      " AND ($2::bigint[] IS NULL OR o.workspace_id = ANY ($2)) ORDER BY visit.visited DESC LIMIT $3");
  return listed_columns().read(pool.query(sql, user, visible, limit));
}

Result<ProjectRow> get_project(Pool& pool, std::int64_t id) {
  static const std::string sql = project_columns().select(kProjectTables + " WHERE o.id = $1");
  return project_columns().one(pool.query(sql, id), project_name(id));
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

Result<Destination> find_destination(Pool& pool, const std::string& workload, std::int64_t project) {
  static const std::string sql = destination_sql("p.id = $2");
  return read_destination(pool.query(sql, workload, project));
}

Result<Destination> find_destination(Pool& pool, const std::string& workload, const std::string& workspace,
                                     const std::string& project, const Visible& visible) {
  // Names are matched among visible projects only, so that hidden ones look as if they did not exist.
  static const std::string sql =
      destination_sql("w.name = $2 AND p.name = $3 AND ($4::bigint[] IS NULL OR w.id = ANY ($4))");
  return read_destination(pool.query(sql, workload, workspace, project, visible));
}

Result<std::int64_t> find_project_by_key(Pool& pool, const std::string& key, const Visible& visible) {
  static const std::string sql = "SELECT o.id FROM projects o WHERE " + kProjectKey +
                                 " = $1 AND ($2::bigint[] IS NULL OR o.workspace_id = ANY ($2))";
  return value_of<std::int64_t>(pool.query(sql, key, visible), "project with key " + key);
}

Result<std::int64_t> create_project(Pool& pool, std::int64_t workspace, const std::string& name,
                                    const std::string& description, UserId owner, const std::string& key) {
  TRY_ASSIGN(const Rows rows,
             unique_project(pool.query("INSERT INTO projects (workspace_id, name, description, owner_id, key)"
                                       " VALUES ($1, $2, $3, $4, nullif($5, '')) RETURNING id",
                                       workspace, name, description, owner, key),
                            "\"" + name + "\" or of key \"" + key + "\""));
  return rows[0].next<std::int64_t>();
}

Status change_project(Pool& pool, std::int64_t id, const std::optional<std::string>& name,
                      const std::optional<std::string>& description, const std::optional<std::string>& key) {
  return found(unique_project(pool.query("UPDATE projects SET name = coalesce($2::text, name),"
                                         " description = coalesce($3::text, description),"
                                         " key = coalesce($4::text, key) WHERE id = $1",
                                         id, name, description, key),
                              "\"" + (name ? *name : key.value_or("")) + "\""),
               project_name(id));
}

Status set_project_notes(Pool& pool, std::int64_t id, const std::string& notes) {
  return found(pool.query("UPDATE projects SET notes = $2::json WHERE id = $1", id, notes), project_name(id));
}

Status add_project_notes(Pool& pool, std::int64_t id, const std::string& notes) {
  // jsonb has the concatenation operator; the column stays json to keep the text as it was sent.
  TRY_ASSIGN(const Rows rows,
             pool.query("UPDATE projects SET notes = (notes::jsonb || $2::jsonb)::json WHERE id = $1"
                        " AND json_array_length(notes) < $3 AND octet_length(notes::text) + octet_length($2)"
                        " <= $4",
                        id, notes, kMaxProjectNotes, kMaxProjectNoteBytes));
  if (rows.affected() != 0) return {};
  TRY(get_project(pool, id));
  return fail(Code::kFailedPrecondition,
              "notes: at most 100 and 8 MiB for " + project_name(id) + "; remove some first");
}

Status archive_project(Pool& pool, std::int64_t id, bool archived) {
  return found(pool.query("UPDATE projects SET archived = $2 WHERE id = $1", id, archived), project_name(id));
}

/// Fails if one of these projects is being deleted, alone or with its workspace: the list of its contents may
/// have been read. Locks them against a deletion that begins.
static Status lock_sources(Connection& connection, const std::vector<std::int64_t>& projects) {
  TRY_ASSIGN(const Rows rows,
             connection.query("SELECT p.name, coalesce(p.deletion = '', false) OR coalesce(w.deletion = '', "
                              "false) FROM projects p JOIN workspaces w ON w.id = p.workspace_id"
                              " WHERE p.id = ANY ($1) ORDER BY p.id FOR NO KEY UPDATE OF p FOR SHARE OF w",
                              projects));
  for (Rows::Row row : rows) {
    const auto name = row.next<std::string>();
    if (row.next<bool>())
      return fail(Code::kFailedPrecondition,
                  "project " + name + " is being deleted; nothing can be moved out of it");
  }
  return {};
}

Status move_project(Pool& pool, std::int64_t id, std::int64_t workspace) {
  return pool.in_transaction([&](Connection& connection) -> Status {
    TRY(lock_sources(connection, {id}));
    return found(
        unique_project(connection.query("UPDATE projects SET workspace_id = $2 WHERE id = $1", id, workspace),
                       "of this name in workspace \"" + std::to_string(workspace) + "\""),
        project_name(id));
  });
}

Status move_experiments(Pool& pool, const std::vector<std::int64_t>& ids, std::int64_t project) {
  return pool.in_transaction([&](Connection& connection) -> Status {
    // In the common lock order (locks.h).
    TRY(connection.query("SELECT FROM experiments WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE", ids));
    TRY(
        connection.query("SELECT FROM experiment_summaries WHERE experiment_id = ANY ($1)"
                         " ORDER BY experiment_id FOR NO KEY UPDATE",
                         ids));
    TRY_ASSIGN(const Rows sources,
               connection.query("SELECT DISTINCT project_id FROM experiments WHERE id = ANY ($1)"
                                " AND project_id <> $2",
                                ids, project));
    TRY(lock_sources(connection, sources.column<std::int64_t>()));
    TRY(connection.query("UPDATE experiments SET project_id = $2 WHERE id = ANY ($1)", ids, project));
    return {};
  });
}

Result<std::vector<MetricRange>> metric_ranges(Pool& pool, std::int64_t project) {
  TRY_ASSIGN(
      const Rows rows,
      pool.query("SELECT name, min(value), max(value) FROM ("
                 " SELECT kind.prefix || one.key AS name, one.value::float8 AS value FROM experiments e"
                 " JOIN experiment_summaries s ON s.experiment_id = e.id CROSS JOIN LATERAL (VALUES"
                 " ('validation.', s.validation), ('training.', s.training)) kind (prefix, metrics)"
                 " CROSS JOIN LATERAL jsonb_each(kind.metrics) one"
                 " WHERE e.project_id = $1 AND jsonb_typeof(one.value) = 'number') named"
                 " GROUP BY name ORDER BY name LIMIT 10000",
                 project));
  std::vector<MetricRange> ranges;
  for (Rows::Row row : rows) {
    MetricRange& range = ranges.emplace_back();
    row.into(range.name, range.min, range.max);
  }
  return ranges;
}

Result<std::vector<ProjectField>> project_fields(Pool& pool, std::int64_t project) {
  // Metrics are those of the last report: a lookup in the index for each experiment and group.
  TRY_ASSIGN(
      const Rows rows,
      pool.query(
          "WITH RECURSIVE newest AS (SELECT s.trial_id, s.hparams FROM (SELECT id FROM experiments"
          " WHERE project_id = $1 ORDER BY id DESC LIMIT 1000) e"
          " JOIN experiment_summaries s ON s.experiment_id = e.id),"
          " params (name, value) AS ("
          " SELECT 'hp.' || one.key, one.value FROM newest CROSS JOIN LATERAL jsonb_each(hparams) one"
          " UNION ALL SELECT name || '.' || one.key, one.value FROM params CROSS JOIN LATERAL"
          " jsonb_each(CASE jsonb_typeof(params.value) WHEN 'object' THEN params.value ELSE '{}' END) one)"
          " SELECT name, bool_and(jsonb_typeof(value) = 'number') FROM params"
          " WHERE jsonb_typeof(value) <> 'object' GROUP BY name"
          " UNION ALL SELECT DISTINCT grp || '.' || one.key, true FROM newest"
          " CROSS JOIN (VALUES ('validation'), ('training')) kind (grp) CROSS JOIN LATERAL ("
          " SELECT metrics FROM metrics m WHERE m.trial_id = newest.trial_id AND m.grp = kind.grp"
          " AND NOT m.archived ORDER BY m.steps_completed DESC LIMIT 1) report"
          " CROSS JOIN LATERAL json_each(report.metrics) one WHERE json_typeof(one.value) = 'number'"
          " ORDER BY 1 LIMIT 10000",
          project));
  std::vector<ProjectField> fields;
  for (Rows::Row row : rows) {
    ProjectField& field = fields.emplace_back();
    row.into(field.name, field.numeric);
  }
  return fields;
}

}  // namespace det::db
