// Streams of metric reports: every visible report of some trials, in pages.
#include "master/api/convert/convert.h"
#include "master/api/experiments/trial.h"
#include "master/api/streams/paced_stream.h"

namespace det::api {
namespace {

constexpr int kMaxStreamedTrials = 1000;
/// Limits of one page: reports, and their stored size in bytes. PostgreSQL compresses long reports.
constexpr std::int64_t kReportsPerPage = 1000, kBytesPerPage = 256 << 10;

/// One stream: the reports of one trial after the other, in pages.
class ReportStream final : public PacedStream<v1::GetMetricsRequest, v1::GetMetricsResponse> {
 public:
  /// `group`: the only group to send; "": that of the request.
  ReportStream(const Context& context, grpc::CallbackServerContext* call, const char* method,
               const Unread<v1::GetMetricsRequest>& request, std::string group = "")
      : PacedStream(context, call, method, request), group_(std::move(group)) {}

 private:
  Status run() override {
    if (request().trial_ids_size() > kMaxStreamedTrials)
      return fail(Code::kInvalidArgument, "trial_ids: at most " + std::to_string(kMaxStreamedTrials));
    std::vector<std::string> ids;
    for (const int id : request().trial_ids()) ids.push_back(std::to_string(id));
    TRY_ASSIGN(const auto workspaces, db::workspaces_of(context_.stream_pool, db::Placed::kTrial, ids));
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (!workspaces[i]) return fail(Code::kNotFound, "trial " + ids[i] + " not found");
    for (const int id : request().trial_ids()) TRY(send_reports(TrialId(id)));
    return {};
  }

  Status send_reports(TrialId trial) {
    db::ReportFilter filter{.trial = trial,
                            .group = group_.empty() ? request().group() : group_,
                            .limit = kReportsPerPage,
                            .bytes = kBytesPerPage};
    v1::GetMetricsResponse page;
    while (true) {
      TRY_ASSIGN(const auto rows, db::list_reports(context_.stream_pool, filter));
      if (rows.empty()) return {};
      page.Clear();
      for (const db::MetricReport& row : rows) to_proto(row, trial, page.add_metrics());
      if (!send(page)) return fail(Code::kCancelled, "the stream was broken off");
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

  const std::string group_;
};

}  // namespace

grpc::ServerWriteReactor<v1::GetMetricsResponse>* TrialService::GetMetrics(
    grpc::CallbackServerContext* call, const Unread<v1::GetMetricsRequest>& request) {
  return (new ReportStream(context_, call, "/det.v1.TrialService/GetMetrics", request))->start();
}

grpc::ServerWriteReactor<v1::GetMetricsResponse>* TrialService::GetTrainingMetrics(
    grpc::CallbackServerContext* call, const Unread<v1::GetMetricsRequest>& request) {
  const char* const method = "/det.v1.TrialService/GetTrainingMetrics";
  return (new ReportStream(context_, call, method, request, "training"))->start();
}

grpc::ServerWriteReactor<v1::GetMetricsResponse>* TrialService::GetValidationMetrics(
    grpc::CallbackServerContext* call, const Unread<v1::GetMetricsRequest>& request) {
  const char* const method = "/det.v1.TrialService/GetValidationMetrics";
  return (new ReportStream(context_, call, method, request, "validation"))->start();
}

}  // namespace det::api
