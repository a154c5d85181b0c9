// Streams of metric reports: every visible report of some trials, in pages.
#include <atomic>
#include <future>
#include <memory>

#include "master/api/convert/convert.h"
#include "master/api/experiments/trial.h"

namespace det::api {
namespace {

constexpr int kMaxStreamedTrials = 1000;
constexpr std::int64_t kReportsPerPage = 1000;

/// One stream. Runs on a download worker and blocks it while the client reads, so that few run at once and
/// memory is bounded to one page each. Deletes itself.
class ReportStream : public grpc::ServerWriteReactor<v1::GetMetricsResponse> {
 public:
  ReportStream(const Context& context, Credentials credentials, const char* method,
               v1::GetMetricsRequest request)
      : context_(context),
        credentials_(std::move(credentials)),
        method_(method),
        request_(std::make_shared<const v1::GetMetricsRequest>(std::move(request))) {
    if (!context_.downloads.try_post([this] { Finish(to_grpc(watched())); }))
      Finish(to_grpc(Error{Code::kUnavailable, "too many streams at once; try again in a moment", {}}));
  }
  void OnWriteDone(bool ok) override { written_.set_value(ok); }
  void OnDone() override { delete this; }

 private:
  /// Runs the stream while its caller may read the trials.
  Status watched() {
    TRY(authorize(method_, credentials_, *context_.sessions, request_.get()));
    const auto id =
        context_.streams->open(method_, credentials_, request_, [cut = cut_](const Error&) { *cut = true; });
    Status done = run();
    context_.streams->close(id);
    if (*cut_) return fail(Code::kUnauthenticated, "the right to read this has ended; log in again");
    return done;
  }

  Status run() {
    if (request_->trial_ids_size() > kMaxStreamedTrials)
      return fail(Code::kInvalidArgument, "trial_ids: at most " + std::to_string(kMaxStreamedTrials));
    for (const int id : request_->trial_ids()) TRY(db::get_trial(context_.pool, TrialId(id)));
    for (const int id : request_->trial_ids()) TRY(send(TrialId(id)));
    return {};
  }

  Status send(TrialId trial) {
    db::ReportFilter filter{.trial = trial, .group = request_->group(), .limit = kReportsPerPage};
    while (true) {
      TRY_ASSIGN(const auto rows, db::list_reports(context_.pool, filter));
      if (rows.empty()) return {};
      page_.Clear();
      for (const db::MetricReport& row : rows) to_proto(row, trial, page_.add_metrics());
      if (*cut_ || !written()) return fail(Code::kCancelled, "the stream was broken off");
      filter.after_group = rows.back().point.group;
      filter.after_steps = rows.back().point.steps_completed;
    }
  }

  static void to_proto(const db::MetricReport& row, TrialId trial, v1::StoredReport* out) {
    out->set_trial_id(static_cast<int>(trial.value));
    out->set_trial_run_id(row.run);
    out->set_group(row.point.group);
    out->set_total_batches(static_cast<int>(row.point.steps_completed));
    api::to_proto(row.point.reported, out->mutable_end_time());
    // Determined AI has its own key for the group "validation".
    const char* key = row.point.group == "validation" ? "validation_metrics" : "avg_metrics";
    json_to_struct(row.point.metrics,
                   (*out->mutable_metrics()->mutable_fields())[key].mutable_struct_value());
  }

  /// Waits for each write: one page in flight is the flow control.
  bool written() {
    written_ = {};
    auto done = written_.get_future();
    StartWrite(&page_);
    return done.get();
  }

  const Context& context_;
  const Credentials credentials_;
  const char* const method_;
  const std::shared_ptr<const v1::GetMetricsRequest> request_;
  const std::shared_ptr<std::atomic<bool>> cut_ = std::make_shared<std::atomic<bool>>(false);
  v1::GetMetricsResponse page_;
  std::promise<bool> written_;
};

v1::GetMetricsRequest in_group(v1::GetMetricsRequest request, const char* group) {
  request.set_group(group);
  return request;
}

}  // namespace

grpc::ServerWriteReactor<v1::GetMetricsResponse>* TrialService::GetMetrics(
    grpc::CallbackServerContext* call, const v1::GetMetricsRequest* request) {
  return new ReportStream(context_, read_credentials(*call), "/det.v1.TrialService/GetMetrics", *request);
}

grpc::ServerWriteReactor<v1::GetMetricsResponse>* TrialService::GetTrainingMetrics(
    grpc::CallbackServerContext* call, const v1::GetMetricsRequest* request) {
  return new ReportStream(context_, read_credentials(*call), "/det.v1.TrialService/GetTrainingMetrics",
                          in_group(*request, "training"));
}

grpc::ServerWriteReactor<v1::GetMetricsResponse>* TrialService::GetValidationMetrics(
    grpc::CallbackServerContext* call, const v1::GetMetricsRequest* request) {
  return new ReportStream(context_, read_credentials(*call), "/det.v1.TrialService/GetValidationMetrics",
                          in_group(*request, "validation"));
}

}  // namespace det::api
