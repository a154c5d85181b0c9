#include "master/db/queries/gc.h"

#include <map>

#include "master/db/store/at_rest.h"

namespace det::db {
namespace {

/// SQL list of the terminal states of experiments and trials.
const std::string kEndedStates = "('COMPLETED', 'CANCELED', 'ERROR')";

const Columns<Marked>& marked_columns() {
  static const Columns<Marked> columns(column<&Marked::uuid>("c.uuid"),
                                       column<&Marked::experiment>("t.experiment_id"),
                                       column<&Marked::storage>("e.config->'checkpoint_storage'"),
                                       column<&Marked::writer>("coalesce(a.parts->0->>'agent', '')"));
  return columns;
}

/// Decrypts the keys of the storages.
Result<std::vector<Marked>> open_storages(Result<std::vector<Marked>> found) {
  if (!found) return found;
  for (Marked& one : *found) {
    TRY_ASSIGN(one.storage, open_section("checkpoint_storage", std::move(one.storage)));
  }
  return found;
}

/// Reads the marked checkpoints that meet the conditions `where`, which are constant text.
template <typename... V>
Result<std::vector<Marked>> read_marked(Pool& pool, const char* where, const V&... values) {
  static const std::string sql = marked_columns().select(
      " FROM checkpoints c JOIN trials t ON t.id = c.trial_id JOIN experiments e ON e.id = t.experiment_id"
      " LEFT JOIN allocations a ON a.id = c.allocation_id WHERE c.deleting AND ");
  return open_storages(marked_columns().read(pool.query(sql + where, values...)));
}

std::vector<std::string> texts(const std::vector<CheckpointId>& uuids) {
  std::vector<std::string> out;
  for (const CheckpointId& uuid : uuids) out.push_back(uuid.value);
  return out;
}

}  // namespace

Result<KeepRow> get_keep(Pool& pool, ExperimentId id) {
  using K = KeepRow;
  static const Columns<K> columns(
      column<&K::experiment_best>("coalesce((s->>'save_experiment_best')::int, 0)"),
      column<&K::trial_best>("coalesce((s->>'save_trial_best')::int, 1)"),
      column<&K::trial_latest>("coalesce((s->>'save_trial_latest')::int, 1)"),
      column<&K::smaller_is_better>("smaller_is_better"));
  static const std::string sql = columns.select(
      " FROM (SELECT config->'checkpoint_storage' AS s, smaller_is_better FROM experiments WHERE id = $1) e");
  return columns.one(pool.query(sql, id), name_of(id));
}

Result<std::vector<KeepTrial>> list_keep_trials(Pool& pool, ExperimentId id) {
  using K = KeepTrial;
  static const Columns<K> columns(
      column<&K::id>("t.id"), column<&K::latest>("t.latest_checkpoint"),
      column<&K::open>("t.state NOT IN " + kEndedStates),
      column<&K::resumable>("t.state NOT IN " + kEndedStates + " OR t.state = 'ERROR' AND e.state NOT IN " +
                            kEndedStates));
  static const std::string sql =
      columns.select(" FROM trials t JOIN experiments e ON e.id = t.experiment_id WHERE e.id = $1");
  return columns.read(pool.query(sql, id));
}

Result<std::vector<KeepCheckpoint>> list_keep_checkpoints(Pool& pool, ExperimentId id) {
  using K = KeepCheckpoint;
  static const Columns<K> columns(
      column<&K::uuid>("c.uuid"), column<&K::trial>("c.trial_id"), column<&K::steps>("c.steps_completed"),
      column<&K::metric>("v.searcher_metric"), column<&K::damaged>("c.state = 'ERROR'"));
  static const std::string sql = columns.select(
      " FROM checkpoints c JOIN trials t ON t.id = c.trial_id LEFT JOIN metrics v ON"
      " v.trial_id = c.trial_id AND v.grp = 'validation' AND NOT v.archived"
      " AND v.steps_completed = c.steps_completed"
      " JOIN experiments e ON e.id = t.experiment_id WHERE t.experiment_id = $1 AND NOT e.detached"
      " AND c.state IN ('COMPLETED', 'ERROR') AND NOT c.deleting"
      " ORDER BY c.trial_id, c.steps_completed, c.uuid");
  return columns.read(pool.query(sql, id));
}

Result<std::vector<ExperimentId>> experiments_with_checkpoints(Pool& pool) {
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT DISTINCT t.experiment_id FROM checkpoints c JOIN trials t ON t.id ="
                        " c.trial_id WHERE c.state IN ('COMPLETED', 'ERROR')"));
  return rows.column<ExperimentId>();
}

