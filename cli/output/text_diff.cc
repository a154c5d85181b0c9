#include "cli/output/text_diff.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/base/text.h"

namespace det::cli {
namespace {

/// Lines of context around a change, and limit of the table in add_middle() (4 bytes per cell).
constexpr std::size_t kContext = 3, kMaxCells = 16 << 20;

struct Line {
  char mark;  ///< ' ', '-' or '+'
  std::string text;
};

/// Splits a text; a final line end does not start another line.
std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines = split(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

/// Appends the diff of two texts without common first and last lines. Dynamic programming: O(|a| · |b|) time
/// and memory.
void add_middle(const std::vector<std::string>& a, const std::vector<std::string>& b,
                std::vector<Line>& out) {
  const std::size_t rows = a.size() + 1, columns = b.size() + 1;
  if (rows * columns > kMaxCells) {
    for (const std::string& line : a) out.push_back({'-', line});
    for (const std::string& line : b) out.push_back({'+', line});
    return;
  }
  // common[i * columns + j]: length of the longest common subsequence of a[i..] and b[j..].
  std::vector<std::uint32_t> common(rows * columns);
  for (std::size_t i = a.size(); i-- > 0;) {
    for (std::size_t j = b.size(); j-- > 0;) {
      common[i * columns + j] = a[i] == b[j]
                                    ? common[(i + 1) * columns + j + 1] + 1
                                    : std::max(common[(i + 1) * columns + j], common[i * columns + j + 1]);
    }
  }
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      out.push_back({' ', a[i]});
      ++i, ++j;
    } else if (j == b.size() ||
               (i < a.size() && common[(i + 1) * columns + j] >= common[i * columns + j + 1])) {
      out.push_back({'-', a[i++]});
    } else {
      out.push_back({'+', b[j++]});
    }
  }
}

/// Returns all lines of both texts with their marks.
std::vector<Line> compare(std::vector<std::string> a, std::vector<std::string> b) {
  std::vector<Line> out;
  const auto [end_a, end_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  const auto same = static_cast<std::size_t>(end_a - a.begin());
  static_cast<void>(end_b);
  // The common suffix must not overlap the common prefix.
  std::size_t tail = 0;
  while (tail < a.size() - same && tail < b.size() - same && a[a.size() - 1 - tail] == b[b.size() - 1 - tail])
    ++tail;
  for (std::size_t i = 0; i < same; ++i) out.push_back({' ', a[i]});
  const auto middle = [&](const std::vector<std::string>& lines) {
    return std::vector<std::string>(lines.begin() + static_cast<std::ptrdiff_t>(same),
                                    lines.end() - static_cast<std::ptrdiff_t>(tail));
  };
  add_middle(middle(a), middle(b), out);
  for (std::size_t i = a.size() - tail; i < a.size(); ++i) out.push_back({' ', a[i]});
  return out;
}

/// Formats the range of a hunk header. As in diff, an empty range names the line before it.
std::string range_text(std::size_t first, std::size_t count) {
  const std::string begin = std::to_string(count == 0 ? first : first + 1);
  return count == 1 ? begin : begin + "," + std::to_string(count);
}

}  // namespace

std::string unified_diff(std::string_view a, std::string_view b) {
  const std::vector<Line> lines = compare(lines_of(a), lines_of(b));
  std::string text;
  std::size_t at = 0, line_a = 0, line_b = 0;
  const auto changed = [&](std::size_t i) { return lines[i].mark != ' '; };
  while (at < lines.size()) {
    std::size_t first = at;
    while (first < lines.size() && !changed(first)) ++first;
    if (first == lines.size()) break;
    // Changes with fewer than 2 * kContext unchanged lines between them share a hunk.
    std::size_t last = first;
    for (std::size_t i = first; i < lines.size() && i <= last + 2 * kContext; ++i)
      if (changed(i)) last = i;
    const std::size_t begin = std::max(at, first - std::min(first, kContext));
    const std::size_t end = std::min(lines.size(), last + kContext + 1);
    line_a += begin - at;
    line_b += begin - at;
    std::string body;
    std::size_t count_a = 0, count_b = 0;
    for (std::size_t i = begin; i < end; ++i) {
      body += lines[i].mark + lines[i].text + '\n';
      count_a += lines[i].mark != '+';
      count_b += lines[i].mark != '-';
    }
    text += "@@ -" + range_text(line_a, count_a) + " +" + range_text(line_b, count_b) + " @@\n" + body;
    line_a += count_a;
    line_b += count_b;
    at = end;
  }
  return text;
}

}  // namespace det::cli
