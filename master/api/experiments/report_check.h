// Validation of the reports of training processes, shared by the gRPC session and the HTTP calls.
#pragma once

#include <cstdint>
#include <string>

#include "det/v1/harness.pb.h"
#include "master/api/experiments/metric_names.h"
#include "master/core/input.h"

namespace det::api {

// Limits of one report: 1 MiB of JSON, depth 8, 1,000 metrics with names of 1 to 256 printable ASCII
// characters. Errors are kInvalidArgument and name the metric.

/// Name of a metric group: 1 to 128 bytes of UTF-8, without "." and control characters.
Status check_group(const std::string& group);
/// Checks group, steps and metrics of a report. Returns the keys of the metrics.
Result<std::vector<MetricKey>> check_metrics(const v1::MetricsReport& report);
/// Maximum size of one file of a checkpoint, and of all of its files: 1 PiB. Sums in the database stay within
/// 64 bits.
inline constexpr std::int64_t kMaxCheckpointBytes = std::int64_t{1} << 50;
/// Converts the files of a checkpoint (sizes by path) to a JSON object. Errors: kInvalidArgument for a path
/// that is not relative, a negative size, more than kMaxCheckpointBytes in one file or in all, or more than 4
/// MiB of file names.
Result<std::string> read_checkpoint_files(const google::protobuf::Map<std::string, std::int64_t>& files);
/// Converts a checkpoint report to an input of the core. Errors: kInvalidArgument for an invalid uuid, one
/// that equals `cluster_id` (a directory of the storage), negative steps, metadata that is not a JSON object,
/// or those of read_checkpoint_files().
Result<core::ReportCheckpoint> read_checkpoint_report(const v1::CheckpointReport& report, TrialId trial,
                                                      RunNumber run, WallTime time,
                                                      std::string_view cluster_id);

}  // namespace det::api
