// Parsing and formatting of sizes and durations. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"

namespace det {

/// Parses "512 MiB", "4g", "1.5kb", "100": Determined AI's syntax `([0-9]*.)?[0-9]+ ?([kmgtp](i?b)?|b)?`,
/// ignoring case. Units are powers of 1024; the result is rounded down. Errors: kInvalidArgument (syntax, or
/// beyond 2^63 - 1 bytes).
Result<std::int64_t> parse_bytes(std::string_view text);
/// Formats like Determined AI's CLI: powers of 1024, one decimal, no space: "0.0B", "2.5KB", "94.0MB".
std::string format_bytes(std::int64_t bytes);

/// Parses "30s", "5m", "1h30m", "250ms", "2d", "1.5h", "0". Units are d h m s ms us, largest first, each at
/// most once.
/// Errors: kInvalidArgument (syntax, or beyond 285 years).
Result<Duration> parse_duration(std::string_view text);
/// Formats exactly, readable by parse_duration: "1h30m", "250ms", "0s".
std::string format_duration(Duration duration);
/// Formats with at most two units: "850ms", "13s", "2m 13s", "1h 5m", "3d 4h". Rounds down.
std::string human_duration(Duration duration);

}  // namespace det
