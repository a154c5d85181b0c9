#include "common/base/clock.h"

#include "need.h"

using namespace det;

TEST_CASE("times print as RFC 3339 with microseconds", "[clock]") {
  CHECK(to_rfc3339({0}) == "1970-01-01T00:00:00.000000Z");
  CHECK(to_rfc3339({1772417718299569}) == "2026-03-02T02:15:18.299569Z");
  CHECK(to_rfc3339({-1}) == "1969-12-31T23:59:59.999999Z");
  CHECK(to_rfc3339({253402300799999999}) == "9999-12-31T23:59:59.999999Z");
}

TEST_CASE("every form of an RFC 3339 time is parsed", "[clock]") {
  const std::vector<std::pair<std::string, std::int64_t>> rows{
      {"2026-03-02T02:15:18.299569Z", 1772417718299569},
      {"2026-03-02T02:15:18Z", 1772417718000000},
      {"2026-03-02t02:15:18z", 1772417718000000},
      {"2026-03-02 02:15:18Z", 1772417718000000},
      {"2026-03-02T04:15:18.3+02:00", 1772417718300000},
      {"2026-03-01T21:45:18-04:30", 1772417718000000},
      {"2026-03-02T02:15:18.299569999Z", 1772417718299569},
      {"1970-01-01T00:00:00Z", 0},
      {"2024-02-29T00:00:00Z", 1709164800000000}};
  for (const auto& [text, micros] : rows) {
    INFO(text);
    CHECK(need(parse_rfc3339(text)).micros == micros);
  }
}

TEST_CASE("invalid RFC 3339 times are refused", "[clock]") {
  for (const char* text :
       {"", "now", "2026-03-02", "2026-03-02T02:15:18", "2026-13-02T02:15:18Z", "2025-02-29T00:00:00Z",
        "2026-03-02T24:15:18Z", "2026-03-02T02:60:18Z", "2026-03-02T02:15:18.Z", "2026-03-02T02:15:18Zx",
        "2026-03-02T02:15:18+2:00", "2026-03-02T02:15:18+02:60", "2026/03/02T02:15:18Z"}) {
    INFO(text);
    CHECK_FALSE(parse_rfc3339(text));
  }
}

TEST_CASE("printed times parse back to the same value", "[clock]") {
  for (std::int64_t micros = -62135596800000000; micros < 253402300799999999; micros += 1234567890123457) {
    CHECK(need(parse_rfc3339(to_rfc3339({micros}))).micros == micros);
  }
}

TEST_CASE("monotonic time does not go backwards, and wall time lies in this century", "[clock]") {
  const MonoTime first = mono_now();
  CHECK(mono_now() >= first);
  CHECK(wall_now().micros > need(parse_rfc3339("2020-01-01T00:00:00Z")).micros);
  CHECK((first + std::chrono::seconds(2)) - first == std::chrono::seconds(2));
}
