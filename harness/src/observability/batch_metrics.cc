// Metrics of numbered batches and their reduction over batches and ranks.
#include "harness/src/observability/batch_metrics.h"

#include <torch/csrc/autograd/generated/variable_factories.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/base/text.h"
#include "harness/src/base/torch_compat.h"

namespace det {
namespace {

/// Tensors kept on the device before they are fetched: bounds the memory of a validation.
constexpr std::size_t kMaxPendingMetrics = 4096;

/// Reduces one column over all rows, in batch order, so that the rounding does not depend on the distribution
/// of batches over ranks. Rows are [number, records, values].
double reduce_column(const std::vector<const Json*>& rows, std::size_t column, Reducer reducer) {
  double sum = 0, records = 0;
  double best = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double value = read_double(rows[i]->at(2).at(column)).value();
    const double weight = rows[i]->at(1).get<double>();
    sum += reducer == Reducer::kAverage ? value * weight : value;
    records += weight;
    const bool better = reducer == Reducer::kMax ? value > best : value < best;
    if (i == 0 || better || value != value) best = value;  // NaN propagates
    if (best != best) break;
  }
  if (reducer == Reducer::kAverage) return sum / records;
  return reducer == Reducer::kSum ? sum : best;
}

}  // namespace

void check_metric(const std::string& source, const std::string& name, const MetricValue& value) {
  const torch::Tensor* tensor = value.tensor();
  if (tensor == nullptr || (tensor->defined() && tensor->numel() == 1)) return;
  throw std::invalid_argument(source + ": metric \"" + name +
                              "\" must be one number, not a tensor of shape " +
                              (tensor->defined() ? compat::shape_text(*tensor) : "undefined"));
}

double read_number(const torch::Tensor& tensor) {
  // The common type is read without a trip through LibTorch's dispatcher.
  if (tensor.scalar_type() == torch::kFloat) return *static_cast<const float*>(tensor.data_ptr());
  return tensor.item<double>();
}

std::vector<double> fetch_numbers(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> values;
  for (const torch::Tensor& tensor : tensors) values.push_back(tensor.reshape({}).to(torch::kDouble));
  const torch::Tensor numbers = torch::stack(values).cpu();
  return {numbers.data_ptr<double>(), numbers.data_ptr<double>() + numbers.numel()};
}

void BatchMetrics::add(std::int64_t number, const Metrics& metrics, std::int64_t records) {
  // The first batch defines the names and their order; all other batches must match.
  Row row{number, static_cast<double>(records), std::vector<double>(names_.size())};
  std::vector<bool> given(names_.size());
  const bool first = batches_.empty() && names_.empty();
  for (const auto& [name, value] : metrics.entries()) {
    check_metric(source_, name, value);
    auto at = std::find(names_.begin(), names_.end(), name);
    if (at == names_.end()) {
      if (!first) {
        throw std::invalid_argument(source_ + ": every batch must give the same metrics, but \"" + name +
                                    "\" is new in batch " + std::to_string(number));
      }
      names_.push_back(name);
      row.values.push_back(0);
      given.push_back(false);
      at = names_.end() - 1;
    }
    // Values on a device are fetched later, many at a time: each fetch synchronizes.
    const auto column = static_cast<std::size_t>(at - names_.begin());
    if (given[column]) throw std::invalid_argument(source_ + ": metric \"" + name + "\" is given twice");
    given[column] = true;
    if (const torch::Tensor* tensor = value.tensor(); tensor == nullptr) {
      row.values[column] = value.number();
    } else if (tensor->device().is_cpu()) {
      row.values[column] = read_number(*tensor);
    } else {
      pending_.push_back({tensor->detach(), {batches_.size(), column}});
    }
  }
  const auto missing = std::find(given.begin(), given.end(), false);
  if (missing != given.end()) {
    throw std::invalid_argument(source_ + ": every batch must give the same metrics, but \"" +
                                names_[missing - given.begin()] + "\" is missing from batch " +
                                std::to_string(number));
  }
  batches_.push_back(std::move(row));
  if (pending_.size() >= kMaxPendingMetrics) fetch();
}

void BatchMetrics::fetch() {
  if (pending_.empty()) return;
  std::vector<torch::Tensor> tensors;
  for (const auto& [tensor, at] : pending_) tensors.push_back(tensor);
  const std::vector<double> numbers = fetch_numbers(tensors);
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const auto [row, column] = pending_[i].second;
    batches_[row].values[column] = numbers[i];
  }
  pending_.clear();
}

std::vector<Json> BatchMetrics::outputs() {
  fetch();
  std::vector<Json> outputs;
  for (const Row& row : batches_) {
    Json output = Json::object();
    for (std::size_t i = 0; i < names_.size(); ++i) output[names_[i]] = json_double(row.values[i]);
    outputs.push_back(std::move(output));
  }
  return outputs;
}

Json BatchMetrics::save() {
  fetch();
  Json rows = Json::array();
  for (const Row& row : batches_) {
    Json values = Json::array();
    for (const double value : row.values) values.push_back(json_double(value));
    rows.push_back({row.number, row.records, std::move(values)});
  }
  return {{"names", names_}, {"rows", std::move(rows)}};
}

void BatchMetrics::append(const Json& saved) {
  names_ = saved.at("names").get<std::vector<std::string>>();
  for (const Json& row : saved.at("rows")) {
    std::vector<double> values;
    for (const Json& value : row.at(2)) values.push_back(read_double(value).value());
    batches_.push_back({row.at(0).get<std::int64_t>(), row.at(1).get<double>(), std::move(values)});
  }
}

void BatchMetrics::clear() {
  batches_.clear();
  names_.clear();
  pending_.clear();
}

Json BatchMetrics::reduce(DistributedContext& distributed, const EvaluationReducer& reducer) {
  const std::vector<Json> ranks = distributed.gather(save());
  Json result = Json::object();
  if (distributed.is_chief()) {
    std::vector<std::string> names;
    std::vector<const Json*> rows;
    for (const Json& rank : ranks) {
      // A rank without batches has no names.
      if (rank.at("rows").empty()) continue;
      const auto its = rank.at("names").get<std::vector<std::string>>();
      if (names.empty()) names = its;
      if (names != its) {
        throw std::invalid_argument(source_ +
                                    ": all processes must give the same metrics in the same order, not " +
                                    join(names, ", ") + " here and " + join(its, ", ") + " there");
      }
      for (const Json& row : rank.at("rows")) rows.push_back(&row);
    }
    // Batch order, whichever rank processed a batch.
    std::stable_sort(rows.begin(), rows.end(), [](const Json* a, const Json* b) {
      return a->at(0).get<std::int64_t>() < b->at(0).get<std::int64_t>();
    });
    const std::vector<Reducer> reducers = reducer.of(names);
    for (std::size_t i = 0; i < names.size(); ++i)
      result[names[i]] = json_double(reduce_column(rows, i, reducers[i]));
  }
  return distributed.broadcast(result);
}

}  // namespace det
