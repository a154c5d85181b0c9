// Owns what a process of the cluster reports of its trial over HTTP, one call a report.
#include <cmath>
#include <future>

#include "base/json.h"
#include "master/api/convert.h"
#include "master/api/harness_session.h"
#include "master/api/reporter.h"
#include "master/api/trial.h"

namespace det::api {
namespace {

constexpr auto kBulkWait = std::chrono::seconds(30);

/// Metrics that nobody decides on: durable when this returns.
Status store_rows(const Context& context, const Reporter& reporter, const v1::MetricsReport& report, WallTime time) {
  auto stored = std::make_shared<std::promise<Status>>();
  auto answer = stored->get_future();
  db::MetricBatch batch{.trial = reporter.trial,
                        .run = reporter.run,
                        .rows = {{report.group(), report.steps_completed(), report.metrics(), time}},
                        .done = [stored](Status status) { stored->set_value(std::move(status)); }};
  if (!context.bulk.try_push(std::move(batch)))
    return fail(Code::kUnavailable, "the master is busy; try again in a moment");
  if (answer.wait_for(kBulkWait) != std::future_status::ready)
    return fail(Code::kUnavailable, "the metrics were not stored in time; send them again");
  return answer.get();
}

}  // namespace

Status TrialService::take(const Caller& caller, const v1::TrialMetrics& metrics, const std::string& group) const {
  TRY_ASSIGN(const Reporter reporter, find_reporter(context_, caller, {.trial = TrialId(metrics.trial_id())}));
  if (metrics.trial_run_id() != 0 && metrics.trial_run_id() != reporter.run) {
    return fail(Code::kAborted, "run " + std::to_string(metrics.trial_run_id()) + " is not the trial's current one (" +
                                    std::to_string(reporter.run) + " is); leave");
  }
  v1::MetricsReport report;
  report.set_group(group);
  report.set_steps_completed(metrics.has_steps_completed() ? metrics.steps_completed() : reporter.steps_completed);
  report.set_metrics(dump_json(from_struct(metrics.metrics().avg_metrics())));
  TRY(check_metrics(report));
  const WallTime time = metrics.has_report_time() ? from_proto(metrics.report_time()) : wall_now();
  if (group == "validation") {
    TRY(context_.loop.ask(core::ReportValidation{.trial = reporter.trial,
                                                 .run = reporter.run,
                                                 .steps_completed = report.steps_completed(),
                                                 .metrics = report.metrics(),
                                                 .searcher_metric = metric_value(report.metrics(), reporter.metric),
                                                 .searcher_time = metric_value(report.metrics(), reporter.time),
                                                 .reported = time}));
    return {};
  }
  TRY(store_rows(context_, reporter, report, time));
  context_.hub.publish({.kind = loop::Change::Kind::kMetrics,
                        .experiment = reporter.experiment,
                        .trial = reporter.trial,
                        .task = reporter.task,
                        .name = group});
  return {};
}

grpc::ServerUnaryReactor* TrialService::ReportTrialMetrics(grpc::CallbackServerContext* call,
                                                           const v1::ReportTrialMetricsRequest* request,
                                                           v1::ReportTrialMetricsResponse*) {
  return unary(context_, call, request, "/det.v1.TrialService/ReportTrialMetrics",
               [this, request](const Caller& caller) { return take(caller, request->metrics(), request->group()); });
}
grpc::ServerUnaryReactor* TrialService::ReportTrialTrainingMetrics(
    grpc::CallbackServerContext* call, const v1::ReportTrialTrainingMetricsRequest* request,
    v1::ReportTrialMetricsResponse*) {
  return unary(context_, call, request, "/det.v1.TrialService/ReportTrialTrainingMetrics",
               [this, request](const Caller& caller) { return take(caller, request->training_metrics(), "training"); });
}
grpc::ServerUnaryReactor* TrialService::ReportTrialValidationMetrics(
    grpc::CallbackServerContext* call, const v1::ReportTrialValidationMetricsRequest* request,
    v1::ReportTrialMetricsResponse*) {
  return unary(context_, call, request, "/det.v1.TrialService/ReportTrialValidationMetrics",
               [this, request](const Caller& caller) {
                 return take(caller, request->validation_metrics(), "validation");
               });
}

grpc::ServerUnaryReactor* TrialService::ReportTrialProgress(grpc::CallbackServerContext* call,
                                                            const v1::ReportTrialProgressRequest* request,
                                                            v1::ReportTrialProgressResponse*) {
  auto body = [this, request](const Caller& caller) -> Status {
    TRY_ASSIGN(const Reporter reporter, find_reporter(context_, caller, {.trial = TrialId(request->trial_id())}));
    const double progress = request->progress();
    if (!(progress >= 0 && progress <= 1)) return fail(Code::kInvalidArgument, "progress: must be within 0 and 1");
    TRY(context_.loop.ask(core::ReportProgress{.trial = reporter.trial,
                                               .run = reporter.run,
                                               .progress = progress,
                                               .steps_completed = reporter.steps_completed}));
    return {};
  };
  return unary(context_, call, request, "/det.v1.TrialService/ReportTrialProgress", body);
}

grpc::ServerUnaryReactor* TrialService::PostTrialRunnerMetadata(grpc::CallbackServerContext* call,
                                                                const v1::PostTrialRunnerMetadataRequest* request,
                                                                v1::PostTrialRunnerMetadataResponse*) {
  return unary(context_, call, request, "/det.v1.TrialService/PostTrialRunnerMetadata",
               [this, request](const Caller& caller) {
                 return admit(context_, caller, {.trial = TrialId(request->trial_id())});
               });
}

grpc::ServerUnaryReactor* TrialService::ReportTrialSearcherEarlyExit(
    grpc::CallbackServerContext* call, const v1::ReportTrialSearcherEarlyExitRequest* request,
    v1::ReportTrialSearcherEarlyExitResponse*) {
  auto body = [this, request](const Caller& caller) -> Status {
    TRY_ASSIGN(const Reporter reporter, find_reporter(context_, caller, {.trial = TrialId(request->trial_id())}));
    if (request->early_exit().reason() == v1::TrialEarlyExit::EXITED_REASON_UNSPECIFIED)
      return fail(Code::kInvalidArgument, "reason: EXITED_REASON_INVALID_HP or EXITED_REASON_INIT_INVALID_HP");
    if (reporter.invalid_hp) return fail(Code::kFailedPrecondition, "the trial has said so already");
    TRY(context_.loop.ask(core::ReportInvalidHp{.trial = reporter.trial, .run = reporter.run}));
    return {};
  };
  return unary(context_, call, request, "/det.v1.TrialService/ReportTrialSearcherEarlyExit", body);
}

}  // namespace det::api
