// Owns Metrics: what a trial says about one batch, number by name.
#pragma once

#include <torch/types.h>

#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace det {

/// A number, or a tensor of one element. A tensor stays on its device until the trainer reports, so that returning a
/// loss costs no synchronization.
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

/// `return {{"loss", loss}, {"accuracy", correct}};`: kept in the order written. The trainer averages every name over
/// the records of a window: a batch counts as many times as it has records.
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

}  // namespace det
