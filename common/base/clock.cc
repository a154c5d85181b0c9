#include "common/base/clock.h"

#include <cstdio>

namespace det {
namespace {

/// Parses exactly `count` digits; -1 if any other character is found.
int digits(const std::string& text, std::size_t at, std::size_t count) {
  if (at + count > text.size()) return -1;
  int value = 0;
  for (std::size_t i = at; i < at + count; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

/// Parses the zone at `at` ("Z", "+02:00") into minutes east of UTC. False if malformed or followed by more
/// text.
bool read_zone(const std::string& text, std::size_t at, int& minutes) {
  if (at >= text.size()) return false;
  const char sign = text[at];
  if (sign == 'Z' || sign == 'z') {
    minutes = 0;
    return at + 1 == text.size();
  }
  const int hour = digits(text, at + 1, 2), minute = digits(text, at + 4, 2);
  if ((sign != '+' && sign != '-') || at + 6 != text.size() || text[at + 3] != ':' || hour < 0 || hour > 23 ||
      minute < 0 || minute > 59) {
    return false;
  }
  minutes = (sign == '-' ? -1 : 1) * (hour * 60 + minute);
  return true;
}

}  // namespace

WallTime wall_now() {
  return {std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch()).count()};
}

MonoTime mono_now() {
  return {std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()).count()};
}

std::int64_t mono_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string to_rfc3339(WallTime time) {
  using namespace std::chrono;
  const sys_time<Duration> point{Duration(time.micros)};
  const auto day = floor<days>(point);
  const year_month_day date(day);
  const hh_mm_ss clock(point - day);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%06dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text;
}

Result<WallTime> parse_rfc3339(const std::string& text) {
  using namespace std::chrono;
  const auto bad = [&] {
    return fail(Code::kInvalidArgument,
                "\"" + text + "\" is no time; write it as RFC 3339, like 2026-03-02T02:15:18Z");
  };
  const int y = digits(text, 0, 4), mo = digits(text, 5, 2), d = digits(text, 8, 2);
  const int h = digits(text, 11, 2), mi = digits(text, 14, 2), s = digits(text, 17, 2);
  if (y < 0 || mo < 0 || d < 0 || h < 0 || mi < 0 || s < 0) return bad();
  const bool separated = text[4] == '-' && text[7] == '-' &&
                         (text[10] == 'T' || text[10] == 't' || text[10] == ' ') && text[13] == ':' &&
                         text[16] == ':';
  const year_month_day date{year(y), month(static_cast<unsigned>(mo)), day(static_cast<unsigned>(d))};
  // Seconds of 60 are accepted: RFC 3339 permits leap seconds.
  if (!separated || !date.ok() || h > 23 || mi > 59 || s > 60) return bad();

  std::size_t at = 19;
  std::int64_t micros = 0;
  if (at < text.size() && text[at] == '.') {
    const std::size_t first = ++at;
    std::int64_t unit = 100'000;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, unit /= 10)
      micros += (text[at] - '0') * unit;
    if (at == first) return bad();
  }
  int zone = 0;
  if (!read_zone(text, at, zone)) return bad();
  const auto point = sys_days(date) + hours(h) + minutes(mi - zone) + seconds(s) + Duration(micros);
  return WallTime{duration_cast<Duration>(point.time_since_epoch()).count()};
}

}  // namespace det
