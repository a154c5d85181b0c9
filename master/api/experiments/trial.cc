// Handlers of TrialService except reports (trial_reports.cc).
#include "master/api/experiments/trial.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "common/base/json.h"
#include "common/base/text.h"
#include "common/crypto/digest.h"
#include "common/expconf/parse.h"
#include "det/v1/trial.methods.h"
#include "master/api/experiments/reporter.h"
#include "master/api/submit/secrets.h"
#include "master/db/queries/experiments.h"
#include "master/db/queries/trials.h"

namespace det::api {
namespace {

constexpr int kMaxComparedTrials = 100;

/// Metric group of a request: a name, or one of the two built-in types. "" when neither is given.
std::string group_of(v1::MetricType type, const std::string& group) {
  if (!group.empty()) return group;
  if (type == v1::METRIC_TYPE_TRAINING) return "training";
  if (type == v1::METRIC_TYPE_VALIDATION) return "validation";
  return "";
}

/// Common part of the two series requests: trials, range of steps, number of points.
template <typename Request>
Result<db::SeriesRequest> series_request(const Request& request) {
  if (request.trial_ids_size() == 0)
    return fail(Code::kInvalidArgument, "trial_ids: name at least one trial");
  if (request.trial_ids_size() > kMaxComparedTrials) {
    return fail(Code::kInvalidArgument,
                "trial_ids: at most " + std::to_string(kMaxComparedTrials) + " trials");
  }
  if (request.start_batches() < 0 || request.end_batches() < 0) {
    return fail(Code::kInvalidArgument, "start_batches and end_batches must not be negative");
  }
  db::SeriesRequest out{.first_steps = request.start_batches()};
  for (const int id : request.trial_ids()) out.trials.emplace_back(id);
  if (request.end_batches() > 0) out.last_steps = request.end_batches();
  if (request.max_datapoints() > 0) out.max_datapoints = request.max_datapoints();
  return out;
}

/// Number of a storage for clients of Determined AI: the same for the same location. Storages have no rows.
int storage_id(const std::string& root) {
  constexpr std::size_t kHexDigits = 7;  // fits an int32
  return std::stoi(sha256_hex(root).substr(0, kHexDigits), nullptr, 16);
}

}  // namespace

std::string storage_root(const std::string& config_json) {
  auto json = parse_json(config_json, {.bytes = 16 << 20, .depth = 64});
  if (!json) return "";
  // Stored configurations are resolved and need no defaults.
  auto config = expconf::from_resolved(*json);
  return config ? config->checkpoint_storage.root() : "";
}

CheckpointConverter::CheckpointConverter(const std::string& config_json)
    : root_(storage_root(config_json)), config_(std::make_unique<google::protobuf::Struct>()) {
  json_to_struct(masked_json(config_json), config_.get());
}

void CheckpointConverter::convert(const db::CheckpointRow& row, v1::Checkpoint* out) const {
  to_proto(row, root_, out);
  if (!root_.empty()) out->mutable_storage_id()->set_value(storage_id(root_));
  *out->mutable_training()->mutable_experiment_config() = *config_;
}

std::vector<std::string> checkpoint_states(const google::protobuf::RepeatedField<int>& states) {
  std::vector<std::string> names;
  for (const int state : states) {
    names.push_back(checkpoint_state_name(static_cast<v1::Checkpoint::CheckpointState>(state)));
  }
  return names;
}

db::CheckpointSort checkpoint_sort(v1::Checkpoint::SortBy sort, const std::string& metric) {
  if (!metric.empty()) return db::CheckpointSort::kMetric;
  switch (sort) {
    case v1::Checkpoint::SORT_BY_UUID:
      return db::CheckpointSort::kUuid;
    case v1::Checkpoint::SORT_BY_TRIAL_ID:
      return db::CheckpointSort::kTrial;
    case v1::Checkpoint::SORT_BY_END_TIME:
      return db::CheckpointSort::kReported;
    case v1::Checkpoint::SORT_BY_STATE:
      return db::CheckpointSort::kState;
    case v1::Checkpoint::SORT_BY_SEARCHER_METRIC:
      return db::CheckpointSort::kSearcherMetric;
    default:
      return db::CheckpointSort::kSteps;
  }
}

std::vector<core::State> core_states(const google::protobuf::RepeatedField<int>& states) {
  std::set<core::State> found;
  for (const int state : states) {
    // Several shown states, such as QUEUED and RUNNING, map to one stored state.
    if (auto known = from_proto(static_cast<v1::State>(state))) found.insert(*known);
  }
  return {found.begin(), found.end()};
}

TrialService::TrialService(const Context& context) : Service(context, v1::TrialService::full_name) {
  unary(v1::TrialService::GetTrial, &TrialService::GetTrial);
  unary(v1::TrialService::GetTrialByExternalID, &TrialService::GetTrialByExternalID);
  unary(v1::TrialService::GetTrialWorkloads, &TrialService::GetTrialWorkloads);
  unary(v1::TrialService::GetTrialCheckpoints, &TrialService::GetTrialCheckpoints);
  unary(v1::TrialService::KillTrial, &TrialService::KillTrial);
  unary(v1::TrialService::CompareTrials, &TrialService::CompareTrials);
  deferred(v1::TrialService::ReportTrialMetrics, &TrialService::ReportTrialMetrics);
  deferred(v1::TrialService::ReportTrialTrainingMetrics, &TrialService::ReportTrialTrainingMetrics);
  unary(v1::TrialService::ReportTrialValidationMetrics, &TrialService::ReportTrialValidationMetrics);
  unary(v1::TrialService::ReportTrialProgress, &TrialService::ReportTrialProgress);
  unary(v1::TrialService::PostTrialRunnerMetadata, &TrialService::PostTrialRunnerMetadata);
  unary(v1::TrialService::ReportTrialSearcherEarlyExit, &TrialService::ReportTrialSearcherEarlyExit);
  unary(v1::TrialService::GetMetricSeries, &TrialService::GetMetricSeries);
  server_stream(v1::TrialService::GetMetrics, &TrialService::GetMetrics);
  server_stream(v1::TrialService::GetTrainingMetrics, &TrialService::GetTrainingMetrics);
  server_stream(v1::TrialService::GetValidationMetrics, &TrialService::GetValidationMetrics);
}

Status TrialService::GetTrial(const Caller& caller, const v1::GetTrialRequest& request,
                              v1::GetTrialResponse* response) {
  const TrialId id(request.trial_id());
  TRY(admit(context_, caller, {.trial = id}));
  TRY_ASSIGN(const db::TrialRow row, db::get_trial(context_.pool, id));
  TRY_ASSIGN(const auto summary, context_.metrics.summaries(id));
  to_proto(row, response->mutable_trial());
  to_proto(summary, response->mutable_trial()->mutable_summary_metrics());
  TRY_ASSIGN(const std::string metadata, db::get_run_metadata(context_.pool, id));
  json_to_struct(metadata, response->mutable_trial()->mutable_metadata());
  return {};
}

Status TrialService::GetTrialByExternalID(const Caller& caller,
                                          const v1::GetTrialByExternalIDRequest& request,
                                          v1::GetTrialResponse* response) {
  const std::string& name = request.external_experiment_id();
  const auto missing = fail(
      Code::kNotFound, "trial of external experiment \"" + make_utf8(name.substr(0, 100)) + "\" not found");
  TRY_ASSIGN(const auto experiment,
             db::find_experiment(context_.pool, RequestId(std::string(kExternal) + make_utf8(name))));
  if (!experiment) return missing;
  // Hidden experiments look as if they did not exist.
  if (!authorize(caller, Action::kView, Target::kExperiment, {std::to_string(experiment->value)},
                 context_.pool))
    return missing;
  TRY_ASSIGN(const auto row, db::get_experiment(context_.pool, *experiment));
  if (row.trials.empty()) return missing;
  v1::GetTrialRequest trial;
  trial.set_trial_id(static_cast<int>(row.trials.front().value));
  return GetTrial(caller, trial, response);
}

Status TrialService::GetTrialWorkloads(const Caller&, const v1::GetTrialWorkloadsRequest& request,
                                       v1::GetTrialWorkloadsResponse* response) {
  using Filter = v1::GetTrialWorkloadsRequest;
  const TrialId id(request.trial_id());
  TRY(db::get_trial(context_.pool, id));
  db::WorkloadFilter filter{
      .trial = id,
      .deleted_checkpoints = !request.remove_deleted_checkpoints(),
      .window = to_bounded_window(request.offset(), request.limit(), request.order_by())};
  const std::string group = group_of(request.metric_type(), request.group());
  switch (request.filter()) {
    // No metric groups: checkpoints only.
    case Filter::FILTER_OPTION_CHECKPOINT:
      break;
    case Filter::FILTER_OPTION_VALIDATION:
      filter.groups = {"validation"};
      filter.checkpoints = false;
      break;
    case Filter::FILTER_OPTION_CHECKPOINT_OR_VALIDATION:
      filter.groups = {"validation"};
      break;
    default:
      filter.groups = group.empty() ? std::vector<std::string>{"training", "validation"}
                                    : std::vector<std::string>{group};
  }
  TRY_ASSIGN(const auto page, db::list_workloads(context_.pool, filter));
  for (const db::Workload& row : page.rows) to_proto(row, response->add_workloads());
  to_pagination(page, filter.window, response->mutable_pagination());
  return {};
}

Status TrialService::GetTrialCheckpoints(const Caller&, const v1::GetTrialCheckpointsRequest& request,
                                         v1::GetTrialCheckpointsResponse* response) {
  const TrialId id(request.id());
  TRY_ASSIGN(const db::TrialRow trial, db::get_trial(context_.pool, id));
  TRY_ASSIGN(const auto experiment, db::get_experiment(context_.pool, trial.trial.experiment));
  return answer_checkpoints(context_.pool, {.trial = id}, experiment.config, request, response);
}

Status kill_trial(const Context& context, TrialId id) {
  auto done = context.loop.ask(core::KillTrial{.trial = id});
  if (done) return {};
  if (done.error().code != Code::kNotFound) return tl::unexpected(done.error());
  // The core drops ended trials. Killing one is a success.
  TRY(db::get_trial(context.pool, id));
  return {};
}

Status TrialService::KillTrial(const Caller&, const v1::KillTrialRequest& request, v1::KillTrialResponse*) {
  return kill_trial(context_, TrialId(request.id()));
}

Status TrialService::CompareTrials(const Caller&, const v1::CompareTrialsRequest& request,
                                   v1::CompareTrialsResponse* response) {
  TRY_ASSIGN(db::SeriesRequest wanted, series_request(request));
  // The filter and the range of the request both apply; the stricter bound wins.
  const v1::Int32FieldFilter& range = request.time_series_filter().integer_range();
  if (range.has_gt()) wanted.first_steps = std::max<std::int64_t>(wanted.first_steps, range.gt().value() + 1);
  if (range.has_gte()) wanted.first_steps = std::max<std::int64_t>(wanted.first_steps, range.gte().value());
  if (range.has_lt()) wanted.last_steps = std::min<std::int64_t>(wanted.last_steps, range.lt().value() - 1);
  if (range.has_lte()) wanted.last_steps = std::min<std::int64_t>(wanted.last_steps, range.lte().value());
  const std::string only = group_of(request.metric_type(), request.group());
  const std::set<std::string> names(request.metric_names().begin(), request.metric_names().end());
  const std::set<std::string> ids(request.metric_ids().begin(), request.metric_ids().end());
  // All filters of the request apply together.
  wanted.wanted = [&](const std::string& group, const std::string& name) {
    return (only.empty() || group == only) && (names.empty() || names.contains(name)) &&
           (ids.empty() || ids.contains(group + "." + name));
  };
  for (const TrialId id : wanted.trials) {
    TRY_ASSIGN(const db::TrialRow row, db::get_trial(context_.pool, id));
    to_proto(row, response->add_trials()->mutable_trial());
  }
  // The cache downsamples each series to max_datapoints.
  TRY_ASSIGN(auto found, context_.metrics.series(wanted));
  std::map<TrialId, std::map<std::string, std::vector<db::Series>>> groups;
  for (db::Series& one : found) groups[one.trial][one.group].push_back(std::move(one));
  for (v1::ComparableTrial& trial : *response->mutable_trials())
    for (const auto& [group, series] : groups[TrialId(trial.trial().id())])
      to_proto(series, trial.add_metrics());
  return {};
}

Status TrialService::GetMetricSeries(const Caller&, const v1::GetMetricSeriesRequest& request,
                                     v1::GetMetricSeriesResponse* response) {
  TRY_ASSIGN(db::SeriesRequest wanted, series_request(request));
  if (!request.group().empty()) {
    wanted.wanted = [&request](const std::string& group, const std::string&) {
      return group == request.group();
    };
  }
  TRY_ASSIGN(const auto found, context_.metrics.series(wanted));
  for (const db::Series& one : found) to_proto(one, response->add_series());
  return {};
}

}  // namespace det::api
