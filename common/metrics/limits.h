// Limits of metric reports. The master ends the session of a client that exceeds them, so training processes
// check them too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "common/base/text.h"

namespace det {

/// Limits of one report: metrics, bytes of JSON, and depth of JSON.
inline constexpr std::size_t kMaxMetrics = 1000, kMaxMetricBytes = 1 << 20;
inline constexpr int kMaxMetricDepth = 8;

/// Name of a metric: 1 to 256 printable ASCII characters.
inline bool is_metric_name(std::string_view name) {
  return !name.empty() && name.size() <= 256 &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= 0x20 && c <= 0x7e; });
}

/// Name of a metric group: 1 to 128 bytes of UTF-8, without "." and control characters. The dot separates
/// group and name in metric ids.
inline bool is_metric_group(std::string_view name) {
  return !name.empty() && name.size() <= 128 && name.find('.') == name.npos &&
         !has_control_characters(name) && !find_bad_utf8(name);
}

}  // namespace det
