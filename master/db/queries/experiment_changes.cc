#include "master/db/queries/experiment_changes.h"

#include "master/db/queries/queries_gc.h"

namespace det::db {
namespace {

std::string named(ExperimentId id) { return "experiment " + std::to_string(id.value); }

// `affected` is the number of updated rows: none means that the object does not exist.
Status found(const Rows& rows, const std::string& what) {
  if (rows.affected() == 0) return fail(Code::kNotFound, what + " not found");
  return {};
}

/// Locks the row for the rest of the transaction. Errors: kNotFound; kFailedPrecondition (it has not ended).
Status lock_ended(Connection& connection, ExperimentId id, const char* wish) {
  TRY_ASSIGN(const Rows rows, connection.query("SELECT state FROM experiments WHERE id = $1 FOR UPDATE", id));
  if (rows.empty()) return fail(Code::kNotFound, named(id) + " not found");
  const auto state = core::parse_state(rows[0].next<std::string>());
  if (state && core::is_terminal(*state)) return {};
  return fail(Code::kFailedPrecondition,
              named(id) + " has not ended and cannot be " + wish + "; cancel or kill it first");
}

}  // namespace

Status patch_experiment(Pool& pool, ExperimentId id, const ExperimentPatch& patch) {
  TRY_ASSIGN(
      const Rows rows,
      pool.query("UPDATE experiments SET name = coalesce($2, name), description = coalesce($3, description),"
                 " notes = coalesce($4, notes), labels = coalesce($5, labels) WHERE id = $1",
                 id, patch.name, patch.description, patch.notes, patch.labels));
  return found(rows, named(id));
}

Status replace_config(Pool& pool, ExperimentId id, const std::string& before, const std::string& after) {
  // Compared as text: json has no equality operator.
  TRY_ASSIGN(const Rows rows,
             pool.query("UPDATE experiments SET config = $3::json WHERE id = $1 AND config::text = $2", id,
                        before, after));
  if (rows.affected() == 0) return fail(Code::kAborted, named(id) + " has just changed; try again");
  return {};
}

Status set_archived(Pool& pool, ExperimentId id, bool archived) {
  return pool.in_transaction([&](Connection& connection) -> Status {
    TRY(lock_ended(connection, id, "archived"));
    TRY(connection.query("UPDATE experiments SET archived = $2 WHERE id = $1", id, archived));
    return {};
  });
}

Result<std::vector<std::string>> change_label(Pool& pool, ExperimentId id, const std::string& label,
                                              bool add) {
  // Removing the label first keeps labels unique.
  TRY_ASSIGN(
      const Rows rows,
      pool.query(
          "UPDATE experiments SET labels = array_remove(labels, $2) || CASE WHEN $3 THEN ARRAY[$2::text]"
          " ELSE ARRAY[]::text[] END WHERE id = $1 RETURNING labels",
          id, label, add));
  if (rows.empty()) return fail(Code::kNotFound, named(id) + " not found");
  return rows[0].next<std::vector<std::string>>();
}

Result<std::vector<std::string>> list_labels(Pool& pool, std::optional<std::int64_t> project,
                                             const std::optional<std::vector<std::int64_t>>& visible) {
  TRY_ASSIGN(
      const Rows rows,
      pool.query(
          "SELECT label FROM experiments e CROSS JOIN unnest(e.labels) label"
          " WHERE ($1::bigint IS NULL OR e.project_id = $1) AND ($2::bigint[] IS NULL OR e.project_id IN"
          " (SELECT p.id FROM projects p WHERE p.workspace_id = ANY ($2)))"
          " GROUP BY label ORDER BY count(*) DESC, label",
          project, visible));
  std::vector<std::string> labels;
  for (int i = 0; i < rows.size(); ++i) labels.push_back(rows[i].next<std::string>());
  return labels;
}

Status delete_experiment(Pool& pool, ExperimentId id) {
  return pool.in_transaction([&](Connection& connection) -> Status {
    TRY(lock_ended(connection, id, "deleted"));
    TRY(lock_checkpoints_of(connection, id));
    // The highest ids survive the deletion, so that a restarted master does not reuse them.
    TRY(
        connection.query("UPDATE cluster SET last_experiment = greatest(last_experiment, (SELECT max(id) FROM"
                         " experiments)), last_trial = greatest(last_trial, (SELECT max(id) FROM trials))"));
    constexpr const char* kStatements[] = {
        // Usage reports still cover deleted experiments.
        "INSERT INTO past_usage SELECT e.id, e.owner_id, p.workspace_id, e.labels, a.pool, a.slots, "
        "a.started, greatest(a.started, a.ended)"
        " FROM experiments e JOIN projects p ON p.id = e.project_id JOIN trials t ON t.experiment_id = e.id"
        " JOIN allocations a ON a.trial_id = t.id WHERE e.id = $1 AND a.slots > 0 AND a.ended IS NOT NULL",
        "DELETE FROM task_logs l USING trials t WHERE t.experiment_id = $1 AND l.task_id = t.task_id",
        "DELETE FROM log_positions p USING allocations a, trials t WHERE t.experiment_id = $1 AND a.trial_id "
        "= t.id"
        " AND p.allocation_id = a.id",
        "DELETE FROM metric_chunks m USING trials t WHERE t.experiment_id = $1 AND m.trial_id = t.id",
        "DELETE FROM metrics m USING trials t WHERE t.experiment_id = $1 AND m.trial_id = t.id",
        "DELETE FROM checkpoints c USING trials t WHERE t.experiment_id = $1 AND c.trial_id = t.id",
        "DELETE FROM allocations a USING trials t WHERE t.experiment_id = $1 AND a.trial_id = t.id",
        "DELETE FROM trials WHERE experiment_id = $1",
        "DELETE FROM searcher_events WHERE experiment_id = $1",
        "DELETE FROM searcher_snapshots WHERE experiment_id = $1",
        "UPDATE experiments SET parent_id = NULL WHERE parent_id = $1",
        "DELETE FROM experiments WHERE id = $1",
        // Delete a context that nothing else uses, unless it is under an hour old: a submission may be about
        // to use it.
        "DELETE FROM model_definitions m WHERE $1::bigint IS NOT NULL AND created < now() - interval '1 "
        "hour' AND NOT"
        " EXISTS (SELECT FROM experiments e WHERE e.model_definition = m.sha256) AND NOT"
        " EXISTS (SELECT FROM commands c WHERE c.context = m.sha256)",
    };
    for (const char* statement : kStatements) TRY(connection.query(statement, id));
    return {};
  });
}

Result<std::vector<Validation>> validation_history(Pool& pool, ExperimentId id) {
  TRY_ASSIGN(
      const Rows rows,
      pool.query("SELECT m.trial_id, m.reported, m.searcher_metric, e.smaller_is_better FROM experiments e"
                 " JOIN trials t ON t.experiment_id = e.id JOIN metrics m ON m.trial_id = t.id"
                 " WHERE e.id = $1 AND m.grp = 'validation' AND NOT m.archived AND m.searcher_metric <> 'NaN'"
                 " ORDER BY m.reported, m.trial_id, m.steps_completed",
                 id));
  std::vector<Validation> history;
  for (int i = 0; i < rows.size(); ++i) {
    Validation one;
    bool smaller = true;
    rows[i].into(one.trial, one.reported, one.metric, smaller);
    // Keep only improvements: the history is the running best.
    const bool better = history.empty() ||
                        (smaller ? one.metric < history.back().metric : one.metric > history.back().metric);
    if (better) history.push_back(one);
  }
  return history;
}

Status set_checkpoint_files(Pool& pool, const CheckpointFiles& files) {
  // The size follows from the list of files, so the two cannot diverge.
  TRY_ASSIGN(
      const Rows rows,
      pool.query("UPDATE checkpoints SET resources = $2::json, state = $3, size = (SELECT"
                 " coalesce(sum(value::bigint), 0)::bigint FROM json_each_text($2::json)) WHERE uuid = $1",
                 files.uuid, files.resources, files.state));
  return found(rows, "checkpoint " + files.uuid.value);
}

Status set_checkpoint_metadata(Pool& pool, const CheckpointId& uuid, const std::string& metadata) {
  TRY_ASSIGN(const Rows rows,
             pool.query("UPDATE checkpoints SET metadata = $2::json WHERE uuid = $1", uuid, metadata));
  return found(rows, "checkpoint " + uuid.value);
}

Result<std::optional<TrialId>> needed_by(Pool& pool, const CheckpointId& uuid) {
  // The second condition excludes trials that merely warm-start from the checkpoint of another trial.
  TRY_ASSIGN(
      const Rows rows,
      pool.query(
          "SELECT id FROM trials WHERE latest_checkpoint = $1 AND state NOT IN ('COMPLETED', 'CANCELED',"
          " 'ERROR') AND id = (SELECT trial_id FROM checkpoints WHERE uuid = $1)",
          uuid));
  if (rows.empty()) return std::optional<TrialId>();
  return std::optional(rows[0].next<TrialId>());
}

Result<std::string> get_run_metadata(Pool& pool, TrialId id) {
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT coalesce(m.metadata, '{}') FROM trials t LEFT JOIN run_metadata m"
                        " ON m.trial_id = t.id WHERE t.id = $1",
                        id));
  if (rows.empty()) return fail(Code::kNotFound, "run " + std::to_string(id.value) + " not found");
  return rows[0].next<std::string>();
}

