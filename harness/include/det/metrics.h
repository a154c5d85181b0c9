// Owns Metrics: what a trial says about one batch, number by name, and how such numbers become one.
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

/// A number, or a tensor of one element. A tensor stays on its device until the trainer reports, so that
/// returning a loss costs no synchronization.
class MetricValue {
 public:
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  MetricValue(T number) : value_(static_cast<double>(number)) {}
  MetricValue(torch::Tensor tensor) : value_(std::move(tensor)) {}

  /// Null when this is a plain number.
  const torch::Tensor* tensor() const { return std::get_if<torch::Tensor>(&value_); }
  double number() const { return std::get<double>(value_); }

 private:
  std::variant<double, torch::Tensor> value_;
};

/// `return {{"loss", loss}, {"accuracy", correct}};`: kept in the order written. The trainer averages every
/// name over the records of a window, of all ranks: a batch counts as many times as it has records.
class Metrics {
 public:
  using Entry = std::pair<std::string, MetricValue>;

  Metrics() = default;
  Metrics(std::initializer_list<Entry> entries) : entries_(entries) {}
  /// A lone loss: the metric "loss".
  Metrics(torch::Tensor loss) : entries_{{"loss", std::move(loss)}} {}

  void add(std::string name, MetricValue value) { entries_.emplace_back(std::move(name), std::move(value)); }
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

/// How the values of evaluate_batch become one: the mean over records, or the sum, largest or smallest over
/// batches.
enum class Reducer { kAverage, kSum, kMax, kMin };

/// One Reducer for every metric, or one for each by name.
class EvaluationReducer {
 public:
  EvaluationReducer(Reducer all = Reducer::kAverage) : all_(all) {}
  EvaluationReducer(std::initializer_list<std::pair<std::string, Reducer>> by_name) : by_name_(by_name) {}
  /// The reducers of `names`, in their order. Throws std::invalid_argument unless the names given by hand are
  /// exactly these.
  std::vector<Reducer> of(const std::vector<std::string>& names) const;

 private:
  Reducer all_ = Reducer::kAverage;
  std::vector<std::pair<std::string, Reducer>> by_name_;
};

/// A metric that is no mean of batches: an F1 score, a perplexity. The trial feeds it (by methods of its own)
/// from train_batch or evaluate_batch; the trainer calls the three below on the training thread.
class MetricReducer {
 public:
  virtual ~MetricReducer() = default;
  /// A window starts.
  virtual void reset() = 0;
  /// What this rank has gathered.
  virtual Json per_slot_reduce() = 0;
  /// The metric, from what the ranks have gathered, in the order of ranks. Chief.
  virtual Json cross_slot_reduce(const std::vector<Json>& per_slot) = 0;
};

/// A MetricReducer made of one function of all values.
class SimpleReducer : public MetricReducer {
 public:
  using Function = std::function<Json(const std::vector<Json>& values)>;
  explicit SimpleReducer(Function reduce);
  /// Once a batch, on every rank.
  void update(Json value);
  void reset() override;
  Json per_slot_reduce() override;
  /// Deals the ranks' values back into the order of batches, then reduces.
  Json cross_slot_reduce(const std::vector<Json>& per_slot) override;

 private:
  Function reduce_;
  std::shared_ptr<std::vector<Json>> values_;
};

}  // namespace det
