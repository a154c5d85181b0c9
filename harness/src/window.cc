// Owns averaging metrics over a window of batches.
#include "window.h"

#include <torch/csrc/autograd/generated/variable_factories.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "torch_compat.h"

namespace det {
namespace {

constexpr std::size_t kMostPending = 4096;

/// Of a tensor on the CPU; the common type without a trip through the dispatcher.
double read_number(const torch::Tensor& tensor) {
  if (tensor.scalar_type() == torch::kFloat) return *static_cast<const float*>(tensor.data_ptr());
  return tensor.item<double>();
}

}  // namespace

MetricWindow::Sum& MetricWindow::sum_of(const std::string& name, std::size_t hint) {
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
    if (++sum.batches > batches_ + 1) throw std::invalid_argument(source_ + ": metric \"" + name + "\" is given twice");
    sum.weight += weight;
    const torch::Tensor* tensor = value.tensor();
    if (tensor == nullptr) {
      sum.sum += value.number() * weight;
      continue;
    }
    if (!tensor->defined() || tensor->numel() != 1) {
      throw std::invalid_argument(source_ + ": metric \"" + name + "\" must be one number, not a tensor of shape " +
                                  (tensor->defined() ? compat::shape_text(*tensor) : "undefined"));
    }
    if (tensor->device().is_cpu()) {
      sum.sum += read_number(*tensor) * weight;
    } else {
      sum.pending.emplace_back(tensor->detach(), weight);
      if (sum.pending.size() >= kMostPending) fetch(sum);
    }
  }
  ++batches_;
  if (!same_names_) return;
  for (const Sum& sum : sums_) {
    if (sum.batches == batches_) continue;
    const bool lost = sum.batches > 1 || metrics.entries().size() < sums_.size();
    throw std::invalid_argument(source_ + ": every batch must give the same metrics, but \"" + sum.name +
                                (lost ? "\" is missing from batch " : "\" is new in batch ") +
                                std::to_string(batches_ - 1));
  }
}

void MetricWindow::fetch(Sum& sum) {
  if (sum.pending.empty()) return;
  std::vector<torch::Tensor> values;
  for (const auto& [tensor, weight] : sum.pending) values.push_back(tensor.reshape({}).to(torch::kDouble));
  const torch::Tensor numbers = torch::stack(values).cpu();
  const auto* number = numbers.data_ptr<double>();
  for (const auto& [tensor, weight] : sum.pending) sum.sum += *number++ * weight;
  sum.pending.clear();
}

Json MetricWindow::averages() {
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

void MetricWindow::restore(const Json& saved) {
  clear();
  batches_ = saved.at("batches").get<std::int64_t>();
  for (const Json& entry : saved.at("sums")) {
    sums_.push_back({entry.at("name").get<std::string>(), read_double(entry.at("sum")).value(),
                     read_double(entry.at("weight")).value(), entry.at("batches").get<std::int64_t>(), {}});
  }
}

}  // namespace det
