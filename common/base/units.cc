#include "common/base/units.h"

#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <limits>

#include "common/base/text.h"

namespace det {
namespace {

constexpr double kTwoTo63 = 9223372036854775808.0;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Consumes "12", "1.5" or ".5" from the front of `text`. False if there is no number, or no digit after the
/// point.
bool take_number(std::string_view& text, std::string& number) {
  std::size_t at = 0;
  while (at < text.size() && is_digit(text[at])) ++at;
  if (at < text.size() && text[at] == '.') {
    ++at;
    const std::size_t fraction = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    if (at == fraction) return false;
  }
  number = std::string(text.substr(0, at));
  text.remove_prefix(at);
  return at > 0;
}

struct TimeUnit {
  std::string_view name;
  std::int64_t micros;
};
constexpr std::array<TimeUnit, 6> kTimeUnits{{{"d", 86'400'000'000},
                                              {"h", 3'600'000'000},
                                              {"m", 60'000'000},
                                              {"s", 1'000'000},
                                              {"ms", 1'000},
                                              {"us", 1}}};

}  // namespace

Result<std::int64_t> parse_bytes(std::string_view text) {
  const auto bad = [&](const char* why) {
    return fail(Code::kInvalidArgument, "\"" + std::string(text) + "\" " + why);
  };
  constexpr const char* kForm = "is no size; write it like 512, 512MB, 1.5 GiB";
  std::string_view rest = text;
  std::string number;
  if (!take_number(rest, number)) return bad(kForm);
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  const std::string unit = to_lower(rest);
  int power = 0;
  if (!unit.empty() && unit != "b") {
    const std::size_t at = std::string_view("kmgtp").find(unit[0]);
    const std::string suffix = unit.substr(1);
    if (at == std::string_view::npos || (!suffix.empty() && suffix != "b" && suffix != "ib"))
      return bad(kForm);
    power = static_cast<int>(at) + 1;
  }
  if (number.find('.') == std::string::npos) {
    // Integer arithmetic: a double is exact only up to 2^53.
    unsigned __int128 value = 0;
    for (const char c : number) {
      value = value * 10 + static_cast<unsigned>(c - '0');
      if (value >> 63 != 0) return bad("is beyond 2^63 - 1 bytes");
    }
    value <<= 10 * power;
    if (value >> 63 != 0) return bad("is beyond 2^63 - 1 bytes");
    return static_cast<std::int64_t>(value);
  }
  // Fractions are rounded down to whole bytes.
  const double value = std::floor(std::ldexp(std::strtod(number.c_str(), nullptr), 10 * power));
  if (!(value < kTwoTo63)) return bad("is beyond 2^63 - 1 bytes");
  return static_cast<std::int64_t>(value);
}

std::string format_bytes(std::int64_t bytes) {
  static constexpr std::array<const char*, 7> kUnits{"B", "KB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; std::abs(value) >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  char text[64];
  std::snprintf(text, sizeof text, "%.1f%s", value, kUnits[unit]);
  return text;
}

Result<Duration> parse_duration(std::string_view text) {
  const auto bad = [&](const char* why) {
    return fail(Code::kInvalidArgument, "\"" + std::string(text) + "\" " + why);
  };
  constexpr const char* kForm = "is no duration; write it like 30s, 5m, 1h30m, 250ms";
  if (text == "0") return Duration(0);
  if (text.empty()) return bad(kForm);
  std::string_view rest = text;
  double total = 0;
  std::size_t next_unit = 0;
  while (!rest.empty()) {
    std::string number;
    if (!take_number(rest, number)) return bad(kForm);
    std::size_t letters = 0;
    while (letters < rest.size() && !is_digit(rest[letters]) && rest[letters] != '.') ++letters;
    const std::string_view name = rest.substr(0, letters);
    rest.remove_prefix(letters);
    // Starts behind the previous unit, which enforces descending order without repeats.
    std::size_t unit = next_unit;
    while (unit < kTimeUnits.size() && kTimeUnits[unit].name != name) ++unit;
    if (unit == kTimeUnits.size()) return bad(kForm);
    next_unit = unit + 1;
    total += std::strtod(number.c_str(), nullptr) * static_cast<double>(kTimeUnits[unit].micros);
  }
  // The bound keeps the sum far from overflow; the negated comparison also rejects NaN.
  if (!(total < 9.0e15)) return bad("is beyond 285 years");
  return Duration(std::llround(total));
}

std::string format_duration(Duration duration) {
  std::int64_t left = duration.count();
  if (left == 0) return "0s";
  std::string text = left < 0 ? "-" : "";
  // Works on the signed value: negating the smallest int64 would overflow.
  for (const TimeUnit& unit : kTimeUnits) {
    const std::int64_t count = left / unit.micros;
    left %= unit.micros;
    if (count != 0) text += std::to_string(count < 0 ? -count : count) + std::string(unit.name);
  }
  return text;
}

std::string human_duration(Duration duration) {
  const std::int64_t micros = duration.count();
  if (micros < 0)
    return "-" + human_duration(Duration(micros == std::numeric_limits<std::int64_t>::min()
                                             ? std::numeric_limits<std::int64_t>::max()
                                             : -micros));
  if (micros > 0 && micros < 1'000'000) return std::to_string(micros / 1000) + "ms";
  for (std::size_t i = 0; i + 1 < kTimeUnits.size(); ++i) {
    const std::int64_t unit = kTimeUnits[i].micros;
    if (micros < unit) continue;
    std::string text = std::to_string(micros / unit) + std::string(kTimeUnits[i].name);
    const std::int64_t rest = kTimeUnits[i].name == "s" ? 0 : micros % unit / kTimeUnits[i + 1].micros;
    if (rest > 0) text += " " + std::to_string(rest) + std::string(kTimeUnits[i + 1].name);
    return text;
  }
  return "0s";
}

}  // namespace det
