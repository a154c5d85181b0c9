#include "agent/task/hang_watch.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "common/base/files.h"
#include "need.h"

using namespace det;
using namespace det::agent;
using namespace std::chrono_literals;

namespace {

struct Bench {
  explicit Bench(Duration timeout) : watch(file, timeout, now) {}

  /// Updates the heartbeat file. The watch must not depend on the wall-clock time of the file.
  void beat(std::int64_t wall_seconds) {
    std::ofstream(file, std::ios::app).flush();
    const timespec at{.tv_sec = wall_seconds, .tv_nsec = 0};
    const timespec times[2] = {at, at};
    REQUIRE(::utimensat(AT_FDCWD, file.c_str(), times, 0) == 0);
  }
  /// Advances the clock and runs every look that falls due. Returns whether one of them detected a hang.
  bool hangs_within(Duration time) {
    const MonoTime end = now + time;
    while (watch.next_look() <= end) {
      now = watch.next_look();
      if (watch.hangs(now)) return true;
    }
    now = end;
    return false;
  }

  TemporaryDirectory dir = need(TemporaryDirectory::create());
  std::string file = dir.path() + "/heartbeat";
  MonoTime now{1'000'000'000};
  HangWatch watch;
};

}  // namespace

TEST_CASE("silence after a heartbeat becomes a hang after the timeout, not earlier", "[hang_watch]") {
  Bench bench(80s);
  bench.beat(5000);
  CHECK_FALSE(bench.hangs_within(80s));  // the look 10 s later is the first to see the heartbeat
  CHECK(bench.hangs_within(20s));
}

TEST_CASE("a task without heartbeats never counts as hung", "[hang_watch]") {
  Bench bench(80s);
  CHECK_FALSE(bench.hangs_within(10'000s));
  bench.beat(5000);  // watched from here on
  CHECK_FALSE(bench.hangs_within(80s));
  CHECK(bench.hangs_within(20s));
}

TEST_CASE("a heartbeat or a line of output restarts the timeout, with any wall clock", "[hang_watch]") {
  Bench bench(80s);
  for (const std::int64_t wall : {5000, 5001, 90'000, 17}) {
    bench.beat(wall);
    CHECK_FALSE(bench.hangs_within(70s));
  }
  bench.watch.saw_output(bench.now);
  CHECK_FALSE(bench.hangs_within(70s));
  CHECK(bench.hangs_within(20s));
}

TEST_CASE("a timeout of 0 disables the watch", "[hang_watch]") {
  Bench bench(0s);
  bench.beat(5000);
  CHECK_FALSE(bench.watch.watches());
  CHECK_FALSE(bench.watch.hangs(bench.now + 10'000'000s));
}
