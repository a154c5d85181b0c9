// Owns ExperimentService: creating, reading and steering experiments.
#pragma once

#include "det/v1/experiment.pb.h"
#include "master/api/service.h"

namespace det::api {

class ExperimentService final : public Service {
 public:
  explicit ExperimentService(const Context& context);
  Status CreateExperiment(const Caller& caller, const v1::CreateExperimentRequest& request,
                          v1::CreateExperimentResponse* response);
  grpc::ServerReadReactor<v1::UploadExperimentRequest>* UploadExperiment(
      grpc::CallbackServerContext* call, v1::CreateExperimentResponse* response);
  Status GetExperiments(const Caller& caller, const v1::GetExperimentsRequest& request,
                        v1::GetExperimentsResponse* response);
  Status GetExperiment(const Caller& caller, const v1::GetExperimentRequest& request,
                       v1::GetExperimentResponse* response);
  Status GetExperimentTrials(const Caller& caller, const v1::GetExperimentTrialsRequest& request,
                             v1::GetExperimentTrialsResponse* response);
  Status GetExperimentCheckpoints(const Caller& caller, const v1::GetExperimentCheckpointsRequest& request,
                                  v1::GetExperimentCheckpointsResponse* response);
  Status GetModelDef(const Caller& caller, const v1::GetModelDefRequest& request,
                     v1::GetModelDefResponse* response);
  Status ActivateExperiment(const Caller& caller, const v1::ExperimentActionRequest& request,
                            v1::ExperimentActionResponse* response);
  Status PauseExperiment(const Caller& caller, const v1::ExperimentActionRequest& request,
                         v1::ExperimentActionResponse* response);
  Status CancelExperiment(const Caller& caller, const v1::ExperimentActionRequest& request,
                          v1::ExperimentActionResponse* response);
  Status KillExperiment(const Caller& caller, const v1::ExperimentActionRequest& request,
                        v1::ExperimentActionResponse* response);
  Status ExtendExperiment(const Caller& caller, const v1::ExtendExperimentRequest& request,
                          v1::ExperimentActionResponse* response);
  Status RetryExperiment(const Caller& caller, const v1::ExperimentActionRequest& request,
                         v1::ExperimentActionResponse* response);

  // experiment_changes.cc, experiment_bulk.cc, experiment_reads.cc
  Status PatchExperiment(const Caller& caller, const v1::PatchExperimentRequest& request,
                         v1::PatchExperimentResponse* response);
  Status ArchiveExperiment(const Caller& caller, const v1::ExperimentActionRequest& request,
                           v1::ExperimentActionResponse* response);
  Status UnarchiveExperiment(const Caller& caller, const v1::ExperimentActionRequest& request,
                             v1::ExperimentActionResponse* response);
  Status DeleteExperiment(const Caller& caller, const v1::DeleteExperimentRequest& request,
                          v1::ExperimentActionResponse* response);
  Status PutExperimentLabel(const Caller& caller, const v1::ExperimentLabelRequest& request,
                            v1::ExperimentLabelsResponse* response);
  Status DeleteExperimentLabel(const Caller& caller, const v1::ExperimentLabelRequest& request,
                               v1::ExperimentLabelsResponse* response);
  Status GetExperimentLabels(const Caller& caller, const v1::GetExperimentLabelsRequest& request,
                             v1::ExperimentLabelsResponse* response);
  Status ContinueExperiment(const Caller& caller, const v1::ContinueExperimentRequest& request,
                            v1::ContinueExperimentResponse* response);
  Status ActivateExperiments(const Caller& caller, const v1::ExperimentsActionRequest& request,
                             v1::ExperimentsActionResponse* response);
  Status PauseExperiments(const Caller& caller, const v1::ExperimentsActionRequest& request,
                          v1::ExperimentsActionResponse* response);
  Status CancelExperiments(const Caller& caller, const v1::ExperimentsActionRequest& request,
                           v1::ExperimentsActionResponse* response);
  Status KillExperiments(const Caller& caller, const v1::ExperimentsActionRequest& request,
                         v1::ExperimentsActionResponse* response);
  Status ArchiveExperiments(const Caller& caller, const v1::ExperimentsActionRequest& request,
                            v1::ExperimentsActionResponse* response);
  Status UnarchiveExperiments(const Caller& caller, const v1::ExperimentsActionRequest& request,
                              v1::ExperimentsActionResponse* response);
  Status DeleteExperiments(const Caller& caller, const v1::ExperimentsActionRequest& request,
                           v1::ExperimentsActionResponse* response);
  Status GetExperimentValidationHistory(const Caller& caller,
                                        const v1::GetExperimentValidationHistoryRequest& request,
                                        v1::GetExperimentValidationHistoryResponse* response);
  Status GetBestSearcherValidationMetric(const Caller& caller,
                                         const v1::GetBestSearcherValidationMetricRequest& request,
                                         v1::GetBestSearcherValidationMetricResponse* response);
  Status GetModelDefTree(const Caller& caller, const v1::GetModelDefTreeRequest& request,
                         v1::GetModelDefTreeResponse* response);
  Status GetModelDefFile(const Caller& caller, const v1::GetModelDefFileRequest& request,
                         v1::GetModelDefFileResponse* response);
  Status PreviewHPSearch(const Caller& caller, const v1::PreviewHPSearchRequest& request,
                         v1::PreviewHPSearchResponse* response);

 private:
  /// One action on one experiment, as the bulk calls do it for many.
  using Deed = std::function<Status(ExperimentId)>;
  Status act(ExperimentId id, core::ExperimentAction action) const;
  Status remove(ExperimentId id) const;
  Status patch(const v1::PatchExperiment& patch) const;
  Status bulk(const Caller& caller, const v1::ExperimentsActionRequest& request,
              v1::ExperimentsActionResponse* response, const Deed& deed) const;
  Status continue_search(ExperimentId id, std::optional<searcher::Extended> extend,
                         bool only_check = false) const;
};

}  // namespace det::api
