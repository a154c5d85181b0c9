// Rows of the model registry: models and their versions. A checkpoint that is a version is protected from
// deletion.
#pragma once

#include "master/db/queries/page.h"

namespace det::db {

/// One registered model.
struct ModelRow {
  std::int64_t id = 0;
  std::string name, description, notes;
  std::string metadata;  ///< JSON object.
  std::vector<std::string> labels;
  std::int64_t workspace = 1;
  UserId owner;
  std::string username;  ///< Name of the owner.
  bool archived = false;
  /// Versions that exist; deleted ones do not count.
  std::int64_t num_versions = 0;
  WallTime created, changed;
};
/// Sort keys of list_models().
enum class ModelSort { kId, kName, kDescription, kCreated, kChanged, kVersions, kWorkspace };
/// Filter of list_models(). Empty members do not filter.
struct ModelFilter {
  Visible visible;
  std::string name, description;    ///< Substrings, case-insensitive.
  std::vector<std::string> labels;  ///< All of these.
  std::optional<bool> archived;
  std::vector<std::string> users;  ///< Owned by any of these.
  std::vector<std::int64_t> user_ids;
  /// Any of these.
  std::vector<std::int64_t> workspaces;
  std::vector<std::string> workspace_names;
  std::int64_t id = 0;  ///< 0: any.
  ModelSort sort = ModelSort::kId;
  Window window;
};
/// Lists models, one page at a time.
Result<Page<ModelRow>> list_models(Pool& pool, const ModelFilter& filter);
/// Returns a model by name or decimal id, as all functions below. kNotFound.
Result<ModelRow> get_model(Pool& pool, const std::string& model);
/// Lists labels in use, most frequent first. Unset `workspace`: all workspaces.
Result<std::vector<std::string>> list_model_labels(Pool& pool, std::optional<std::int64_t> workspace,
                                                   const Visible& visible);
/// Creates a model. Uses name, description, notes, metadata, labels, workspace and owner of `row`.
/// kAlreadyExists: the name is taken.
Status create_model(Pool& pool, const ModelRow& row);
/// Changes to a model. Unset members keep their value.
struct ModelPatch {
  std::optional<std::string> name, description, notes, metadata;
  std::optional<std::vector<std::string>> labels;
  std::optional<std::int64_t> workspace;
};
/// Applies a patch. Idempotent. Errors: kNotFound; kAlreadyExists; kFailedPrecondition (the model is
/// archived).
Status patch_model(Pool& pool, const std::string& model, const ModelPatch& patch);
/// Archives or unarchives a model. Idempotent. kNotFound.
Status archive_model(Pool& pool, const std::string& model, bool archived);
/// Deletes a model with its versions. kNotFound.
Status delete_model(Pool& pool, const std::string& model);

/// One version of a model: a checkpoint with a description.
struct ModelVersionRow {
  /// `version` counts from 1 within the model and is never reused.
  std::int64_t id = 0, version = 0;
  CheckpointId checkpoint;
  std::string name, comment, notes;
  std::string metadata;  ///< JSON object.
  std::vector<std::string> labels;
  UserId owner;
  /// Name of the owner.
  std::string username;
  WallTime created, changed;
};
/// Lists the versions of a model by number. Empty for an unknown model.
Result<Page<ModelVersionRow>> list_model_versions(Pool& pool, const std::string& model, const Window& window);
/// Returns one version. kNotFound.
Result<ModelVersionRow> get_model_version(Pool& pool, const std::string& model, std::int64_t version);
/// Registers a checkpoint as the next version of a model and returns its number. Uses name, comment, notes,
/// metadata, labels and owner of `row`. Errors: kNotFound (model or checkpoint); kFailedPrecondition (the
/// model is archived, or the checkpoint is not complete).
Result<std::int64_t> add_model_version(Pool& pool, const std::string& model, const ModelVersionRow& row);
/// Changes to a version. Unset members keep their value.
struct ModelVersionPatch {
  std::optional<std::string> name, comment, notes, metadata;
  std::optional<std::vector<std::string>> labels;
};
/// Applies a patch. Idempotent. Errors: kNotFound; kFailedPrecondition (the model is archived).
Status patch_model_version(Pool& pool, const std::string& model, std::int64_t version,
                           const ModelVersionPatch& patch);
/// Deletes a version; its number is not reused. Errors: kNotFound; kFailedPrecondition (the model is
/// archived).
Status delete_model_version(Pool& pool, const std::string& model, std::int64_t version);

/// A checkpoint that is a version of a model and must not be deleted. Code that deletes checkpoints must
/// first lock their rows (FOR UPDATE), as add_model_version() does, so that none is registered in between.
struct Registered {
  CheckpointId checkpoint;
  std::string model;
  std::int64_t version = 0;
};
/// Returns the registered ones among `checkpoints`.
Result<std::vector<Registered>> registered(Pool& pool, const std::vector<std::string>& checkpoints);
/// Returns the registered checkpoints of an experiment.
Result<std::vector<Registered>> registered(Pool& pool, ExperimentId experiment);
/// Fails with kFailedPrecondition, naming the first entry, unless `registered` is empty.
Status check_unregistered(const std::vector<Registered>& registered);

}  // namespace det::db
