#include "harness/src/observability/metric_reducers.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace det {
namespace {

/// Throws std::invalid_argument when `metrics` already has an entry `name`.
void add_metric(Json& metrics, const std::string& name, const Json& value) {
  if (metrics.contains(name))
    throw std::invalid_argument("wrap_reducer: there is a metric \"" + name + "\" already");
  metrics[name] = value;
}

}  // namespace

std::vector<Json> values_by_shard(const std::vector<Json>& per_slot, std::int64_t shards) {
  const auto count = static_cast<std::size_t>(shards);
  std::vector<Json> all(per_slot.size() * count, Json::array());
  for (std::size_t slot = 0; slot < per_slot.size(); ++slot) {
    for (std::size_t i = 0; i < per_slot[slot].size(); ++i)
      all[slot * count + i % count].push_back(per_slot[slot][i]);
  }
  return all;
}

bool MetricReducers::has(Kind kind) const {
  return std::any_of(wrapped_.begin(), wrapped_.end(), [&](const Wrapped& one) { return one.applies(kind); });
}

void MetricReducers::reset(Kind kind) {
  for (const Wrapped& wrapped : wrapped_) {
    if (wrapped.applies(kind)) wrapped.reducer->reset();
  }
}

void MetricReducers::reduce_into(Json& metrics, Kind kind, DistributedContext& distributed,
                                 std::int64_t shards) {
  for (const Wrapped& wrapped : wrapped_) {
    if (!wrapped.applies(kind)) continue;
    // Only the chief computes the metric; the broadcast gives every rank the same value.
    std::vector<Json> per_slot = distributed.gather(wrapped.reducer->per_slot_reduce());
    // SimpleReducer interleaves single values, so each list must belong to one shard.
    if (shards > 1 && dynamic_cast<const SimpleReducer*>(wrapped.reducer.get()) != nullptr)
      per_slot = values_by_shard(per_slot, shards);
    const Json result =
        distributed.broadcast(distributed.is_chief() ? wrapped.reducer->cross_slot_reduce(per_slot) : Json());
    // A named reducer yields one value; an unnamed one yields an object of metrics.
    if (!wrapped.name.empty()) {
      if (result.is_object()) {
        throw std::invalid_argument("wrap_reducer: the reducer \"" + wrapped.name +
                                    "\" has a name, so its result must be one value, not an object");
      }
      add_metric(metrics, wrapped.name, result);
      continue;
    }
    if (!result.is_object()) {
      throw std::invalid_argument(
          "wrap_reducer: a reducer without a name must give an object name → value, not " +
          dump_json(result));
    }
    for (const auto& [name, value] : result.items()) add_metric(metrics, name, value);
  }
}

}  // namespace det
