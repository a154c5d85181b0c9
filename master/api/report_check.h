// Owns what a report of a training process must be before it is let in.
#pragma once

#include <string>

#include "det/v1/harness.pb.h"
#include "master/core/input.h"

namespace det::api {

/// Limits of one report (promises §5): at most 1 MiB, 1,000 names of at most 256 printable ASCII characters,
/// depth 8. Names the metric that is wrong.
Status check_group(const std::string& group);  ///< the name alone
Status check_metrics(const v1::MetricsReport& report);
/// What the core is told of a checkpoint. kInvalidArgument for what could not be stored.
Result<core::ReportCheckpoint> read_checkpoint_report(const v1::CheckpointReport& report, TrialId trial,
                                                      RunNumber run, WallTime time);

}  // namespace det::api
