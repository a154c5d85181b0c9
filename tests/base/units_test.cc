#include "common/base/units.h"

#include "need.h"

using namespace det;
using namespace std::chrono_literals;

TEST_CASE("sizes are parsed in Determined's format", "[units]") {
  const std::vector<std::pair<std::string, std::int64_t>> rows{{"0", 0},
                                                               {"100", 100},
                                                               {"100b", 100},
                                                               {"1k", 1024},
                                                               {"1 KB", 1024},
                                                               {"1KiB", 1024},
                                                               {"512 MiB", 512 << 20},
                                                               {"4g", 4LL << 30},
                                                               {"1.5kb", 1536},
                                                               {".5k", 512},
                                                               {"2T", 2LL << 40},
                                                               {"1p", 1LL << 50},
                                                               {"0.3b", 0},
                                                               {"9223372036854775807", 9223372036854775807},
                                                               {"8191p", 8191LL << 50}};
  for (const auto& [text, bytes] : rows) {
    INFO(text);
    CHECK(need(parse_bytes(text)) == bytes);
  }
}

TEST_CASE("invalid sizes are refused", "[units]") {
  for (const char* text :
       {"", " ", "k", "-1", "1.", "1..2", "1 kk", "1ki", "1 bb", "1e3", "4 gb ", " 4g", "4  g", "0x10", "1bk",
        "9223372036854775808", "8192p", "99999999999999999999p", "1,5k"}) {
    INFO(text);
    CHECK_FALSE(parse_bytes(text));
  }
}

TEST_CASE("sizes print in the format of Determined's CLI", "[units]") {
  CHECK(format_bytes(0) == "0.0B");
  CHECK(format_bytes(1023) == "1023.0B");
  CHECK(format_bytes(2560) == "2.5KB");
  CHECK(format_bytes(94LL << 20) == "94.0MB");
  CHECK(format_bytes(3LL << 60) == "3.0EB");
}

TEST_CASE("durations parse and print in the same format", "[units]") {
  const std::vector<std::pair<std::string, Duration>> rows{
      {"30s", 30s}, {"5m", 5min}, {"1h30m", 90min}, {"250ms", 250ms}, {"2d", 48h}, {"1m500us", 60'000'500us},
      {"0s", 0s}};
  for (const auto& [text, duration] : rows) {
    INFO(text);
    CHECK(need(parse_duration(text)) == duration);
    CHECK(format_duration(duration) == text);
  }
  CHECK(need(parse_duration("0")) == 0s);
  CHECK(need(parse_duration("1.5h")) == 90min);
  CHECK(need(parse_duration("90s")) == 90s);
  CHECK(format_duration(90s) == "1m30s");
  CHECK(format_duration(-1500ms) == "-1s500ms");
}

TEST_CASE("invalid durations are refused", "[units]") {
  for (const char* text :
       {"", "5", "s", "-5s", "5 s", "30m1h", "1h1h", "1x", "1.s", "5sec", "99999999999d"}) {
    INFO(text);
    CHECK_FALSE(parse_duration(text));
  }
}

TEST_CASE("durations for people have at most two units", "[units]") {
  CHECK(human_duration(0s) == "0s");
  CHECK(human_duration(850ms) == "850ms");
  CHECK(human_duration(13s + 900ms) == "13s");
  CHECK(human_duration(133s) == "2m 13s");
  CHECK(human_duration(2min) == "2m");
  CHECK(human_duration(65min + 5s) == "1h 5m");
  CHECK(human_duration(76h + 5min) == "3d 4h");
  CHECK(human_duration(-133s) == "-2m 13s");
}
