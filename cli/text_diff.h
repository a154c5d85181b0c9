// Owns comparing two texts line by line. Pure.
#pragma once

#include <string>
#include <string_view>

namespace det::cli {

/// What `diff -u` says, without its two head lines: hunks with three lines around each change; "" when the
/// texts are the same. Longest common subsequence, after the equal ends are cut off; texts that differ over
/// more than some thousand lines are one removed and one added block.
std::string unified_diff(std::string_view a, std::string_view b);

}  // namespace det::cli
