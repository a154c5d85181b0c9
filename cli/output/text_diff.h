// Compares two texts line by line.
#pragma once

#include <string>
#include <string_view>

namespace det::cli {

/// Returns the hunks of `diff -u`, without the two header lines and with three lines of context; "" for equal
/// texts. Computes a longest common subsequence after trimming equal lines at both ends. When that needs more
/// than 16 Mi table cells (about 4,000 × 4,000 lines), the rest is one removed and one added block. Pure.
std::string unified_diff(std::string_view a, std::string_view b);

}  // namespace det::cli
