#include "master/db/queries/model_registry.h"

namespace det::db {
namespace {

/// $1 is a name or an id. No conflict: the API rejects names that are numbers.
const std::string kThisModel = "(m.name = $1 OR m.id::text = $1)";
const std::string kVersionTables =
    " FROM model_versions v JOIN models m ON m.id = v.model_id JOIN users u ON u.id = v.owner_id WHERE " +
    kThisModel;

const Columns<ModelRow>& model_columns() {
  using M = ModelRow;
  static const Columns<M> columns(
      column<&M::id>("m.id"), column<&M::name>("m.name"), column<&M::description>("m.description"),
      column<&M::notes>("m.notes"), column<&M::metadata>("m.metadata"), column<&M::labels>("m.labels"),
      column<&M::workspace>("m.workspace_id"), column<&M::owner>("m.owner_id"),
      column<&M::username>("u.name"), column<&M::archived>("m.archived"),
      column<&M::num_versions>("(SELECT count(*) FROM model_versions v WHERE v.model_id = m.id)"),
      column<&M::created>("m.created"), column<&M::changed>("m.changed"));
  return columns;
}

const Columns<ModelVersionRow>& version_columns() {
  using V = ModelVersionRow;
  static const Columns<V> columns(
      column<&V::id>("v.id"), column<&V::version>("v.version"), column<&V::checkpoint>("v.checkpoint_uuid"),
      column<&V::name>("v.name"), column<&V::comment>("v.comment"), column<&V::notes>("v.notes"),
      column<&V::metadata>("v.metadata"), column<&V::labels>("v.labels"), column<&V::owner>("v.owner_id"),
      column<&V::username>("u.name"), column<&V::created>("v.created"), column<&V::changed>("v.changed"));
  return columns;
}

std::string model_name(const std::string& model) { return "model \"" + model + "\""; }
std::string version_name(const std::string& model, std::int64_t version) {
  return "version " + std::to_string(version) + " of " + model_name(model);
}
tl::unexpected<Error> is_archived(const std::string& model) {
  return fail(Code::kFailedPrecondition, model_name(model) + " is archived; unarchive it first");
}
/// Replaces the error of the unique constraint by one that names the model.
Status name_taken(Status done, const std::optional<std::string>& name) {
  if (done || done.error().code != Code::kAlreadyExists) return done;
  return fail(Code::kAlreadyExists,
              "a model named \"" + name.value_or("") + "\" exists already; choose another name");
}

/// Keys of ORDER BY, indexed by ModelSort.
constexpr const char* kModelKeys[] = {
    "m.id",         "lower(m.name)", "lower(m.description)",
    "m.created",    "m.changed",     "(SELECT count(*) FROM model_versions v WHERE v.model_id = m.id)",
    "lower(w.name)"};
static_assert(std::size(kModelKeys) == static_cast<std::size_t>(ModelSort::kWorkspace) + 1);

/// Locks a model and returns its id. Errors: kNotFound; kFailedPrecondition (it is archived).
Result<std::int64_t> lock_open(Connection& connection, const std::string& model) {
  static const std::string sql = "SELECT m.id, m.archived FROM models m WHERE " + kThisModel + " FOR UPDATE";
  TRY_ASSIGN(const Rows rows, connection.query(sql, model));
  if (rows.empty()) return fail(Code::kNotFound, model_name(model) + " not found");
  std::int64_t id = 0;
  bool archived = false;
  rows[0].into(id, archived);
  if (archived) return is_archived(model);
  return id;
}

/// Runs `work` on a model that is not archived, in one transaction.
Status change(Pool& pool, const std::string& model,
              const std::function<Status(Connection&, std::int64_t id)>& work) {
  return pool.in_transaction([&](Connection& connection) -> Status {
    TRY_ASSIGN(const std::int64_t id, lock_open(connection, model));
    return work(connection, id);
  });
}

const Columns<Registered>& registered_columns() {
  static const Columns<Registered> columns(column<&Registered::checkpoint>("v.checkpoint_uuid"),
                                           column<&Registered::model>("m.name"),
                                           column<&Registered::version>("v.version"));
  return columns;
}
const std::string kRegistered = " FROM model_versions v JOIN models m ON m.id = v.model_id";

}  // namespace

Result<Page<ModelRow>> list_models(Pool& pool, const ModelFilter& f) {
  static const std::string from =
      " FROM models m JOIN users u ON u.id = m.owner_id JOIN workspaces w ON w.id = m.workspace_id"
      " WHERE ($1::bigint[] IS NULL OR m.workspace_id = ANY ($1)) AND strpos(lower(m.name), lower($2)) > 0"
      " AND strpos(lower(m.description), lower($3)) > 0 AND m.labels @> $4::text[]"
      " AND ($5::boolean IS NULL OR m.archived = $5) AND (cardinality($6::text[]) = 0 OR u.name = ANY ($6))"
      " AND (cardinality($7::bigint[]) = 0 OR u.id = ANY ($7))"
      " AND (cardinality($8::bigint[]) = 0 OR w.id = ANY ($8))"
      " AND (cardinality($9::text[]) = 0 OR w.name = ANY ($9)) AND ($10::bigint = 0 OR m.id = $10)";
  // The id breaks ties, so that pages do not overlap.
  const std::string way = direction(f.window);
  return list_page(pool, from, kModelKeys[static_cast<std::size_t>(f.sort)] + way + ", m.id" + way,
                   Params(f.visible, f.name, f.description, f.labels, f.archived, f.users, f.user_ids,
                          f.workspaces, f.workspace_names, f.id),
                   f.window, model_columns());
}

Result<ModelRow> get_model(Pool& pool, const std::string& model) {
  static const std::string sql =
      model_columns().select(" FROM models m JOIN users u ON u.id = m.owner_id WHERE " + kThisModel);
  return model_columns().one(pool.query(sql, model), model_name(model));
}

Result<std::vector<std::string>> list_model_labels(Pool& pool, std::optional<std::int64_t> workspace,
                                                   const Visible& visible) {
  TRY_ASSIGN(const Rows rows, pool.query("SELECT label FROM models m CROSS JOIN unnest(m.labels) label"
                                         " WHERE ($1::bigint IS NULL OR m.workspace_id = $1)"
                                         " AND ($2::bigint[] IS NULL OR m.workspace_id = ANY ($2))"
                                         " GROUP BY label ORDER BY count(*) DESC, label",
                                         workspace, visible));
  return rows.column<std::string>();
}

Status create_model(Pool& pool, const ModelRow& row) {
  const auto made = pool.query(
      "INSERT INTO models (name, description, notes, metadata, labels, workspace_id, owner_id)"
      " VALUES ($1, $2, $3, $4::json, $5, $6, $7)",
      row.name, row.description, row.notes, row.metadata, row.labels, row.workspace, row.owner);
  return name_taken(made ? Status() : tl::unexpected(made.error()), row.name);
}

Status patch_model(Pool& pool, const std::string& model, const ModelPatch& patch) {
  Status done = change(pool, model, [&](Connection& connection, std::int64_t id) -> Status {
    TRY(connection.query(
        "UPDATE models SET name = coalesce($2, name), description = coalesce($3, description),"
        " notes = coalesce($4, notes), metadata = coalesce($5::json, metadata),"
        " labels = coalesce($6, labels), workspace_id = coalesce($7, workspace_id), changed = now()"
        " WHERE id = $1",
        id, patch.name, patch.description, patch.notes, patch.metadata, patch.labels, patch.workspace));
    return {};
  });
  return name_taken(std::move(done), patch.name);
}

Status archive_model(Pool& pool, const std::string& model, bool archived) {
  static const std::string sql = "UPDATE models m SET archived = $2, changed = now() WHERE " + kThisModel;
  return found(pool.query(sql, model, archived), model_name(model));
}

Status delete_model(Pool& pool, const std::string& model) {
  static const std::string sql = "DELETE FROM models m WHERE " + kThisModel;
  return found(pool.query(sql, model), model_name(model));
}

Result<Page<ModelVersionRow>> list_model_versions(Pool& pool, const std::string& model,
                                                  const Window& window) {
  return list_page(pool, kVersionTables, "v.version" + direction(window), Params(model), window,
                   version_columns());
}

Result<ModelVersionRow> get_model_version(Pool& pool, const std::string& model, std::int64_t version) {
  static const std::string sql = version_columns().select(kVersionTables + " AND v.version = $2");
  return version_columns().one(pool.query(sql, model, version), version_name(model, version));
}

Result<std::int64_t> add_model_version(Pool& pool, const std::string& model, const ModelVersionRow& row) {
  std::int64_t version = 0;
  const Status done = change(pool, model, [&](Connection& connection, std::int64_t id) -> Status {
    // The lock excludes a concurrent mark_for_removal() of the checkpoint.
    TRY_ASSIGN(const Rows checkpoint,
               connection.query("SELECT state FROM checkpoints WHERE uuid = $1 FOR UPDATE", row.checkpoint));
    if (checkpoint.empty()) return fail(Code::kNotFound, "checkpoint " + row.checkpoint.value + " not found");
    if (checkpoint[0].next<std::string>() != "COMPLETED")
      return fail(Code::kFailedPrecondition, "checkpoint " + row.checkpoint.value + " is not complete");
    // last_version only grows, so that the number of a deleted version is not reused.
    TRY_ASSIGN(
        const Rows made,
        connection.query(
            "WITH next AS (UPDATE models SET last_version = last_version + 1, changed = now()"
            " WHERE id = $1 RETURNING last_version) INSERT INTO model_versions (model_id, version,"
            " checkpoint_uuid, name, comment, notes, metadata, labels, owner_id)"
            " SELECT $1, last_version, $2, $3, $4, $5, $6::json, $7, $8 FROM next"
            " RETURNING version",
            id, row.checkpoint, row.name, row.comment, row.notes, row.metadata, row.labels, row.owner));
    version = made[0].next<std::int64_t>();
    return {};
  });
  TRY(done);
  return version;
}

Status patch_model_version(Pool& pool, const std::string& model, std::int64_t version,
                           const ModelVersionPatch& patch) {
  return change(pool, model, [&](Connection& connection, std::int64_t id) -> Status {
    return found(connection.query(
                     "UPDATE model_versions SET name = coalesce($3, name), comment = coalesce($4, comment),"
                     " notes = coalesce($5, notes), metadata = coalesce($6::json, metadata),"
                     " labels = coalesce($7, labels), changed = now() WHERE model_id = $1 AND version = $2",
                     id, version, patch.name, patch.comment, patch.notes, patch.metadata, patch.labels),
                 version_name(model, version));
  });
}

Status delete_model_version(Pool& pool, const std::string& model, std::int64_t version) {
  return change(pool, model, [&](Connection& connection, std::int64_t id) -> Status {
    return found(
        connection.query("DELETE FROM model_versions WHERE model_id = $1 AND version = $2", id, version),
        version_name(model, version));
  });
}

Result<std::vector<Registered>> registered(Pool& pool, const std::vector<std::string>& checkpoints) {
  static const std::string sql =
      registered_columns().select(kRegistered + " WHERE v.checkpoint_uuid = ANY ($1) ORDER BY v.id");
  return registered_columns().read(pool.query(sql, checkpoints));
}

Result<std::vector<Registered>> registered(Pool& pool, ExperimentId experiment) {
  static const std::string sql = registered_columns().select(
      kRegistered +
      " JOIN checkpoints c ON c.uuid = v.checkpoint_uuid JOIN trials t ON t.id = c.trial_id"
      " WHERE t.experiment_id = $1 ORDER BY v.id");
  return registered_columns().read(pool.query(sql, experiment));
}

Status check_unregistered(const std::vector<Registered>& registered) {
  if (registered.empty()) return {};
  // Naming one is enough to act on.
  const Registered& one = registered.front();
  return fail(Code::kFailedPrecondition, "checkpoint " + one.checkpoint.value + " is version " +
                                             std::to_string(one.version) + " of " + model_name(one.model) +
                                             "; delete that version first");
}

}  // namespace det::db
