// Points of a grid search. Pure functions.
#pragma once

#include "common/base/result.h"
#include "common/searcher/sample.h"

namespace det::searcher {

/// Limit of the points of one grid.
inline constexpr std::int64_t kMaxGridPoints = 100'000;

/// Returns the values of each axis, in the order of leaves(); the grid is their product. Errors: one problem
/// for each range without `count`, or one if the grid has more than kMaxGridPoints (found before any is
/// built).
Result<std::vector<std::vector<Sample::Value>>> grid_axes(const expconf::HyperparameterMap& space);
/// Number of points: the product of the axis sizes.
std::int64_t grid_size(const std::vector<std::vector<Sample::Value>>& axes);
/// Point `index` of the product; the last axis varies fastest.
Sample grid_point(const std::vector<std::vector<Sample::Value>>& axes, std::int64_t index);

}  // namespace det::searcher
