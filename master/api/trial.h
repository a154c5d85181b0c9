// Owns TrialService: reads of trials, their workloads, checkpoints and charts; kill.
#pragma once

#include "det/v1/trial.grpc.pb.h"
#include "master/api/unary.h"

namespace det::api {

class TrialService final : public v1::TrialService::CallbackService {
 public:
  explicit TrialService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* GetTrial(grpc::CallbackServerContext* call, const v1::GetTrialRequest* request,
                                     v1::GetTrialResponse* response) override;
  grpc::ServerUnaryReactor* GetTrialWorkloads(grpc::CallbackServerContext* call,
                                              const v1::GetTrialWorkloadsRequest* request,
                                              v1::GetTrialWorkloadsResponse* response) override;
  grpc::ServerUnaryReactor* GetTrialCheckpoints(grpc::CallbackServerContext* call,
                                                const v1::GetTrialCheckpointsRequest* request,
                                                v1::GetTrialCheckpointsResponse* response) override;
  grpc::ServerUnaryReactor* KillTrial(grpc::CallbackServerContext* call, const v1::KillTrialRequest* request,
                                      v1::KillTrialResponse* response) override;
  grpc::ServerUnaryReactor* CompareTrials(grpc::CallbackServerContext* call,
                                          const v1::CompareTrialsRequest* request,
                                          v1::CompareTrialsResponse* response) override;
  grpc::ServerUnaryReactor* GetMetricSeries(grpc::CallbackServerContext* call,
                                            const v1::GetMetricSeriesRequest* request,
                                            v1::GetMetricSeriesResponse* response) override;

 private:
  Status compare(const v1::CompareTrialsRequest& request, v1::CompareTrialsResponse* response) const;
  const Context& context_;
};

/// The directory of an experiment's checkpoints from its stored configuration; "" when it cannot be told.
std::string storage_root(const std::string& config_json);
/// State names for the database, from a request's filter.
std::vector<std::string> checkpoint_states(const google::protobuf::RepeatedField<int>& states);
std::vector<core::State> core_states(const google::protobuf::RepeatedField<int>& states);

}  // namespace det::api
