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

  // experiment_changes.cc, experiment_bulk.cc, experiment_reads.cc
  grpc::ServerUnaryReactor* PatchExperiment(grpc::CallbackServerContext* call,
                                            const v1::PatchExperimentRequest* request,
                                            v1::PatchExperimentResponse* response) override;
  grpc::ServerUnaryReactor* ArchiveExperiment(grpc::CallbackServerContext* call,
                                              const v1::ExperimentActionRequest* request,
                                              v1::ExperimentActionResponse* response) override;
  grpc::ServerUnaryReactor* UnarchiveExperiment(grpc::CallbackServerContext* call,
                                                const v1::ExperimentActionRequest* request,
                                                v1::ExperimentActionResponse* response) override;
  grpc::ServerUnaryReactor* DeleteExperiment(grpc::CallbackServerContext* call,
                                             const v1::DeleteExperimentRequest* request,
                                             v1::ExperimentActionResponse* response) override;
  grpc::ServerUnaryReactor* PutExperimentLabel(grpc::CallbackServerContext* call,
                                               const v1::ExperimentLabelRequest* request,
                                               v1::ExperimentLabelsResponse* response) override;
  grpc::ServerUnaryReactor* DeleteExperimentLabel(grpc::CallbackServerContext* call,
                                                  const v1::ExperimentLabelRequest* request,
                                                  v1::ExperimentLabelsResponse* response) override;
  grpc::ServerUnaryReactor* GetExperimentLabels(grpc::CallbackServerContext* call,
                                                const v1::GetExperimentLabelsRequest* request,
                                                v1::ExperimentLabelsResponse* response) override;
  grpc::ServerUnaryReactor* ContinueExperiment(grpc::CallbackServerContext* call,
                                               const v1::ContinueExperimentRequest* request,
                                               v1::ContinueExperimentResponse* response) override;
  grpc::ServerUnaryReactor* ActivateExperiments(grpc::CallbackServerContext* call,
                                                const v1::ExperimentsActionRequest* request,
                                                v1::ExperimentsActionResponse* response) override;
  grpc::ServerUnaryReactor* PauseExperiments(grpc::CallbackServerContext* call,
                                             const v1::ExperimentsActionRequest* request,
                                             v1::ExperimentsActionResponse* response) override;
  grpc::ServerUnaryReactor* CancelExperiments(grpc::CallbackServerContext* call,
                                              const v1::ExperimentsActionRequest* request,
                                              v1::ExperimentsActionResponse* response) override;
  grpc::ServerUnaryReactor* KillExperiments(grpc::CallbackServerContext* call,
                                            const v1::ExperimentsActionRequest* request,
                                            v1::ExperimentsActionResponse* response) override;
  grpc::ServerUnaryReactor* ArchiveExperiments(grpc::CallbackServerContext* call,
                                               const v1::ExperimentsActionRequest* request,
                                               v1::ExperimentsActionResponse* response) override;
  grpc::ServerUnaryReactor* UnarchiveExperiments(grpc::CallbackServerContext* call,
                                                 const v1::ExperimentsActionRequest* request,
                                                 v1::ExperimentsActionResponse* response) override;
  grpc::ServerUnaryReactor* DeleteExperiments(grpc::CallbackServerContext* call,
                                              const v1::ExperimentsActionRequest* request,
                                              v1::ExperimentsActionResponse* response) override;
  grpc::ServerUnaryReactor* GetExperimentValidationHistory(grpc::CallbackServerContext* call,
                                                           const v1::GetExperimentValidationHistoryRequest* request,
                                                           v1::GetExperimentValidationHistoryResponse* response) override;
  grpc::ServerUnaryReactor* GetBestSearcherValidationMetric(grpc::CallbackServerContext* call,
                                                            const v1::GetBestSearcherValidationMetricRequest* request,
                                                            v1::GetBestSearcherValidationMetricResponse* response) override;
  grpc::ServerUnaryReactor* GetModelDefTree(grpc::CallbackServerContext* call,
                                            const v1::GetModelDefTreeRequest* request,
                                            v1::GetModelDefTreeResponse* response) override;
  grpc::ServerUnaryReactor* GetModelDefFile(grpc::CallbackServerContext* call,
                                            const v1::GetModelDefFileRequest* request,
                                            v1::GetModelDefFileResponse* response) override;
  grpc::ServerUnaryReactor* PreviewHPSearch(grpc::CallbackServerContext* call,
                                            const v1::PreviewHPSearchRequest* request,
                                            v1::PreviewHPSearchResponse* response) override;

 private:
  /// One action on one experiment, as the bulk calls do it for many.
  using Deed = std::function<Status(ExperimentId)>;
  Status act(ExperimentId id, core::ExperimentAction action) const;
  Status remove(ExperimentId id) const;
  Status patch(const v1::PatchExperiment& patch) const;
  Status go_on(const v1::ContinueExperimentRequest& request, v1::ContinueExperimentResponse* response) const;
  grpc::ServerUnaryReactor* bulk(grpc::CallbackServerContext* call, const char* method,
                                 const v1::ExperimentsActionRequest* request, v1::ExperimentsActionResponse* response,
                                 Deed deed);
  Status continue_search(ExperimentId id, std::optional<searcher::Extended> extend, bool only_check = false) const;
  grpc::ServerUnaryReactor* act(grpc::CallbackServerContext* call, const char* method,
                                const v1::ExperimentActionRequest* request, core::ExperimentAction action);
  const Context& context_;
};

}  // namespace det::api
