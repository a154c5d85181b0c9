#include "common/base/log.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/base/files.h"
#include "common/base/ids.h"
#include "common/base/json.h"
#include "common/base/log_history.h"
#include "common/base/text.h"
#include "need.h"

using namespace det;

namespace {
const LogOptions kText{LogLevel::kInfo, false, "", "master"};
const LogOptions kJson{LogLevel::kInfo, true, "", "master"};
constexpr const char* kTime = "2026-03-02T02:15:18.299569Z";
}  // namespace

TEST_CASE("text lines are readable and cannot be forged", "[log]") {
  CHECK(log::format(kText, kTime, LogLevel::kInfo, "agent connected",
                    {{"agent", AgentId("a1")}, {"slots", 8}}) ==
        "2026-03-02T02:15:18.299569Z INFO  master: agent connected agent=a1 slots=8");
  CHECK(log::format(kText, kTime, LogLevel::kError, "bad\nname\x1B[31m",
                    {{"name", "two words"}, {"why", "a\r\"b\""}}) ==
        "2026-03-02T02:15:18.299569Z ERROR master: bad\\nname\\x1b[31m name=\"two words\" "
        "why=\"a\\r\\\"b\\\"\"");
}

TEST_CASE("each JSON line is one object with typed values", "[log]") {
  const std::string line = log::format(kJson, kTime, LogLevel::kWarning, "a \"quoted\"\nline\xFF",
                                       {{"trial", TrialId(12)},
                                        {"ok", false},
                                        {"seconds", 0.5},
                                        {"digits", "12"},
                                        {"loss", std::numeric_limits<double>::quiet_NaN()}});
  CHECK(line.find('\n') == std::string::npos);
  const Json json = need(parse_json(line));
  CHECK(json["time"] == kTime);
  CHECK(json["level"] == "warn");
  CHECK(json["program"] == "master");
  CHECK(json["message"] == "a \"quoted\"\nline\xEF\xBF\xBD");
  CHECK(json["trial"] == 12);
  CHECK(json["ok"] == false);
  CHECK(json["seconds"] == 0.5);
  CHECK(json["digits"] == "12");
  CHECK(json["loss"] == "NaN");
}

TEST_CASE("levels have names", "[log]") {
  CHECK(need(parse_log_level("WARNING")) == LogLevel::kWarning);
  CHECK(need(parse_log_level("debug")) == LogLevel::kDebug);
  CHECK(parse_log_level("loud").error().message ==
        "\"loud\" is no log level; use one of trace, debug, info, warn, error");
}

TEST_CASE("concurrent threads write whole lines, and the level filters", "[log]") {
  const TemporaryDirectory directory = need(TemporaryDirectory::create());
  const std::string path = directory.path() + "/log";
  need(init_log({LogLevel::kInfo, false, path, "test"}));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 250; ++i) {
        log::info("line", {{"thread", t}, {"number", i}});
        log::debug("hidden");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  set_log_level(LogLevel::kError);
  log::warn("hidden");
  need(init_log({}));
  const std::vector<std::string> lines = split(trim(need(read_file(path))), '\n');
  CHECK(lines.size() == 1000);
  for (const std::string& line : lines) CHECK_THAT(line, Catch::Contains(" INFO  test: line thread="));
}

TEST_CASE("a log file that cannot be opened is an error", "[log]") {
  CHECK(init_log({LogLevel::kInfo, false, "/proc/none/log", "test"}).error().code == Code::kUnavailable);
}

TEST_CASE("the history keeps the newest lines, numbered without gaps across threads", "[log]") {
  const TemporaryDirectory directory = need(TemporaryDirectory::create());
  need(init_log({LogLevel::kInfo, false, directory.path() + "/log", "test"}));
  log::warn("before anybody kept lines");
  CHECK(log::newest_line() == 0);
  CHECK(log::history(0, 10).empty());
  log::keep_history(50);
  log::debug("below the level");
  log::warn("two\nlines", {{"agent", "a 1"}});
  const auto first = log::history(0, 10);
  REQUIRE(first.size() == 1);
  CHECK(first[0].id == 1);
  CHECK(first[0].level == LogLevel::kWarning);
  CHECK(first[0].text == "two\\nlines agent=\"a 1\"");
  CHECK(std::abs(first[0].time.micros - wall_now().micros) < 60'000'000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 100; ++i) log::info("line", {{"number", i}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(log::newest_line() == 401);
  const auto kept = log::history(0, 1000);
  REQUIRE(kept.size() == 50);
  for (std::size_t i = 0; i < kept.size(); ++i) CHECK(kept[i].id == 352 + i);
  CHECK(log::history(399, 1000).size() == 2);
  CHECK(log::history(360, 3).front().id == 361);
  CHECK(log::history(360, 3).size() == 3);
  CHECK(log::history(401, 3).empty());
  CHECK(log::history(9000, 3).empty());
  log::error(std::string(10'000, 'x'));
  CHECK(log::history(401, 1)[0].text == std::string(4096, 'x') + " [cut]");
  need(init_log({}));
}
