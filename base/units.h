// Owns sizes and durations as people write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace det {

/// "512 MiB", "4g", "1.5kb", "100": upstream's form `([0-9]*.)?[0-9]+ ?([kmgtp](i?b)?|b)?`, in any case.
/// Every unit is a power of 1024, rounded down to whole bytes. kInvalidArgument when it is no size or beyond
/// 2^63 - 1.
Result<std::int64_t> parse_bytes(std::string_view text);
/// As upstream's CLI prints sizes: powers of 1024, one decimal, no space: "0.0B", "2.5KB", "94.0MB".
std::string format_bytes(std::int64_t bytes);

/// "30s", "5m", "1h30m", "250ms", "2d", "1.5h"; units d h m s ms us, largest first, each at most once. "0" is
/// allowed.
Result<Duration> parse_duration(std::string_view text);
/// Exact and readable by parse_duration: "1h30m", "250ms", "0s".
std::string format_duration(Duration duration);
/// For people: two units at most: "850ms", "13s", "2m 13s", "1h 5m", "3d 4h".
std::string human_duration(Duration duration);

}  // namespace det
