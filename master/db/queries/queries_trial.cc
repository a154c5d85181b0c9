#include "master/db/queries/queries_trial.h"

#include "master/db/queries/rows_checkpoint.h"
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
  static const Columns<TrialRow> columns = {
      {trials_table().sql("t."),
       [](Rows::Row& row, TrialRow& out) { return trials_table().read(row, out.trial); }},
      column<&TrialRow::live>("CASE WHEN e.unmanaged THEN 'RUNNING' ELSE live.state END"),
      column<&TrialRow::total_batches>("greatest(t.steps_completed, t.latest_steps, newest.steps_completed,"
                                       " latest.steps_completed)::bigint"),
      column<&TrialRow::wall_clock>(
          "CASE WHEN e.unmanaged THEN extract(epoch FROM coalesce(t.ended, now()) - t.started)"
          " ELSE coalesce(held.seconds, 0) END::float8"),
      column<&TrialRow::checkpoint_count>("k.count"),
      column<&TrialRow::checkpoint_size>("k.size"),
      validation_column<&TrialRow::latest_validation>("latest"),
      validation_column<&TrialRow::best_validation>("best")};
  return columns;
}

/// All joins are index lookups: visible metrics are indexed by (trial, group, steps).
const std::string& select_trials() {
  static const std::string sql =
      "SELECT " + trial_columns().sql() +
      " FROM trials t JOIN experiments e ON e.id = t.experiment_id"
      " LEFT JOIN LATERAL (SELECT CASE WHEN a.state <> 'TERMINATED' THEN a.state END AS state"
      "   FROM allocations a WHERE a.trial_id = t.id ORDER BY a.run DESC LIMIT 1) live ON true"
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
      "   FROM allocations a WHERE a.trial_id = t.id) held ON true"
      " CROSS JOIN LATERAL (SELECT count(*) AS count, coalesce(sum(c.size), 0)::bigint AS size"
      "   FROM checkpoints c WHERE c.trial_id = t.id AND c.state = 'COMPLETED') k";
  return sql;
}

/// Adds to each trial the completed checkpoint with the best validation at its step.
Status add_best_checkpoints(Pool& pool, std::vector<TrialRow>& trials) {
  std::vector<std::int64_t> ids;
  for (const TrialRow& row : trials) ids.push_back(row.trial.id.value);
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT DISTINCT ON (c.trial_id) " DET_CHECKPOINT_COLUMNS
                        " FROM checkpoints c" DET_CHECKPOINT_JOINS
                        " JOIN experiments e ON e.id = t.experiment_id WHERE c.trial_id = ANY ($1) AND "
                        "c.state = 'COMPLETED'"
                        " AND v.searcher_metric <> 'NaN' ORDER BY c.trial_id, CASE WHEN e.smaller_is_better"
                        " THEN v.searcher_metric ELSE -v.searcher_metric END, c.steps_completed, c.uuid",
                        ids));
  for (int i = 0; i < rows.size(); ++i) {
    Rows::Row row = rows[i];
    CheckpointRow checkpoint = read_checkpoint(row);
    for (TrialRow& trial : trials)
      if (trial.trial.id == checkpoint.trial) {
        trial.best_checkpoint = std::move(checkpoint);
        break;
      }
  }
  return {};
}

/// SQL expression over select_trials().
std::string trial_key(TrialSort sort) {
  switch (sort) {
    case TrialSort::kId:
      return "t.id";
    case TrialSort::kStartTime:
      return "t.started";
    case TrialSort::kEndTime:
      return "t.ended";
    case TrialSort::kState:
      return "t.state";
    case TrialSort::kBest:
      return "best.searcher_metric";
    case TrialSort::kLatest:
      return "latest.searcher_metric";
    case TrialSort::kBatches:
      return "greatest(t.steps_completed, t.latest_steps, newest.steps_completed, latest.steps_completed)";
    case TrialSort::kDuration:
      return "coalesce(t.ended, now()) - t.started";
    case TrialSort::kRestarts:
      return "t.restarts";
    case TrialSort::kCheckpointSize:
      return "k.size";
  }
  return "t.id";
}

}  // namespace

Result<Page<TrialRow>> list_trials(Pool& pool, const TrialFilter& filter) {
  std::vector<std::string> states;
  for (core::State state : filter.states) states.emplace_back(core::state_name(state));
  TRY_ASSIGN(const Rows counted, pool.query("SELECT count(*) FROM trials t WHERE t.experiment_id = $1"
                                            " AND (cardinality($2::text[]) = 0 OR t.state = ANY ($2))",
                                            filter.experiment, states));
  Page<TrialRow> page;
  page.total = counted[0].next<std::int64_t>();
  const Span span = resolve(filter.window, page.total);
  page.start = span.first;
  if (span.count == 0) return page;
  const std::string way = filter.window.descending ? " DESC" : " ASC";
  // Sorted by id, cut the page before the joins. The ARRAY() keeps the planner from joining all trials first.
  const std::string page_of =
      filter.sort == TrialSort::kId
          ? " WHERE t.id = ANY (ARRAY (SELECT s.id FROM trials s WHERE s.experiment_id = $1 AND "
            "(cardinality($2::text[]) = 0 OR"
            " s.state = ANY ($2)) ORDER BY s.id" +
                way + " OFFSET $3 LIMIT $4)) ORDER BY t.id" + way
          : " WHERE t.experiment_id = $1 AND (cardinality($2::text[]) = 0 OR t.state = ANY ($2)) ORDER BY " +
                trial_key(filter.sort) + way + " NULLS LAST, t.id" + way + " OFFSET $3 LIMIT $4";
  TRY_ASSIGN(const Rows rows,
             pool.run(select_trials() + page_of, Params(filter.experiment, states, span.first, span.count)));
  TRY_ASSIGN(page.rows, trial_columns().read(rows));
  TRY(add_best_checkpoints(pool, page.rows));
  return page;
}

Result<TrialRow> get_trial(Pool& pool, TrialId id) {
  TRY_ASSIGN(const Rows rows, pool.query(select_trials() + " WHERE t.id = $1", id));
  if (rows.empty()) return fail(Code::kNotFound, "trial " + std::to_string(id.value) + " not found");
  TRY_ASSIGN(std::vector<TrialRow> found, trial_columns().read(rows));
  TRY(add_best_checkpoints(pool, found));
  return std::move(found.front());
}

}  // namespace det::db
