#include "master/api/experiments/metric_names.h"

#include <algorithm>
#include <functional>

namespace det::api {

MetricKey metric_key(std::string_view group, std::string_view name) {
  const std::size_t first = std::hash<std::string_view>()(group),
                    second = std::hash<std::string_view>()(name);
  return static_cast<MetricKey>((first * 31 + second) >> 16);
}

Status MetricNames::add(TrialId trial, const std::vector<MetricKey>& metrics, const Status& room,
                        bool fresh) {
  Shared<Known>& cell = known_[static_cast<std::size_t>(trial.value) % known_.size()];
  const auto known = cell.get();
  const bool same = known && known->trial == trial;
  std::vector<MetricKey> added;
  for (const MetricKey metric : metrics) {
    if (!same || !std::binary_search(known->metrics.begin(), known->metrics.end(), metric))
      added.push_back(metric);
  }
  if (added.empty()) return {};
  if (same || fresh) TRY(room);
  auto next = std::make_shared<Known>(same ? *known : Known{trial, {}});
  next->metrics.insert(next->metrics.end(), added.begin(), added.end());
  std::sort(next->metrics.begin(), next->metrics.end());
  next->metrics.erase(std::unique(next->metrics.begin(), next->metrics.end()), next->metrics.end());
  if (next->metrics.size() > kMaxPerTrial) {
    return fail(Code::kInvalidArgument,
                "trial " + std::to_string(trial.value) + " may have " + std::to_string(kMaxPerTrial) +
                    " metrics (names, counted in each group), and the report has more; use "
                    "names without numbers of steps or samples");
  }
  // A concurrent addition may be lost: then the count is too low until the metric is reported again.
  cell.set(std::move(next));
  return {};
}

}  // namespace det::api
