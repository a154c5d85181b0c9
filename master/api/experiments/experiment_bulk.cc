// Bulk actions on experiments. Each experiment has its own result.
#include <set>

#include "master/api/convert/convert.h"
#include "master/api/experiments/experiment.h"
#include "master/api/experiments/trial.h"
#include "master/db/queries/experiments.h"

namespace det::api {
namespace {

constexpr int kMaxExperimentsPerCall = 10'000;

db::ExperimentFilter filter_of(const Caller& caller, const v1::ExperimentsActionRequest& request) {
  const v1::BulkExperimentFilters& wanted = request.filters();
  db::ExperimentFilter filter;
  filter.name = wanted.name();
  filter.description = wanted.description();
  filter.labels.assign(wanted.labels().begin(), wanted.labels().end());
  if (wanted.has_archived()) filter.archived = wanted.archived().value();
  filter.states = core_states(wanted.states());
  filter.user_ids.assign(wanted.user_ids().begin(), wanted.user_ids().end());
  // Clients send the project inside or outside of the filter.
  const int project = request.project_id() != 0 ? request.project_id() : wanted.project_id();
  // -1 is any project, too.
  if (project > 0) filter.project = project;
  filter.not_ids.assign(wanted.excluded_experiment_ids().begin(), wanted.excluded_experiment_ids().end());
  filter.ids.assign(request.experiment_ids().begin(), request.experiment_ids().end());
  filter.visible = caller.grants.visible();
  filter.window.limit = kMaxExperimentsPerCall;
  return filter;
}

}  // namespace

Status ExperimentService::bulk(const Caller& caller, const v1::ExperimentsActionRequest& request,
                               v1::ExperimentsActionResponse* response, const Deed& deed) const {
  if (request.experiment_ids_size() == 0 && !request.has_filters())
    return fail(Code::kInvalidArgument, "experiment_ids: name at least one, or give filters");
  if (request.experiment_ids_size() > kMaxExperimentsPerCall)
    return fail(Code::kInvalidArgument, "experiment_ids: at most " + std::to_string(kMaxExperimentsPerCall));
  // The filter is applied once; experiments that start to match later are not affected.
  TRY_ASSIGN(const auto page, db::list_experiments(context_.pool, filter_of(caller, request)));
  std::set<std::int64_t> known;
  for (const db::ExperimentRow& row : page.rows) {
    known.insert(row.id.value);
    v1::ExperimentActionResult* result = response->add_results();
    result->set_id(static_cast<int>(row.id.value));
    // Visibility was part of the query; editing needs a further check.
    Status done =
        authorize(caller, Action::kEdit, Target::kExperiment, {std::to_string(row.id.value)}, context_.pool);
    if (done) done = deed(row.id);
    if (!done) result->set_error(done.error().message);
  }
  // Requested ids that do not exist, are hidden or do not match the filter.
  for (const int id : request.experiment_ids()) {
    if (!known.insert(id).second) continue;
    v1::ExperimentActionResult* result = response->add_results();
    result->set_id(id);
    result->set_error("experiment " + std::to_string(id) + " not found");
  }
  return {};
}

Status ExperimentService::ActivateExperiments(const Caller& caller,
                                              const v1::ExperimentsActionRequest& request,
                                              v1::ExperimentsActionResponse* response) {
  return bulk(caller, request, response, [this](ExperimentId id) {
    return act_on_experiment(context_, id, core::ExperimentAction::kActivate);
  });
}
Status ExperimentService::PauseExperiments(const Caller& caller, const v1::ExperimentsActionRequest& request,
                                           v1::ExperimentsActionResponse* response) {
  return bulk(caller, request, response, [this](ExperimentId id) {
    return act_on_experiment(context_, id, core::ExperimentAction::kPause);
  });
}
Status ExperimentService::CancelExperiments(const Caller& caller, const v1::ExperimentsActionRequest& request,
                                            v1::ExperimentsActionResponse* response) {
  return bulk(caller, request, response, [this](ExperimentId id) {
    return act_on_experiment(context_, id, core::ExperimentAction::kCancel);
  });
}
Status ExperimentService::KillExperiments(const Caller& caller, const v1::ExperimentsActionRequest& request,
                                          v1::ExperimentsActionResponse* response) {
  return bulk(caller, request, response, [this](ExperimentId id) {
    return act_on_experiment(context_, id, core::ExperimentAction::kKill);
  });
}
Status ExperimentService::ArchiveExperiments(const Caller& caller,
                                             const v1::ExperimentsActionRequest& request,
                                             v1::ExperimentsActionResponse* response) {
  return bulk(caller, request, response,
              [this](ExperimentId id) { return set_archived(context_, id, true); });
}
Status ExperimentService::UnarchiveExperiments(const Caller& caller,
                                               const v1::ExperimentsActionRequest& request,
                                               v1::ExperimentsActionResponse* response) {
  return bulk(caller, request, response,
              [this](ExperimentId id) { return set_archived(context_, id, false); });
}
Status ExperimentService::DeleteExperiments(const Caller& caller, const v1::ExperimentsActionRequest& request,
                                            v1::ExperimentsActionResponse* response) {
  return bulk(caller, request, response,
              [&](ExperimentId id) { return delete_experiment(context_, caller, id); });
}

}  // namespace det::api
