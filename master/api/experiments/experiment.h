// ExperimentService: creates, reads, changes and deletes experiments. Handlers are in create.cc,
// experiment.cc, experiment_changes.cc, experiment_bulk.cc and experiment_reads.cc.
#pragma once

#include "det/v1/experiment.pb.h"
#include "master/api/service.h"
#include "master/db/queries/deletions.h"
#include "master/db/queries/experiments.h"

namespace det::api {

/// Actions and queue settings go through the core; metadata is changed in the database.
class ExperimentService final : public Service {
 public:
  explicit ExperimentService(const Context& context);
  /// Checks and submits an experiment with its files in the request. See create_experiment().
  Status CreateExperiment(const Caller& caller, const v1::CreateExperimentRequest& request,
                          v1::CreateExperimentResponse* response);
  /// As CreateExperiment, with the code archive in chunks of at most 1 MiB after the request.
  grpc::ServerReadReactor<v1::UploadExperimentRequest>* UploadExperiment(
      grpc::CallbackServerContext* call, v1::CreateExperimentResponse* response);
  /// As CreateExperiment, with the stored code archive of the given digest. Sets `unknown`, and creates
  /// nothing, when no experiment of the caller has used this archive: a digest gives no access to the files
  /// of others.
  Status CreateFromCodeArchive(const Caller& caller, const v1::CreateFromCodeArchiveRequest& request,
                               v1::CreateFromCodeArchiveResponse* response);
  /// Lists experiments that the caller may see, paged, 100 by default.
  Status GetExperiments(const Caller& caller, const v1::GetExperimentsRequest& request,
                        v1::GetExperimentsResponse* response);
  /// Returns an experiment and its configuration, secrets masked. Errors: kNotFound.
  Status GetExperiment(const Caller& caller, const v1::GetExperimentRequest& request,
                       v1::GetExperimentResponse* response);
  /// Lists the trials of an experiment, paged. Errors: kNotFound.
  Status GetExperimentTrials(const Caller& caller, const v1::GetExperimentTrialsRequest& request,
                             v1::GetExperimentTrialsResponse* response);
  /// Lists the checkpoints of an experiment, paged. Errors: kNotFound.
  Status GetExperimentCheckpoints(const Caller& caller, const v1::GetExperimentCheckpointsRequest& request,
                                  v1::GetExperimentCheckpointsResponse* response);
  /// Returns the code archive in base64. Errors: kNotFound.
  Status GetModelDef(const Caller& caller, const v1::GetModelDefRequest& request,
                     v1::GetModelDefResponse* response);
  // The four actions fail with kNotFound, or kFailedPrecondition when the experiment has ended.
  Status ActivateExperiment(const Caller& caller, const v1::ExperimentActionRequest& request,
                            v1::ExperimentActionResponse* response);
  Status PauseExperiment(const Caller& caller, const v1::ExperimentActionRequest& request,
                         v1::ExperimentActionResponse* response);
  Status CancelExperiment(const Caller& caller, const v1::ExperimentActionRequest& request,
                          v1::ExperimentActionResponse* response);
  Status KillExperiment(const Caller& caller, const v1::ExperimentActionRequest& request,
                        v1::ExperimentActionResponse* response);
  /// Raises the total of trials or the training length of a search. An ended experiment becomes active again.
  /// Errors: kNotFound; kInvalidArgument and kFailedPrecondition when the search cannot grow that way.
  Status ExtendExperiment(const Caller& caller, const v1::ExtendExperimentRequest& request,
                          v1::ExperimentActionResponse* response);
  /// Runs failed trials again from their checkpoints, with all restarts available.
  Status RetryExperiment(const Caller& caller, const v1::ExperimentActionRequest& request,
                         v1::ExperimentActionResponse* response);

