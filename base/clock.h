// Owns time: the only file of the tree that asks the system what time it is.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace det {

using Duration = std::chrono::microseconds;

/// Wall-clock time in microseconds since 1970 (UTC): stored, shown, never used for leases or deadlines.
struct WallTime {
  std::int64_t micros = 0;
  auto operator<=>(const WallTime&) const = default;
};

/// Monotonic time: only differences mean something, and only inside one process.
struct MonoTime {
  std::int64_t micros = 0;
  auto operator<=>(const MonoTime&) const = default;
};
inline MonoTime operator+(MonoTime t, Duration d) { return {t.micros + d.count()}; }
inline Duration operator-(MonoTime a, MonoTime b) { return Duration(a.micros - b.micros); }

WallTime wall_now();
MonoTime mono_now();
/// The clock of mono_now() in nanoseconds: for measuring what takes less than a microsecond.
std::int64_t mono_now_ns();

/// RFC 3339 in UTC with microseconds: "2026-03-02T02:15:18.299569Z".
std::string to_rfc3339(WallTime time);
Result<WallTime> parse_rfc3339(const std::string& text);

}  // namespace det
