// Training progress of a trial: the counters that trial_state.json keeps beside the tensors. No LibTorch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/json.h"
#include "common/base/result.h"

namespace det {

/// Counters in batches; -1 means never.
struct Progress {
  std::int64_t steps_completed = 0;
  std::int64_t last_validation = -1;
  std::int64_t last_checkpoint = -1;
  std::optional<double> best_validation;  ///< best value of the searcher's metric so far
};

/// The progress as fields of trial_state.json.
Json to_json(const Progress& progress);
/// Reverses to_json(). kDataLoss when a counter is missing or not an integer.
Result<Progress> progress_from_json(const Json& json);

}  // namespace det
