#include "master/db/queries_experiment.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "master/db/rows.h"

/// In the order read_experiment() takes them.
#define DET_EXPERIMENT_COLUMNS                                                                               \
  "e.id, e.job_id, e.name, e.description, e.labels, e.notes, e.archived, e.state, "                       \
  "CASE WHEN e.unmanaged THEN 'RUNNING' ELSE live.state END, e.unmanaged, e.progress, "  \
  "e.submitted,"                                                                                             \
  " e.ended, extract(epoch FROM coalesce(e.ended, now()) - e.submitted)::float8, e.owner_id, u.name, p.id, " \
  "w.id, p.name,"                                                                                            \
  " w.name, e.resource_pool, e.parent_id, n.count, e.searcher_name, e.searcher_metric, "                     \
  "e.smaller_is_better, best.id,"                                                                            \
  " best.best_metric, c.count, c.size, e.request_id, p.owner_id, p.archived OR w.archived"
/// What belongs to an experiment row beyond the table itself. NaN sorts above everything: it is left out
/// first.
#define DET_EXPERIMENT_JOINS                                                                               \
  " JOIN users u ON u.id = e.owner_id JOIN projects p ON p.id = e.project_id JOIN workspaces w ON w.id = " \
  "p.workspace_id"                                                                                         \
  " CROSS JOIN LATERAL (SELECT count(*) AS count FROM trials t WHERE t.experiment_id = e.id) n"            \
  " CROSS JOIN LATERAL (SELECT count(*) AS count, coalesce(sum(k.size), 0)::bigint AS size FROM trials t"  \
  "   JOIN checkpoints k ON k.trial_id = t.id WHERE t.experiment_id = e.id AND k.state = 'COMPLETED') c"   \
  " LEFT JOIN LATERAL (SELECT t.id, t.best_metric FROM trials t WHERE t.experiment_id = e.id"              \
  "   AND t.best_metric <> 'NaN' ORDER BY CASE WHEN e.smaller_is_better THEN t.best_metric ELSE "          \
  "-t.best_metric END, t.id"                                                                               \
  "   LIMIT 1) best ON true"                                                                               \
  " LEFT JOIN LATERAL (SELECT a.state FROM trials t JOIN allocations a ON a.trial_id = t.id"               \
  "   WHERE t.experiment_id = e.id AND a.state <> 'TERMINATED' ORDER BY array_position("                   \
  "   ARRAY['RUNNING', 'TERMINATING', 'STARTING', 'PULLING', 'ASSIGNED'], a.state) LIMIT 1) live ON true"

#define DET_EXPERIMENT_FILTER                                                                             \
  " FROM experiments e"                                                                                   \
  " WHERE ($1 = '' OR position(lower($1) IN lower(e.name)) > 0)"                                          \
  " AND ($2 = '' OR position(lower($2) IN lower(e.description)) > 0)"                                      \
  " AND (cardinality($3::text[]) = 0 OR e.labels @> $3)"                                                 \
  " AND ($4::boolean IS NULL OR e.archived = $4) AND (cardinality($5::text[]) = 0 OR e.state = ANY ($5))" \
  " AND (cardinality($6::text[]) = 0 OR e.owner_id IN (SELECT x.id FROM users x WHERE x.name = ANY ($6)))" \
  " AND (cardinality($7::bigint[]) = 0 OR "                                                              \
  "e.owner_id = ANY ($7))"                                                                                \
  " AND ($8::bigint IS NULL OR e.project_id = $8) AND ($9::bigint[] IS NULL OR e.project_id IN"             \
  " (SELECT p.id FROM projects p WHERE p.workspace_id = ANY ($9))) AND e.id BETWEEN $10 AND $11"            \
  " AND (cardinality($12::bigint[]) = 0 OR e.id = ANY ($12)) AND e.id <> ALL ($13)"

