// Owns one point of a search space: the values drawn for the hyperparameters that are not constant. Compact,
// since a search may draw a million; as JSON only where a trial is made or shown.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/random.h"
#include "master/expconf/config.h"

namespace det::searcher {

/// The leaves that vary, in sorted order of their names at every depth: a double for kDouble and kLog (the
/// value, not the exponent), the integer for kInt, the index into `values` for kCategorical.
struct Sample {
  union Value {
    double real;
    std::int64_t whole;
  };
  std::vector<Value> values;
};

/// The hyperparameters that vary, in the order of Sample::values. They point into `space`.
std::vector<const expconf::Hyperparameter*> leaves(const expconf::HyperparameterMap& space);

/// A uniform draw of one leaf; of a kLog the exponent is uniform.
Sample::Value draw(const expconf::Hyperparameter& leaf, Random& random);

/// One value for every hyperparameter, nested ones as objects, constants included. `sample` must be of this
/// space.
nlohmann::json hparams(const expconf::HyperparameterMap& space, const Sample& sample);

}  // namespace det::searcher
