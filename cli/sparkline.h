// Owns drawing a series of numbers in one line of text. Pure.
#pragma once

#include <string>
#include <vector>

namespace det::cli {

/// Blocks of eight heights, the least value lowest: at most `width` columns, each the mean of its stretch.
/// What is not finite is left out; a stretch of nothing else is a space. "" for no values.
std::string sparkline(const std::vector<double>& values, std::size_t width);

}  // namespace det::cli
