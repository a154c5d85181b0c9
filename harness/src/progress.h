// Owns how far a trial has come: what trial_state.json holds beside the tensors. Standard library only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"

namespace det {

/// Counters in batches; -1 is never.
struct Progress {
  std::int64_t steps_completed = 0;
  std::int64_t last_validation = -1;
  std::int64_t last_checkpoint = -1;
  std::optional<double> best_validation;  ///< of the searcher's metric
};

Json to_json(const Progress& progress);
/// kDataLoss when a counter is missing.
Result<Progress> progress_from_json(const Json& json);

}  // namespace det
