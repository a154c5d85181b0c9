// Measures and prints figures: medians, and `name value unit bound ok|short`, one figure a line.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace bench {

using Clock = std::chrono::steady_clock;
inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}
template <typename Body>
double seconds_of(const Body& body) {
  const auto start = Clock::now();
  body();
  return seconds_since(start);
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

/// Prints a figure. `relation` is "<=" or ">=".
inline void figure(const std::string& name, double value, const char* unit, const char* relation,
                   double bound) {
  const bool ok = relation[0] == '<' ? value <= bound : value >= bound;
  std::printf("%s %.4g %s %s%.4g %s\n", name.c_str(), value, unit, relation, bound, ok ? "ok" : "short");
  std::fflush(stdout);
}

}  // namespace bench
