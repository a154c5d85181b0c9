// Owns ExperimentService: creating, reading and steering experiments.
#pragma once

#include "det/v1/experiment.grpc.pb.h"
#include "master/api/unary.h"

namespace det::api {

class ExperimentService final : public v1::ExperimentService::CallbackService {
 public:
  explicit ExperimentService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* CreateExperiment(grpc::CallbackServerContext* call,
                                             const v1::CreateExperimentRequest* request,
                                             v1::CreateExperimentResponse* response) override;
  grpc::ServerReadReactor<v1::UploadExperimentRequest>* UploadExperiment(
      grpc::CallbackServerContext* call, v1::CreateExperimentResponse* response) override;
  grpc::ServerUnaryReactor* GetExperiments(grpc::CallbackServerContext* call,
                                           const v1::GetExperimentsRequest* request,
                                           v1::GetExperimentsResponse* response) override;
  grpc::ServerUnaryReactor* GetExperiment(grpc::CallbackServerContext* call,
                                          const v1::GetExperimentRequest* request,
                                          v1::GetExperimentResponse* response) override;
  grpc::ServerUnaryReactor* GetExperimentTrials(grpc::CallbackServerContext* call,
                                                const v1::GetExperimentTrialsRequest* request,
                                                v1::GetExperimentTrialsResponse* response) override;
  grpc::ServerUnaryReactor* GetExperimentCheckpoints(grpc::CallbackServerContext* call,
                                                     const v1::GetExperimentCheckpointsRequest* request,
                                                     v1::GetExperimentCheckpointsResponse* response) override;
  grpc::ServerUnaryReactor* GetModelDef(grpc::CallbackServerContext* call,
                                        const v1::GetModelDefRequest* request,
                                        v1::GetModelDefResponse* response) override;
  grpc::ServerUnaryReactor* ActivateExperiment(grpc::CallbackServerContext* call,
                                               const v1::ExperimentActionRequest* request,
                                               v1::ExperimentActionResponse* response) override;
  grpc::ServerUnaryReactor* PauseExperiment(grpc::CallbackServerContext* call,
                                            const v1::ExperimentActionRequest* request,
                                            v1::ExperimentActionResponse* response) override;
  grpc::ServerUnaryReactor* CancelExperiment(grpc::CallbackServerContext* call,
                                             const v1::ExperimentActionRequest* request,
                                             v1::ExperimentActionResponse* response) override;
  grpc::ServerUnaryReactor* KillExperiment(grpc::CallbackServerContext* call,
                                           const v1::ExperimentActionRequest* request,
                                           v1::ExperimentActionResponse* response) override;
  grpc::ServerUnaryReactor* ExtendExperiment(grpc::CallbackServerContext* call,
                                             const v1::ExtendExperimentRequest* request,
                                             v1::ExperimentActionResponse* response) override;
  grpc::ServerUnaryReactor* RetryExperiment(grpc::CallbackServerContext* call,
                                            const v1::ExperimentActionRequest* request,
                                            v1::ExperimentActionResponse* response) override;

 private:
  Status continue_search(ExperimentId id, std::optional<searcher::Extended> extend) const;
  grpc::ServerUnaryReactor* act(grpc::CallbackServerContext* call, const char* method,
                                const v1::ExperimentActionRequest* request, core::ExperimentAction action);
  const Context& context_;
};

}  // namespace det::api