Status set_run_metadata(Pool& pool, TrialId id, const std::string& metadata) {
  // Inserts nothing when the trial does not exist, which found() reports.
  TRY_ASSIGN(const Rows rows,
             pool.query("INSERT INTO run_metadata (trial_id, metadata) SELECT id, $2::json FROM trials"
                        " WHERE id = $1 ON CONFLICT (trial_id) DO UPDATE SET metadata = EXCLUDED.metadata",
                        id, metadata));
  return found(rows, "run " + std::to_string(id.value));
}

Result<TrialId> trial_of_task(Pool& pool, const TaskId& task) {
  TRY_ASSIGN(const Rows rows, pool.query("SELECT id FROM trials WHERE task_id = $1", task));
  if (rows.empty()) return fail(Code::kNotFound, "task " + task.value + " not found");
  return rows[0].next<TrialId>();
}

Status append_lines(Pool& pool, const TaskId& task, const std::vector<SentLine>& lines) {
  return pool.in_transaction([&](Connection& connection) -> Status {
    // Same advisory lock as lock_tasks(): ids of a task become visible in order.
    TRY(connection.query("SELECT pg_advisory_xact_lock(6579572, hashtext($1))", task));
    for (const SentLine& line : lines) {
      TRY(connection.query(
          "INSERT INTO task_logs (task_id, allocation_id, agent_id, rank, time, level, stdtype, source,"
          " log) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
          task, line.allocation, line.agent, line.rank, line.time, line.level, line.stdtype, line.source,
          Bytes{line.text}));
    }
    return {};
  });
}

}  // namespace det::db
