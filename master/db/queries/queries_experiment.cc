#include "master/db/queries/queries_experiment.h"

#include <algorithm>
#include <map>

#include "common/base/text.h"
#include "master/db/store/tables.h"

namespace det::db {
namespace {

const Columns<ExperimentRow>& experiment_columns() {
  using E = ExperimentRow;
  static const Columns<E> columns = {
      column<&E::id>("e.id"),
      column<&E::job_id>("e.job_id"),
      column<&E::name>("e.name"),
      column<&E::description>("e.description"),
      column<&E::labels>("e.labels"),
      column<&E::notes>("e.notes"),
      column<&E::archived>("e.archived"),
      column<&E::state>("e.state"),
      column<&E::live>("CASE WHEN e.unmanaged THEN 'RUNNING' ELSE live.state END"),
      column<&E::unmanaged>("e.unmanaged"),
      column<&E::progress>("e.progress"),
      column<&E::submitted>("e.submitted"),
      column<&E::ended>("e.ended"),
      column<&E::duration>("extract(epoch FROM coalesce(e.ended, now()) - e.submitted)::float8"),
      column<&E::owner>("e.owner_id"),
      column<&E::username>("u.name"),
      column<&E::project>("p.id"),
      column<&E::workspace>("w.id"),
      column<&E::project_name>("p.name"),
      column<&E::workspace_name>("w.name"),
      column<&E::resource_pool>("e.resource_pool"),
      column<&E::parent>("e.parent_id"),
      column<&E::num_trials>("coalesce(s.trials, 0)"),
      column<&E::searcher_name>("e.searcher_name"),
      column<&E::searcher_metric>("e.searcher_metric"),
      column<&E::smaller_is_better>("e.smaller_is_better"),
      // The trial of the summary counts as the best one only when it has a metric.
      column<&E::best_trial>("CASE WHEN s.metric IS NOT NULL THEN s.trial_id END"),
      column<&E::best_metric>("s.metric"),
      column<&E::checkpoint_count>("coalesce(s.checkpoints, 0)"),
      column<&E::checkpoint_size>("coalesce(s.checkpoint_bytes, 0)"),
      column<&E::request>("e.request_id"),
      column<&E::project_owner>("p.owner_id"),
      column<&E::parent_archived>("p.archived OR w.archived"),
  };
  return columns;
}

/// Tables of experiment_columns().
const std::string kExperimentTables =
    " FROM experiments e JOIN users u ON u.id = e.owner_id JOIN projects p ON p.id = e.project_id"
    " JOIN workspaces w ON w.id = p.workspace_id"
    " LEFT JOIN experiment_summaries s ON s.experiment_id = e.id"
    " LEFT JOIN LATERAL (SELECT a.state FROM trials t JOIN allocations a ON a.trial_id = t.id"
    "   WHERE t.experiment_id = e.id AND a.state <> 'TERMINATED' ORDER BY array_position("
    "   ARRAY['RUNNING', 'TERMINATING', 'STARTING', 'PULLING', 'ASSIGNED'], a.state) LIMIT 1) live ON true";

/// A subquery instead of a join: only the sort that needs it pays for it.
std::string summary(const char* column) {
  return std::string("(SELECT s.") + column + " FROM experiment_summaries s WHERE s.experiment_id = e.id)";
}

// Only constant text may reach ORDER BY.
std::string sort_key(ExperimentSort sort) {
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
      return summary("trials");
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
      return summary("checkpoint_bytes");
    case ExperimentSort::kCheckpointCount:
      return summary("checkpoints");
    case ExperimentSort::kSearcherMetric:
      return summary("metric");
  }
  return "e.id";
}

std::vector<std::string> names(const std::vector<core::State>& states) {
  std::vector<std::string> names;
  for (core::State state : states) names.emplace_back(core::state_name(state));
  return names;
}

/// FROM and WHERE clauses of a list. Unset filters add no condition: plans are cached per text, and the
/// common list is counted and cut by an index-only scan.
class Chosen {
 public:
  explicit Chosen(const ExperimentFilter& filter) {
    if (!filter.name.empty()) add("position(lower(", filter.name, ") IN lower(e.name)) > 0");
    if (!filter.description.empty())
      add("position(lower(", filter.description, ") IN lower(e.description)) > 0");
    if (!filter.labels.empty()) add("e.labels @> ", filter.labels);
    if (filter.archived) add("e.archived = ", *filter.archived);
    if (!filter.states.empty()) add("e.state = ANY (", names(filter.states), ")");
    if (!filter.users.empty())
      add("e.owner_id IN (SELECT x.id FROM users x WHERE x.name = ANY (", filter.users, "))");
    if (!filter.user_ids.empty()) add("e.owner_id = ANY (", filter.user_ids, ")");
    if (filter.project) add("e.project_id = ", *filter.project);
    if (filter.visible)
      add("e.project_id IN (SELECT p.id FROM projects p WHERE p.workspace_id = ANY (", *filter.visible, "))");
    if (filter.first_id > 0) add("e.id >= ", filter.first_id);
    if (filter.last_id < INT64_MAX) add("e.id <= ", filter.last_id);
    if (!filter.ids.empty()) add("e.id = ANY (", filter.ids, ")");
    if (!filter.not_ids.empty()) add("e.id <> ALL (", filter.not_ids, ")");
  }

