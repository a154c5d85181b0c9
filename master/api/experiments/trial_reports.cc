// Reports of training processes over HTTP, one report a call.
#include <charconv>
#include <cmath>
#include <future>

#include "common/base/json.h"
#include "common/base/secret.h"
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

/// Adds the metrics of a report to those of the trial. Errors: those of MetricNames::add, and of the quota.
Status count_metrics(const Context& context, const Reporter& reporter, const std::vector<MetricKey>& keys) {
  return context.metric_names->add(reporter.trial, keys,
                                   context.quotas->check(core::QuotaResource::kMetricSeries, reporter.owner),
                                   context.quotas->is_fresh(reporter.started));
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
  Caller caller;
  TrialId trial;
  RunNumber run = 0;  ///< 0: not given, the current run
  db::MetricRow row;
  std::vector<MetricKey> keys;  ///< of the metrics in the row
  void finish(const Status& status) const { reactor->Finish(to_grpc(status)); }
};

void TrialService::forget_reporter(TrialId trial) {
  context_.edge.post([this, trial] {
    reporters_.erase(trial);
    ++forgotten_;
  });
}

/// Edge worker. The token is verified by the core once per run instead of once per report.
void TrialService::find_and_store(const std::shared_ptr<Arrival>& arrival) {
  const std::string& token = arrival->caller.credentials.allocation_token;
  const auto known = reporters_.find(arrival->trial);
  if (known != reporters_.end() && equal_secret(known->second.token, token))
    return store(arrival, known->second.reporter);
  const bool taken = context_.pools.ingest.try_post([this, arrival, before = forgotten_] {
    auto found = find_reporter(context_, arrival->caller, {.trial = arrival->trial});
    if (!found) return arrival->finish(tl::unexpected(found.error()));
    context_.edge.post([this, arrival, before, reporter = std::move(*found)] {
      // A notification during the lookup may have been about this allocation; then the result is not cached.
      if (before == forgotten_)
        reporters_[arrival->trial] = {arrival->caller.credentials.allocation_token, reporter};
      store(arrival, reporter);
    });
  });
  if (!taken) arrival->finish(tl::unexpected(busy()));
}

void TrialService::store(const std::shared_ptr<Arrival>& arrival, const Reporter& reporter) const {
  if (arrival->run != 0 && arrival->run != reporter.run) {
    return arrival->finish(fail(Code::kAborted, "run " + std::to_string(arrival->run) +
                                                    " is not the trial's current one (" +
                                                    std::to_string(reporter.run) + " is); leave"));
  }
  if (const Status counted = count_metrics(context_, reporter, arrival->keys); !counted)
    return arrival->finish(counted);
  loop::Change change{.kind = loop::Change::Kind::kMetrics,
                      .experiment = reporter.experiment,
                      .trial = reporter.trial,
                      .task = reporter.task,
                      .name = arrival->row.group,
                      .steps_completed = arrival->row.steps_completed};
  db::MetricBatch batch{.trial = reporter.trial, .run = reporter.run, .rows = {std::move(arrival->row)}};
  batch.done = [this, arrival, change = std::move(change)](const Status& status) {
    if (status) context_.hub.publish(change);
    arrival->finish(status);
  };
  if (!context_.bulk.try_push(std::move(batch))) arrival->finish(tl::unexpected(busy()));
}

/// The common case, a process with an allocation token and explicit steps, holds no worker thread. All other
/// reports are handled by take().
template <typename Request>
void TrialService::report(const Deferred& call, const Request* request, const char* method,
                          const v1::TrialMetrics& metrics, const std::string& group) {
  auto arrival = std::make_shared<Arrival>();
  arrival->caller.credentials = read_credentials(*call.context);
  const Credentials& credentials = arrival->caller.credentials;
  if (group == "validation" || !metrics.has_steps_completed() || credentials.allocation_token.empty() ||
      !credentials.user_token.empty()) {
    return post(
        context_.pools.ingest, call.reactor,
        [this, reactor = call.reactor, credentials, request, method, &metrics, group, begun = mono_now()] {
          reactor->Finish(to_grpc(
              perform(method, authenticate(method, credentials, *context_.sessions), *request, nullptr, begun,
                      [&](const Caller& caller) { return take(caller, metrics, group); })));
        });
  }
  arrival->reactor = call.reactor;
  v1::MetricsReport text;
  text.set_group(group);
  text.set_steps_completed(metrics.steps_completed());
  auto plain = plain_text(metrics.metrics().avg_metrics(), group, arrival->keys);
  // A fast-path text needs no second check.
  const bool known_good = plain && text.steps_completed() >= 0;
  text.set_metrics(plain ? std::move(*plain) : dump_json(from_struct(metrics.metrics().avg_metrics())));
  Status checked = check_group(group);
  if (checked && !known_good) {
    auto keys = check_metrics(text);
    if (keys) arrival->keys = std::move(*keys);
    if (!keys) checked = tl::unexpected(keys.error());
  }
  if (!checked) return arrival->finish(checked);
  arrival->trial = TrialId(metrics.trial_id());
  arrival->run = metrics.trial_run_id();
  const WallTime time = metrics.has_report_time() ? from_proto(metrics.report_time()) : wall_now();
  arrival->row = {group, text.steps_completed(), std::move(*text.mutable_metrics()), time};
  context_.edge.post([this, arrival] { find_and_store(arrival); });
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
  if (metrics.trial_run_id() != 0 && metrics.trial_run_id() != reporter.run) {
    return fail(Code::kAborted, "run " + std::to_string(metrics.trial_run_id()) +
                                    " is not the trial's current one (" + std::to_string(reporter.run) +
                                    " is); leave");
  }
  v1::MetricsReport report;
  report.set_group(group);
  // Clients that do not count steps report at the current step of the trial.
  report.set_steps_completed(metrics.has_steps_completed() ? metrics.steps_completed()
                                                           : reporter.steps_completed);
  report.set_metrics(dump_json(from_struct(metrics.metrics().avg_metrics())));
  TRY_ASSIGN(const auto keys, check_metrics(report));
  TRY(count_metrics(context_, reporter, keys));
  const WallTime time = metrics.has_report_time() ? from_proto(metrics.report_time()) : wall_now();
  if (group == "validation") {
    const auto reported = context_.loop.ask(
        core::ReportValidation{.trial = reporter.trial,
                               .run = reporter.run,
                               .steps_completed = report.steps_completed(),
                               .metrics = report.metrics(),
                               .searcher_metric = metric_value(report.metrics(), reporter.metric),
                               .searcher_time = metric_value(report.metrics(), reporter.time),
                               .reported = time});
    // Metrics that a user adds while the trial does not run are stored without an effect on the search.
    if (reported || !added || reported.error().code != Code::kAborted)
      return reported ? Status() : tl::unexpected(reported.error());
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
  report(call, request, "/det.v1.TrialService/ReportTrialMetrics", request->metrics(), request->group());
}
void TrialService::ReportTrialTrainingMetrics(const Deferred& call,
                                              const v1::ReportTrialTrainingMetricsRequest* request,
                                              v1::ReportTrialMetricsResponse*) {
  report(call, request, "/det.v1.TrialService/ReportTrialTrainingMetrics", request->training_metrics(),
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