namespace det::db {
namespace {

const char* sort_key(ExperimentSort sort) {
  switch (sort) {
    case ExperimentSort::kId:
      return "e.id";
    case ExperimentSort::kName:
      return "e.name";
    case ExperimentSort::kDescription:
      return "e.description";
    case ExperimentSort::kStartTime:
      return "e.submitted";
    case ExperimentSort::kEndTime:
      return "e.ended";
    case ExperimentSort::kState:
      return "e.state";
    case ExperimentSort::kNumTrials:
      return "(SELECT count(*) FROM trials t WHERE t.experiment_id = e.id)";
    case ExperimentSort::kProgress:
      return "e.progress";
    case ExperimentSort::kUser:
      return "(SELECT x.name FROM users x WHERE x.id = e.owner_id)";
    case ExperimentSort::kResourcePool:
      return "e.resource_pool";
    case ExperimentSort::kForkedFrom:
      return "e.parent_id";
    case ExperimentSort::kProject:
      return "e.project_id";
    case ExperimentSort::kCheckpointSize:
      return "(SELECT sum(k.size) FROM trials t JOIN checkpoints k ON k.trial_id = t.id WHERE t.experiment_id = e.id"
             " AND k.state = 'COMPLETED')";
    case ExperimentSort::kCheckpointCount:
      return "(SELECT count(*) FROM trials t JOIN checkpoints k ON k.trial_id = t.id WHERE t.experiment_id = e.id"
             " AND k.state = 'COMPLETED')";
    case ExperimentSort::kSearcherMetric:
      return "(SELECT CASE WHEN e.smaller_is_better THEN min(t.best_metric) ELSE max(t.best_metric) END FROM trials t"
             " WHERE t.experiment_id = e.id)";
  }
  return "e.id";
}

void read_experiment(Rows::Row& row, ExperimentRow& out) {
  row.into(out.id, out.job_id, out.name, out.description, out.labels, out.notes, out.archived);
  out.state = read_state(row);
  out.live = read_allocation_state(row);
  row.into(out.unmanaged, out.progress, out.submitted, out.ended, out.duration, out.owner, out.username, out.project,
           out.workspace, out.project_name, out.workspace_name, out.resource_pool, out.parent, out.num_trials,
           out.searcher_name, out.searcher_metric, out.smaller_is_better, out.best_trial, out.best_metric,
           out.checkpoint_count, out.checkpoint_size, out.request, out.project_owner, out.parent_archived);
}

std::vector<std::string> names(const std::vector<core::State>& states) {
  std::vector<std::string> names;
  for (core::State state : states) names.emplace_back(core::state_name(state));
  return names;
}

}  // namespace

Result<Page<ExperimentRow>> list_experiments(Pool& pool, const ExperimentFilter& filter) {
  Params params(filter.name, filter.description, filter.labels, filter.archived, names(filter.states),
                filter.users, filter.user_ids, filter.project, filter.visible, filter.first_id, filter.last_id,
                filter.ids, filter.not_ids);
  TRY_ASSIGN(const Rows counted, pool.run("SELECT count(*)" DET_EXPERIMENT_FILTER, params));
  Page<ExperimentRow> page;
  page.total = counted[0].next<std::int64_t>();
  const Span span = resolve(filter.window, page.total);
  page.start = span.first;
  if (span.count == 0) return page;
  params.add(span.first);
  params.add(span.count);
  const std::string way =
      filter.window.descending ? " DESC NULLS LAST, e.id DESC" : " ASC NULLS LAST, e.id ASC";
  const std::string sql = std::string("SELECT e.id" DET_EXPERIMENT_FILTER " ORDER BY ") + sort_key(filter.sort) + way +
                          " OFFSET $14 LIMIT $15";
  TRY_ASSIGN(const Rows found, pool.run(sql.c_str(), params));
  std::map<std::int64_t, std::size_t> places;
  std::vector<std::int64_t> ids;
  for (int i = 0; i < found.size(); ++i) {
    ids.push_back(found[i].next<std::int64_t>());
    places[ids.back()] = static_cast<std::size_t>(i);
  }
  // By their ids: the wide statement is planned once.
  TRY_ASSIGN(page.rows, experiments_by_id(pool, ids));
  std::sort(page.rows.begin(), page.rows.end(), [&](const ExperimentRow& a, const ExperimentRow& b) {
    return places[a.id.value] < places[b.id.value];
  });
  return page;
}

Result<std::vector<ExperimentRow>> experiments_by_id(Pool& pool, const std::vector<std::int64_t>& ids) {
  TRY_ASSIGN(const Rows rows, pool.query("SELECT " DET_EXPERIMENT_COLUMNS
                                         " FROM experiments e" DET_EXPERIMENT_JOINS " WHERE e.id = ANY ($1)",
                                         ids));
  std::vector<ExperimentRow> out;
  for (int i = 0; i < rows.size(); ++i) {
    Rows::Row row = rows[i];
    read_experiment(row, out.emplace_back());
  }
  return out;
}

Result<std::map<std::string, JobPlace>> job_places(Pool& pool, const std::vector<std::int64_t>& experiments,
                                                   const std::vector<std::string>& commands) {
  TRY_ASSIGN(const Rows rows, pool.query("SELECT e.id::text, u.name, p.workspace_id FROM experiments e"
                                         " JOIN users u ON u.id = e.owner_id JOIN projects p ON p.id = e.project_id"
                                         " WHERE e.id = ANY ($1) UNION ALL"
                                         " SELECT c.task_id, u.name, c.workspace_id FROM commands c"
                                         " JOIN users u ON u.id = c.owner_id WHERE c.task_id = ANY ($2)",
                                         experiments, commands));
  std::map<std::string, JobPlace> places;
  for (int i = 0; i < rows.size(); ++i) {
    Rows::Row row = rows[i];
    const auto id = row.next<std::string>();
    row.into(places[id].username, places[id].workspace);
  }
  return places;
}

Result<ExperimentDetail> get_experiment(Pool& pool, ExperimentId id) {
  TRY_ASSIGN(
      const Rows rows,
      pool.query(
          "SELECT " DET_EXPERIMENT_COLUMNS ", e.config, e.original_config, ARRAY(SELECT t.id FROM trials t"
          " WHERE t.experiment_id = e.id ORDER BY t.id), e.model_definition, coalesce((SELECT m.size FROM"
          " model_definitions m WHERE m.sha256 = e.model_definition), 0) FROM experiments "
          "e" DET_EXPERIMENT_JOINS " WHERE e.id = $1",
          id));
  if (rows.empty()) return fail(Code::kNotFound, "experiment " + std::to_string(id.value) + " not found");
  ExperimentDetail out;
  Rows::Row row = rows[0];
  read_experiment(row, out);
  row.into(out.config, out.original_config);
  for (std::int64_t trial : row.next<std::vector<std::int64_t>>()) out.trials.emplace_back(trial);
  row.into(out.model_definition, out.model_definition_size);
  return out;
}

Result<std::optional<ExperimentId>> find_experiment(Pool& pool, const RequestId& request) {
  if (request.value.empty()) return std::optional<ExperimentId>();
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT id FROM experiments WHERE request_id = $1 AND request_id <> ''", request));
  if (rows.empty()) return std::optional<ExperimentId>();
  return std::optional(rows[0].next<ExperimentId>());
}

}  // namespace det::db
