// Owns how the workloads of trials look in a table. Private to the `describe` verbs.
#pragma once

#include <string>
#include <vector>

#include "cli/print.h"
#include "det/v1/trial.pb.h"

namespace det::cli {

/// One row for each number of batches: what was trained, validated and checkpointed there.
/// With `name_trial`, a first column that says whose.
Table workload_table(const std::vector<std::pair<int, std::vector<v1::WorkloadContainer>>>& trials,
                     bool name_trial);

}  // namespace det::cli
