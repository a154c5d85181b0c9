#include "master/db/queries/registry.h"

// $1 is a name or an id. No conflict: the API rejects names that are numbers.
#define DET_THIS_MODEL "(m.name = $1 OR m.id::text = $1)"
// Columns in the order of read_model().
#define DET_MODEL_COLUMNS                                                                           \
  "m.id, m.name, m.description, m.notes, m.metadata, m.labels, m.workspace_id, m.owner_id, u.name," \
  " m.archived, (SELECT count(*) FROM model_versions v WHERE v.model_id = m.id), m.created, m.changed"
// Filter of list_models(). The parameters are those of `params` there, in order.
#define DET_MODEL_FILTER                                                                                 \
  " FROM models m JOIN users u ON u.id = m.owner_id JOIN workspaces w ON w.id = m.workspace_id"          \
  " WHERE ($1::bigint[] IS NULL OR m.workspace_id = ANY ($1)) AND strpos(lower(m.name), lower($2)) > 0"  \
  " AND strpos(lower(m.description), lower($3)) > 0 AND m.labels @> $4::text[]"                          \
  " AND ($5::boolean IS NULL OR m.archived = $5) AND (cardinality($6::text[]) = 0 OR u.name = ANY ($6))" \
  " AND (cardinality($7::bigint[]) = 0 OR u.id = ANY ($7))"                                              \
  " AND (cardinality($8::bigint[]) = 0 OR w.id = ANY ($8))"                                              \
  " AND (cardinality($9::text[]) = 0 OR w.name = ANY ($9)) AND ($10::bigint = 0 OR m.id = $10)"
// Columns in the order of read_version().
#define DET_VERSION_COLUMNS                                                                            \
  "v.id, v.version, v.checkpoint_uuid, v.name, v.comment, v.notes, v.metadata, v.labels, v.owner_id, " \
  "u.name,"                                                                                            \
  " v.created, v.changed"
#define DET_VERSIONS \
  " FROM model_versions v JOIN models m ON m.id = v.model_id JOIN users u ON u.id = v.owner_id"

