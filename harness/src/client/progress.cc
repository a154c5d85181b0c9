#include "harness/src/client/progress.h"

#include <nlohmann/json.hpp>

namespace det {

Json to_json(const Progress& progress) {
  return {{"steps_completed", progress.steps_completed},
          {"last_validation", progress.last_validation},
          {"last_checkpoint", progress.last_checkpoint},
          {"best_validation", progress.best_validation ? json_double(*progress.best_validation) : Json()}};
}

Result<Progress> progress_from_json(const Json& json) {
  Progress progress;
  for (auto [name, counter] : {std::pair{"steps_completed", &progress.steps_completed},
                               std::pair{"last_validation", &progress.last_validation},
                               std::pair{"last_checkpoint", &progress.last_checkpoint}}) {
    const Json* value = json.is_object() ? find_path(json, name) : nullptr;
    if (value == nullptr || !value->is_number_integer()) {
      return fail(Code::kDataLoss, std::string("trial_state.json: ") + name + " is missing");
    }
    *counter = value->get<std::int64_t>();
  }
  // Optional: there is none before the first validation or without a searcher metric.
  const Json* best = find_path(json, "best_validation");
  if (best != nullptr && !best->is_null()) progress.best_validation = read_double(*best);
  return progress;
}

}  // namespace det
