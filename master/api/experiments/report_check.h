// Validation of the reports of training processes, shared by the gRPC session and the HTTP calls.
#pragma once

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
/// Converts a checkpoint report to an input of the core. Errors: kInvalidArgument for an invalid uuid, one
/// that equals `cluster_id` (a directory of the storage), negative steps, metadata that is not a JSON object,
/// or more than 4 MiB of file names.
Result<core::ReportCheckpoint> read_checkpoint_report(const v1::CheckpointReport& report, TrialId trial,
                                                      RunNumber run, WallTime time,
                                                      std::string_view cluster_id);

}  // namespace det::api