  /// Binds `value` and returns its placeholder.
  template <typename T>
  std::string place(const T& value) {
    params.add(value);
    return "$" + std::to_string(params.size());
  }

  std::string sql = " FROM experiments e";
  Params params;

 private:
  template <typename T>
  void add(const char* before, const T& value, const char* after = "") {
    sql += params.size() == 0 ? " WHERE " : " AND ";
    sql += before + place(value) + after;
  }
};

}  // namespace

Result<Page<ExperimentRow>> list_experiments(Pool& pool, const ExperimentFilter& filter) {
  Chosen chosen(filter);
  const std::string& from = chosen.sql;
  TRY_ASSIGN(const Rows counted, pool.run("SELECT count(*)" + from, chosen.params));
  Page<ExperimentRow> page;
  page.total = counted[0].next<std::int64_t>();
  const Span span = resolve(filter.window, page.total);
  page.start = span.first;
  if (span.count == 0) return page;
  // The id breaks ties, so that pages do not overlap.
  const std::string way =
      filter.window.descending ? " DESC NULLS LAST, e.id DESC" : " ASC NULLS LAST, e.id ASC";
  std::string sql = "SELECT e.id" + from + " ORDER BY ";
  // Ids are never null, and only a plain sort by id can use the index.
  sql += filter.sort == ExperimentSort::kId ? (filter.window.descending ? "e.id DESC" : "e.id")
                                            : sort_key(filter.sort) + way;
  sql += " OFFSET " + chosen.place(span.first);
  sql += " LIMIT " + chosen.place(span.count);
  TRY_ASSIGN(const Rows found, pool.run(sql, chosen.params));
  std::map<std::int64_t, std::size_t> places;
  std::vector<std::int64_t> ids;
  for (int i = 0; i < found.size(); ++i) {
    ids.push_back(found[i].next<std::int64_t>());
    places[ids.back()] = static_cast<std::size_t>(i);
  }
  // Loading the wide rows by id lets all lists share one prepared plan.
  TRY_ASSIGN(page.rows, experiments_by_id(pool, ids));
  std::sort(page.rows.begin(), page.rows.end(), [&](const ExperimentRow& a, const ExperimentRow& b) {
    return places[a.id.value] < places[b.id.value];
  });
  return page;
}

Result<std::vector<ExperimentRow>> experiments_by_id(Pool& pool, const std::vector<std::int64_t>& ids) {
  static const std::string sql =
      "SELECT " + experiment_columns().sql() + kExperimentTables + " WHERE e.id = ANY ($1)";
  TRY_ASSIGN(const Rows rows, pool.query(sql, ids));
  return experiment_columns().read(rows);
}

Result<std::map<std::string, JobPlace>> job_places(Pool& pool, const std::vector<std::int64_t>& experiments,
                                                   const std::vector<std::string>& commands) {
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT e.id::text, u.name, p.workspace_id FROM experiments e"
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
  // All detail columns in one statement, so that they come from one snapshot.
  static const std::string sql =
      "SELECT " + experiment_columns().sql() +
      ", e.config, e.original_config, ARRAY(SELECT t.id FROM trials t WHERE t.experiment_id = e.id"
      " ORDER BY t.id), e.model_definition, coalesce((SELECT m.size FROM model_definitions m"
      " WHERE m.sha256 = e.model_definition), 0)" +
      kExperimentTables + " WHERE e.id = $1";
  TRY_ASSIGN(const Rows rows, pool.query(sql, id));
  if (rows.empty()) return fail(Code::kNotFound, "experiment " + std::to_string(id.value) + " not found");
  ExperimentDetail out;
  Rows::Row row = rows[0];
  TRY(experiment_columns().read(row, out));
  row.into(out.config, out.original_config);
  for (std::int64_t trial : row.next<std::vector<std::int64_t>>()) out.trials.emplace_back(trial);
  row.into(out.model_definition, out.model_definition_size);
  return out;
}

Result<std::optional<ExperimentId>> find_experiment(Pool& pool, const RequestId& request) {
  // An empty request id is not an idempotency key.
  if (request.value.empty()) return std::optional<ExperimentId>();
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT id FROM experiments WHERE request_id = $1 AND request_id <> ''", request));
  if (rows.empty()) return std::optional<ExperimentId>();
  return std::optional(rows[0].next<ExperimentId>());
}

}  // namespace det::db
