// Owns the border between the master's own types and protobuf: total (every value has a form on the other
// side), no decisions, no I/O.
#pragma once

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/json.h"
#include "det/v1/agent.pb.h"
#include "det/v1/auth.pb.h"
#include "det/v1/checkpoint.pb.h"
#include "det/v1/cluster.pb.h"
#include "det/v1/experiment.pb.h"
#include "det/v1/log.pb.h"
#include "det/v1/trial.pb.h"
#include "master/core/effect.h"
#include "master/core/input.h"
#include "master/core/model.h"
#include "master/db/accounts.h"
#include "master/db/bulk.h"
#include "master/db/metric_cache.h"
#include "master/db/queries_checkpoint.h"
#include "master/db/queries_experiment.h"
#include "master/db/queries_log.h"
#include "master/db/queries_trial.h"

namespace det::api {

/// Begins the request id of an experiment that was made under a name from outside.
inline constexpr std::string_view kExternal = "external/";

// ---- leaves
// ------------------------------------------------------------------------------------------------------
void to_proto(WallTime time, google::protobuf::Timestamp* out);
WallTime from_proto(const google::protobuf::Timestamp& time);
/// A JSON object's text; an ill-formed one gives an empty struct. Numbers keep their value, NaN stays the
/// string "NaN".
void json_to_struct(std::string_view json, google::protobuf::Struct* out);
void to_struct(const Json& json, google::protobuf::Struct* out);
/// The map of a YAML document; what is no map gives an empty struct.
void yaml_to_struct(std::string_view yaml, google::protobuf::Struct* out);
Json from_struct(const google::protobuf::Struct& value);
/// `live` shows instead of an active state how far its furthest allocation is; none of them is "queued".
v1::State to_proto(core::State state, const std::optional<core::AllocationState>& live);
v1::State to_proto(core::State state);
/// Nothing for states that only upstream has (deleting, …) and for unspecified; the shown ones (queued, …)
/// are active.
std::optional<core::State> from_proto(v1::State state);
v1::Checkpoint::CheckpointState checkpoint_state(std::string_view name);
std::string checkpoint_state_name(v1::Checkpoint::CheckpointState state);
v1::LogLevel log_level(std::string_view name);
std::string log_level_name(v1::LogLevel level);

// ---- rows → answers
// ----------------------------------------------------------------------------------------------
void to_proto(const db::User& user, v1::User* out);
void to_proto(const db::ExperimentRow& row, v1::Experiment* out);
/// With trial ids, configuration and hyperparameters.
void to_proto(const db::ExperimentDetail& row, v1::Experiment* out);
void to_proto(const db::TrialRow& row, v1::Trial* out);
void to_proto(const db::MetricPoint& row, v1::MetricsWorkload* out);
void to_proto(const db::CheckpointRow& row, v1::CheckpointWorkload* out);
/// `storage_root` is the directory of the experiment's checkpoints, "" when unknown.
void to_proto(const db::CheckpointRow& row, const std::string& storage_root, v1::Checkpoint* out);
void to_proto(const db::Workload& row, v1::WorkloadContainer* out);
void to_proto(const db::LogRow& row, TrialId trial, v1::LogEntry* out);
/// "[2022-03-02T02:15:18.299569Z] f6114bb3 [rank=1] || INFO: text"; eight spaces without a container.
std::string log_message(const db::LogRow& row);
/// What of an allocation is on an agent.
struct RunningPart {
  AllocationId allocation;
  TrialId trial;                ///< or the command
  core::AllocationState state;  ///< of the whole
  std::vector<int> slots;
};
void to_proto(const core::Agent& agent, const core::AgentSettings& settings,
              const std::vector<RunningPart>& running, v1::Agent* out);
void to_proto(const std::vector<db::MetricSummary>& rows, google::protobuf::Struct* out);
/// Points of several series of one group joined by their steps.
void to_proto(const std::vector<db::Series>& series, v1::DownsampledMetrics* out);
void to_proto(const db::Series& series, v1::MetricSeries* out);

template <typename T>
void to_pagination(const db::Page<T>& page, const db::Window& window, v1::Pagination* out) {
  out->set_offset(static_cast<int>(window.offset));
  out->set_limit(static_cast<int>(window.limit));
  out->set_start_index(static_cast<int>(page.start));
  out->set_end_index(static_cast<int>(page.start + static_cast<std::int64_t>(page.rows.size())));
  out->set_total(static_cast<int>(page.total));
}
/// `limit` 0 means `otherwise`.
db::Window to_window(int offset, int limit, v1::OrderBy order, int otherwise);

// ---- agents
// ------------------------------------------------------------------------------------------------------
/// kInvalidArgument without an id or a state.
Result<core::HeldAllocation> from_proto(const v1::AllocationUpdate& update);
void to_proto(const core::HeldAllocation& held, v1::AllocationUpdate* out);
void to_proto(const core::StartAllocation& start, const std::string& token, v1::StartAllocation* out);
db::LogLine from_proto(const v1::LogLine& line);

}  // namespace det::api
