// Search and bulk actions of runs.
#include <map>
#include <set>

#include "master/api/accounts/project.h"
#include "master/api/convert/convert.h"
#include "master/api/experiments/experiment.h"
#include "master/api/experiments/run.h"
#include "master/api/experiments/trial.h"

namespace det::api {
namespace {

constexpr int kMaxRunsPerCall = 10'000;

/// Whether the searcher of the experiment may have several runs.
bool is_multi_trial(const db::FoundRun& run) { return run.experiment.searcher_name != "single"; }

std::string id_of(const db::FoundRun& run) { return std::to_string(run.trial.trial.id.value); }

void show_run(const db::FoundRun& run, v1::FlatRun* out) {
  const db::ExperimentRow& parent = run.experiment;
  const core::Trial& trial = run.trial.trial;
  out->set_id(static_cast<int>(trial.id.value));
  to_proto(trial.started, out->mutable_start_time());
  if (trial.ended) to_proto(*trial.ended, out->mutable_end_time());
  out->set_state(to_proto(trial.state));
  for (const std::string& label : parent.labels) out->add_labels(label);
  out->set_checkpoint_size(run.trial.checkpoint_size);
  out->set_checkpoint_count(static_cast<int>(run.trial.checkpoint_count));
  const auto& best = run.trial.best_validation;
  if (best && best->searcher_metric) out->set_searcher_metric_value(*best->searcher_metric);
  json_to_struct(trial.hparams, out->mutable_hyperparameters());
  out->set_user_id(static_cast<int>(parent.owner.value));
  out->set_duration(static_cast<int>(run.trial.wall_clock));
  out->set_project_id(static_cast<int>(parent.project));
  out->set_project_name(parent.project_name);
  out->set_workspace_id(static_cast<int>(parent.workspace));
  out->set_workspace_name(parent.workspace_name);
  out->set_parent_archived(parent.parent_archived);
  out->set_archived(parent.archived);
  if (run.trial.log_policy) out->set_log_policy_matched(*run.trial.log_policy);
  if (run.metadata) json_to_struct(*run.metadata, out->mutable_metadata());
  v1::Experiment whole;
  to_proto(parent, &whole);
  v1::FlatRunExperiment* experiment = out->mutable_experiment();
  experiment->set_id(whole.id());
  experiment->set_searcher_type(parent.searcher_name);
  experiment->set_searcher_metric(parent.searcher_metric);
  if (whole.has_forked_from()) experiment->set_forked_from(whole.forked_from().value());
  if (!whole.external_experiment_id().empty())
    experiment->set_external_experiment_id(whole.external_experiment_id());
  experiment->set_resource_pool(parent.resource_pool);
  experiment->set_progress(static_cast<float>(parent.progress));
  experiment->set_description(parent.description);
  experiment->set_name(parent.name);
  experiment->set_detached(parent.detached);
  experiment->set_is_multitrial(is_multi_trial(run));
}

/// The runs of an action. Some clients send -1 for any project.
template <typename Request>
db::RunSearch search_of(const Request& request, int project) {
  db::RunSearch search{.ids = {request.run_ids().begin(), request.run_ids().end()},
                       .filter = request.filter()};
  if (project > 0) search.project = project;
  return search;
}

}  // namespace

Status RunService::SearchRuns(const Caller& caller, const v1::SearchRunsRequest& request,
                              v1::SearchRunsResponse* response) {
  constexpr int kDefaultLimit = 100;
  db::RunSearch search{
      .filter = request.filter(),
      .sort = request.sort(),
      .visible = caller.grants.visible(),
      .window = to_window(request.offset(), request.limit(), v1::ORDER_BY_ASC, kDefaultLimit)};
  if (request.project_id() > 0) search.project = request.project_id();
  TRY_ASSIGN(const auto page, db::search_runs(context_.pool, search));
  for (const db::FoundRun& run : page.rows) show_run(run, response->add_runs());
  to_pagination(page, search.window, response->mutable_pagination());
  return {};
}

Status RunService::bulk(const Caller& caller, db::RunSearch search, v1::RunsActionResponse* response,
                        const Deed& deed) const {
  if (search.ids.empty() && search.filter.empty())
    return fail(Code::kInvalidArgument, "run_ids: name at least one, or give a filter");
  if (search.ids.size() > kMaxRunsPerCall)
    return fail(Code::kInvalidArgument, "run_ids: at most " + std::to_string(kMaxRunsPerCall));
  search.visible = caller.grants.visible();
  search.window.limit = kMaxRunsPerCall;
  // The filter is applied once; runs that start to match later are not affected.
  TRY_ASSIGN(const auto page, db::search_runs(context_.pool, search));
  std::set<std::int64_t> known;
  for (const db::FoundRun& run : page.rows) {
    known.insert(run.trial.trial.id.value);
    v1::RunActionResult* result = response->add_results();
    result->set_id(static_cast<int>(run.trial.trial.id.value));
    // Visibility was part of the query; editing needs a further check.
    Status done = authorize(caller, Action::kEdit, Target::kExperiment,
                            {std::to_string(run.experiment.id.value)}, context_.pool);
    if (done) done = deed(run);
    if (!done) result->set_error(done.error().message);
  }
  // Requested ids that do not exist, are hidden or do not match the filter.
  for (const std::int64_t id : search.ids) {
    if (!known.insert(id).second) continue;
    v1::RunActionResult* result = response->add_results();
    result->set_id(static_cast<int>(id));
    result->set_error("run " + std::to_string(id) + " not found");
  }
  return {};
}

Status RunService::bulk_alone(const Caller& caller, const v1::RunsActionRequest& request,
                              v1::RunsActionResponse* response,
                              const std::function<Status(ExperimentId)>& deed) const {
  return bulk(
      caller, search_of(request, request.project_id()), response, [&](const db::FoundRun& run) -> Status {
        if (!is_multi_trial(run)) return deed(run.experiment.id);
        const std::string parent = std::to_string(run.experiment.id.value);
        return fail(Code::kFailedPrecondition, "run " + id_of(run) + " is one of several of experiment " +
                                                   parent + "; use the call of the experiment");
      });
}

Status RunService::KillRuns(const Caller& caller, const v1::RunsActionRequest& request,
                            v1::RunsActionResponse* response) {
  return bulk(caller, search_of(request, request.project_id()), response,
              [this](const db::FoundRun& run) { return kill_trial(context_, run.trial.trial.id); });
}

Status RunService::pause(const Caller& caller, const v1::RunsActionRequest& request,
                         v1::RunsActionResponse* response, core::ExperimentAction action) const {
  return bulk(caller, search_of(request, request.project_id()), response,
              [&](const db::FoundRun& run) -> Status {
                if (!is_multi_trial(run)) return act_on_experiment(context_, run.experiment.id, action);
                // Clients of Determined AI compare this text.
                return fail(Code::kFailedPrecondition,
                            "Cannot pause/unpause run '" + id_of(run) + "' (part of multi-trial).");
              });
}

Status RunService::PauseRuns(const Caller& caller, const v1::RunsActionRequest& request,
                             v1::RunsActionResponse* response) {
  return pause(caller, request, response, core::ExperimentAction::kPause);
}

Status RunService::ResumeRuns(const Caller& caller, const v1::RunsActionRequest& request,
                              v1::RunsActionResponse* response) {
  return pause(caller, request, response, core::ExperimentAction::kActivate);
}

Status RunService::ArchiveRuns(const Caller& caller, const v1::RunsActionRequest& request,
                               v1::RunsActionResponse* response) {
  return bulk_alone(caller, request, response,
                    [this](ExperimentId id) { return set_archived(context_, id, true); });
}

Status RunService::UnarchiveRuns(const Caller& caller, const v1::RunsActionRequest& request,
                                 v1::RunsActionResponse* response) {
  return bulk_alone(caller, request, response,
                    [this](ExperimentId id) { return set_archived(context_, id, false); });
}

Status RunService::DeleteRuns(const Caller& caller, const v1::RunsActionRequest& request,
                              v1::RunsActionResponse* response) {
  return bulk_alone(caller, request, response,
                    [&](ExperimentId id) { return delete_experiment(context_, caller, id); });
}

Status RunService::MoveRuns(const Caller& caller, const v1::MoveRunsRequest& request,
                            v1::RunsActionResponse* response) {
  const std::string from = std::to_string(request.source_project_id());
  const std::string to = std::to_string(request.destination_project_id());
  TRY(authorize(caller, Action::kView, Target::kProject, {from}, context_.pool));
  TRY(authorize(caller, Action::kEdit, Target::kProject, {to}, context_.pool));
  TRY(check_open(context_.pool, request.source_project_id()));
  TRY(check_open(context_.pool, request.destination_project_id()));
  // The runs of an experiment stay together.
  std::map<ExperimentId, Status> moved;
  return bulk(caller, search_of(request, request.source_project_id()), response,
              [&](const db::FoundRun& run) -> Status {
                if (is_multi_trial(run) && request.skip_multitrial())
                  return fail(Code::kFailedPrecondition,
                              "Skipping run '" + id_of(run) + "' (part of multi-trial).");
                const auto [known, is_new] = moved.try_emplace(run.experiment.id);
                if (is_new)
                  known->second =
                      move_experiments(context_, {run.experiment.id.value}, request.destination_project_id());
                return known->second;
              });
}

}  // namespace det::api
