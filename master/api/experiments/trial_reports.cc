// Reports of training processes over HTTP, one report a call.
#include <charconv>
#include <cmath>
#include <future>

#include "common/base/json.h"
#include "det/v1/trial.methods.h"
#include "master/api/convert/convert.h"
#include "master/api/experiments/reporter.h"
#include "master/api/experiments/trial.h"
#include "master/api/streams/harness_session.h"

namespace det::api {
namespace {

constexpr auto kBulkWait = std::chrono::seconds(30);

/// Stores metrics that the searcher does not use. Blocks until they are durable, at most 30 s.
Status store_rows(const Context& context, const Reporter& reporter, const v1::MetricsReport& report,
                  WallTime time) {
  auto stored = std::make_shared<std::promise<Status>>();
  auto answer = stored->get_future();
  db::MetricBatch batch{.trial = reporter.trial,
                        .run = reporter.run,
                        .rows = {{report.group(), report.steps_completed(), report.metrics(), time}},
                        .done = [stored](Status status) { stored->set_value(std::move(status)); }};
  // A full writer is reported rather than waited for: workers are few.
  if (!context.bulk.try_push(std::move(batch))) return tl::unexpected(busy());
  if (answer.wait_for(kBulkWait) != std::future_status::ready)
    return fail(Code::kUnavailable, "the metrics were not stored in time; send them again");
  return answer.get();
}

/// Adds the metrics of a report to those of the trial, a Reporter or ConfirmedTrial. Errors: those of
/// MetricNames::add, and of the quota.
template <typename Trial>
Status count_metrics(const Context& context, const Trial& trial, const std::vector<MetricKey>& keys) {
  return context.metric_names->add(trial.trial, keys,
                                   context.quotas->check(core::QuotaResource::kMetricSeries, trial.owner),
                                   context.quotas->is_fresh(trial.started));
}
/// Refuses a report of another run than the current one. `run` 0: not given. Errors: kAborted.
Status check_run(RunNumber run, RunNumber current) {
  if (run == 0 || run == current) return {};
  return fail(Code::kAborted, "run " + std::to_string(run) + " is not the trial's current one (" +
                                  std::to_string(current) + " is); leave");
}

/// Fast path: JSON text of metrics that are finite numbers under plain names, as nearly all are. Nothing for
/// other metrics. The result satisfies the limits of report_check.h. Fills the keys of the metrics.
std::optional<std::string> plain_text(const google::protobuf::Struct& metrics, const std::string& group,
                                      std::vector<MetricKey>& keys) {
  constexpr std::size_t kMaxReportMetrics = 100, kMaxReportName = 256;
  if (metrics.fields_size() == 0 || metrics.fields().size() > kMaxReportMetrics) return std::nullopt;
  std::string text = "{";
  for (const auto& [name, value] : metrics.fields()) {
    const auto odd = [](unsigned char c) { return c < 0x20 || c > 0x7e || c == '"' || c == '\\'; };
    if (name.empty() || name.size() > kMaxReportName || std::any_of(name.begin(), name.end(), odd))
      return std::nullopt;
    if (value.kind_case() != google::protobuf::Value::kNumberValue || !std::isfinite(value.number_value()))
      return std::nullopt;
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, value.number_value()).ptr;
    text += (text.size() > 1 ? ",\"" : "\"") + name + "\":";
    text.append(digits, end);
    keys.push_back(metric_key(group, name));
  }
  return text + "}";
}

}  // namespace

/// One report on its way to the database. No thread waits for it; the call is finished by the bulk writer.
struct TrialService::Arrival {
  grpc::ServerUnaryReactor* reactor = nullptr;
  RunNumber run = 0;  ///< 0: not given, the current run
  db::MetricRow row;
  std::vector<MetricKey> keys;  ///< of the metrics in the row
  void finish(const Status& status) const { reactor->Finish(to_grpc(status)); }
};