Result<std::vector<ExperimentId>> experiments_with_checkpoints(Pool& pool,
                                                               const std::set<ExperimentId>& among) {
  std::vector<std::int64_t> asked;
  for (const ExperimentId id : among) asked.push_back(id.value);
  TRY_ASSIGN(
      const Rows rows,
      pool.query(
          "SELECT id FROM unnest($1::bigint[]) AS id WHERE EXISTS (SELECT FROM checkpoints c JOIN trials t"
          " ON t.id = c.trial_id WHERE t.experiment_id = id AND c.state IN ('COMPLETED', 'ERROR'))",
          asked));
  return rows.column<ExperimentId>();
}

/// The query of start_checkpoints().
static std::string starts_sql() {
  return "SELECT coalesce(e.config->'searcher'->>'source_checkpoint_uuid', t.latest_checkpoint, '')"
         " FROM experiments e LEFT JOIN trials t ON t.id = (e.config->'searcher'->>'source_trial_id')::bigint"
         " WHERE e.state NOT IN " +
         kEndedStates + " UNION SELECT checkpoint_uuid FROM model_versions";
}

Result<std::set<CheckpointId>> start_checkpoints(Pool& pool) {
  static const std::string sql = starts_sql();
  TRY_ASSIGN(const Rows rows, pool.query(sql));
  const auto uuids = rows.column<CheckpointId>();
  return std::set<CheckpointId>(uuids.begin(), uuids.end());
}

namespace {

/// Locks checkpoints in the common lock order (locks.h), and the summaries that the triggers will update.
Status lock_checkpoints(Connection& connection, const std::vector<CheckpointId>& uuids) {
  TRY(connection.query("SELECT FROM checkpoints WHERE uuid = ANY ($1) ORDER BY uuid FOR UPDATE",
                       texts(uuids)));
  TRY(connection.query(
      "SELECT FROM experiment_summaries WHERE experiment_id = ANY (ARRAY(SELECT t.experiment_id FROM"
      " checkpoints c JOIN trials t ON t.id = c.trial_id WHERE c.uuid = ANY ($1)))"
      " ORDER BY experiment_id FOR NO KEY UPDATE",
      texts(uuids)));
  return {};
}

}  // namespace

Status lock_checkpoints_of(Connection& connection, ExperimentId id) {
  TRY(connection.query(
      "SELECT FROM checkpoints c JOIN trials t ON t.id = c.trial_id WHERE t.experiment_id = $1"
      " ORDER BY c.uuid FOR UPDATE OF c",
      id));
  return {};
}

Result<std::vector<CheckpointId>> mark_for_removal(Pool& pool, const std::vector<CheckpointId>& uuids,
                                                   bool whole) {
  std::vector<CheckpointId> marked;
  const Status done = pool.in_transaction([&](Connection& connection) -> Status {
    // Lock before looking, as add_model_version() does: no checkpoint is registered in between.
    TRY(lock_checkpoints(connection, uuids));
    static const std::string sql =
        "UPDATE checkpoints c SET deleting = deleting OR $2, state = 'PARTIALLY_DELETED'"
        " WHERE uuid = ANY ($1) AND state <> 'DELETED' AND uuid NOT IN (" +
        starts_sql() +
        ") AND NOT EXISTS (SELECT FROM trials t WHERE t.id = c.trial_id"
        " AND t.latest_checkpoint = c.uuid AND t.state NOT IN " +
        kEndedStates + ") RETURNING uuid";
    TRY_ASSIGN(const Rows rows, connection.query(sql, texts(uuids), whole));
    marked = rows.column<CheckpointId>();
    return {};
  });
  TRY(done);
  return marked;
}

Status mark_all_for_removal(Pool& pool, ExperimentId id) {
  // Terminal states are final, so this check needs no lock.
  static const std::string sql = "SELECT state IN " + kEndedStates + " FROM experiments WHERE id = $1";
  TRY_ASSIGN(const Rows ended, pool.query(sql, id));
  if (ended.empty()) return fail(Code::kNotFound, "experiment " + std::to_string(id.value) + " not found");
  if (!ended[0].next<bool>()) {
    return fail(Code::kFailedPrecondition, "experiment " + std::to_string(id.value) + " has not ended");
  }
  return pool.in_transaction([&](Connection& connection) -> Status {
    TRY(lock_checkpoints_of(connection, id));
    // Behind the lock, as in mark_for_removal(): no checkpoint is registered in between.
    TRY_ASSIGN(const Rows registered,
               connection.query("SELECT c.uuid FROM model_versions v JOIN checkpoints c ON c.uuid ="
                                " v.checkpoint_uuid JOIN trials t ON t.id = c.trial_id"
                                " WHERE t.experiment_id = $1 LIMIT 1",
                                id));
    if (!registered.empty()) {
      return fail(Code::kFailedPrecondition,
                  "checkpoint " + registered[0].next<std::string>() +
                      " is a version of a registered model; delete the version first");
    }
    TRY(connection.query(
        "UPDATE checkpoints c SET deleting = true, state = 'PARTIALLY_DELETED' FROM trials t WHERE"
        " t.id = c.trial_id AND t.experiment_id = $1 AND c.state <> 'DELETED'",
        id));
    return {};
  });
}

