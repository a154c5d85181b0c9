// Owns TrialService: reads of trials, their workloads, checkpoints and charts; kill.
#pragma once

#include <map>

#include "det/v1/trial.pb.h"
#include "master/api/reporter.h"
#include "master/api/service.h"
#include "master/db/queries_checkpoint.h"

namespace det::api {

class TrialService final : public Service {
 public:
  explicit TrialService(const Context& context);
  Status GetTrial(const Caller& caller, const v1::GetTrialRequest& request, v1::GetTrialResponse* response);
  Status GetTrialWorkloads(const Caller& caller, const v1::GetTrialWorkloadsRequest& request,
                           v1::GetTrialWorkloadsResponse* response);
  Status GetTrialCheckpoints(const Caller& caller, const v1::GetTrialCheckpointsRequest& request,
                             v1::GetTrialCheckpointsResponse* response);
  Status KillTrial(const Caller& caller, const v1::KillTrialRequest& request,
                   v1::KillTrialResponse* response);
  Status CompareTrials(const Caller& caller, const v1::CompareTrialsRequest& request,
                       v1::CompareTrialsResponse* response);
  // trial_reports.cc
  /// Something has become of an allocation of the trial: its token is looked at again.
  void forget_reporter(TrialId trial);
  grpc::ServerUnaryReactor* ReportTrialMetrics(grpc::CallbackServerContext* call,
                                               const v1::ReportTrialMetricsRequest* request,
                                               v1::ReportTrialMetricsResponse* response);
  grpc::ServerUnaryReactor* ReportTrialTrainingMetrics(grpc::CallbackServerContext* call,
                                                       const v1::ReportTrialTrainingMetricsRequest* request,
                                                       v1::ReportTrialMetricsResponse* response);
  Status ReportTrialValidationMetrics(const Caller& caller,
                                      const v1::ReportTrialValidationMetricsRequest& request,
                                      v1::ReportTrialMetricsResponse* response);
  Status ReportTrialProgress(const Caller& caller, const v1::ReportTrialProgressRequest& request,
                             v1::ReportTrialProgressResponse* response);
  Status PostTrialRunnerMetadata(const Caller& caller, const v1::PostTrialRunnerMetadataRequest& request,
                                 v1::PostTrialRunnerMetadataResponse* response);
  Status ReportTrialSearcherEarlyExit(const Caller& caller,
                                      const v1::ReportTrialSearcherEarlyExitRequest& request,
                                      v1::ReportTrialSearcherEarlyExitResponse* response);
  Status GetMetricSeries(const Caller& caller, const v1::GetMetricSeriesRequest& request,
                         v1::GetMetricSeriesResponse* response);

 private:
  struct Arrival;
  void store(const std::shared_ptr<Arrival>& arrival, const Reporter& reporter) const;
  void find_and_store(const std::shared_ptr<Arrival>& arrival);
  template <typename Request>
  grpc::ServerUnaryReactor* report(grpc::CallbackServerContext* call, const Request* request,
                                   const char* method, const v1::TrialMetrics& metrics,
                                   const std::string& group);
  Status take(const Caller& caller, const v1::TrialMetrics& metrics, const std::string& group) const;

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
