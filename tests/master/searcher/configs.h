// Configurations and text forms that the searcher tests share.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/searcher/searcher.h"

namespace det::searcher {

using expconf::Hyperparameter;
using Config = std::shared_ptr<expconf::ExperimentConfig>;

inline Hyperparameter range(Hyperparameter::Type type, double low, double high, double base = 0) {
  Hyperparameter parameter;
  parameter.type = type;
  parameter.int_min = static_cast<std::int64_t>(low);
  parameter.int_max = static_cast<std::int64_t>(high);
  parameter.min = low;
  parameter.max = high;
  parameter.base = base;
  return parameter;
}

inline Hyperparameter constant(nlohmann::json value) {
  Hyperparameter parameter;
  parameter.value = std::move(value);
  return parameter;
}

inline expconf::HyperparameterMap every_kind() {
  Hyperparameter choice;
  choice.type = Hyperparameter::Type::kCategorical;
  choice.values = {"sgd", "adam", nullptr};
  Hyperparameter nested;
  nested.type = Hyperparameter::Type::kNested;
  nested.children = {{"z", range(Hyperparameter::Type::kDouble, 0, 1)}, {"a", constant(3)}};
  return {{"width", range(Hyperparameter::Type::kInt, 16, 64)},
          {"dropout", range(Hyperparameter::Type::kDouble, 0.25, 0.75)},
          {"rate", range(Hyperparameter::Type::kLog, -4, -1, 10)},
          {"optimizer", choice},
          {"nested", nested},
          {"batch", constant(64)}};
}

/// `name` may end in "+promote" and "+tpe", for example async_halving+promote+tpe.
inline Config make_config(std::string name, std::int64_t max_trials = 20, std::int64_t concurrent = 4) {
  auto config = std::make_shared<expconf::ExperimentConfig>();
  auto ends = [&name](const std::string& word) {
    if (name.size() < word.size() || name.compare(name.size() - word.size(), word.size(), word) != 0)
      return false;
    name.resize(name.size() - word.size());
    return true;
  };
  if (ends("+tpe")) config->searcher.sampler = "tpe";
  if (ends("+promote")) config->searcher.rung_policy = "promote";
  for (const char* mode : {"aggressive", "conservative"}) {
    if (ends(std::string("+") + mode)) config->searcher.mode = mode;
  }
  config->searcher.name = name;
  config->searcher.metric = "loss";
  config->searcher.max_trials = max_trials;
  config->searcher.max_concurrent_trials = concurrent;
  config->searcher.num_rungs = 3;
  config->searcher.divisor = 3;
  config->searcher.max_time = 90;
  config->experiment_seed = 1234;
  config->hyperparameters = every_kind();
  if (name == "grid") {
    config->hyperparameters["width"].count = 2;
    config->hyperparameters["dropout"].count = 3;
    config->hyperparameters["rate"].count = 1;
    config->hyperparameters["nested"].children["z"].count = 2;
  }
  return config;
}

inline const std::vector<std::string>& every_search() {
  static const std::vector<std::string> names{"single",
                                              "random",
                                              "random+tpe",
                                              "grid",
                                              "async_halving",
                                              "async_halving+promote",
                                              "async_halving+promote+tpe",
                                              "adaptive_asha",
                                              "adaptive_asha+aggressive",
                                              "adaptive_asha+conservative",
                                              "adaptive_asha+promote",
                                              "adaptive_asha+tpe"};
  return names;
}

/// Rounds doubles to nine digits: the last bit of pow, log and exp depends on the C library.
inline nlohmann::json rounded(nlohmann::json value) {
  if (value.is_number_float()) {
    const double real = value.get<double>();
    return real == 0 ? 0 : std::stod([&] {
      char text[32];
      std::snprintf(text, sizeof text, "%.9g", real);
      return std::string(text);
    }());
  }
  if (value.is_object() || value.is_array()) {
    for (auto& item : value) item = rounded(item);
  }
  return value;
}

inline nlohmann::json show(const expconf::ExperimentConfig& config, const std::vector<Action>& actions) {
  nlohmann::json all = nlohmann::json::array();
  for (const Action& action : actions) {
    if (auto* create = std::get_if<Create>(&action)) {
      all.push_back(
          {{"create", create->trial}, {"hparams", rounded(hparams(config.hyperparameters, create->sample))}});
    } else if (auto* stop = std::get_if<Stop>(&action)) {
      all.push_back({{"stop", stop->trial}});
    } else if (auto* hold = std::get_if<Hold>(&action)) {
      all.push_back({{"hold", hold->trial}});
    } else if (auto* resume = std::get_if<Resume>(&action)) {
      all.push_back({{"resume", resume->trial}});
    } else {
      const auto& shutdown = std::get<Shutdown>(action);
      all.push_back({{"shutdown", {{"cancel", shutdown.cancel}, {"failure", shutdown.failure}}}});
    }
  }
  return all;
}

}  // namespace det::searcher
