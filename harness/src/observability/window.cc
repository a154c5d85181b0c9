#include "harness/src/observability/window.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/src/observability/batch_metrics.h"

namespace det {
namespace {

/// Device tensors held per metric before they are fetched, which bounds memory when reports are rare.
constexpr std::size_t kMaxPendingInWindow = 4096;

}  // namespace

MetricWindow::Sum& MetricWindow::sum_of(const std::string& name, std::size_t hint) {
  // Batches usually list metrics in the same order, so the hint avoids the search.
  if (hint < sums_.size() && sums_[hint].name == name) return sums_[hint];
  for (Sum& sum : sums_) {
    if (sum.name == name) return sum;
  }
  sums_.push_back({name, 0, 0, 0, {}});
  return sums_.back();
}

void MetricWindow::add(const Metrics& metrics, std::int64_t records) {
  const auto weight = static_cast<double>(records);
  std::size_t index = 0;
  for (const auto& [name, value] : metrics.entries()) {
    Sum& sum = sum_of(name, index++);
    if (++sum.batches > batches_ + 1)
      throw std::invalid_argument(source_ + ": metric \"" + name + "\" is given twice");
    check_metric(source_, name, value);
    sum.weight += weight;
    const torch::Tensor* tensor = value.tensor();
    if (tensor == nullptr) {
      sum.sum += value.number() * weight;
      continue;
    }
    if (tensor->device().is_cpu()) {
      sum.sum += read_number(*tensor) * weight;
    } else {
      sum.pending.emplace_back(tensor->detach(), weight);
      if (sum.pending.size() >= kMaxPendingInWindow) fetch(sum);
    }
  }
  ++batches_;
}

void MetricWindow::fetch(Sum& sum) {
  if (sum.pending.empty()) return;
  std::vector<torch::Tensor> tensors;
  for (const auto& [tensor, weight] : sum.pending) tensors.push_back(tensor);
  const std::vector<double> numbers = fetch_numbers(tensors);
  for (std::size_t i = 0; i < numbers.size(); ++i) sum.sum += numbers[i] * sum.pending[i].second;
  sum.pending.clear();
}

Json MetricWindow::averages(DistributedContext& distributed) {
  // Every rank adds the windows in rank order, so that all compute the same bits.
  if (distributed.size() > 1) {
    const std::vector<Json> ranks = distributed.allgather(save());
    clear();
    for (const Json& rank : ranks) append(rank);
  }
  Json averages = Json::object();
  for (Sum& sum : sums_) {
    fetch(sum);
    averages[sum.name] = json_double(sum.sum / sum.weight);
  }
  return averages;
}

void MetricWindow::clear() {
  sums_.clear();
  batches_ = 0;
}

Json MetricWindow::save() {
  Json sums = Json::array();
  for (Sum& sum : sums_) {
    fetch(sum);
    sums.push_back({{"name", sum.name},
                    {"sum", json_double(sum.sum)},
                    {"weight", json_double(sum.weight)},
                    {"batches", sum.batches}});
  }
  return {{"batches", batches_}, {"sums", std::move(sums)}};
}

void MetricWindow::append(const Json& saved) {
  batches_ += saved.at("batches").get<std::int64_t>();
  for (const Json& entry : saved.at("sums")) {
    Sum& sum = sum_of(entry.at("name").get<std::string>(), sums_.size());
    sum.sum += read_double(entry.at("sum")).value();
    sum.weight += read_double(entry.at("weight")).value();
    sum.batches += entry.at("batches").get<std::int64_t>();
  }
}

}  // namespace det
