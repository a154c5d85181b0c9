#include "master/db/queries/queries_checkpoint.h"

#include "master/db/queries/rows_checkpoint.h"

// Filter of list_checkpoints(): $1 experiment, $2 trial, $3 states.
#define DET_CHECKPOINT_FILTER                                                                              \
  " FROM checkpoints c JOIN trials t ON t.id = c.trial_id WHERE ($1::bigint IS NULL OR t.experiment_id = " \
  "$1)"                                                                                                    \
  " AND ($2::bigint IS NULL OR t.id = $2) AND (cardinality($3::text[]) = 0 OR c.state = ANY ($3))"

namespace det::db {

CheckpointRow read_checkpoint(Rows::Row& row) {
  CheckpointRow out;
  row.into(out.uuid, out.trial, out.experiment, out.run, out.task, out.allocation, out.state,
           out.steps_completed, out.resources, out.metadata, out.size, out.reported, out.hparams);
  out.validation_metrics = row.next<std::optional<std::string>>().value_or("");
  out.training_metrics = row.next<std::optional<std::string>>().value_or("");
  row.into(out.searcher_metric);
  return out;
}

namespace {

/// SQL expression over DET_CHECKPOINT_JOINS; the name of the metric is $6.
std::string checkpoint_key(CheckpointSort sort) {
  switch (sort) {
    case CheckpointSort::kSteps:
      return "c.steps_completed";
    case CheckpointSort::kUuid:
      return "c.uuid";
    case CheckpointSort::kTrial:
      return "c.trial_id";
    case CheckpointSort::kReported:
      return "c.reported";
    case CheckpointSort::kState:
      return "c.state";
    case CheckpointSort::kSearcherMetric:
      return "v.searcher_metric";
    case CheckpointSort::kMetric:
      return "CASE WHEN json_typeof(v.metrics -> $6) = 'number' THEN (v.metrics ->> $6)::float8 END";
  }
  return "c.steps_completed";
}

}  // namespace

Result<Page<CheckpointRow>> list_checkpoints(Pool& pool, const CheckpointFilter& filter) {
  if (!filter.experiment && !filter.trial)
    return fail(Code::kInvalidArgument, "checkpoints are listed of an experiment or of a trial");
  Params params(filter.experiment, filter.trial, filter.states);
  TRY_ASSIGN(const Rows counted, pool.run("SELECT count(*)" DET_CHECKPOINT_FILTER, params));
  Page<CheckpointRow> page;
  page.total = counted[0].next<std::int64_t>();
  const Span span = resolve(filter.window, page.total);
  page.start = span.first;
  if (span.count == 0) return page;
  params.add(span.first);
  params.add(span.count);
  params.add(filter.metric);
  // $6 must appear in every statement, whatever the sort key, because it is always bound.
  const std::string way = filter.window.descending ? " DESC" : " ASC";
  TRY_ASSIGN(
      const Rows rows,
      pool.run(
          ("SELECT " DET_CHECKPOINT_COLUMNS " FROM checkpoints c" DET_CHECKPOINT_JOINS
           " WHERE ($1::bigint IS NULL OR t.experiment_id = $1) AND ($2::bigint IS NULL OR t.id = $2)"
           " AND (cardinality($3::text[]) = 0 OR c.state = ANY ($3)) AND $6::text IS NOT NULL ORDER BY " +
           checkpoint_key(filter.sort) + way + " NULLS LAST, c.reported" + way +
           ", c.uuid OFFSET $4 LIMIT $5")
              .c_str(),
          params));
  for (int i = 0; i < rows.size(); ++i) {
    Rows::Row row = rows[i];
    page.rows.push_back(read_checkpoint(row));
  }
  return page;
}

Result<CheckpointRow> get_checkpoint(Pool& pool, const CheckpointId& uuid) {
  TRY_ASSIGN(const Rows rows, pool.query("SELECT " DET_CHECKPOINT_COLUMNS
                                         " FROM checkpoints c" DET_CHECKPOINT_JOINS " WHERE c.uuid = $1",
                                         uuid));
  if (rows.empty()) return fail(Code::kNotFound, "checkpoint " + uuid.value + " not found");
  Rows::Row row = rows[0];
  return read_checkpoint(row);
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

}  // namespace det::db
