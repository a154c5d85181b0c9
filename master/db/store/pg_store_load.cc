#include "master/db/store/pg_store_load.h"

#include "master/db/store/tables.h"

namespace det::db {
namespace {

using Choice = std::optional<ExperimentId>;

/// $1: one experiment; NULL: all experiments that have not ended.
const std::string kChosenExperiments =
    "(SELECT id FROM experiments WHERE CASE WHEN $1::bigint IS NULL THEN"
    " state NOT IN ('COMPLETED', 'CANCELED', 'ERROR') ELSE id = $1::bigint END)";

/// Reads the rows of a statement and appends them to `out`.
template <typename T, typename... V>
Status load_rows(Connection& connection, const Table<T>& table, Sql sql, std::vector<T>& out,
                 const V&... values) {
  TRY_ASSIGN(const Rows rows, connection.query(sql, values...));
  for (Rows::Row row : rows) TRY(table.read(row, out.emplace_back()));
  return {};
}

Status load_experiments(Connection& connection, Choice choice, core::Recovered& out) {
  static const std::string sql = "SELECT " + experiments_table().sql() + " FROM experiments WHERE id IN " +
                                 kChosenExperiments + " ORDER BY id";
  std::vector<core::PutExperiment> rows;
  TRY(load_rows(connection, experiments_table(), sql, rows, choice));
  static const std::string workspaces =
      "SELECT e.id, p.workspace_id FROM experiments e JOIN projects p ON p.id = e.project_id WHERE e.id IN " +
      kChosenExperiments + " ORDER BY e.id";
  TRY_ASSIGN(const Rows places, connection.query(workspaces, choice));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Rows::Row place = places[static_cast<int>(i)];
    ExperimentId id;
    place.into(id, rows[i].row.workspace);
  }
  for (core::PutExperiment& one : rows) {
    // Every experiment has an entry, even before the first event.
    out.searchers[one.row.id];
    out.experiments.push_back(std::move(one.row));
  }
  return {};
}

Status load_searchers(Connection& connection, Choice choice, core::Recovered& out) {
  static const std::string snapshots_sql = "SELECT " + searcher_snapshots_table().sql() +
                                           " FROM searcher_snapshots WHERE experiment_id IN " +
                                           kChosenExperiments;
  std::vector<core::PutSearcherSnapshot> snapshots;
  TRY(load_rows(connection, searcher_snapshots_table(), snapshots_sql, snapshots, choice));
  for (core::PutSearcherSnapshot& one : snapshots) {
    auto& log = out.searchers[one.experiment];
    log.snapshot_number = one.number;
    log.snapshot = std::move(one.snapshot);
  }
  // Replay starts at the snapshot; older events are already part of it.
  static const std::string events_sql =
      "SELECT " + searcher_events_table().sql("e.") +
      " FROM searcher_events e LEFT JOIN searcher_snapshots s USING (experiment_id) WHERE e.experiment_id "
      "IN " +
      kChosenExperiments + " AND e.number >= coalesce(s.number, 0) ORDER BY e.experiment_id, e.number";
  std::vector<core::AppendSearcherEvent> events;
  TRY(load_rows(connection, searcher_events_table(), events_sql, events, choice));
  for (core::AppendSearcherEvent& one : events)
    out.searchers[one.experiment].events.push_back(std::move(one.event));
  return {};
}

Status load_trials(Connection& connection, Choice choice, core::Recovered& out) {
  static const std::string sql = "SELECT " + trials_table().sql() + " FROM trials WHERE experiment_id IN " +
                                 kChosenExperiments + " ORDER BY id";
  return load_rows(connection, trials_table(), sql, out.trials, choice);
}

/// Loads commands, allocations, agent settings, quotas and pilots.
Status load_others(Connection& connection, core::Recovered& out) {
  static const std::string commands =
      "SELECT " + commands_table().sql() + " FROM commands WHERE ended IS NULL ORDER BY id";
  static const std::string allocations =
      "SELECT " + allocations_table().sql() + " FROM allocations WHERE state <> 'TERMINATED' ORDER BY 2, run";
  static const std::string agents =
      "SELECT " + agent_settings_table().sql() + " FROM agent_settings ORDER BY agent_id";
  TRY(load_rows(connection, commands_table(), commands, out.commands));
  TRY(load_rows(connection, allocations_table(), allocations, out.allocations));
  TRY(load_rows(connection, agent_settings_table(), agents, out.agents));
  TRY_ASSIGN(const Rows quotas, connection.query("SELECT scope, subject_id, resource, amount FROM quotas"));
  for (Rows::Row row : quotas) TRY(read_quota(row, out.quotas.emplace_back()));
  static const std::string pilots =
      "SELECT " + pilots_table().sql() + " FROM pilots WHERE ended IS NULL ORDER BY id";
  return load_rows(connection, pilots_table(), pilots, out.pilots);
}

}  // namespace

Result<core::Recovered> load_recovered(Connection& connection) {
  core::Recovered out;
  TRY(load_experiments(connection, std::nullopt, out));
  TRY(load_searchers(connection, std::nullopt, out));
  TRY(load_trials(connection, std::nullopt, out));
  TRY(load_others(connection, out));
  // Ids of deleted rows are not reused.
  TRY_ASSIGN(const Rows next, connection.query("SELECT greatest((SELECT max(id) FROM experiments),"
                                               " (SELECT max(last_experiment) FROM cluster), 0) + 1,"
                                               " greatest((SELECT max(id) FROM trials),"
                                               " (SELECT max(last_trial) FROM cluster), 0) + 1,"
                                               " greatest((SELECT max(id) FROM commands),"
                                               " (SELECT max(last_command) FROM cluster), 0) + 1,"
                                               " coalesce((SELECT max(id) FROM pilots), 0) + 1"));
  next[0].into(out.next_experiment, out.next_trial, out.next_command, out.next_pilot);
  return out;
}

Result<core::Recovered> load_ended(Connection& connection, ExperimentId id) {
  core::Recovered out;
  TRY(load_experiments(connection, id, out));
  if (out.experiments.empty())
    return fail(Code::kNotFound, "there is no experiment " + std::to_string(id.value));
  TRY(load_searchers(connection, id, out));
  TRY(load_trials(connection, id, out));
  return out;
}

Result<StoredSearch> load_search(Connection& connection, ExperimentId id) {
  // One snapshot: the log and the trials must match.
  TRY(connection.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"));
  core::Recovered read;
  TRY(load_experiments(connection, id, read));
  if (read.experiments.empty())
    return fail(Code::kNotFound, "there is no experiment " + std::to_string(id.value));
  TRY(load_searchers(connection, id, read));
  TRY_ASSIGN(const Rows rows,
             connection.query("SELECT id, request_id FROM trials WHERE experiment_id = $1 ORDER BY id", id));
  StoredSearch out{
      .config = read.experiments.front().config, .log = std::move(read.searchers[id]), .trials = {}};
  for (Rows::Row row : rows) {
    auto& [trial, request] = out.trials.emplace_back();
    row.into(trial, request);
  }
  return out;
}

}  // namespace det::db
