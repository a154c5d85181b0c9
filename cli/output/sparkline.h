// Draws a series of numbers in one line of text.
#pragma once

#include <string>
#include <vector>

namespace det::cli {

/// Returns a line of block characters in eight heights, at most `width` columns; "" for no values. Each
/// column is the mean of an equal part of the values, scaled between the least and the largest mean. Values
/// that are not finite are skipped; a part with no other values is a space. Pure.
std::string sparkline(const std::vector<double>& values, std::size_t width);

}  // namespace det::cli
