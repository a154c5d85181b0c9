// Owns the rows of the model registry: models, their versions, and which checkpoints are protected because
// they are one.
#pragma once

#include "master/db/queries_checkpoint.h"

namespace det::db {

struct ModelRow {
  std::int64_t id = 0;
  std::string name, description, notes;
  std::string metadata;  ///< JSON object
  std::vector<std::string> labels;
  std::int64_t workspace = 1;
  UserId owner;
  std::string username;  ///< of the owner
  bool archived = false;
  std::int64_t num_versions = 0;
  WallTime created, changed;
};
enum class ModelSort { kId, kName, kDescription, kCreated, kChanged, kVersions, kWorkspace };
/// What is empty does not filter.
struct ModelFilter {
  std::optional<std::vector<std::int64_t>> visible;  ///< the workspaces that may be looked into; nothing: all
  std::string name, description;                     ///< contained, in any case
  std::vector<std::string> labels;                   ///< all of them
  std::optional<bool> archived;
  std::vector<std::string> users;  ///< owned by any of these
  std::vector<std::int64_t> user_ids;
  std::vector<std::int64_t> workspaces;
  std::vector<std::string> workspace_names;
  std::int64_t id = 0;
  ModelSort sort = ModelSort::kId;
  Window window;
};
Result<Page<ModelRow>> list_models(Pool& pool, const ModelFilter& filter);
/// By name or by number, as all below. kNotFound.
Result<ModelRow> get_model(Pool& pool, const std::string& model);
/// Labels in use in the workspaces that may be looked into (nothing: all), the most used first.
Result<std::vector<std::string>> list_model_labels(Pool& pool, std::optional<std::int64_t> workspace,
                                                   const std::optional<std::vector<std::int64_t>>& visible);
/// Takes of the row what a user says: name, description, notes, metadata, labels, workspace, owner.
/// kAlreadyExists.
Status create_model(Pool& pool, const ModelRow& row);
/// What is absent stays.
struct ModelPatch {
  std::optional<std::string> name, description, notes, metadata;
  std::optional<std::vector<std::string>> labels;
  std::optional<std::int64_t> workspace;
};
/// kNotFound; kAlreadyExists; kFailedPrecondition for an archived model. Repeats safely.
Status patch_model(Pool& pool, const std::string& model, const ModelPatch& patch);
/// kNotFound. Repeats safely.
Status archive_model(Pool& pool, const std::string& model, bool archived);
/// With its versions. kNotFound.
Status delete_model(Pool& pool, const std::string& model);

struct ModelVersionRow {
  std::int64_t id = 0, version = 0;
  CheckpointId checkpoint;
  std::string name, comment, notes;
  std::string metadata;  ///< JSON object
  std::vector<std::string> labels;
  UserId owner;
  std::string username;
  WallTime created, changed;
};
/// In order of the number.
Result<Page<ModelVersionRow>> list_model_versions(Pool& pool, const std::string& model, const Window& window);
/// kNotFound.
Result<ModelVersionRow> get_model_version(Pool& pool, const std::string& model, std::int64_t version);
/// Gives the next number, which is returned. Takes of the row what a user says. kNotFound;
/// kFailedPrecondition: the model is archived, or the checkpoint is not complete.
Result<std::int64_t> add_model_version(Pool& pool, const std::string& model, const ModelVersionRow& row);
struct ModelVersionPatch {
  std::optional<std::string> name, comment, notes, metadata;
  std::optional<std::vector<std::string>> labels;
};
/// kNotFound; kFailedPrecondition for an archived model. Repeats safely.
Status patch_model_version(Pool& pool, const std::string& model, std::int64_t version,
                           const ModelVersionPatch& patch);
/// kNotFound; kFailedPrecondition for an archived model.
Status delete_model_version(Pool& pool, const std::string& model, std::int64_t version);

/// A checkpoint that is a version of a model. Whoever deletes checkpoints leaves these out: lock their rows
/// first (FOR UPDATE), as add_model_version() does, so that none is registered meanwhile.
struct Registered {
  CheckpointId checkpoint;
  std::string model;
  std::int64_t version = 0;
};
/// Of `checkpoints`, those that are.
Result<std::vector<Registered>> registered(Pool& pool, const std::vector<std::string>& checkpoints);
/// Of an experiment's checkpoints, those that are.
Result<std::vector<Registered>> registered(Pool& pool, ExperimentId experiment);
/// kFailedPrecondition, naming the first; fine when there is none.
Status check_unregistered(const std::vector<Registered>& registered);

}  // namespace det::db
