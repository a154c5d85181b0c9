// Metrics of a batch, and the ways in which the metrics of many batches are reduced to one value.
#pragma once

#include <torch/types.h>

#include <functional>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "det/distributed.h"

namespace det {

/// A number, or a tensor of one element. A tensor stays on its device until the trainer reports, so returning
/// a loss does not synchronize with the device.
class MetricValue {
 public:
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  MetricValue(T number) : value_(static_cast<double>(number)) {}
  MetricValue(torch::Tensor tensor) : value_(std::move(tensor)) {}

  /// The tensor; null for a plain number.
  const torch::Tensor* tensor() const { return std::get_if<torch::Tensor>(&value_); }
  /// The number. Must not be called when tensor() is not null.
  double number() const { return std::get<double>(value_); }

 private:
  std::variant<double, torch::Tensor> value_;
};

/// Metrics of one batch by name, in insertion order: `return {{"loss", loss}, {"accuracy", correct}};`. The
/// trainer averages each metric over the records of the reporting window and of all ranks: a batch is
/// weighted by its number of records.
class Metrics {
 public:
  using Entry = std::pair<std::string, MetricValue>;

  Metrics() = default;
  Metrics(std::initializer_list<Entry> entries) : entries_(entries) {}
  /// A single loss becomes the metric "loss".
  Metrics(torch::Tensor loss) : entries_{{"loss", std::move(loss)}} {}

  /// Appends a metric. Names must be unique and the same for every batch.
  void add(std::string name, MetricValue value) { entries_.emplace_back(std::move(name), std::move(value)); }
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

/// Reduction of the values of evaluate_batch: mean over records, or sum, maximum or minimum over batches.
enum class Reducer { kAverage, kSum, kMax, kMin };

/// One Reducer for all metrics, or one per metric by name.
class EvaluationReducer {
 public:
  EvaluationReducer(Reducer all = Reducer::kAverage) : all_(all) {}
  EvaluationReducer(std::initializer_list<std::pair<std::string, Reducer>> by_name) : by_name_(by_name) {}
  /// Returns the reducers of `names`, in order. Throws std::invalid_argument when reducers were given by name
  /// and their names are not exactly `names`.
  std::vector<Reducer> of(const std::vector<std::string>& names) const;

 private:
  Reducer all_ = Reducer::kAverage;
  std::vector<std::pair<std::string, Reducer>> by_name_;
};

/// A metric that is not a mean over batches, such as an F1 score or a perplexity. The trial adds data through
/// methods of its own in train_batch or evaluate_batch; the trainer calls the functions below, on the
/// training thread.
class MetricReducer {
 public:
  virtual ~MetricReducer() = default;
  /// Discards the data: a reporting window or a validation starts.
  virtual void reset() = 0;
  /// Returns the data that this rank has accumulated.
  virtual Json per_slot_reduce() = 0;
  /// Chief only. Returns the metric computed from the data of all ranks, in rank order.
  virtual Json cross_slot_reduce(const std::vector<Json>& per_slot) = 0;
};

/// A MetricReducer made of one function over the values of all batches.
class SimpleReducer : public MetricReducer {
 public:
  using Function = std::function<Json(const std::vector<Json>& values)>;
  explicit SimpleReducer(Function reduce);
  /// Adds the value of a batch. Call it once per batch, on every rank.
  void update(Json value);
  void reset() override;
  Json per_slot_reduce() override;
  /// Interleaves the values of the ranks in the order of batches, then calls the function.
  Json cross_slot_reduce(const std::vector<Json>& per_slot) override;

 private:
  Function reduce_;
  std::shared_ptr<std::vector<Json>> values_;
};

}  // namespace det
