// Clocks. This is the only module that reads the system time; everything else receives it or calls these.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "common/base/result.h"

namespace det {

/// The unit of every duration in the code base: microseconds.
using Duration = std::chrono::microseconds;

/// Wall-clock time in microseconds since 1970-01-01 UTC. Stored and displayed; never used for leases or
/// deadlines, since it can jump.
struct WallTime {
  std::int64_t micros = 0;
  auto operator<=>(const WallTime&) const = default;
};

/// Monotonic time in microseconds. Only differences within one process are meaningful.
struct MonoTime {
  std::int64_t micros = 0;
  auto operator<=>(const MonoTime&) const = default;
};
// Durations are the only arithmetic between points in time.
inline MonoTime operator+(MonoTime t, Duration d) { return {t.micros + d.count()}; }
inline Duration operator-(MonoTime a, MonoTime b) { return Duration(a.micros - b.micros); }

/// Current time. Thread-safe.
WallTime wall_now();
MonoTime mono_now();
/// The clock of mono_now() in nanoseconds, for measuring intervals below a microsecond.
std::int64_t mono_now_ns();

/// Formats as RFC 3339 in UTC with microseconds: "2026-03-02T02:15:18.299569Z".
std::string to_rfc3339(WallTime time);
/// Parses RFC 3339 with any zone offset; digits beyond microseconds are dropped. Errors: kInvalidArgument.
Result<WallTime> parse_rfc3339(const std::string& text);

}  // namespace det
