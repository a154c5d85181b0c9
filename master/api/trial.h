// Owns TrialService: reads of trials, their workloads, checkpoints and charts; kill.
#pragma once

#include "det/v1/trial.grpc.pb.h"
#include <map>

#include "master/api/reporter.h"
#include "master/api/unary.h"
#include "master/db/queries_checkpoint.h"

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
  // trial_reports.cc
  /// Something has become of an allocation of the trial: its token is looked at again.
  void forget_reporter(TrialId trial);
  grpc::ServerUnaryReactor* ReportTrialMetrics(grpc::CallbackServerContext* call,
                                               const v1::ReportTrialMetricsRequest* request,
                                               v1::ReportTrialMetricsResponse* response) override;
  grpc::ServerUnaryReactor* ReportTrialTrainingMetrics(grpc::CallbackServerContext* call,
                                                       const v1::ReportTrialTrainingMetricsRequest* request,
                                                       v1::ReportTrialMetricsResponse* response) override;
  grpc::ServerUnaryReactor* ReportTrialValidationMetrics(grpc::CallbackServerContext* call,
                                                         const v1::ReportTrialValidationMetricsRequest* request,
                                                         v1::ReportTrialMetricsResponse* response) override;
  grpc::ServerUnaryReactor* ReportTrialProgress(grpc::CallbackServerContext* call,
                                                const v1::ReportTrialProgressRequest* request,
                                                v1::ReportTrialProgressResponse* response) override;
  grpc::ServerUnaryReactor* PostTrialRunnerMetadata(grpc::CallbackServerContext* call,
                                                    const v1::PostTrialRunnerMetadataRequest* request,
                                                    v1::PostTrialRunnerMetadataResponse* response) override;
  grpc::ServerUnaryReactor* ReportTrialSearcherEarlyExit(grpc::CallbackServerContext* call,
                                                         const v1::ReportTrialSearcherEarlyExitRequest* request,
                                                         v1::ReportTrialSearcherEarlyExitResponse* response) override;
  grpc::ServerUnaryReactor* GetMetricSeries(grpc::CallbackServerContext* call,
                                            const v1::GetMetricSeriesRequest* request,
                                            v1::GetMetricSeriesResponse* response) override;

 private:
  struct Arrival;
  void store(const std::shared_ptr<Arrival>& arrival, const Reporter& reporter) const;
  void find_and_store(const std::shared_ptr<Arrival>& arrival);
  template <typename Request>
  grpc::ServerUnaryReactor* report(grpc::CallbackServerContext* call, const Request* request, const char* method,
                                   const v1::TrialMetrics& metrics, const std::string& group);
  Status take(const Caller& caller, const v1::TrialMetrics& metrics, const std::string& group) const;
  Status compare(const v1::CompareTrialsRequest& request, v1::CompareTrialsResponse* response) const;
  const Context& context_;

  // The edge worker's own: who reported lately and is still known to run, by trial.
  struct Known {
    std::string token;
    Reporter reporter;
  };
  std::map<TrialId, Known> reporters_;
  std::uint64_t forgotten_ = 0;
};

/// The directory of an experiment's checkpoints from its stored configuration; "" when it cannot be told.
std::string storage_root(const std::string& config_json);
/// State names for the database, from a request's filter.
std::vector<std::string> checkpoint_states(const google::protobuf::RepeatedField<int>& states);
/// `metric` wins when it is given.
db::CheckpointSort checkpoint_sort(v1::Checkpoint::SortBy sort, const std::string& metric);
std::vector<core::State> core_states(const google::protobuf::RepeatedField<int>& states);

}  // namespace det::api
