// Owns ModelService: the model registry. Its rows, and what a registered checkpoint is protected from: db/registry.h.
#pragma once

#include "det/v1/model.grpc.pb.h"
#include "master/api/unary.h"
#include "master/db/registry.h"

namespace det::api {

class ModelService final : public v1::ModelService::CallbackService {
 public:
  explicit ModelService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* GetModels(grpc::CallbackServerContext* call,
                                      const v1::GetModelsRequest* request,
                                      v1::GetModelsResponse* response) override;
  grpc::ServerUnaryReactor* GetModelLabels(grpc::CallbackServerContext* call,
                                           const v1::GetModelLabelsRequest* request,
                                           v1::GetModelLabelsResponse* response) override;
  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* call,
                                     const v1::GetModelRequest* request,
                                     v1::GetModelResponse* response) override;
  grpc::ServerUnaryReactor* PostModel(grpc::CallbackServerContext* call,
                                      const v1::PostModelRequest* request,
                                      v1::PostModelResponse* response) override;
  grpc::ServerUnaryReactor* PatchModel(grpc::CallbackServerContext* call,
                                       const v1::PatchModelRequest* request,
                                       v1::PatchModelResponse* response) override;
  grpc::ServerUnaryReactor* ArchiveModel(grpc::CallbackServerContext* call,
                                         const v1::ArchiveModelRequest* request,
                                         v1::ArchiveModelResponse* response) override;
  grpc::ServerUnaryReactor* UnarchiveModel(grpc::CallbackServerContext* call,
                                           const v1::UnarchiveModelRequest* request,
                                           v1::UnarchiveModelResponse* response) override;
  grpc::ServerUnaryReactor* MoveModel(grpc::CallbackServerContext* call,
                                      const v1::MoveModelRequest* request,
                                      v1::MoveModelResponse* response) override;
  grpc::ServerUnaryReactor* DeleteModel(grpc::CallbackServerContext* call,
                                        const v1::DeleteModelRequest* request,
                                        v1::DeleteModelResponse* response) override;
  grpc::ServerUnaryReactor* GetModelVersions(grpc::CallbackServerContext* call,
                                             const v1::GetModelVersionsRequest* request,
                                             v1::GetModelVersionsResponse* response) override;
  grpc::ServerUnaryReactor* GetModelVersion(grpc::CallbackServerContext* call,
                                            const v1::GetModelVersionRequest* request,
                                            v1::GetModelVersionResponse* response) override;
  grpc::ServerUnaryReactor* PostModelVersion(grpc::CallbackServerContext* call,
                                             const v1::PostModelVersionRequest* request,
                                             v1::PostModelVersionResponse* response) override;
  grpc::ServerUnaryReactor* PatchModelVersion(grpc::CallbackServerContext* call,
                                              const v1::PatchModelVersionRequest* request,
                                              v1::PatchModelVersionResponse* response) override;
  grpc::ServerUnaryReactor* DeleteModelVersion(grpc::CallbackServerContext* call,
                                               const v1::DeleteModelVersionRequest* request,
                                               v1::DeleteModelVersionResponse* response) override;

 private:
  Status list(const Caller& caller, const v1::GetModelsRequest& request, v1::GetModelsResponse* response) const;
  Status post(const Caller& caller, const v1::PostModelRequest& request, v1::PostModelResponse* response) const;
  Status patch(const Caller& caller, const v1::PatchModelRequest& request, v1::PatchModelResponse* response) const;
  /// Where a model goes: the number, or the workspace of the name; nothing when neither is given. The caller may edit
  /// there.
  Result<std::optional<std::int64_t>> workspace_of(const Caller& caller, std::int64_t id, const std::string& name) const;
  Status show(const std::string& model, v1::Model* out) const;
  /// With their checkpoints, as far as the caller may look at them.
  Status show(const Caller& caller, const std::string& model, const std::vector<db::ModelVersionRow>& rows,
              google::protobuf::RepeatedPtrField<v1::ModelVersion>* out) const;
  Status show(const Caller& caller, const std::string& model, std::int64_t version, v1::ModelVersion* out) const;
  const Context& context_;
};

}  // namespace det::api