namespace det::db {
namespace {

tl::unexpected<Error> no_model(const std::string& model) {
  return fail(Code::kNotFound, "model \"" + model + "\" not found");
}
tl::unexpected<Error> no_version(const std::string& model, std::int64_t version) {
  return fail(Code::kNotFound,
              "version " + std::to_string(version) + " of model \"" + model + "\" not found");
}
tl::unexpected<Error> is_archived(const std::string& model) {
  return fail(Code::kFailedPrecondition, "model \"" + model + "\" is archived; unarchive it first");
}
/// Replaces the error of the unique constraint by one that names the model.
Status name_taken(Status done, const std::optional<std::string>& name) {
  if (done || done.error().code != Code::kAlreadyExists) return done;
  return fail(Code::kAlreadyExists,
              "a model named \"" + name.value_or("") + "\" exists already; choose another name");
}

ModelRow read_model(Rows::Row row) {
  ModelRow out;
  row.into(out.id, out.name, out.description, out.notes, out.metadata, out.labels, out.workspace, out.owner,
           out.username, out.archived, out.num_versions, out.created, out.changed);
  return out;
}
ModelVersionRow read_version(Rows::Row row) {
  ModelVersionRow out;
  row.into(out.id, out.version, out.checkpoint, out.name, out.comment, out.notes, out.metadata, out.labels,
           out.owner, out.username, out.created, out.changed);
  return out;
}

const char* sort_key(ModelSort sort) {
  switch (sort) {
    case ModelSort::kId:
      return "m.id";
    case ModelSort::kName:
      return "lower(m.name)";
    case ModelSort::kDescription:
      return "lower(m.description)";
    case ModelSort::kCreated:
      return "m.created";
    case ModelSort::kChanged:
      return "m.changed";
    case ModelSort::kVersions:
      return "(SELECT count(*) FROM model_versions v WHERE v.model_id = m.id)";
    case ModelSort::kWorkspace:
      return "lower(w.name)";
  }
  return "m.id";
}

/// Locks a model and returns its id. Errors: kNotFound; kFailedPrecondition (it is archived).
Result<std::int64_t> lock_open(Connection& connection, const std::string& model) {
  TRY_ASSIGN(
      const Rows rows,
      connection.query("SELECT m.id, m.archived FROM models m WHERE " DET_THIS_MODEL " FOR UPDATE", model));
  if (rows.empty()) return no_model(model);
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

Result<std::vector<Registered>> read_registered(const Result<Rows>& rows) {
  if (!rows) return tl::unexpected(rows.error());
  std::vector<Registered> out;
  for (int i = 0; i < rows->size(); ++i) {
    Registered& one = out.emplace_back();
    (*rows)[i].into(one.checkpoint, one.model, one.version);
  }
  return out;
}

}  // namespace

Result<Page<ModelRow>> list_models(Pool& pool, const ModelFilter& f) {
  // The count and the page share these parameters.
  Params params(f.visible, f.name, f.description, f.labels, f.archived, f.users, f.user_ids, f.workspaces,
                f.workspace_names, f.id);
  TRY_ASSIGN(const Rows counted, pool.run("SELECT count(*)" DET_MODEL_FILTER, params));
  Page<ModelRow> page;
  page.total = counted[0].next<std::int64_t>();
  const Span span = resolve(f.window, page.total);
  page.start = span.first;
  if (span.count == 0) return page;
  params.add(span.first);
  params.add(span.count);
  // The id breaks ties, so that pages do not overlap.
  const std::string way = f.window.descending ? " DESC" : " ASC";
  TRY_ASSIGN(const Rows rows,
             pool.run(("SELECT " DET_MODEL_COLUMNS DET_MODEL_FILTER " ORDER BY " +
                       std::string(sort_key(f.sort)) + way + ", m.id" + way + " OFFSET $11 LIMIT $12")
                          .c_str(),
                      params));
  for (int i = 0; i < rows.size(); ++i) page.rows.push_back(read_model(rows[i]));
  return page;
}

Result<ModelRow> get_model(Pool& pool, const std::string& model) {
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT " DET_MODEL_COLUMNS " FROM models m JOIN users u ON u.id = m.owner_id"
                        " WHERE " DET_THIS_MODEL,
                        model));
  if (rows.empty()) return no_model(model);
  return read_model(rows[0]);
}

Result<std::vector<std::string>> list_model_labels(Pool& pool, std::optional<std::int64_t> workspace,
                                                   const std::optional<std::vector<std::int64_t>>& visible) {
  TRY_ASSIGN(const Rows rows, pool.query("SELECT label FROM models m CROSS JOIN unnest(m.labels) label"
                                         " WHERE ($1::bigint IS NULL OR m.workspace_id = $1)"
                                         " AND ($2::bigint[] IS NULL OR m.workspace_id = ANY ($2))"
                                         " GROUP BY label ORDER BY count(*) DESC, label",
                                         workspace, visible));
  std::vector<std::string> labels;
  for (int i = 0; i < rows.size(); ++i) labels.push_back(rows[i].next<std::string>());
  return labels;
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
  TRY_ASSIGN(const Rows rows,
             pool.query("UPDATE models m SET archived = $2, changed = now() WHERE " DET_THIS_MODEL, model,
                        archived));
  if (rows.affected() == 0) return no_model(model);
  return {};
}

Status delete_model(Pool& pool, const std::string& model) {
  TRY_ASSIGN(const Rows rows, pool.query("DELETE FROM models m WHERE " DET_THIS_MODEL, model));
  if (rows.affected() == 0) return no_model(model);
  return {};
}

