#include "cli/output/print.h"

#include <catch2/catch.hpp>

#include "cli/output/progress.h"
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
