#include "master/db/queries/checkpoints.h"

namespace det::db {
namespace {

/// Keys of ORDER BY over checkpoint_tables(), indexed by CheckpointSort; $4 is the name of the metric.
constexpr const char* kCheckpointKeys[] = {
    "c.steps_completed",
    "c.uuid",
    "c.trial_id",
    "c.reported",
    "c.state",
    "nullif(v.searcher_metric, 'NaN')",
    "CASE WHEN json_typeof(v.metrics -> $4) = 'number' THEN (v.metrics ->> $4)::float8 END"};
static_assert(std::size(kCheckpointKeys) == static_cast<std::size_t>(CheckpointSort::kMetric) + 1);

}  // namespace

const Columns<CheckpointRow>& checkpoint_columns() {
  using C = CheckpointRow;
  static const Columns<C> columns(
      column<&C::uuid>("c.uuid"), column<&C::trial>("c.trial_id"), column<&C::experiment>("t.experiment_id"),
      column<&C::run>("c.run"), column<&C::task>("c.task_id"), column<&C::allocation>("c.allocation_id"),
      column<&C::state>("c.state"), column<&C::steps_completed>("c.steps_completed"),
      column<&C::resources>("c.resources"), column<&C::metadata>("c.metadata"), column<&C::size>("c.size"),
      column<&C::reported>("c.reported"), column<&C::hparams>("t.hparams"),
      column<&C::validation_metrics>("coalesce(v.metrics::text, '')"),
      column<&C::training_metrics>("coalesce(r.metrics::text, '')"),
      column<&C::searcher_metric>("v.searcher_metric"));
  return columns;
}

const std::string& checkpoint_tables() {
  static const std::string sql =
      " FROM checkpoints c JOIN trials t ON t.id = c.trial_id"
      " LEFT JOIN metrics v ON v.trial_id = c.trial_id AND v.grp = 'validation' AND NOT v.archived"
      " AND v.steps_completed = c.steps_completed"
      " LEFT JOIN metrics r ON r.trial_id = c.trial_id AND r.grp = 'training' AND NOT r.archived"
      " AND r.steps_completed = c.steps_completed";
  return sql;
}

Result<Page<CheckpointRow>> list_checkpoints(Pool& pool, const CheckpointFilter& filter) {
  if (!filter.experiment && !filter.trial)
    return fail(Code::kInvalidArgument, "checkpoints are listed of an experiment or of a trial");
  // $4 must appear in every statement, whatever the sort key, because it is always bound.
  static const std::string where =
      " WHERE ($1::bigint IS NULL OR t.experiment_id = $1) AND ($2::bigint IS NULL OR t.id = $2)"
      " AND (cardinality($3::text[]) = 0 OR c.state = ANY ($3)) AND $4::text IS NOT NULL";
  static const std::string count =
      "SELECT count(*) FROM checkpoints c JOIN trials t ON t.id = c.trial_id" + where;
  const std::string way = direction(filter.window);
  return page_of(pool, count,
                 "SELECT " + checkpoint_columns().sql() + checkpoint_tables() + where + " ORDER BY " +
                     kCheckpointKeys[static_cast<std::size_t>(filter.sort)] + way +
                     " NULLS LAST, c.reported" + way + ", c.uuid OFFSET $5 LIMIT $6",
                 Params(filter.experiment, filter.trial, filter.states, filter.metric), filter.window,
                 checkpoint_columns());
}

Result<CheckpointRow> get_checkpoint(Pool& pool, const CheckpointId& uuid) {
  static const std::string sql = checkpoint_columns().select(checkpoint_tables() + " WHERE c.uuid = $1");
  return checkpoint_columns().one(pool.query(sql, uuid), "checkpoint " + uuid.value);
}

Result<std::optional<OlderCheckpoint>> older_checkpoint(Pool& pool, TrialId trial, const CheckpointId& uuid) {
  // Bounded by the step of the unusable checkpoint: the trial must not skip ahead.
  TRY_ASSIGN(
      const Rows rows,
      pool.query(
          "SELECT c.uuid, c.steps_completed, coalesce((SELECT max(m.steps_completed) FROM metrics m WHERE"
          " m.trial_id = c.trial_id AND m.grp = 'validation' AND NOT m.archived"
          " AND m.steps_completed <= c.steps_completed), -1) FROM checkpoints c JOIN checkpoints bad ON"
          " bad.uuid = $2 WHERE c.trial_id = $1 AND c.uuid <> $2 AND c.state = 'COMPLETED'"
          " AND c.steps_completed <= bad.steps_completed ORDER BY c.steps_completed DESC, c.reported DESC"
          " LIMIT 1",
          trial, uuid));
  if (rows.empty()) return std::optional<OlderCheckpoint>();
  OlderCheckpoint older;
  rows[0].into(older.uuid, older.steps_completed, older.validation);
  return std::optional(older);
}

Status set_checkpoint_files(Pool& pool, const CheckpointFiles& files) {
  // The size follows from the list of files, so the two cannot diverge.
  return found(pool.query("UPDATE checkpoints SET resources = $2::json, state = $3, size = (SELECT"
                          " least(coalesce(sum(value::bigint), 0), 9223372036854775807)::bigint FROM"
                          " json_each_text($2::json)) WHERE uuid = $1",
                          files.uuid, files.resources, files.state),
               "checkpoint " + files.uuid.value);
}

Status set_checkpoint_metadata(Pool& pool, const CheckpointId& uuid, const std::string& metadata) {
  return found(pool.query("UPDATE checkpoints SET metadata = $2::json WHERE uuid = $1", uuid, metadata),
               "checkpoint " + uuid.value);
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

}  // namespace det::db