void TrialService::store(const std::shared_ptr<Arrival>& arrival, const ConfirmedTrial& trial) const {
  Status accepted = check_run(arrival->run, trial.run);
  if (accepted) accepted = count_metrics(context_, trial, arrival->keys);
  if (!accepted) return arrival->finish(accepted);
  loop::Change change{.kind = loop::Change::Kind::kMetrics,
                      .experiment = trial.experiment,
                      .trial = trial.trial,
                      .task = trial.task,
                      .name = arrival->row.group,
                      .steps_completed = arrival->row.steps_completed};
  db::MetricBatch batch{.trial = trial.trial, .run = trial.run, .rows = {std::move(arrival->row)}};
  batch.done = [this, arrival, change = std::move(change)](const Status& status) {
    if (status) context_.hub.publish(change);
    arrival->finish(status);
  };
  if (!context_.bulk.try_push(std::move(batch))) arrival->finish(tl::unexpected(busy()));
}

/// The common case, a confirmed process that reports for its trial with explicit steps, holds no worker
/// thread. All other reports are handled by take().
template <typename Request>
void TrialService::report(const Deferred& call, const Request* request, const char* path,
                          const v1::TrialMetrics& metrics, const std::string& group) {
  if (group == "validation" || !metrics.has_steps_completed() || !call.trial ||
      call.trial->trial != TrialId(metrics.trial_id())) {
    return post(context_.pools.ingest, call.reactor,
                [this, reactor = call.reactor, credentials = read_credentials(*call.context), request, path,
                 &metrics, group, begun = mono_now()] {
                  reactor->Finish(to_grpc(
                      perform(path, authenticate(path, credentials, *context_.sessions), *request, nullptr,
                              begun, [&](const Caller& caller) { return take(caller, metrics, group); })));
                });
  }
  auto arrival = std::make_shared<Arrival>();
  arrival->reactor = call.reactor;
  v1::MetricsReport text;
  text.set_group(group);
  text.set_steps_completed(metrics.steps_completed());
  auto plain = plain_text(metrics.metrics().avg_metrics(), group, arrival->keys);
  // A fast-path text needs no second check.
  const bool known_good = plain && text.steps_completed() >= 0;
  Status checked = check_group(group);
  if (plain) {
    text.set_metrics(std::move(*plain));
  } else if (const auto json = from_struct(metrics.metrics().avg_metrics(), "metrics"); json) {
    text.set_metrics(dump_json(*json));
  } else if (checked) {
    checked = tl::unexpected(json.error());
  }
  if (checked && !known_good) {
    auto keys = check_metrics(text);
    if (keys) arrival->keys = std::move(*keys);
    if (!keys) checked = tl::unexpected(keys.error());
  }
  if (!checked) return arrival->finish(checked);
  arrival->run = metrics.trial_run_id();
  const WallTime time = metrics.has_report_time() ? from_proto(metrics.report_time()) : wall_now();
  arrival->row = {group, text.steps_completed(), std::move(*text.mutable_metrics()), time};
  store(arrival, *call.trial);
}

