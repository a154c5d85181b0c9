// Retention of the logs of trials.
#include "master/api/experiments/log.h"
#include "master/db/queries/experiments.h"
#include "master/db/queries/logs.h"

namespace det::api {
namespace {

constexpr int kMaxRetained = 10'000;  // experiments of one call

Status check_days(int days) {
  if (days >= -1 && days <= 32767) return {};
  return fail(Code::kInvalidArgument, "numDays: must be from -1 (keep the logs) to 32767");
}

}  // namespace

Status LogService::PutTrialRetainLogs(const Caller&, const v1::PutTrialRetainLogsRequest& request,
                                      v1::PutRetainLogsResponse*) {
  TRY(check_days(request.num_days()));
  return db::set_log_retention(context_.pool, TrialId(request.trial_id()), request.num_days());
}

Status LogService::PutExperimentRetainLogs(const Caller&, const v1::PutExperimentRetainLogsRequest& request,
                                           v1::PutRetainLogsResponse*) {
  TRY(check_days(request.num_days()));
  return db::set_log_retention(context_.pool, ExperimentId(request.experiment_id()), request.num_days());
}

Status LogService::PutExperimentsRetainLogs(const Caller& caller,
                                            const v1::PutExperimentsRetainLogsRequest& request,
                                            v1::PutExperimentsRetainLogsResponse* response) {
  TRY(check_days(request.num_days()));
  if (request.has_filters())
    return fail(Code::kUnimplemented, "filters: not supported; name the experiments in experimentIds");
  if (request.experiment_ids_size() > kMaxRetained)
    return fail(Code::kInvalidArgument, "experimentIds: at most 10,000");
  for (const int id : request.experiment_ids()) {
    v1::ExperimentActionResult* result = response->add_results();
    result->set_id(id);
    Status done = authorize(caller, Action::kEdit, Target::kExperiment, {std::to_string(id)}, context_.pool);
    const auto row = db::get_experiment(context_.pool, ExperimentId(id));
    if (done && !row) done = tl::unexpected(row.error());
    const bool inside = row && (request.project_id() <= 0 || row->project == request.project_id());
    if (done && !inside) done = fail(Code::kNotFound, "experiment " + std::to_string(id) + " not found");
    if (done) done = db::set_log_retention(context_.pool, row->id, request.num_days());
    if (!done) result->set_error(done.error().message);
  }
  return {};
}

Status LogService::GetTrialRemainingLogRetentionDays(
    const Caller&, const v1::GetTrialRemainingLogRetentionDaysRequest& request,
    v1::GetTrialRemainingLogRetentionDaysResponse* response) {
  TRY_ASSIGN(const auto days, db::remaining_log_days(context_.pool, TrialId(request.id()),
                                                     context_.settings.log_retention_days));
  if (days) response->set_remaining_days(static_cast<int>(*days));
  return {};
}

Status LogService::CleanupLogs(const Caller&, const v1::CleanupLogsRequest&,
                               v1::CleanupLogsResponse* response) {
  TRY_ASSIGN(const std::int64_t tasks, db::forget_logs(context_.pool, context_.settings.log_retention_days));
  response->set_removed_count(tasks);
  return {};
}

}  // namespace det::api
