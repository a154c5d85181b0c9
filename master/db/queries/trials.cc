#include "master/db/queries/trials.h"

#include <map>

#include "master/db/store/tables.h"

namespace det::db {
namespace {

/// The columns of a validation: steps_completed, metrics, reported and searcher_metric. All are NULL when
/// there is none.
template <auto member>
Column<TrialRow> validation_column(const std::string& of) {
  return {of + ".steps_completed, " + of + ".metrics, " + of + ".reported, " + of + ".searcher_metric",
          [](Rows::Row& row, TrialRow& out) -> Status {
            const auto steps = row.next<std::optional<std::int64_t>>();
            const auto metrics = row.next<std::optional<std::string>>();
            const auto reported = row.next<std::optional<WallTime>>();
            const auto searcher_metric = row.next<std::optional<double>>();
            if (steps) out.*member = MetricPoint{"validation", *steps, *metrics, *reported, searcher_metric};
            return {};
          }};
}

/// A trial and its related tables. add_best_checkpoints() adds best checkpoints.
const Columns<TrialRow>& trial_columns() {
  static const Columns<TrialRow> columns(
      Column<TrialRow>{trials_table().sql("t."),
                       [](Rows::Row& row, TrialRow& out) { return trials_table().read(row, out.trial); }},
      column<&TrialRow::live>("CASE WHEN e.detached THEN 'RUNNING' ELSE live.state END"),
      column<&TrialRow::building_since>(
          "CASE WHEN live.state IN ('ASSIGNED', 'PULLING') THEN live.started END"),
      column<&TrialRow::total_batches>("greatest(t.steps_completed, t.latest_steps, newest.steps_completed,"
                                       " latest.steps_completed)::bigint"),
      column<&TrialRow::wall_clock>(
          "CASE WHEN e.detached THEN extract(epoch FROM coalesce(t.ended, now()) - t.started)"
          " ELSE coalesce(held.seconds, 0) END::float8"),
      column<&TrialRow::checkpoint_count>("k.count"), column<&TrialRow::checkpoint_size>("k.size"),
      column<&TrialRow::source_checkpoint>("coalesce(e.config->'searcher'->>'source_checkpoint_uuid', '')"),
      column<&TrialRow::log_policy>("(SELECT m.policy FROM log_policy_matches m WHERE m.trial_id = t.id)"),
      validation_column<&TrialRow::latest_validation>("latest"),
      validation_column<&TrialRow::best_validation>("best"));
  return columns;
}

/// All joins are index lookups: visible metrics are indexed by (trial, group, steps).
const std::string& trial_tables() {
  static const std::string sql =
      " FROM trials t JOIN experiments e ON e.id = t.experiment_id"
      " LEFT JOIN LATERAL (SELECT CASE WHEN a.state <> 'TERMINATED' THEN a.state END AS state, a.started"
      "   FROM allocations a WHERE a.trial_id = t.id ORDER BY a.run DESC, a.started DESC LIMIT 1)"
      "   live ON true"
      " LEFT JOIN LATERAL (SELECT m.steps_completed FROM metrics m WHERE m.trial_id = t.id"
      "   AND m.grp = 'training' AND NOT m.archived ORDER BY m.steps_completed DESC LIMIT 1) newest ON true"
      " LEFT JOIN LATERAL (SELECT m.steps_completed, m.metrics, m.reported, m.searcher_metric FROM metrics m"
      "   WHERE m.trial_id = t.id AND m.grp = 'validation' AND NOT m.archived"
      "   ORDER BY m.steps_completed DESC LIMIT 1) latest ON true"
      " LEFT JOIN LATERAL (SELECT m.steps_completed, m.metrics, m.reported, m.searcher_metric FROM metrics m"
      "   WHERE m.trial_id = t.id AND m.grp = 'validation' AND NOT m.archived AND m.searcher_metric <> 'NaN'"
      "   ORDER BY CASE WHEN e.smaller_is_better THEN m.searcher_metric ELSE -m.searcher_metric END,"
      "   m.steps_completed LIMIT 1) best ON true"
      " LEFT JOIN LATERAL (SELECT sum(extract(epoch FROM coalesce(a.ended, now()) - a.started)) AS seconds"
      "   FROM allocations a WHERE a.trial_id = t.id AND a.id NOT LIKE '%-build') held ON true"
      " CROSS JOIN LATERAL (SELECT count(*) AS count,"
      "   least(coalesce(sum(c.size), 0), 9223372036854775807)::bigint AS size"
      "   FROM checkpoints c WHERE c.trial_id = t.id AND c.state = 'COMPLETED') k";
  return sql;
}

/// Adds to each trial the completed checkpoint with the best validation at its step.
Status add_best_checkpoints(Pool& pool, std::vector<TrialRow>& trials) {
  if (trials.empty()) return {};
  std::vector<std::int64_t> ids;
  for (const TrialRow& row : trials) ids.push_back(row.trial.id.value);
  static const std::string sql =
      "SELECT DISTINCT ON (c.trial_id) " + checkpoint_columns().sql() + checkpoint_tables() +
      " JOIN experiments e ON e.id = t.experiment_id WHERE c.trial_id = ANY ($1) AND c.state = 'COMPLETED'"
      " AND v.searcher_metric <> 'NaN' ORDER BY c.trial_id, CASE WHEN e.smaller_is_better"
      " THEN v.searcher_metric ELSE -v.searcher_metric END, c.steps_completed, c.uuid";
  TRY_ASSIGN(std::vector<CheckpointRow> checkpoints, checkpoint_columns().read(pool.query(sql, ids)));
  for (CheckpointRow& checkpoint : checkpoints)
    for (TrialRow& trial : trials)
      if (trial.trial.id == checkpoint.trial) trial.best_checkpoint = checkpoint;
  return {};
}

/// Keys of ORDER BY over trial_tables(), indexed by TrialSort.
constexpr const char* kTrialKeys[] = {
    "t.id",
    "t.started",
    "t.ended",
    "t.state",
    "best.searcher_metric",
    "latest.searcher_metric",
    "greatest(t.steps_completed, t.latest_steps, newest.steps_completed, latest.steps_completed)",
    "coalesce(t.ended, now()) - t.started",
    "t.restarts",
    "k.size"};
static_assert(std::size(kTrialKeys) == static_cast<std::size_t>(TrialSort::kCheckpointSize) + 1);

}  // namespace

Result<Page<TrialRow>> list_trials(Pool& pool, const TrialFilter& filter) {
  std::vector<std::string> states;
  for (core::State state : filter.states) states.emplace_back(core::state_name(state));
  const std::string way = direction(filter.window);
  const std::string key = kTrialKeys[static_cast<std::size_t>(filter.sort)];
  // Sorted by id, cut the page before the joins. The ARRAY() keeps the planner from joining all trials first.
  const std::string page_sql =
      filter.sort == TrialSort::kId
          ? " WHERE t.id = ANY (ARRAY (SELECT s.id FROM trials s WHERE s.experiment_id = $1"
            " AND (cardinality($2::text[]) = 0 OR s.state = ANY ($2)) ORDER BY s.id" +
                way + " OFFSET $3 LIMIT $4)) ORDER BY t.id" + way
          : " WHERE t.experiment_id = $1 AND (cardinality($2::text[]) = 0 OR t.state = ANY ($2)) ORDER BY " +
                key + way + " NULLS LAST, t.id" + way + " OFFSET $3 LIMIT $4";
  TRY_ASSIGN(Page<TrialRow> page, page_of(pool,
                                          "SELECT count(*) FROM trials t WHERE t.experiment_id = $1"
                                          " AND (cardinality($2::text[]) = 0 OR t.state = ANY ($2))",
                                          "SELECT " + trial_columns().sql() + trial_tables() + page_sql,
                                          Params(filter.experiment, states), filter.window, trial_columns()));
  TRY(add_best_checkpoints(pool, page.rows));
  return page;
}

Result<std::vector<TrialRow>> trials_by_id(Pool& pool, const std::vector<std::int64_t>& ids) {
  static const std::string sql = trial_columns().select(trial_tables() + " WHERE t.id = ANY ($1)");
  return trial_columns().read(pool.query(sql, ids));
}

Result<TrialRow> get_trial(Pool& pool, TrialId id) {
  static const std::string sql = trial_columns().select(trial_tables() + " WHERE t.id = $1");
  std::vector<TrialRow> rows(1);
  TRY_ASSIGN(rows.front(), trial_columns().one(pool.query(sql, id), "trial " + std::to_string(id.value)));
  TRY(add_best_checkpoints(pool, rows));
  return std::move(rows.front());
}

namespace {

/// Fills in the checkpoints, of which the rows have only the uuid so far.
Status add_checkpoints(Pool& pool, std::vector<Workload>& rows) {
  std::vector<std::string> uuids;
  for (const Workload& row : rows)
    if (row.kind == Workload::Kind::kCheckpoint) uuids.push_back(row.checkpoint.uuid.value);
  if (uuids.empty()) return {};
  static const std::string sql =
      checkpoint_columns().select(checkpoint_tables() + " WHERE c.uuid = ANY ($1)");
  TRY_ASSIGN(std::vector<CheckpointRow> checkpoints, checkpoint_columns().read(pool.query(sql, uuids)));
  std::map<CheckpointId, CheckpointRow> by_uuid;
  for (CheckpointRow& one : checkpoints) by_uuid[one.uuid] = std::move(one);
  for (Workload& row : rows)
    if (auto at = by_uuid.find(row.checkpoint.uuid); at != by_uuid.end()) row.checkpoint = at->second;
  return {};
}

Status read_workload(Rows::Row& row, Workload& out) {
  row.into(out.metrics.steps_completed);
  if (row.next<std::int64_t>() == 3) {
    out.kind = Workload::Kind::kCheckpoint;
    row.into(out.checkpoint.uuid);
    return {};
  }
  row.into(out.metrics.group, out.metrics.metrics, out.metrics.reported, out.metrics.searcher_metric);
  return {};
}

}  // namespace

Result<std::vector<MetricReport>> list_reports(Pool& pool, const ReportFilter& filter) {
  const std::string& after = filter.after_group.empty() ? filter.group : filter.after_group;
  TRY_ASSIGN(const Rows rows,
             // pg_column_size() is the stored size: it is known without reading the value.
             pool.query("SELECT run, grp, steps_completed, reported, metrics FROM ("
                        " SELECT *, sum(size) OVER (ORDER BY grp, steps_completed) - size AS before FROM ("
                        " SELECT *, pg_column_size(metrics) AS size FROM metrics"
                        " WHERE trial_id = $1 AND NOT archived AND (grp, steps_completed) > ($2, $3)"
                        " AND ($4 = '' OR grp = $4) ORDER BY grp, steps_completed LIMIT $5) AS page) AS sized"
                        " WHERE before < $6 ORDER BY grp, steps_completed",
                        filter.trial, after, filter.after_steps, filter.group, filter.limit, filter.bytes));
  std::vector<MetricReport> reports;
  for (int i = 0; i < rows.size(); ++i) {
    Rows::Row row = rows[i];
    MetricReport& out = reports.emplace_back();
    row.into(out.run, out.point.group, out.point.steps_completed, out.point.reported, out.point.metrics);
  }
  return reports;
}

Result<Page<Workload>> list_workloads(Pool& pool, const WorkloadFilter& filter) {
  static const Columns<Workload> kColumns(
      Column<Workload>{"steps, place, name, metrics, reported, searcher_metric", read_workload});
  // $1 trial, $2 groups, $3 include checkpoints, $4 include deleted ones. `place` orders equal steps.
  static const std::string with =
      "WITH w AS (SELECT m.steps_completed AS steps,"
      " CASE m.grp WHEN 'training' THEN 0 WHEN 'validation' THEN 1 ELSE 2 END AS place, m.grp AS name,"
      " m.metrics, m.reported, m.searcher_metric FROM metrics m"
      " WHERE m.trial_id = $1 AND m.grp = ANY ($2) AND NOT m.archived"
      " UNION ALL SELECT c.steps_completed, 3, c.uuid, NULL, c.reported, NULL FROM checkpoints c"
      " WHERE c.trial_id = $1 AND $3 AND ($4 OR c.state NOT IN ('DELETED', 'PARTIALLY_DELETED')))";
  const std::string way = direction(filter.window);
  TRY_ASSIGN(Page<Workload> page,
             page_of(pool, with + " SELECT count(*) FROM w",
                     with + " SELECT " + kColumns.sql() + " FROM w ORDER BY steps" + way + ", place" + way +
                         ", name" + way + " OFFSET $5 LIMIT $6",
                     Params(filter.trial, filter.groups, filter.checkpoints, filter.deleted_checkpoints),
                     filter.window, kColumns));
  TRY(add_checkpoints(pool, page.rows));
  return page;
}

Result<std::string> get_run_metadata(Pool& pool, TrialId id) {
  return value_of<std::string>(
      pool.query("SELECT coalesce(m.metadata, '{}') FROM trials t LEFT JOIN run_metadata m"
                 " ON m.trial_id = t.id WHERE t.id = $1",
                 id),
      "run " + std::to_string(id.value));
}

Status set_run_metadata(Pool& pool, TrialId id, const std::string& metadata) {
  // Inserts nothing when the trial does not exist, which found() reports.
  return found(pool.query("INSERT INTO run_metadata (trial_id, metadata) SELECT id, $2::json FROM trials"
                          " WHERE id = $1 ON CONFLICT (trial_id) DO UPDATE SET metadata = EXCLUDED.metadata",
                          id, metadata),
               "run " + std::to_string(id.value));
}

}  // namespace det::db
