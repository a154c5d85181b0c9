#include "cli/output/print.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <ctime>

#include "cli/output/logs.h"
#include "cli/output/progress.h"
#include "common/base/text.h"
#include "det/v1/trial.pb.h"

namespace det::cli::test {

TEST_CASE("a table aligns its columns, with numbers to the right") {
  const Table table{{"ID", "Name"}, {{"1", "a"}, {"12", "longer name"}, {"3", "größe"}}};
  CHECK(to_text(table) ==
        " ID | Name\n"
        "----+-------------\n"
        "  1 | a\n"
        " 12 | longer name\n"
        "  3 | größe\n");
}

TEST_CASE("an empty table prints its header") {
  CHECK(to_text({{"ID", "Name"}, {}}) == " ID | Name\n----+------\n");
}

TEST_CASE("a table on a terminal shortens text, never ids, and shows times relative to now") {
  const Table table{
      .columns = {"ID", "Name", "State", "Started", "Parent ID"},
      .rows = {{"1", "a name of thirty characters ..", "RUNNING", "2022-03-02 02:15:18+0000", ""},
               {"12", "short", "COMPLETED", "N/A", ""}},
      .wide = {"Parent ID"}};
  const WallTime now = parse_rfc3339("2022-03-02T02:20:30Z").value();
  Look look{.fit = Look::Fit::kHide, .width = 44, .now = now};
  CHECK(to_terminal(table, look) ==
        "ID  Name                  State      Started\n"
        " 1  a name of thirty ch…  RUNNING    5m ago\n"
        "12  short                 COMPLETED  -\n");
  look.width = 200;
  CHECK(to_terminal(table, look).find("a name of thirty characters ..") != std::string::npos);
  CHECK(to_terminal(table, look).find("Parent ID") == std::string::npos);
  look.fit = Look::Fit::kWide;
  look.width = 20;
  CHECK(to_terminal(table, look).find("a name of thirty characters ..") != std::string::npos);
  CHECK(to_terminal(table, look).find("Parent ID") != std::string::npos);
}

TEST_CASE("columns that do not fit a terminal are hidden, and the last line tells it") {
  const Table table{.columns = {"ID", "State", "First", "Second"},
                    .rows = {{"1", "RUNNING", "aaaaaaaaaa", "bbbbbbbbbb"}}};
  const std::string text = to_terminal(table, {.fit = Look::Fit::kHide, .width = 24, .now = {}});
  CHECK(text ==
        "ID  State    First\n"
        " 1  RUNNING  aaaaaaaaaa\n"
        "1 column does not fit: -o wide\n");
  // Without `-o wide` nothing is hidden.
  CHECK(to_terminal(table, {.width = 24, .now = {}}).find("bbbbbbbbbb") != std::string::npos);
  CHECK(to_terminal({{"ID"}, {}}, {.now = {}}) == "ID\nnone\n");
  // An empty table hides nothing that a reader would miss.
  CHECK(to_terminal({{"ID", "State"}, {}}, {.fit = Look::Fit::kHide, .width = 4, .now = {}}) == "ID\nnone\n");
  Table cut = table;
  cut.more = 815;
  CHECK(to_terminal(cut, {.now = {}}).ends_with("815 more: --limit N, or --pages all\n"));
}

TEST_CASE("no line of a table on a terminal is wider than the terminal") {
  Table table{.columns = {"ID", "Owner", "Name", "H-Params", "State", "Metric"}, .rows = {}};
  for (int i = 0; i < 5; ++i)
    table.rows.push_back({std::to_string(i), "a user with a long name", std::string(90, 'n') + "größe",
                          R"({"lr":0.1,"width":128,"act":"relu"})", "ERROR", "accuracy=0.8213"});
  for (int width = 30; width < 200; ++width) {
    INFO(width);
    std::size_t longest = 0;
    const std::string text = to_terminal(table, {.fit = Look::Fit::kHide, .width = width, .now = {}});
    // The notes below the table are sentences.
    const std::vector<std::string> lines = split(text, '\n');
    for (std::size_t i = 0; i <= table.rows.size(); ++i) longest = std::max(longest, width_of(lines[i]));
    CHECK(static_cast<int>(longest) <= width);
  }
  CHECK(to_terminal(table, {.width = 300, .now = {}}).find("lr=0.1 width=128 act=relu") != std::string::npos);
}

TEST_CASE("states have a color on a terminal, and text of the cluster adds none") {
  const Table table{.columns = {"State", "Name"}, .rows = {{"ERROR", "\033[31mred"}}};
  CHECK(to_terminal(table, {.color = true, .now = {}}) ==
        "\033[1mState  Name\033[0m\n\033[31mERROR\033[0m  \\x1b[31mred\n");
  CHECK(to_terminal(table, {.now = {}}).find('\033') == std::string::npos);
}

TEST_CASE("relative times have one unit, and become dates after thirty days") {
  const WallTime now = parse_rfc3339("2022-03-31T12:00:00Z").value();
  const auto at = [&](std::int64_t seconds) {
    return relative_time({now.micros - seconds * 1'000'000}, now);
  };
  CHECK(at(0) == "0s ago");
  CHECK(at(59) == "59s ago");
  CHECK(at(60) == "1m ago");
  CHECK(at(3600) == "1h ago");
  CHECK(at(47 * 3600) == "47h ago");
  CHECK(at(48 * 3600) == "2d ago");
  CHECK(at(31 * 86400) == "2022-02-28");
  CHECK(at(-300) == "in 5m");
}

TEST_CASE("a log line on a terminal has the local time, and marks its level") {
  ::setenv("TZ", "UTC-2", 1);
  ::tzset();
  v1::LogEntry entry;
  entry.set_message("[2022-03-02T02:15:18.299569Z]          [rank=1] || ERROR: out of memory");
  entry.mutable_timestamp()->set_seconds(1646187318);
  const WallTime now = parse_rfc3339("2022-03-02T05:00:00Z").value();
  CHECK(short_log_line(entry, now, false) == "04:15:18 [rank=1] ERROR: out of memory\n");
  CHECK(short_log_line(entry, now, true) ==
        "\033[2m04:15:18\033[0m [rank=1] \033[31mERROR\033[0m: out of memory\n");
  CHECK(short_log_line(entry, {now.micros + 86'400'000'000}, false) ==
        "2022-03-02 04:15:18 [rank=1] ERROR: out of memory\n");
  entry.set_message("no prefix");
  CHECK(short_log_line(entry, now, true) == "no prefix\n");
  ::unsetenv("TZ");
  ::tzset();
}

TEST_CASE("a trial that is built shows the time since the build began") {
  v1::Trial trial;
  trial.set_state(v1::STATE_PULLING);
  CHECK(state_text(trial, WallTime{50'000'000}) == "PULLING");
  trial.mutable_build_time()->set_seconds(38);
  CHECK(state_text(trial, WallTime{50'900'000}) == "BUILDING 12s");
  // The clocks of two machines differ.
  CHECK(state_text(trial, WallTime{37'000'000}) == "BUILDING 0s");
  trial.set_state(v1::STATE_RUNNING);
  CHECK(state_text(trial, WallTime{50'000'000}) == "RUNNING");
}

TEST_CASE("CSV quotes fields that need it") {
  const Table table{{"ID", "Name"}, {{"1", "a,b"}, {"2", "say \"x\""}, {"3", "two\nlines"}}};
  CHECK(to_csv(table) == "ID,Name\r\n1,\"a,b\"\r\n2,\"say \"\"x\"\"\"\r\n3,\"two\nlines\"\r\n");
}

TEST_CASE("control characters from the cluster are escaped") {
  CHECK(printable("plain") == "plain");
  CHECK(printable("a\nb\tc") == "a b c");
  CHECK(printable("\033[31mred") == "\\x1b[31mred");
  CHECK(printable("a\u009b31m\u202eb") == "a\\u009b31m\\u202eb");
  CHECK(to_text({{"N"}, {{"\033]0;x\a"}}}).find('\033') == std::string::npos);
}

TEST_CASE("problems are aligned in columns") {
  CHECK(problem_lines(
            {{"E-CFG-RANGE", "searcher.max_trials", "must be an integer >= 1, got 0", "const.yaml", 14, 16},
             {"E-CFG-UNKNOWN", "hyperparameterz", "unknown field", "const.yaml", 9, 3}}) ==
        "const.yaml:14:16  searcher.max_trials  E-CFG-RANGE    must be an integer >= 1, got 0\n"
        "const.yaml:9:3    hyperparameterz      E-CFG-UNKNOWN  unknown field\n");
}

TEST_CASE("times are printed in UTC to the second") {
  google::protobuf::Timestamp time;
  time.set_seconds(1646187318);
  CHECK(time_text(time, true) == "2022-03-02 02:15:18+0000");
  CHECK(time_text(time, false) == "N/A");
}

TEST_CASE("a progress bar shows the fraction done and fits its line") {
  CHECK(bar_text("x", 0, 32) == "x [                    ]   0.0%");
  CHECK(bar_text("x", 0.5, 32) == "x [=========>          ]  50.0%");
  CHECK(bar_text("x", 1, 32) == "x [====================] 100.0%");
  CHECK(bar_text("x", 7, 32) == bar_text("x", 1, 32));
  CHECK(bar_text("a long label", 0.25, 12) == " 25.0%");
  for (int width = 20; width < 200; ++width)
    CHECK(static_cast<int>(bar_text("label", 0.3, width).size()) <= width);
}

}  // namespace det::cli::test
