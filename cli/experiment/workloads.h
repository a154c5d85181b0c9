// Table of a trial's workloads, for the `describe` verbs.
#pragma once

#include <string>
#include <vector>

#include "cli/output/print.h"
#include "det/v1/trial.pb.h"

namespace det::cli {

/// Returns one row per trial and number of batches, with the training report, validation and checkpoint made
/// there. `trials` pairs trial ids with workloads. `name_trial` adds the trial's id as the first column.
Table workload_table(const std::vector<std::pair<int, std::vector<v1::WorkloadContainer>>>& trials,
                     bool name_trial);

}  // namespace det::cli
