#include "master/db/queries/deletions.h"

namespace det::db {
namespace {

using Kind = Container::Kind;

std::string container_name(const Container& container) {
  return (container.kind == Kind::kProject ? "project " : "workspace ") + std::to_string(container.id);
}

std::string container_table(const Container& container) {
  return container.kind == Kind::kProject ? "projects" : "workspaces";
}

/// The condition, on c, that a command may still write rows.
constexpr const char* kLiveCommand =
    "(c.ended IS NULL OR EXISTS (SELECT FROM allocations a WHERE a.command_id = c.id"
    " AND a.state <> 'TERMINATED'))";

/// Deletes the ended commands of a workspace. Their usage stays.
Status delete_commands(Connection& connection, std::int64_t workspace) {
  TRY_ASSIGN(const Rows rows,
             connection.query(std::string("SELECT id FROM commands c WHERE workspace_id = $1 AND NOT ") +
                                  kLiveCommand + " ORDER BY id FOR UPDATE",
                              workspace));
  if (rows.empty()) return {};
  // The highest id survives the deletion, so that a restarted master does not reuse it.
  TRY(
      connection.query("UPDATE cluster SET last_command = greatest(last_command,"
                       " (SELECT max(id) FROM commands))"));
  constexpr const char* kStatements[] = {
      "INSERT INTO past_usage SELECT 0, c.owner_id, a.workspace_id, '{}', a.pool, a.slots, a.started,"
      " greatest(a.started, a.ended), a.id FROM commands c JOIN allocations a ON a.command_id = c.id"
      " WHERE c.id = ANY ($1) AND a.slots > 0 AND a.ended IS NOT NULL",
      "DELETE FROM task_logs l USING commands c WHERE c.id = ANY ($1) AND l.task_id = c.task_id",
      "DELETE FROM log_positions p USING allocations a WHERE a.command_id = ANY ($1)"
      " AND p.allocation_id = a.id",
      "DELETE FROM webhook_matches m USING commands c WHERE c.id = ANY ($1) AND m.task_id = c.task_id",
      "DELETE FROM allocations WHERE command_id = ANY ($1)",
      "DELETE FROM commands WHERE id = ANY ($1)",
  };
  const auto ids = rows.column<std::int64_t>();
  for (const char* statement : kStatements) TRY(connection.query(statement, ids));
  return {};
}

}  // namespace

Result<Contents> contents_of(Pool& pool, const Container& container) {
  const bool project = container.kind == Kind::kProject;
  TRY_ASSIGN(
      const Rows experiments,
      pool.query(std::string("SELECT e.id, e.state IN ('COMPLETED', 'CANCELED', 'ERROR') FROM experiments e"
                             " JOIN projects p ON p.id = e.project_id WHERE ") +
                     (project ? "p.id" : "p.workspace_id") + " = $1 ORDER BY e.id",
                 container.id));
  Contents contents;
  for (Rows::Row row : experiments) {
    const auto id = row.next<ExperimentId>();
    (row.next<bool>() ? contents.ended : contents.live).push_back(id);
  }
  if (project) return contents;
  TRY_ASSIGN(const Rows commands,
             pool.query(std::string("SELECT c.task_id FROM commands c WHERE c.workspace_id = $1 AND ") +
                            kLiveCommand + " ORDER BY c.id",
                        container.id));
  contents.live_commands = commands.column<TaskId>();
  TRY_ASSIGN(const Rows models,
             pool.query("SELECT count(*) FROM models WHERE workspace_id = $1", container.id));
  contents.models = models[0].next<std::int64_t>();
  return contents;
}

Result<std::optional<ExperimentId>> started_from(Pool& pool, ExperimentId id,
                                                 const std::optional<Container>& within) {
  std::optional<std::int64_t> project, workspace;
  if (within) (within->kind == Kind::kProject ? project : workspace) = within->id;
  // The sources are those of start_checkpoints().
  TRY_ASSIGN(
      const Rows rows,
      pool.query(
          "SELECT e.id FROM experiments e JOIN projects p ON p.id = e.project_id"
          " LEFT JOIN trials s ON s.id = (e.config->'searcher'->>'source_trial_id')::bigint"
          " JOIN checkpoints c ON c.uuid ="
          " coalesce(e.config->'searcher'->>'source_checkpoint_uuid', s.latest_checkpoint)"
          " JOIN trials t ON t.id = c.trial_id"
          " WHERE e.state NOT IN ('COMPLETED', 'CANCELED', 'ERROR') AND t.experiment_id = $1 AND e.id <> $1"
          " AND c.state <> 'DELETED' AND ($2::bigint IS NULL OR p.id <> $2)"
          " AND ($3::bigint IS NULL OR p.workspace_id <> $3) ORDER BY e.id LIMIT 1",
          id, project, workspace));
  if (rows.empty()) return std::optional<ExperimentId>();
  return std::optional(rows[0].next<ExperimentId>());
}

Status begin_deletion(Pool& pool, const Container& container) {
  return found(
      pool.query("UPDATE " + container_table(container) + " SET deletion = '' WHERE id = $1", container.id),
      container_name(container));
}

Status fail_deletion(Pool& pool, const Container& container, const std::string& why) {
  TRY(pool.query("UPDATE " + container_table(container) + " SET deletion = $2 WHERE id = $1", container.id,
                 why.empty() ? "failed" : why));
  return {};
}

Result<std::vector<Container>> deletions(Pool& pool) {
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT false, id FROM projects WHERE deletion = '' UNION ALL"
                        " SELECT true, id FROM workspaces WHERE deletion = '' ORDER BY 1, 2"));
  std::vector<Container> out;
  for (Rows::Row row : rows) {
    const Kind kind = row.next<bool>() ? Kind::kWorkspace : Kind::kProject;
    out.push_back({kind, row.next<std::int64_t>()});
  }
  return out;
}

