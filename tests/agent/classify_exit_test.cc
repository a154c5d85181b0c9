#include "agent/classify_exit.h"

#include <catch2/catch.hpp>

using namespace det;
using namespace det::agent;
using Kind = Exit::Kind;

TEST_CASE("an exit is classified by its cause and carries the last lines of output", "[exit]") {
  struct Row {
    TaskExit exit;
    Exit expected;
  };
  const std::string python = "OSError: [Errno 28] No space left on device: '/ckpt/x'";
  const std::string harness =
      "error: train (batch 7): the checkpoint was not saved: /c/1: No space left on device";
  const std::string cuda = "error: train (batch 1): CUDA out of memory. Tried to allocate 20.00 MiB";
  const Row rows[] = {
      {{{0, 0}, "", {}, {}}, {Kind::kSucceeded, 0, "exit code 0"}},
      {{{7, 0}, "", {}, {}}, {Kind::kFailed, 7, "exit code 7"}},
      {{{1, 0}, "", {"Traceback:", "ValueError: bad lr"}, {}},
       {Kind::kFailed, 1, "exit code 1\nTraceback:\nValueError: bad lr"}},
      {{{1, 0}, "", {std::string("\x1b[1mbold\0\xff", 10)}, {}},
       {Kind::kFailed, 1, "exit code 1\n [1mbold\xE2\x90\x80\xEF\xBF\xBD"}},
      {{{127, 0}, "cannot run /x", {}, {}}, {Kind::kFailed, 127, "cannot run /x"}},
      {{{0, 11}, "", {}, {}}, {Kind::kFailed, 139, "signal 11 (Segmentation fault)"}},
      {{{0, 9}, "", {}, {}}, {Kind::kFailed, 137, "signal 9 (Killed)"}},
      {{{0, 9}, "", {"batch 3"}, 64 << 20},
       {Kind::kOutOfMemory, 137, "out of memory (the limit is 64.0MB): signal 9 (Killed)\nbatch 3"}},
      {{{0, 9}, "", {"batch 3"}, {}, std::chrono::seconds(90)},
       {Kind::kHung, 137,
        "the task hung: no batch, no report and no output for 1m 30s (hang_timeout): signal 9 "
        "(Killed)\nbatch 3"}},
      {{{0, 0}, "", {}, {}, std::chrono::hours(1)},
       {Kind::kHung, 0,
        "the task hung: no batch, no report and no output for 1h (hang_timeout): exit code 0"}},
      {{{0, 15}, "", {}, {}, std::chrono::hours(1), {"rank 1 is stuck", "in train_batch", "  at\x01 f"}},
       {Kind::kHung, 143,
        "the task hung: no batch, no report and no output for 1h (hang_timeout): rank 1 is stuck: signal 15 "
        "(Terminated)\nin train_batch\n  at  f"}},
      {{{0, 15}, "", {}, {}, std::chrono::hours(1), {"", "in train_batch"}},
       {Kind::kHung, 143,
        "the task hung: no batch, no report and no output for 1h (hang_timeout): signal 15 "
        "(Terminated)\nin train_batch"}},
      {{{1, 0}, "", {cuda}, {}}, {Kind::kOutOfMemory, 1, "out of memory: exit code 1\n" + cuda}},
      // What a program prints does not make its failure free of restarts; its exit code does.
      {{{1, 0}, "", {python}, {}}, {Kind::kFailed, 1, "exit code 1\n" + python}},
      {{{82, 0}, "", {harness, "det-launch: rank 0 ended with exit code 82"}, {}},
       {Kind::kStorageFull, 82,
        "storage full: exit code 82\n" + harness + "\ndet-launch: rank 0 ended with exit code 82"}},
      {{{83, 0}, "", {"a", "[rank=1] error: b", "c"}, {}},
       {Kind::kFailed, 83, "exit code 83\n[rank=1] error: b\na\nc"}},
  };
  for (const Row& row : rows) CHECK(classify_exit(row.exit) == row.expected);
}