Status TrialService::take(const Caller& caller, const v1::TrialMetrics& metrics,
                          const std::string& group) const {
  const TrialId trial(metrics.trial_id());
  auto found = find_reporter(context_, caller, {.trial = trial});
  // Users may add metrics to the trials that they may edit, as in Determined AI.
  const bool by_user = caller.credentials.allocation_token.empty() && !caller.credentials.user_token.empty();
  const bool added = !found && by_user && found.error().code == Code::kUnauthenticated;
  if (added) found = find_editable(context_, caller, trial);
  TRY_ASSIGN(const Reporter reporter, std::move(found));
  TRY(check_run(metrics.trial_run_id(), reporter.run));
  v1::MetricsReport report;
  report.set_group(group);
  // Clients that do not count steps report at the current step of the trial.
  report.set_steps_completed(metrics.has_steps_completed() ? metrics.steps_completed()
                                                           : reporter.steps_completed);
  TRY_ASSIGN(const Json values, from_struct(metrics.metrics().avg_metrics(), "metrics"));
  report.set_metrics(dump_json(values));
  TRY_ASSIGN(const auto keys, check_metrics(report));
  TRY(count_metrics(context_, reporter, keys));
  const WallTime time = metrics.has_report_time() ? from_proto(metrics.report_time()) : wall_now();
  // A validation that a user adds is stored without an effect on the search: the core drops validations of
  // the trial that are not beyond the newest one.
  if (group == "validation" && !added) {
    TRY(context_.loop.ask(
        core::ReportValidation{.trial = reporter.trial,
                               .run = reporter.run,
                               .steps_completed = report.steps_completed(),
                               .metrics = report.metrics(),
                               .searcher_metric = metric_value(report.metrics(), reporter.metric),
                               .searcher_time = metric_value(report.metrics(), reporter.time),
                               .reported = time}));
    return {};
  }
  TRY(store_rows(context_, reporter, report, time));
  ++context_.calls->metric_reports;
  context_.hub.publish({.kind = loop::Change::Kind::kMetrics,
                        .experiment = reporter.experiment,
                        .trial = reporter.trial,
                        .task = reporter.task,
                        .name = group,
                        .steps_completed = report.steps_completed()});
  return {};
}

void TrialService::ReportTrialMetrics(const Deferred& call, const v1::ReportTrialMetricsRequest* request,
                                      v1::ReportTrialMetricsResponse*) {
  report(call, request, v1::TrialService::ReportTrialMetrics.path, request->metrics(), request->group());
}
void TrialService::ReportTrialTrainingMetrics(const Deferred& call,
                                              const v1::ReportTrialTrainingMetricsRequest* request,
                                              v1::ReportTrialMetricsResponse*) {
  report(call, request, v1::TrialService::ReportTrialTrainingMetrics.path, request->training_metrics(),
         "training");
}
Status TrialService::ReportTrialValidationMetrics(const Caller& caller,
                                                  const v1::ReportTrialValidationMetricsRequest& request,
                                                  v1::ReportTrialMetricsResponse*) {
  return take(caller, request.validation_metrics(), "validation");
}

Status TrialService::ReportTrialProgress(const Caller& caller, const v1::ReportTrialProgressRequest& request,
                                         v1::ReportTrialProgressResponse*) {
  TRY_ASSIGN(const Reporter reporter,
             find_reporter(context_, caller, {.trial = TrialId(request.trial_id())}));
  const double progress = request.progress();
  if (!(progress >= 0 && progress <= 1))
    return fail(Code::kInvalidArgument, "progress: must be within 0 and 1");
  TRY(context_.loop.ask(core::ReportProgress{.trial = reporter.trial,
                                             .run = reporter.run,
                                             .progress = progress,
                                             .steps_completed = reporter.steps_completed}));
  return {};
}

Status TrialService::PostTrialRunnerMetadata(const Caller& caller,
                                             const v1::PostTrialRunnerMetadataRequest& request,
                                             v1::PostTrialRunnerMetadataResponse*) {
  return admit(context_, caller, {.trial = TrialId(request.trial_id())});
}

Status TrialService::ReportTrialSearcherEarlyExit(const Caller& caller,
                                                  const v1::ReportTrialSearcherEarlyExitRequest& request,
                                                  v1::ReportTrialSearcherEarlyExitResponse*) {
  TRY_ASSIGN(const Reporter reporter,
             find_reporter(context_, caller, {.trial = TrialId(request.trial_id())}));
  if (request.early_exit().reason() == v1::TrialEarlyExit::EXITED_REASON_UNSPECIFIED)
    return fail(Code::kInvalidArgument, "reason: EXITED_REASON_INVALID_HP or EXITED_REASON_INIT_INVALID_HP");
  if (reporter.invalid_hp) return fail(Code::kFailedPrecondition, "the trial has said so already");
  TRY(context_.loop.ask(core::ReportInvalidHp{.trial = reporter.trial, .run = reporter.run}));
  return {};
}

}  // namespace det::api