Result<std::vector<std::int64_t>> projects_in(Pool& pool, const Container& container) {
  const char* const sql = container.kind == Kind::kProject
                              ? "SELECT id FROM projects WHERE id = $1"
                              : "SELECT p.id FROM workspaces w LEFT JOIN projects p ON p.workspace_id = w.id"
                                " WHERE w.id = $1 ORDER BY p.id";
  TRY_ASSIGN(const Rows rows, pool.query(sql, container.id));
  if (rows.empty()) return fail(Code::kNotFound, container_name(container) + " not found");
  std::vector<std::int64_t> projects;
  for (const std::optional<std::int64_t>& id : rows.column<std::optional<std::int64_t>>())
    if (id) projects.push_back(*id);
  return projects;
}

Status delete_container(Pool& pool, const Container& container, const std::vector<std::int64_t>& projects) {
  const std::string name = container_name(container);
  Status done = pool.in_transaction([&](Connection& connection) -> Status {
    TRY(connection.script(kNoTimeout));
    if (container.kind == Kind::kWorkspace) {
      TRY(delete_commands(connection, container.id));
      // The webhooks go with the workspace, by a foreign key.
      TRY(connection.query(
          "DELETE FROM webhook_matches m USING webhook_triggers t JOIN webhooks w ON w.id = t.webhook_id"
          " WHERE w.workspace_id = $1 AND m.trigger_id = t.id",
          container.id));
      TRY(connection.query("DELETE FROM templates WHERE workspace_id = $1", container.id));
      // A project that has moved here meanwhile keeps the workspace: submissions into it are still taken.
      TRY(connection.query("DELETE FROM projects WHERE workspace_id = $1 AND id = ANY ($2)", container.id,
                           projects));
    }
    return found(
        connection.query("DELETE FROM " + container_table(container) + " WHERE id = $1", container.id), name);
  });
  // Foreign keys reject the deletion.
  if (!done && done.error().code == Code::kFailedPrecondition) {
    return fail(Code::kFailedPrecondition,
                name + " still has projects, experiments, models or commands; move or delete them first");
  }
  return done;
}

}  // namespace det::db
