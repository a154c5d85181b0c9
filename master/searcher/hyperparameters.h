// Owns how a set of hyperparameters is drawn from the ranges of a configuration (determined-0.38 §1.5).
#pragma once

#include <nlohmann/json.hpp>

#include "base/random.h"
#include "master/expconf/config.h"

namespace det::searcher {

/// One value for every hyperparameter, nested ones as objects. Draws in the order of the sorted keys, at
/// every depth, so equal (ranges, generator) give equal samples. Constants draw nothing.
nlohmann::json sample(const expconf::HyperparameterMap& hyperparameters, Random& random);

}  // namespace det::searcher
