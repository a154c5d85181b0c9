// Handler of SearchService.
#include "master/api/experiments/search.h"

#include "det/v1/search.methods.h"
#include "master/api/convert/convert.h"
#include "master/db/search/search.h"

namespace det::api {

SearchService::SearchService(const Context& context) : Service(context, v1::SearchService::full_name) {
  unary(v1::SearchService::SearchExperiments, &SearchService::SearchExperiments);
}

Status SearchService::SearchExperiments(const Caller& caller, const v1::SearchExperimentsRequest& request,
                                        v1::SearchExperimentsResponse* response) {
  constexpr int kDefaultLimit = 100;
  db::ExperimentSearch search{
      .text = request.text(),
      .filter = request.filter(),
      .sort = request.sort(),
      .window = to_window(request.offset(), request.limit(), v1::ORDER_BY_ASC, kDefaultLimit)};
  // Project 0 searches all visible projects.
  if (request.project_id() != 0) search.project = request.project_id();
  search.visible = caller.grants.visible();
  TRY_ASSIGN(const auto page, db::search_experiments(context_.pool, search));
  for (const db::FoundExperiment& one : page.rows) {
    v1::SearchExperimentExperiment* out = response->add_experiments();
    to_proto(one.row, out->mutable_experiment());
    // An experiment without a validation has no best trial.
    if (one.best_hparams.empty()) continue;
    v1::Trial* best = out->mutable_best_trial();
    if (one.row.best_trial) best->set_id(static_cast<int>(one.row.best_trial->value));
    best->set_experiment_id(static_cast<int>(one.row.id.value));
    json_to_struct(one.best_hparams, best->mutable_hparams());
    if (one.row.best_metric) best->mutable_searcher_metric_value()->set_value(*one.row.best_metric);
    if (one.best_metadata) json_to_struct(*one.best_metadata, best->mutable_metadata());
    if (one.best_training) json_to_struct(*one.best_training, out->mutable_best_training());
    if (one.best_validation) {
      json_to_struct(*one.best_validation,
                     best->mutable_best_validation()->mutable_metrics()->mutable_avg_metrics());
    }
  }
  to_pagination(page, search.window, response->mutable_pagination());
  return {};
}

}  // namespace det::api
