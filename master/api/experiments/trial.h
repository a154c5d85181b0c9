// TrialService: reads of trials (workloads, checkpoints, metrics), kill, and reports over HTTP.
#pragma once

#include <memory>

#include "det/v1/trial.pb.h"
#include "master/api/convert/convert.h"
#include "master/api/experiments/reporter.h"
#include "master/api/service.h"
#include "master/db/queries/checkpoints.h"

namespace det::api {

/// Reports of metrics bypass the worker threads, because they are frequent (trial_reports.cc).
class TrialService final : public Service {
 public:
  explicit TrialService(const Context& context);
  /// Returns a trial with its metric summaries and metadata. Errors: kNotFound.
  Status GetTrial(const Caller& caller, const v1::GetTrialRequest& request, v1::GetTrialResponse* response);
  /// Returns the trial of a detached experiment, which has one, by the name of the experiment. Errors:
  /// kNotFound.
  Status GetTrialByExternalID(const Caller& caller, const v1::GetTrialByExternalIDRequest& request,
                              v1::GetTrialResponse* response);
  /// Lists training reports, validations and checkpoints in order of steps, paged: at most 10,000. Errors:
  /// kNotFound.
  Status GetTrialWorkloads(const Caller& caller, const v1::GetTrialWorkloadsRequest& request,
                           v1::GetTrialWorkloadsResponse* response);
  /// Lists the checkpoints of a trial, paged: at most 10,000. Errors: kNotFound.
  Status GetTrialCheckpoints(const Caller& caller, const v1::GetTrialCheckpointsRequest& request,
                             v1::GetTrialCheckpointsResponse* response);
  /// Kills a trial. Idempotent, also after its end. Errors: kNotFound.
  Status KillTrial(const Caller& caller, const v1::KillTrialRequest& request,
                   v1::KillTrialResponse* response);
  /// Streams all visible metric reports of up to 1000 trials, of one group or all; trial by trial, then by
  /// group and step. Errors: kNotFound; kUnavailable (too many streams).
  grpc::ServerWriteReactor<v1::GetMetricsResponse>* GetMetrics(grpc::CallbackServerContext* call,
                                                               const Unread<v1::GetMetricsRequest>& request);
  /// GetMetrics of the group "training".
  grpc::ServerWriteReactor<v1::GetMetricsResponse>* GetTrainingMetrics(
      grpc::CallbackServerContext* call, const Unread<v1::GetMetricsRequest>& request);
  /// GetMetrics of the group "validation".
  grpc::ServerWriteReactor<v1::GetMetricsResponse>* GetValidationMetrics(
      grpc::CallbackServerContext* call, const Unread<v1::GetMetricsRequest>& request);
  /// Returns metric series of up to 100 trials, downsampled to max_datapoints. Errors: kNotFound;
  /// kInvalidArgument.
  Status CompareTrials(const Caller& caller, const v1::CompareTrialsRequest& request,
                       v1::CompareTrialsResponse* response);
  // Reports are durable when they are acknowledged, and idempotent. They carry the token of the allocation.
  // Errors: kUnauthenticated; kInvalidArgument; kAborted when the run is not the current one of the trial.
  void ReportTrialMetrics(const Deferred& call, const v1::ReportTrialMetricsRequest* request,
                          v1::ReportTrialMetricsResponse* response);
  /// As ReportTrialMetrics, for the group "training".
  void ReportTrialTrainingMetrics(const Deferred& call, const v1::ReportTrialTrainingMetricsRequest* request,
                                  v1::ReportTrialMetricsResponse* response);
  /// Reports a validation, which the searcher may decide on.
  Status ReportTrialValidationMetrics(const Caller& caller,
                                      const v1::ReportTrialValidationMetricsRequest& request,
                                      v1::ReportTrialMetricsResponse* response);
  /// Reports progress between 0 and 1.
  Status ReportTrialProgress(const Caller& caller, const v1::ReportTrialProgressRequest& request,
                             v1::ReportTrialProgressResponse* response);
  /// Accepted without effect: the state of the allocation covers it.
  Status PostTrialRunnerMetadata(const Caller& caller, const v1::PostTrialRunnerMetadataRequest& request,
                                 v1::PostTrialRunnerMetadataResponse* response);
  /// Reports that the hyperparameters are invalid. Errors: kFailedPrecondition when repeated.
  Status ReportTrialSearcherEarlyExit(const Caller& caller,
                                      const v1::ReportTrialSearcherEarlyExitRequest& request,
                                      v1::ReportTrialSearcherEarlyExitResponse* response);
  /// As CompareTrials, delta-encoded for charts of many trials.
  Status GetMetricSeries(const Caller& caller, const v1::GetMetricSeriesRequest& request,
                         v1::GetMetricSeriesResponse* response);

 private:
  struct Arrival;
  /// Passes a report of a process to the bulk writer. Does not block.
  void store(const std::shared_ptr<Arrival>& arrival, const ConfirmedTrial& trial) const;
  /// Handles a report without blocking if its process is confirmed, else on a worker.
  template <typename Request>
  void report(const Deferred& call, const Request* request, const char* path, const v1::TrialMetrics& metrics,
              const std::string& group);
  /// Handles a report on a worker and waits until it is durable.
  Status take(const Caller& caller, const v1::TrialMetrics& metrics, const std::string& group) const;
};

/// Kills a trial. Succeeds for an ended one. Errors: kNotFound.
Status kill_trial(const Context& context, TrialId id);

/// Converts the checkpoints of one experiment. Each carries its configuration, secrets masked, which clients
/// of Determined AI require.
class CheckpointConverter {
 public:
  /// `config_json`: stored configuration of the experiment.
  explicit CheckpointConverter(const std::string& config_json);
  void convert(const db::CheckpointRow& row, v1::Checkpoint* out) const;

 private:
  std::string root_;
  std::unique_ptr<google::protobuf::Struct> config_;
};

/// Directory of an experiment's checkpoints according to its stored configuration (JSON); "" when unknown.
std::string storage_root(const std::string& config_json);
/// Database names of the checkpoint states in a request.
std::vector<std::string> checkpoint_states(const google::protobuf::RepeatedField<int>& states);
/// Sort key of a checkpoint list. A `metric` takes precedence.
db::CheckpointSort checkpoint_sort(v1::Checkpoint::SortBy sort, const std::string& metric);
/// Answers a request for the checkpoints of one experiment. `filter` names the experiment or a trial of it,
/// `config_json` is the experiment's stored configuration. At most 10,000 a page. Blocks on the database.
template <typename Request, typename Response>
Status answer_checkpoints(db::Pool& pool, db::CheckpointFilter filter, const std::string& config_json,
                          const Request& request, Response* response) {
  filter.states = checkpoint_states(request.states());
  filter.window = to_bounded_window(request.offset(), request.limit(), request.order_by());
  filter.sort = checkpoint_sort(request.sort_by_attr(), request.sort_by_metric());
  filter.metric = request.sort_by_metric();
  TRY_ASSIGN(const auto page, db::list_checkpoints(pool, filter));
  const CheckpointConverter converter(config_json);
  for (const db::CheckpointRow& row : page.rows) converter.convert(row, response->add_checkpoints());
  to_pagination(page, filter.window, response->mutable_pagination());
  return {};
}
/// Stored states that match the states in a request, without duplicates.
std::vector<core::State> core_states(const google::protobuf::RepeatedField<int>& states);

}  // namespace det::api
