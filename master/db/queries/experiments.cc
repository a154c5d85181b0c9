#include "master/db/queries/experiments.h"

#include <algorithm>
#include <map>

#include "common/base/text.h"
#include "master/db/queries/gc.h"
#include "master/db/store/at_rest.h"
#include "master/db/store/tables.h"

namespace det::db {
namespace {

const Columns<ExperimentRow>& experiment_columns() {
  using E = ExperimentRow;
  static const Columns<E> columns(
      column<&E::id>("e.id"), column<&E::job_id>("e.job_id"), column<&E::name>("e.name"),
      column<&E::description>("e.description"), column<&E::labels>("e.labels"), column<&E::notes>("e.notes"),
      column<&E::archived>("e.archived"), column<&E::state>("e.state"),
      column<&E::live>("CASE WHEN e.detached THEN 'RUNNING' ELSE live.state END"),
      column<&E::detached>("e.detached"), column<&E::progress>("e.progress"),
      column<&E::submitted>("e.submitted"), column<&E::ended>("e.ended"),
      column<&E::duration>("extract(epoch FROM coalesce(e.ended, now()) - e.submitted)::float8"),
      column<&E::owner>("e.owner_id"), column<&E::username>("u.name"), column<&E::project>("p.id"),
      column<&E::workspace>("w.id"), column<&E::project_name>("p.name"), column<&E::workspace_name>("w.name"),
      column<&E::resource_pool>("e.resource_pool"), column<&E::parent>("e.parent_id"),
      column<&E::num_trials>("coalesce(s.trials, 0)"), column<&E::searcher_name>("e.searcher_name"),
      column<&E::searcher_metric>("e.searcher_metric"), column<&E::smaller_is_better>("e.smaller_is_better"),
      // The trial of the summary counts as the best one only when it has a metric.
      column<&E::best_trial>("CASE WHEN s.metric IS NOT NULL THEN s.trial_id END"),
      column<&E::best_metric>("s.metric"), column<&E::checkpoint_count>("coalesce(s.checkpoints, 0)"),
      column<&E::checkpoint_size>("coalesce(s.checkpoint_bytes, 0)"), column<&E::request>("e.request_id"),
      column<&E::project_owner>("p.owner_id"), column<&E::parent_archived>("p.archived OR w.archived"));
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

/// Keys of ORDER BY, indexed by ExperimentSort. Subqueries instead of joins: only the sort that needs one
/// pays for it.
constexpr const char* kExperimentKeys[] = {
    "e.id",
    "e.name",
    "e.description",
    "e.submitted",
    "e.ended",
    "e.state",
    "(SELECT s.trials FROM experiment_summaries s WHERE s.experiment_id = e.id)",
    "e.progress",
    "(SELECT x.name FROM users x WHERE x.id = e.owner_id)",
    "e.resource_pool",
    "e.parent_id",
    "e.project_id",
    "(SELECT s.checkpoint_bytes FROM experiment_summaries s WHERE s.experiment_id = e.id)",
    "(SELECT s.checkpoints FROM experiment_summaries s WHERE s.experiment_id = e.id)",
    "(SELECT s.metric FROM experiment_summaries s WHERE s.experiment_id = e.id)"};
static_assert(std::size(kExperimentKeys) == static_cast<std::size_t>(ExperimentSort::kSearcherMetric) + 1);

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
    // Within one project the archive state of the project itself does not matter, as in Determined AI.
    if (filter.archived == false && !filter.project) {
      sql +=
          " AND e.project_id <> ALL (ARRAY (SELECT p.id FROM projects p JOIN workspaces w"
          " ON w.id = p.workspace_id WHERE p.archived OR w.archived))";
    }
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

  std::string sql = " FROM experiments e";
  Params params;

 private:
  template <typename T>
  void add(const char* before, const T& value, const char* after = "") {
    sql += params.size() == 0 ? " WHERE " : " AND ";
    params.add(value);
    sql += before + ("$" + std::to_string(params.size())) + after;
  }
};

}  // namespace

Result<Page<ExperimentRow>> list_experiments(Pool& pool, const ExperimentFilter& filter) {
  struct Found {
    std::int64_t id = 0;
  };
  static const Columns<Found> columns(column<&Found::id>("e.id"));
  const Chosen chosen(filter);
  // Ids are never null, and only a plain sort by id can use the index. The id breaks ties, so that pages do
  // not overlap.
  const std::string way = direction(filter.window);
  const std::string key =
      filter.sort == ExperimentSort::kId
          ? ""
          : kExperimentKeys[static_cast<std::size_t>(filter.sort)] + way + " NULLS LAST, ";
  TRY_ASSIGN(const Page<Found> found,
             list_page(pool, chosen.sql, key + "e.id" + way, chosen.params, filter.window, columns));
  Page<ExperimentRow> page{.rows = {}, .total = found.total, .start = found.start};
  if (found.rows.empty()) return page;
  std::map<std::int64_t, std::size_t> places;
  std::vector<std::int64_t> ids;
  for (const Found& one : found.rows) {
    places[one.id] = ids.size();
    ids.push_back(one.id);
  }
  // Loading the wide rows by id lets all lists share one prepared plan.
  TRY_ASSIGN(page.rows, experiments_by_id(pool, ids));
  std::sort(page.rows.begin(), page.rows.end(), [&](const ExperimentRow& a, const ExperimentRow& b) {
    return places[a.id.value] < places[b.id.value];
  });
  return page;
}

Result<std::vector<ExperimentRow>> experiments_by_id(Pool& pool, const std::vector<std::int64_t>& ids) {
  static const std::string sql = experiment_columns().select(kExperimentTables + " WHERE e.id = ANY ($1)");
  return experiment_columns().read(pool.query(sql, ids));
}

Result<std::map<std::string, JobPlace>> job_places(Pool& pool, const std::vector<std::int64_t>& experiments,
                                                   const std::vector<std::string>& commands) {
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT e.id::text, e.name, u.name, p.workspace_id FROM experiments e"
                        " JOIN users u ON u.id = e.owner_id JOIN projects p ON p.id = e.project_id"
                        " WHERE e.id = ANY ($1) UNION ALL"
                        " SELECT c.task_id, '', u.name, c.workspace_id FROM commands c"
                        " JOIN users u ON u.id = c.owner_id WHERE c.task_id = ANY ($2)",
                        experiments, commands));
  std::map<std::string, JobPlace> places;
  for (Rows::Row row : rows) {
    const auto id = row.next<std::string>();
    JobPlace& place = places[id];
    row.into(place.experiment_name, place.username, place.workspace);
  }
  return places;
}

