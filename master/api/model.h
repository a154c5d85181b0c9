// Owns ModelService: the model registry. Its rows, and what a registered checkpoint is protected from:
// db/registry.h.
#pragma once

#include "det/v1/model.pb.h"
#include "master/api/service.h"
#include "master/db/registry.h"

namespace det::api {

class ModelService final : public Service {
 public:
  explicit ModelService(const Context& context);
  Status GetModels(const Caller& caller, const v1::GetModelsRequest& request,
                   v1::GetModelsResponse* response);
  Status GetModelLabels(const Caller& caller, const v1::GetModelLabelsRequest& request,
                        v1::GetModelLabelsResponse* response);
  Status GetModel(const Caller& caller, const v1::GetModelRequest& request, v1::GetModelResponse* response);
  Status PostModel(const Caller& caller, const v1::PostModelRequest& request,
                   v1::PostModelResponse* response);
  Status PatchModel(const Caller& caller, const v1::PatchModelRequest& request,
                    v1::PatchModelResponse* response);
  Status ArchiveModel(const Caller& caller, const v1::ArchiveModelRequest& request,
                      v1::ArchiveModelResponse* response);
  Status UnarchiveModel(const Caller& caller, const v1::UnarchiveModelRequest& request,
                        v1::UnarchiveModelResponse* response);
  Status MoveModel(const Caller& caller, const v1::MoveModelRequest& request,
                   v1::MoveModelResponse* response);
  Status DeleteModel(const Caller& caller, const v1::DeleteModelRequest& request,
                     v1::DeleteModelResponse* response);
  Status GetModelVersions(const Caller& caller, const v1::GetModelVersionsRequest& request,
                          v1::GetModelVersionsResponse* response);
  Status GetModelVersion(const Caller& caller, const v1::GetModelVersionRequest& request,
                         v1::GetModelVersionResponse* response);
  Status PostModelVersion(const Caller& caller, const v1::PostModelVersionRequest& request,
                          v1::PostModelVersionResponse* response);
  Status PatchModelVersion(const Caller& caller, const v1::PatchModelVersionRequest& request,
                           v1::PatchModelVersionResponse* response);
  Status DeleteModelVersion(const Caller& caller, const v1::DeleteModelVersionRequest& request,
                            v1::DeleteModelVersionResponse* response);

 private:
  /// Where a model goes: the number, or the workspace of the name; nothing when neither is given. The caller
  /// may edit there.
  Result<std::optional<std::int64_t>> workspace_of(const Caller& caller, std::int64_t id,
                                                   const std::string& name) const;
  Status show(const std::string& model, v1::Model* out) const;
  /// With their checkpoints, as far as the caller may look at them.
  Status show(const Caller& caller, const std::string& model, const std::vector<db::ModelVersionRow>& rows,
              google::protobuf::RepeatedPtrField<v1::ModelVersion>* out) const;
  Status show(const Caller& caller, const std::string& model, std::int64_t version,
              v1::ModelVersion* out) const;
};

}  // namespace det::api
