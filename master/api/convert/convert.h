// Conversions between the master's types and protobuf messages. Every value has a counterpart. No decisions,
// no I/O, any thread.
#pragma once

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/json.h"
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
#include "master/db/accounts/users.h"
#include "master/db/ingest/bulk.h"
#include "master/db/queries/checkpoints.h"
#include "master/db/queries/experiments.h"
#include "master/db/queries/logs.h"
#include "master/db/queries/trials.h"
#include "master/db/series/metric_cache.h"

namespace det::api {

/// Prefix of the request id of experiments that were created under an external name.
inline constexpr std::string_view kExternal = "external/";

// ---- values
void to_proto(WallTime time, google::protobuf::Timestamp* out);
/// Clamps to the years 1 to 9999, and truncates to microseconds.
WallTime from_proto(const google::protobuf::Timestamp& time);
/// Parses the text of a JSON object. Invalid text gives an empty struct. NaN is kept as the string "NaN".
void json_to_struct(std::string_view json, google::protobuf::Struct* out);
void to_struct(const Json& json, google::protobuf::Struct* out);
/// Converts a YAML map. Anything else gives an empty struct.
void yaml_to_struct(std::string_view yaml, google::protobuf::Struct* out);
/// Converts the struct in `field` of a request. Errors: kInvalidArgument above 1 MiB of text or 32 levels,
/// with the field and the limit.
Result<Json> from_struct(const google::protobuf::Struct& value, std::string_view field);
/// State of an experiment or trial as clients see it: an active one shows the progress of its furthest
/// allocation, and without any it is QUEUED.
v1::State to_proto(core::State state, const std::optional<core::AllocationState>& live);
/// The stored state, without regard to allocations.
v1::State to_proto(core::State state);
/// QUEUED, PULLING, STARTING and RUNNING map to kActive. Nothing for UNSPECIFIED and for states that only
/// exist in Determined AI, such as DELETING.
std::optional<core::State> from_proto(v1::State state);
/// State by the name in the database, e.g. "COMPLETED". UNSPECIFIED for unknown names.
v1::Checkpoint::CheckpointState checkpoint_state(std::string_view name);
/// Inverse of checkpoint_state().
std::string checkpoint_state_name(v1::Checkpoint::CheckpointState state);
/// Log level by name in any case; accepts WARN and WARNING. UNSPECIFIED for unknown names.
v1::LogLevel log_level(std::string_view name);
/// Inverse of log_level(); "" for UNSPECIFIED.
std::string log_level_name(v1::LogLevel level);

// ---- database rows to messages (convert_rows.cc)
void to_proto(const db::User& user, v1::User* out);
/// Columns of lists. `config` is set but empty, because clients of Determined AI require it.
void to_proto(const db::ExperimentRow& row, v1::Experiment* out);
/// All fields: list columns, trial ids, configuration with secrets masked, hyperparameters.
void to_proto(const db::ExperimentDetail& row, v1::Experiment* out);
void to_proto(const db::TrialRow& row, v1::Trial* out);
void to_proto(const db::MetricPoint& row, v1::MetricsWorkload* out);
void to_proto(const db::CheckpointRow& row, v1::CheckpointWorkload* out);
/// `storage_root` is the directory of the experiment's checkpoints; "" when unknown.
void to_proto(const db::CheckpointRow& row, const std::string& storage_root, v1::Checkpoint* out);
void to_proto(const db::Workload& row, v1::WorkloadContainer* out);
void to_proto(const db::LogRow& row, TrialId trial, v1::LogEntry* out);
/// A log line as text: "[2022-03-02T02:15:18.299569Z]          [rank=1] || INFO: text".
std::string log_message(const db::LogRow& row);
/// The part of an allocation that runs on one agent.
struct RunningPart {
  AllocationId allocation;
  TaskKey task;
  core::AllocationState state;  ///< of the allocation as a whole
  std::vector<int> slots;
};
/// An agent with its slots and containers. Slots of an allocation refer to its container.
void to_proto(const core::Agent& agent, const core::AgentSettings& settings,
              const std::vector<RunningPart>& running, v1::Agent* out);
/// Summary of metrics: group -> name -> {count, last, min, max, sum, mean}.
void to_proto(const std::vector<db::MetricSummary>& rows, google::protobuf::Struct* out);
/// Joins the series of one group by step: one point per step with all values reported there.
void to_proto(const std::vector<db::Series>& series, v1::DownsampledMetrics* out);
/// Delta encoding: steps and times (ms) are stored as differences to the previous point.
void to_proto(const db::Series& series, v1::MetricSeries* out);

template <typename T>
void to_pagination(const db::Page<T>& page, const db::Window& window, v1::Pagination* out) {
  out->set_offset(static_cast<int>(window.offset));
  out->set_limit(static_cast<int>(window.limit));
  out->set_start_index(static_cast<int>(page.start));
  out->set_end_index(static_cast<int>(page.start + static_cast<std::int64_t>(page.rows.size())));
  out->set_total(static_cast<int>(page.total));
}
/// `otherwise` replaces a `limit` of 0. -1 means no limit, -2 only the total.
db::Window to_window(int offset, int limit, v1::OrderBy order, int otherwise);
/// Rows of one page of a list that may be very long.
inline constexpr int kMaxListRows = 10'000;
/// to_window() with at most kMaxListRows. The pagination of the response shows whether there are more.
db::Window to_bounded_window(int offset, int limit, v1::OrderBy order);

// ---- agents
/// Errors: kInvalidArgument without an id or a valid state.
Result<core::HeldAllocation> from_proto(const v1::AllocationUpdate& update);
void to_proto(const core::HeldAllocation& held, v1::AllocationUpdate* out);
/// The command that starts one part of an allocation. `token` authenticates its processes.
void to_proto(const core::StartAllocation& start, v1::StartAllocation* out);
db::LogLine from_proto(const v1::LogLine& line);

}  // namespace det::api