Result<ExperimentDetail> get_experiment(Pool& pool, ExperimentId id) {
  // All detail columns in one statement, so that they come from one snapshot.
  static const std::string sql = experiment_columns().select(
      ", e.config, e.original_config, ARRAY(SELECT t.id FROM trials t WHERE t.experiment_id = e.id"
      " ORDER BY t.id), e.model_definition, coalesce((SELECT m.size FROM model_definitions m"
      " WHERE m.sha256 = e.model_definition), 0)" +
      kExperimentTables + " WHERE e.id = $1");
  TRY_ASSIGN(const Rows rows, pool.query(sql, id));
  if (rows.empty()) return fail(Code::kNotFound, "experiment " + std::to_string(id.value) + " not found");
  ExperimentDetail out;
  Rows::Row row = rows[0];
  TRY(experiment_columns().read(row, out));
  TRY_ASSIGN(out.config, open_config(row.next<std::string>()));
  TRY_ASSIGN(out.original_config, open_yaml(row.next<std::string>()));
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

namespace {

std::string experiment_name(ExperimentId id) { return "experiment " + std::to_string(id.value); }

/// Locks the row for the rest of the transaction. Errors: kNotFound; kFailedPrecondition (it has not ended).
Status lock_ended(Connection& connection, ExperimentId id, const char* wish) {
  TRY_ASSIGN(const Rows rows, connection.query("SELECT state FROM experiments WHERE id = $1 FOR UPDATE", id));
  if (rows.empty()) return fail(Code::kNotFound, experiment_name(id) + " not found");
  const auto state = core::parse_state(rows[0].next<std::string>());
  if (state && core::is_terminal(*state)) return {};
  return fail(Code::kFailedPrecondition,
              experiment_name(id) + " has not ended and cannot be " + wish + "; cancel or kill it first");
}

}  // namespace

Status patch_experiment(Pool& pool, ExperimentId id, const ExperimentPatch& patch) {
  return found(
      pool.query("UPDATE experiments SET name = coalesce($2, name), description = coalesce($3, description),"
                 " notes = coalesce($4, notes), labels = coalesce($5, labels) WHERE id = $1",
                 id, patch.name, patch.description, patch.notes, patch.labels),
      experiment_name(id));
}

Status replace_config(Pool& pool, ExperimentId id, const std::string& before, const std::string& after) {
  // Compared as text: json has no equality operator.
  TRY_ASSIGN(const Rows rows,
             pool.query("UPDATE experiments SET config = $3::json WHERE id = $1 AND config::text = $2", id,
                        seal_config_text(before), seal_config_text(after)));
  if (rows.affected() == 0) return fail(Code::kAborted, experiment_name(id) + " has just changed; try again");
  return {};
}

Status rewrite_experiment(Pool& pool, ExperimentId id, const std::string& before, const std::string& after,
                          const std::string& hparams) {
  return pool.in_transaction([&](Connection& connection) -> Status {
    TRY(lock_ended(connection, id, "continued"));
    TRY_ASSIGN(
        const Rows rows,
        connection.query("UPDATE experiments SET config = $3::json WHERE id = $1 AND config::text = $2", id,
                         seal_config_text(before), seal_config_text(after)));
    if (rows.affected() == 0)
      return fail(Code::kAborted, experiment_name(id) + " has just changed; try again");
    TRY(connection.query("UPDATE trials SET hparams = $2::json WHERE experiment_id = $1", id, hparams));
    return {};
  });
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
  return value_of<std::vector<std::string>>(
      pool.query(
          "UPDATE experiments SET labels = array_remove(labels, $2) || CASE WHEN $3 THEN ARRAY[$2::text]"
          " ELSE ARRAY[]::text[] END WHERE id = $1 RETURNING labels",
          id, label, add),
      experiment_name(id));
}

Result<std::vector<std::string>> list_labels(Pool& pool, std::optional<std::int64_t> project,
                                             const Visible& visible) {
  TRY_ASSIGN(
      const Rows rows,
      pool.query(
          "SELECT label FROM experiments e CROSS JOIN unnest(e.labels) label"
          " WHERE ($1::bigint IS NULL OR e.project_id = $1) AND ($2::bigint[] IS NULL OR e.project_id IN"
          " (SELECT p.id FROM projects p WHERE p.workspace_id = ANY ($2)))"
          " GROUP BY label ORDER BY count(*) DESC, label",
          project, visible));
  return rows.column<std::string>();
}

Status delete_experiment(Pool& pool, ExperimentId id) {
  return pool.in_transaction([&](Connection& connection) -> Status {
    TRY(connection.script(kNoTimeout));
    TRY(lock_ended(connection, id, "deleted"));
    TRY(lock_checkpoints_of(connection, id));
    // The highest ids survive the deletion, so that a restarted master does not reuse them.
    TRY(
        connection.query("UPDATE cluster SET last_experiment = greatest(last_experiment, (SELECT max(id) FROM"
                         " experiments)), last_trial = greatest(last_trial, (SELECT max(id) FROM trials))"));
    constexpr const char* kStatements[] = {
        // Usage reports still cover deleted experiments.
        "INSERT INTO past_usage SELECT e.id, e.owner_id, a.workspace_id, e.labels, a.pool, a.slots, "
        "a.started, greatest(a.started, a.ended), a.id"
        " FROM experiments e JOIN trials t ON t.experiment_id = e.id"
        " JOIN allocations a ON a.trial_id = t.id WHERE e.id = $1 AND a.slots > 0 AND a.ended IS NOT NULL",
        "DELETE FROM task_logs l USING trials t WHERE t.experiment_id = $1 AND l.task_id = t.task_id",
        "DELETE FROM webhook_matches m USING trials t WHERE t.experiment_id = $1 AND m.task_id = t.task_id",
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
  for (Rows::Row row : rows) {
    Validation one;
    bool smaller = true;
    row.into(one.trial, one.reported, one.metric, smaller);
    // Keep only improvements: the history is the running best.
    const bool better = history.empty() ||
                        (smaller ? one.metric < history.back().metric : one.metric > history.back().metric);
    if (better) history.push_back(one);
  }
  return history;
}

}  // namespace det::db
