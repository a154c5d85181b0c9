// Owns the points of a grid search.
#pragma once

#include "base/result.h"
#include "master/searcher/sample.h"

namespace det::searcher {

inline constexpr std::int64_t kMostGridPoints = 100'000;

/// The values of each axis, in the order of leaves(): determined-0.38 §1.5. Their product is a grid. Fails
/// with every range that has no `count`, and when there would be more than kMostGridPoints, before any is
/// built.
Result<std::vector<std::vector<Sample::Value>>> grid_axes(const expconf::HyperparameterMap& space);
/// How many points: the product of the axes' sizes.
std::int64_t grid_size(const std::vector<std::vector<Sample::Value>>& axes);
/// Point `index` of the product, the last axis fastest.
Sample grid_point(const std::vector<std::vector<Sample::Value>>& axes, std::int64_t index);

}  // namespace det::searcher
