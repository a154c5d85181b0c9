// Reducers of evaluation metrics, and SimpleReducer.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/base/text.h"
#include "det/metrics.h"

namespace det {

std::vector<Reducer> EvaluationReducer::of(const std::vector<std::string>& names) const {
  if (by_name_.empty()) return std::vector<Reducer>(names.size(), all_);
  std::vector<Reducer> reducers;
  // Both directions are collected, so that one message names every mismatch.
  std::vector<std::string> missing, unknown;
  for (const std::string& name : names) {
    const auto found =
        std::find_if(by_name_.begin(), by_name_.end(), [&](const auto& pair) { return pair.first == name; });
    found == by_name_.end() ? missing.push_back(name) : reducers.push_back(found->second);
  }
  for (const auto& [name, reducer] : by_name_) {
    if (std::find(names.begin(), names.end(), name) == names.end()) unknown.push_back(name);
  }
  if (missing.empty() && unknown.empty()) return reducers;
  throw std::invalid_argument(
      "evaluation_reducer must name exactly the metrics of evaluate_batch" +
      (missing.empty() ? std::string() : "; it lacks " + join(missing, ", ")) +
      (unknown.empty() ? std::string() : "; there is no metric " + join(unknown, ", ")));
}

SimpleReducer::SimpleReducer(Function reduce)
    : reduce_(std::move(reduce)), values_(std::make_shared<std::vector<Json>>()) {
  if (!reduce_) throw std::invalid_argument("wrap_reducer: the function is empty");
}
void SimpleReducer::update(Json value) { values_->push_back(std::move(value)); }
void SimpleReducer::reset() { values_->clear(); }
Json SimpleReducer::per_slot_reduce() { return Json(*values_); }
Json SimpleReducer::cross_slot_reduce(const std::vector<Json>& per_slot) {
  // Batches are dealt round-robin to ranks: interleaving restores their order. Ranks may differ by one batch.
  std::vector<Json> values;
  std::size_t longest = 0;
  for (const Json& rank : per_slot) longest = std::max(longest, rank.size());
  for (std::size_t i = 0; i < longest; ++i) {
    for (const Json& rank : per_slot) {
      if (i < rank.size()) values.push_back(rank[i]);
    }
  }
  return reduce_(values);
}

}  // namespace det
