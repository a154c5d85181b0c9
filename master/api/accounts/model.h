// ModelService: the model registry. Rows, and the protection of registered checkpoints, are in db/registry.h.
#pragma once

#include "det/v1/model.pb.h"
#include "master/api/service.h"
#include "master/db/queries/model_registry.h"

namespace det::api {

/// A model is a named list of versions; each version refers to a checkpoint, which cannot be deleted then.
class ModelService final : public Service {
 public:
  explicit ModelService(const Context& context);
  /// Lists models that the caller may see, paged.
  Status GetModels(const Caller& caller, const v1::GetModelsRequest& request,
                   v1::GetModelsResponse* response);
  /// Lists the labels of visible models.
  Status GetModelLabels(const Caller& caller, const v1::GetModelLabelsRequest& request,
                        v1::GetModelLabelsResponse* response);
  /// Returns a model by name or number. Errors: kNotFound.
  Status GetModel(const Caller& caller, const v1::GetModelRequest& request, v1::GetModelResponse* response);
  /// Creates a model in a workspace (default: the default workspace). Errors: kAlreadyExists;
  /// kInvalidArgument; kFailedPrecondition for an archived workspace.
  Status PostModel(const Caller& caller, const v1::PostModelRequest& request,
                   v1::PostModelResponse* response);
  /// Changes the given fields, including the workspace. Errors: kNotFound; kFailedPrecondition for an
  /// archived model.
  Status PatchModel(const Caller& caller, const v1::PatchModelRequest& request,
                    v1::PatchModelResponse* response);
  /// Archives a model: it cannot be changed until it is unarchived.
  Status ArchiveModel(const Caller& caller, const v1::ArchiveModelRequest& request,
                      v1::ArchiveModelResponse* response);
  /// Inverse of ArchiveModel.
  Status UnarchiveModel(const Caller& caller, const v1::UnarchiveModelRequest& request,
                        v1::UnarchiveModelResponse* response);
  /// Moves a model to another workspace. Errors: kNotFound; kInvalidArgument without a destination.
  Status MoveModel(const Caller& caller, const v1::MoveModelRequest& request,
                   v1::MoveModelResponse* response);
  /// Deletes a model and its versions. Their checkpoints are kept and no longer protected.
  Status DeleteModel(const Caller& caller, const v1::DeleteModelRequest& request,
                     v1::DeleteModelResponse* response);
  /// Lists the versions of a model, newest first by default.
  Status GetModelVersions(const Caller& caller, const v1::GetModelVersionsRequest& request,
                          v1::GetModelVersionsResponse* response);
  /// Returns one version. Errors: kNotFound.
  Status GetModelVersion(const Caller& caller, const v1::GetModelVersionRequest& request,
                         v1::GetModelVersionResponse* response);
  /// Registers a completed checkpoint as the next version. Errors: kNotFound; kInvalidArgument.
  Status PostModelVersion(const Caller& caller, const v1::PostModelVersionRequest& request,
                          v1::PostModelVersionResponse* response);
  /// Changes the given fields of a version. Errors: kNotFound.
  Status PatchModelVersion(const Caller& caller, const v1::PatchModelVersionRequest& request,
                           v1::PatchModelVersionResponse* response);
  /// Deletes a version. Its number is not used again.
  Status DeleteModelVersion(const Caller& caller, const v1::DeleteModelVersionRequest& request,
                            v1::DeleteModelVersionResponse* response);

 private:
  /// Resolves a workspace by id or name and checks that the caller may edit in it. Returns nothing if neither
  /// is given. Errors: kNotFound; kPermissionDenied; kFailedPrecondition for an archived workspace.
  Result<std::optional<std::int64_t>> workspace_of(const Caller& caller, std::int64_t id,
                                                   const std::string& name) const;
  /// Loads a model into a response.
  Status show(const std::string& model, v1::Model* out) const;
  /// Loads versions with their checkpoints. Training details of checkpoints that the caller may not see are
  /// left out.
  Status show(const Caller& caller, const std::string& model, const std::vector<db::ModelVersionRow>& rows,
              google::protobuf::RepeatedPtrField<v1::ModelVersion>* out) const;
  Status show(const Caller& caller, const std::string& model, std::int64_t version,
              v1::ModelVersion* out) const;
};

}  // namespace det::api