  /// Changes name, description, notes, labels, checkpoint policy and queue settings. Unset fields keep their
  /// value. Queue settings are applied first, because the core may refuse them.
  Status PatchExperiment(const Caller& caller, const v1::PatchExperimentRequest& request,
                         v1::PatchExperimentResponse* response);
  /// Archives an ended experiment. Idempotent. Errors: kNotFound, kFailedPrecondition.
  Status ArchiveExperiment(const Caller& caller, const v1::ExperimentActionRequest& request,
                           v1::ExperimentActionResponse* response);
  /// Inverse of ArchiveExperiment. Idempotent.
  Status UnarchiveExperiment(const Caller& caller, const v1::ExperimentActionRequest& request,
                             v1::ExperimentActionResponse* response);
  /// Deletes an ended experiment: files of its checkpoints, then rows. Can be repeated after a failure.
  /// Blocks on storages. Errors: kNotFound; kFailedPrecondition for a live experiment and for a checkpoint in
  /// the model registry.
  Status DeleteExperiment(const Caller& caller, const v1::DeleteExperimentRequest& request,
                          v1::ExperimentActionResponse* response);
  /// Deletes the TensorBoard files of an ended experiment. Blocks on the storage. Errors: kNotFound;
  /// kFailedPrecondition for a live experiment, and for a storage that cannot be reached.
  Status DeleteTensorboardFiles(const Caller& caller, const v1::DeleteExperimentRequest& request,
                                v1::ExperimentActionResponse* response);
  /// Adds a label and returns all labels of the experiment. Idempotent.
  Status PutExperimentLabel(const Caller& caller, const v1::ExperimentLabelRequest& request,
                            v1::ExperimentLabelsResponse* response);
  /// Removes a label and returns the remaining ones. Idempotent.
  Status DeleteExperimentLabel(const Caller& caller, const v1::ExperimentLabelRequest& request,
                               v1::ExperimentLabelsResponse* response);
  /// Lists the labels of visible experiments, the most frequent first.
  Status GetExperimentLabels(const Caller& caller, const v1::GetExperimentLabelsRequest& request,
                             v1::ExperimentLabelsResponse* response);
  /// Continues an ended experiment: runs failed and killed trials again. override_config raises totals of the
  /// searcher, and changes hyperparameters, max_restarts, entrypoint and more of a single search, whose trial
  /// goes on from its checkpoint. Other overrides are refused. Errors: kFailedPrecondition for a
  /// live experiment; kInvalidArgument with a Problem for each refused field.
  Status ContinueExperiment(const Caller& caller, const v1::ContinueExperimentRequest& request,
                            v1::ContinueExperimentResponse* response);
  // Bulk actions, on ids or a filter, at most 10,000 experiments. The call succeeds; each experiment has its
  // own result.
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
  /// Lists validations that improved on all earlier ones, in order of time.
  Status GetExperimentValidationHistory(const Caller& caller,
                                        const v1::GetExperimentValidationHistoryRequest& request,
                                        v1::GetExperimentValidationHistoryResponse* response);
  /// Returns the best validation of the search metric. Errors: kNotFound before the first one.
  Status GetBestSearcherValidationMetric(const Caller& caller,
                                         const v1::GetBestSearcherValidationMetricRequest& request,
                                         v1::GetBestSearcherValidationMetricResponse* response);
  /// Lists the files of the code archive as a tree.
  Status GetModelDefTree(const Caller& caller, const v1::GetModelDefTreeRequest& request,
                         v1::GetModelDefTreeResponse* response);
  /// Returns one file of the code archive. Errors: kNotFound; kFailedPrecondition for a file above 8 MiB.
  Status GetModelDefFile(const Caller& caller, const v1::GetModelDefFileRequest& request,
                         v1::GetModelDefFileResponse* response);
  /// Simulates the search of a configuration: how many trials it would train for how long.
  Status PreviewHPSearch(const Caller& caller, const v1::PreviewHPSearchRequest& request,
                         v1::PreviewHPSearchResponse* response);

 private:
  /// Action on one experiment; bulk() applies it to many.
  using Deed = std::function<Status(ExperimentId)>;
  Status patch(const v1::PatchExperiment& patch) const;
  /// Replaces sections of the configuration of an ended single search, and the hyperparameters of its trial.
  /// Errors: problems of the new configuration; kAborted when the experiment has just changed.
  Status rewrite(const Caller& caller, const db::ExperimentDetail& row, const Json& sections,
                 bool only_check) const;
  /// Applies `deed` to each experiment of the request that the caller may edit.
  Status bulk(const Caller& caller, const v1::ExperimentsActionRequest& request,
              v1::ExperimentsActionResponse* response, const Deed& deed) const;
  /// Continues or extends a search. `only_check` validates without a change; `canceled` retries killed trials
  /// as well as failed ones.
  Status continue_search(ExperimentId id, std::optional<searcher::Extended> extend, bool only_check = false,
                         bool canceled = false) const;
};

/// Sends an action to the core, which has dropped ended experiments. Stopping one of those succeeds. Errors:
/// kNotFound; kFailedPrecondition for other actions on an ended experiment.
Status act_on_experiment(const Context& context, ExperimentId id, core::ExperimentAction action);

/// Tells open pages and other readers of the event stream that fields of an experiment have changed which the
/// core does not know: its name, labels, project or archive mark.
void announce_edit(const Context& context, ExperimentId id);

/// Archives an ended experiment or brings it back. Errors: kNotFound; kFailedPrecondition (it has not ended).
Status set_archived(const Context& context, ExperimentId id, bool archived);

/// Moves experiments to an open project, all or none. Blocks on the database and the core. Errors: kNotFound;
/// kFailedPrecondition (a project that they are moved to or from is being deleted).
Status move_experiments(const Context& context, const std::vector<std::int64_t>& ids, std::int64_t project);

/// Deletes an experiment for a user, as remove_experiment(). Errors: those, and kPermissionDenied for a
/// caller who neither owns it nor manages its workspace.
Status delete_experiment(const Context& context, const Caller& caller, ExperimentId id);

/// Deletes an ended experiment with its checkpoints and TensorBoard files, as DeleteExperiment. Blocks on the
/// core and the storages. A repeat after a failure finishes the rest. `within`: the project or workspace that
/// is deleted as a whole; an experiment that has left it is kept. Errors: kNotFound; kFailedPrecondition (it
/// has not ended, has registered checkpoints, an unfinished experiment outside of `within` starts from one,
/// or its storage cannot be reached).
Status remove_experiment(const Context& context, ExperimentId id,
                         const std::optional<db::Container>& within = std::nullopt);

}  // namespace det::api
