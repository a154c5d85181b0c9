#include "cli/output/sparkline.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace det::cli {

std::string sparkline(const std::vector<double>& values, std::size_t width) {
  static constexpr std::array<const char*, 8> kBlocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::size_t columns = std::min(width, values.size());
  // NaN marks a column without finite values.
  std::vector<double> means(columns, std::nan(""));
  for (std::size_t column = 0; column < columns; ++column) {
    // Integer division distributes the values evenly: no column is empty, because columns <= values.
    const std::size_t begin = column * values.size() / columns, end = (column + 1) * values.size() / columns;
    double sum = 0;
    std::size_t count = 0;
    for (std::size_t i = begin; i < end; ++i) {
      if (!std::isfinite(values[i])) continue;
      sum += values[i];
      ++count;
    }
    if (count > 0) means[column] = sum / static_cast<double>(count);
  }
  double least = INFINITY, most = -INFINITY;
  for (const double mean : means) {
    if (std::isnan(mean)) continue;
    least = std::min(least, mean);
    most = std::max(most, mean);
  }
  std::string text;
  for (const double mean : means) {
    if (std::isnan(mean)) {
      text += ' ';
      continue;
    }
    // A constant series is drawn at half height.
    const double height = most > least ? (mean - least) / (most - least) : 0.5;
    text += kBlocks[std::min<std::size_t>(7, static_cast<std::size_t>(height * 8))];
  }
  return text;
}

}  // namespace det::cli