Result<Page<ModelVersionRow>> list_model_versions(Pool& pool, const std::string& model,
                                                  const Window& window) {
  TRY_ASSIGN(const Rows counted, pool.query("SELECT count(*)" DET_VERSIONS " WHERE " DET_THIS_MODEL, model));
  Page<ModelVersionRow> page;
  page.total = counted[0].next<std::int64_t>();
  const Span span = resolve(window, page.total);
  page.start = span.first;
  if (span.count == 0) return page;
  TRY_ASSIGN(
      const Rows rows,
      pool.query(window.descending ? "SELECT " DET_VERSION_COLUMNS DET_VERSIONS " WHERE " DET_THIS_MODEL
                                     " ORDER BY v.version DESC OFFSET $2 LIMIT $3"
                                   : "SELECT " DET_VERSION_COLUMNS DET_VERSIONS " WHERE " DET_THIS_MODEL
                                     " ORDER BY v.version OFFSET $2 LIMIT $3",
                 model, span.first, span.count));
  for (int i = 0; i < rows.size(); ++i) page.rows.push_back(read_version(rows[i]));
  return page;
}

Result<ModelVersionRow> get_model_version(Pool& pool, const std::string& model, std::int64_t version) {
  TRY_ASSIGN(const Rows rows, pool.query("SELECT " DET_VERSION_COLUMNS DET_VERSIONS " WHERE " DET_THIS_MODEL
                                         " AND v.version = $2",
                                         model, version));
  if (rows.empty()) return no_version(model, version);
  return read_version(rows[0]);
}

Result<std::int64_t> add_model_version(Pool& pool, const std::string& model, const ModelVersionRow& row) {
  std::int64_t version = 0;
  TRY(change(pool, model, [&](Connection& connection, std::int64_t id) -> Status {
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
  }));
  return version;
}

Status patch_model_version(Pool& pool, const std::string& model, std::int64_t version,
                           const ModelVersionPatch& patch) {
  return change(pool, model, [&](Connection& connection, std::int64_t id) -> Status {
    TRY_ASSIGN(const Rows rows,
               connection.query(
                   "UPDATE model_versions SET name = coalesce($3, name), comment = coalesce($4, comment),"
                   " notes = coalesce($5, notes), metadata = coalesce($6::json, metadata),"
                   " labels = coalesce($7, labels), changed = now() WHERE model_id = $1 AND version = $2",
                   id, version, patch.name, patch.comment, patch.notes, patch.metadata, patch.labels));
    if (rows.affected() == 0) return no_version(model, version);
    return {};
  });
}

Status delete_model_version(Pool& pool, const std::string& model, std::int64_t version) {
  return change(pool, model, [&](Connection& connection, std::int64_t id) -> Status {
    TRY_ASSIGN(
        const Rows rows,
        connection.query("DELETE FROM model_versions WHERE model_id = $1 AND version = $2", id, version));
    if (rows.affected() == 0) return no_version(model, version);
    return {};
  });
}

Result<std::vector<Registered>> registered(Pool& pool, const std::vector<std::string>& checkpoints) {
  return read_registered(
      pool.query("SELECT v.checkpoint_uuid, m.name, v.version FROM model_versions v JOIN models m"
                 " ON m.id = v.model_id WHERE v.checkpoint_uuid = ANY ($1) ORDER BY v.id",
                 checkpoints));
}

Result<std::vector<Registered>> registered(Pool& pool, ExperimentId experiment) {
  return read_registered(pool.query(
      "SELECT v.checkpoint_uuid, m.name, v.version FROM model_versions v JOIN models m ON m.id = v.model_id"
      " JOIN checkpoints c ON c.uuid = v.checkpoint_uuid JOIN trials t ON t.id = c.trial_id"
      " WHERE t.experiment_id = $1 ORDER BY v.id",
      experiment));
}

Status check_unregistered(const std::vector<Registered>& registered) {
  if (registered.empty()) return {};
  // Naming one is enough to act on.
  const Registered& one = registered.front();
  return fail(Code::kFailedPrecondition, "checkpoint " + one.checkpoint.value + " is version " +
                                             std::to_string(one.version) + " of model \"" + one.model +
                                             "\"; delete that version first");
}

}  // namespace det::db
