// One point of a search space: the values of the hyperparameters that are not constant. A search may draw a
// million points, so they are compact and become JSON only for a trial or for display.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/base/random.h"
#include "common/expconf/config.h"

namespace det::searcher {

/// Values of the varying hyperparameters (leaves), sorted by name at every depth. kDouble and kLog hold a
/// double (for kLog the value, not the exponent), kInt the integer, kCategorical the index into its `values`.
struct Sample {
  union Value {
    double real;
    std::int64_t whole;
  };
  std::vector<Value> values;
};

/// Returns the varying hyperparameters in the order of Sample::values. The pointers point into `space`.
std::vector<const expconf::Hyperparameter*> leaves(const expconf::HyperparameterMap& space);

/// Draws a leaf uniformly; for kLog the exponent is uniform.
Sample::Value draw(const expconf::Hyperparameter& leaf, Random& random);

/// Returns one value for every hyperparameter as JSON: constants included, nested ones as objects. Requires:
/// `sample` was drawn from this space.
nlohmann::json hparams(const expconf::HyperparameterMap& space, const Sample& sample);

}  // namespace det::searcher
