// Owns DetachedService: trials outside the cluster whose processes speak HTTP.
#pragma once

#include "det/v1/detached.grpc.pb.h"
#include "master/api/unary.h"

namespace det::api {

class DetachedService final : public v1::DetachedService::CallbackService {
 public:
  explicit DetachedService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* PutExperiment(grpc::CallbackServerContext* call, const v1::PutExperimentRequest* request,
                                          v1::CreateExperimentResponse* response) override;
  grpc::ServerUnaryReactor* CreateTrial(grpc::CallbackServerContext* call, const v1::CreateTrialRequest* request,
                                        v1::CreateTrialResponse* response) override;
  grpc::ServerUnaryReactor* PutTrial(grpc::CallbackServerContext* call, const v1::PutTrialRequest* request,
                                     v1::CreateTrialResponse* response) override;
  grpc::ServerUnaryReactor* StartTrial(grpc::CallbackServerContext* call, const v1::StartTrialRequest* request,
                                       v1::StartTrialResponse* response) override;
  grpc::ServerUnaryReactor* PatchTrial(grpc::CallbackServerContext* call, const v1::PatchTrialRequest* request,
                                       v1::PatchTrialResponse* response) override;

 private:
  /// The experiment's trial, with other hyperparameters when some are given. `again`: also one that has begun.
  Status trial_of(const v1::CreateTrialRequest& request, bool again, v1::Trial* out) const;
  Status start(const v1::StartTrialRequest& request, v1::StartTrialResponse* response) const;
  Status patch(const v1::PatchTrialRequest& request, v1::Trial* out) const;
  const Context& context_;
};

}  // namespace det::api