Result<std::vector<Marked>> marked_for_removal(Pool& pool, const CheckpointId& after, int limit) {
  return read_marked(pool, "c.uuid > $1 ORDER BY c.uuid LIMIT $2", after, limit);
}
Result<std::vector<Marked>> marked_among(Pool& pool, const std::vector<CheckpointId>& uuids) {
  return read_marked(pool, "c.uuid = ANY ($1)", texts(uuids));
}
Result<std::vector<Marked>> marked_of(Pool& pool, ExperimentId id) {
  return read_marked(pool, "t.experiment_id = $1", id);
}

Status set_removed(Pool& pool, const std::vector<CheckpointId>& uuids) {
  return pool.in_transaction([&](Connection& connection) -> Status {
    TRY(lock_checkpoints(connection, uuids));
    // `deleting` guards against a checkpoint that was deleted by a concurrent pass.
    TRY(connection.query(
        "UPDATE checkpoints SET deleting = false, state = 'DELETED', resources = '{}', size = 0"
        " WHERE uuid = ANY ($1) AND deleting",
        texts(uuids)));
    return {};
  });
}

Result<std::optional<Marked>> storage_of(Pool& pool, ExperimentId id) {
  TRY_ASSIGN(auto found, open_storages(marked_columns().read(pool.query(
                             "SELECT '', e.id, e.config->'checkpoint_storage', coalesce((SELECT "
                             "a.parts->0->>'agent' FROM trials t"
                             " JOIN allocations a ON a.trial_id = t.id WHERE t.experiment_id = e.id"
                             " ORDER BY a.started DESC LIMIT 1), '') FROM experiments e WHERE e.id = $1"
                             " AND e.config->>'checkpoint_storage' IS NOT NULL",
                             id))));
  if (found.empty()) return std::optional<Marked>();
  return std::optional(std::move(found.front()));
}

Result<std::vector<Marked>> storages_in_use(Pool& pool, int limit) {
  // Grouped by the text of the storage; its newest experiment stands for all others.
  return open_storages(marked_columns().read(
      pool.query("SELECT '', s.id, storage::json, coalesce((SELECT a.parts->0->>'agent' FROM trials t"
                 " JOIN allocations a ON a.trial_id = t.id WHERE t.experiment_id = s.id"
                 " ORDER BY a.started DESC LIMIT 1), '') FROM (SELECT max(id) AS id,"
                 " config->>'checkpoint_storage' AS storage FROM experiments GROUP BY 2"
                 " ORDER BY 1 DESC LIMIT $1) s WHERE storage IS NOT NULL",
                 limit)));
}

Result<std::vector<std::string>> orphans_among(Pool& pool, const std::vector<OnDisk>& found) {
  std::vector<std::string> names;
  std::vector<std::int64_t> ids;
  for (const OnDisk& one : found) {
    names.push_back(one.name);
    if (one.ours) ids.push_back(one.trial.value);
  }
  // Read trials before checkpoints: a run that has been superseded at this point can report nothing more, so
  // a missing row stays missing.
  TRY_ASSIGN(const Rows last, pool.query("SELECT last_trial FROM cluster"));
  const std::int64_t last_deleted = last.empty() ? 0 : last[0].next<std::int64_t>();
  static const std::string sql =
      "SELECT id, run, state IN " + kEndedStates + " FROM trials WHERE id = ANY ($1)";
  TRY_ASSIGN(const Rows trials, pool.query(sql, ids));
  std::map<TrialId, std::pair<RunNumber, bool>> runs;
  for (Rows::Row row : trials) {
    auto& [run, ended] = runs[row.next<TrialId>()];
    row.into(run, ended);
  }
  TRY_ASSIGN(const Rows rows, pool.query("SELECT uuid, state FROM checkpoints WHERE uuid = ANY ($1)", names));
  std::map<std::string, std::string> states;
  for (Rows::Row row : rows) row.into(states[row.next<std::string>()]);
  std::vector<std::string> orphans;
  for (const OnDisk& one : found) {
    const auto state = states.find(one.name);
    const auto trial = runs.find(one.trial);
    // An unknown trial was deleted, unless its id is higher than any that was: then this database is older
    // than the storage (a restored backup), and the files must stay.
    const bool over = trial == runs.end() ? one.trial.value <= last_deleted
                                          : trial->second.second || trial->second.first > one.run;
    const bool orphan = state != states.end() ? state->second == "DELETED" : one.ours && over;
    if (orphan) orphans.push_back(one.name);
  }
  return orphans;
}

}  // namespace det::db
