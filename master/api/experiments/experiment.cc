// Reads of experiments, actions on them, and continuation of searches.
#include "master/api/experiments/experiment.h"

#include <algorithm>

#include "common/base/secret.h"
#include "det/v1/experiment.methods.h"
#include "master/api/convert/convert.h"
#include "master/api/experiments/trial.h"
#include "master/db/queries/code_archives.h"
#include "master/db/store/pg_store_load.h"

namespace det::api {
namespace {

db::ExperimentSort sort_of(v1::GetExperimentsRequest::SortBy sort) {
  using Request = v1::GetExperimentsRequest;
  switch (sort) {
    case Request::SORT_BY_DESCRIPTION:
      return db::ExperimentSort::kDescription;
    case Request::SORT_BY_START_TIME:
      return db::ExperimentSort::kStartTime;
    case Request::SORT_BY_END_TIME:
      return db::ExperimentSort::kEndTime;
    case Request::SORT_BY_STATE:
      return db::ExperimentSort::kState;
    case Request::SORT_BY_NUM_TRIALS:
      return db::ExperimentSort::kNumTrials;
    case Request::SORT_BY_PROGRESS:
      return db::ExperimentSort::kProgress;
    case Request::SORT_BY_USER:
      return db::ExperimentSort::kUser;
    case Request::SORT_BY_NAME:
      return db::ExperimentSort::kName;
    case Request::SORT_BY_RESOURCE_POOL:
      return db::ExperimentSort::kResourcePool;
    case Request::SORT_BY_FORKED_FROM:
      return db::ExperimentSort::kForkedFrom;
    case Request::SORT_BY_PROJECT_ID:
      return db::ExperimentSort::kProject;
    case Request::SORT_BY_CHECKPOINT_SIZE:
      return db::ExperimentSort::kCheckpointSize;
    case Request::SORT_BY_CHECKPOINT_COUNT:
      return db::ExperimentSort::kCheckpointCount;
    case Request::SORT_BY_SEARCHER_METRIC_VAL:
      return db::ExperimentSort::kSearcherMetric;
    default:
      return db::ExperimentSort::kId;
  }
}

db::TrialSort sort_of(v1::GetExperimentTrialsRequest::SortBy sort) {
  using Request = v1::GetExperimentTrialsRequest;
  switch (sort) {
    case Request::SORT_BY_START_TIME:
      return db::TrialSort::kStartTime;
    case Request::SORT_BY_END_TIME:
      return db::TrialSort::kEndTime;
    case Request::SORT_BY_STATE:
      return db::TrialSort::kState;
    case Request::SORT_BY_BEST_VALIDATION_METRIC:
      return db::TrialSort::kBest;
    case Request::SORT_BY_LATEST_VALIDATION_METRIC:
      return db::TrialSort::kLatest;
    case Request::SORT_BY_BATCHES_PROCESSED:
      return db::TrialSort::kBatches;
    case Request::SORT_BY_DURATION:
      return db::TrialSort::kDuration;
    case Request::SORT_BY_RESTARTS:
      return db::TrialSort::kRestarts;
    case Request::SORT_BY_CHECKPOINT_SIZE:
      return db::TrialSort::kCheckpointSize;
    default:
      return db::TrialSort::kId;
  }
}

db::ExperimentFilter filter_of(const v1::GetExperimentsRequest& request) {
  constexpr int kDefaultLimit = 100;
  db::ExperimentFilter filter;
  filter.name = request.name();
  filter.description = request.description();
  filter.labels.assign(request.labels().begin(), request.labels().end());
  if (request.has_archived()) filter.archived = request.archived().value();
  filter.states = core_states(request.states());
  filter.users.assign(request.users().begin(), request.users().end());
  filter.user_ids.assign(request.user_ids().begin(), request.user_ids().end());
  if (request.project_id() != 0) filter.project = request.project_id();
  if (request.has_experiment_id_filter()) {
    const v1::Int32FieldFilter& ids = request.experiment_id_filter();
    // All bounds of the filter apply; the stricter one wins.
    // Exclusive bounds become inclusive ones, in 64 bits to avoid an overflow.
    if (ids.has_gt()) filter.first_id = std::int64_t{ids.gt().value()} + 1;
    if (ids.has_gte()) filter.first_id = std::max<std::int64_t>(filter.first_id, ids.gte().value());
    if (ids.has_lt()) filter.last_id = std::int64_t{ids.lt().value()} - 1;
    if (ids.has_lte()) filter.last_id = std::min<std::int64_t>(filter.last_id, ids.lte().value());
    filter.ids.assign(ids.incl().begin(), ids.incl().end());
    filter.not_ids.assign(ids.not_in().begin(), ids.not_in().end());
  }
  filter.sort = sort_of(request.sort_by());
  filter.window = to_window(request.offset(), request.limit(), request.order_by(), kDefaultLimit);
  return filter;
}

}  // namespace

ExperimentService::ExperimentService(const Context& context)
    : Service(context, v1::ExperimentService::full_name) {
  unary(v1::ExperimentService::CreateExperiment, &ExperimentService::CreateExperiment, context_.pools.submit);
  client_stream(v1::ExperimentService::UploadExperiment, &ExperimentService::UploadExperiment);
  unary(v1::ExperimentService::CreateFromCodeArchive, &ExperimentService::CreateFromCodeArchive,
        context_.pools.submit);
  unary(v1::ExperimentService::GetExperiments, &ExperimentService::GetExperiments);
  unary(v1::ExperimentService::GetExperiment, &ExperimentService::GetExperiment);
  unary(v1::ExperimentService::GetExperimentTrials, &ExperimentService::GetExperimentTrials);
  unary(v1::ExperimentService::GetExperimentCheckpoints, &ExperimentService::GetExperimentCheckpoints);
  unary(v1::ExperimentService::GetModelDef, &ExperimentService::GetModelDef, context_.pools.submit);
  unary(v1::ExperimentService::ActivateExperiment, &ExperimentService::ActivateExperiment);
  unary(v1::ExperimentService::PauseExperiment, &ExperimentService::PauseExperiment);
  unary(v1::ExperimentService::CancelExperiment, &ExperimentService::CancelExperiment);
  unary(v1::ExperimentService::KillExperiment, &ExperimentService::KillExperiment);
  unary(v1::ExperimentService::ExtendExperiment, &ExperimentService::ExtendExperiment);
  unary(v1::ExperimentService::RetryExperiment, &ExperimentService::RetryExperiment);
  unary(v1::ExperimentService::PatchExperiment, &ExperimentService::PatchExperiment);
  unary(v1::ExperimentService::ArchiveExperiment, &ExperimentService::ArchiveExperiment);
  unary(v1::ExperimentService::UnarchiveExperiment, &ExperimentService::UnarchiveExperiment);
  unary(v1::ExperimentService::DeleteExperiment, &ExperimentService::DeleteExperiment,
        context_.pools.removal);
  unary(v1::ExperimentService::DeleteTensorboardFiles, &ExperimentService::DeleteTensorboardFiles,
        context_.pools.removal);
  unary(v1::ExperimentService::PutExperimentLabel, &ExperimentService::PutExperimentLabel);
  unary(v1::ExperimentService::DeleteExperimentLabel, &ExperimentService::DeleteExperimentLabel);
  unary(v1::ExperimentService::GetExperimentLabels, &ExperimentService::GetExperimentLabels);
  unary(v1::ExperimentService::ContinueExperiment, &ExperimentService::ContinueExperiment,
        context_.pools.submit);
  unary(v1::ExperimentService::ActivateExperiments, &ExperimentService::ActivateExperiments,
        context_.pools.bulk);
  unary(v1::ExperimentService::PauseExperiments, &ExperimentService::PauseExperiments, context_.pools.bulk);
  unary(v1::ExperimentService::CancelExperiments, &ExperimentService::CancelExperiments, context_.pools.bulk);
  unary(v1::ExperimentService::KillExperiments, &ExperimentService::KillExperiments, context_.pools.bulk);
  unary(v1::ExperimentService::ArchiveExperiments, &ExperimentService::ArchiveExperiments,
        context_.pools.bulk);
  unary(v1::ExperimentService::UnarchiveExperiments, &ExperimentService::UnarchiveExperiments,
        context_.pools.bulk);
  unary(v1::ExperimentService::DeleteExperiments, &ExperimentService::DeleteExperiments,
        context_.pools.removal);
  unary(v1::ExperimentService::GetExperimentValidationHistory,
        &ExperimentService::GetExperimentValidationHistory);
  unary(v1::ExperimentService::GetBestSearcherValidationMetric,
        &ExperimentService::GetBestSearcherValidationMetric);
  unary(v1::ExperimentService::GetModelDefTree, &ExperimentService::GetModelDefTree, context_.pools.submit);
  unary(v1::ExperimentService::GetModelDefFile, &ExperimentService::GetModelDefFile, context_.pools.submit);
  unary(v1::ExperimentService::PreviewHPSearch, &ExperimentService::PreviewHPSearch);
}

Status ExperimentService::GetExperiments(const Caller& caller, const v1::GetExperimentsRequest& request,
                                         v1::GetExperimentsResponse* response) {
  db::ExperimentFilter filter = filter_of(request);
  // Filtered in SQL, so that pages and totals count visible experiments only.
  filter.visible = caller.grants.visible();
  TRY_ASSIGN(const auto page, db::list_experiments(context_.pool, filter));
  for (const db::ExperimentRow& row : page.rows) to_proto(row, response->add_experiments());
  to_pagination(page, filter.window, response->mutable_pagination());
  return {};
}

Status ExperimentService::GetExperiment(const Caller&, const v1::GetExperimentRequest& request,
                                        v1::GetExperimentResponse* response) {
  TRY_ASSIGN(const auto row, db::get_experiment(context_.pool, ExperimentId(request.experiment_id())));
  to_proto(row, response->mutable_experiment());
  *response->mutable_config() = response->experiment().config();
  // Clients of Determined AI accept few job states. An ended experiment has no job.
  if (response->experiment().state() == v1::STATE_QUEUED)
    response->mutable_job_summary()->set_state(v1::STATE_QUEUED);
  return {};
}

Status ExperimentService::GetExperimentTrials(const Caller&, const v1::GetExperimentTrialsRequest& request,
                                              v1::GetExperimentTrialsResponse* response) {
  const ExperimentId id(request.experiment_id());
  TRY(db::get_experiment(context_.pool, id));
  // Without a limit all trials are returned, as clients of Determined AI expect.
  const db::TrialFilter filter{.experiment = id,
                               .states = core_states(request.states()),
                               .window = to_window(request.offset(), request.limit(), request.order_by(), -1),
                               .sort = sort_of(request.sort_by())};
  TRY_ASSIGN(const auto page, db::list_trials(context_.pool, filter));
  for (const db::TrialRow& row : page.rows) to_proto(row, response->add_trials());
  to_pagination(page, filter.window, response->mutable_pagination());
  return {};
}

Status ExperimentService::GetExperimentCheckpoints(const Caller&,
                                                   const v1::GetExperimentCheckpointsRequest& request,
                                                   v1::GetExperimentCheckpointsResponse* response) {
  const ExperimentId id(request.id());
  TRY_ASSIGN(const auto experiment, db::get_experiment(context_.pool, id));
  return answer_checkpoints(context_.pool, {.experiment = id}, experiment.config, request, response);
}

Status ExperimentService::GetModelDef(const Caller&, const v1::GetModelDefRequest& request,
                                      v1::GetModelDefResponse* response) {
  TRY_ASSIGN(const std::string bytes,
             db::get_code_archive(context_.pool, ExperimentId(request.experiment_id())));
  response->set_b64_tgz(to_base64(bytes));
  return {};
}

Status act_on_experiment(const Context& context, ExperimentId id, core::ExperimentAction action) {
  auto done = context.loop.ask(core::ActOnExperiment{.experiment = id, .action = action});
  if (done) return {};
  if (done.error().code != Code::kNotFound) return tl::unexpected(done.error());
  // The core drops ended experiments. Stopping one is a success.
  TRY_ASSIGN(const auto row, db::get_experiment(context.pool, id));
  if (action == core::ExperimentAction::kKill || action == core::ExperimentAction::kCancel) return {};
  return fail(Code::kFailedPrecondition,
              "experiment " + std::to_string(id.value) + " is " + std::string(core::state_name(row.state)));
}

Status ExperimentService::ActivateExperiment(const Caller&, const v1::ExperimentActionRequest& request,
                                             v1::ExperimentActionResponse*) {
  return act_on_experiment(context_, ExperimentId(request.id()), core::ExperimentAction::kActivate);
}

Status ExperimentService::PauseExperiment(const Caller&, const v1::ExperimentActionRequest& request,
                                          v1::ExperimentActionResponse*) {
  return act_on_experiment(context_, ExperimentId(request.id()), core::ExperimentAction::kPause);
}

Status ExperimentService::CancelExperiment(const Caller&, const v1::ExperimentActionRequest& request,
                                           v1::ExperimentActionResponse*) {
  return act_on_experiment(context_, ExperimentId(request.id()), core::ExperimentAction::kCancel);
}

Status ExperimentService::KillExperiment(const Caller&, const v1::ExperimentActionRequest& request,
                                         v1::ExperimentActionResponse*) {
  return act_on_experiment(context_, ExperimentId(request.id()), core::ExperimentAction::kKill);
}

/// The core is tried first, for a live experiment. For an ended one its rows are loaded and passed along.
Status ExperimentService::continue_search(ExperimentId id, std::optional<searcher::Extended> extend,
                                          bool only_check, bool canceled) const {
  core::ContinueSearch wish{
      .experiment = id, .extend = extend, .ended = nullptr, .only_check = only_check, .canceled = canceled};
  auto done = context_.loop.ask(wish);
  if (!done && done.error().code == Code::kNotFound) {
    TRY_ASSIGN(auto rows, context_.pool.with<core::Recovered>(
                              [id](db::Connection& connection) { return db::load_ended(connection, id); }));
    wish.ended = std::make_shared<const core::Recovered>(std::move(rows));
    done = context_.loop.ask(wish);
  }
  if (!done) return tl::unexpected(done.error());
  return {};
}

Status ExperimentService::ExtendExperiment(const Caller&, const v1::ExtendExperimentRequest& request,
                                           v1::ExperimentActionResponse*) {
  searcher::Extended more;
  // Unset totals keep their value.
  if (request.has_max_trials()) more.max_trials = request.max_trials();
  if (request.has_max_time()) more.max_time = request.max_time();
  return continue_search(ExperimentId(request.id()), more);
}

Status ExperimentService::RetryExperiment(const Caller&, const v1::ExperimentActionRequest& request,
                                          v1::ExperimentActionResponse*) {
  return continue_search(ExperimentId(request.id()), std::nullopt);
}

}  // namespace det::api
