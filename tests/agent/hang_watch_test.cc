// Owns the rules by which a task counts as hung, on a clock of their own.
#include "agent/task/hang_watch.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "base/files.h"
#include "need.h"

using namespace det;
using namespace det::agent;
using namespace std::chrono_literals;

namespace {

struct Bench {
  explicit Bench(Duration timeout) : watch(file, timeout, now) {}

  /// The heartbeat file changes; at what time of the wall clock is not what counts.
  void beat(std::int64_t wall_seconds) {
    std::ofstream(file, std::ios::app).flush();
    const timespec at{.tv_sec = wall_seconds, .tv_nsec = 0};
    const timespec times[2] = {at, at};
    REQUIRE(::utimensat(AT_FDCWD, file.c_str(), times, 0) == 0);
  }
  /// Seconds go by, looked at whenever the watch wants to; whether it said at any of the looks that the task
  /// hangs.
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

TEST_CASE("silence after a heartbeat is a hang once it has lasted for the timeout, and not before",
          "[hang_watch]") {
  Bench bench(80s);
  bench.beat(5000);
  CHECK_FALSE(bench.hangs_within(80s));  // seen first at the look after ten seconds
  CHECK(bench.hangs_within(20s));
}

TEST_CASE("who never beat is not judged, however silent", "[hang_watch]") {
  Bench bench(80s);
  CHECK_FALSE(bench.hangs_within(10'000s));
  bench.beat(5000);  // from now on it is
  CHECK_FALSE(bench.hangs_within(80s));
  CHECK(bench.hangs_within(20s));
}

TEST_CASE("a heartbeat or a line of output begins the patience anew, with any wall clock", "[hang_watch]") {
  Bench bench(80s);
  for (const std::int64_t wall : {5000, 5001, 90'000, 17}) {
    bench.beat(wall);
    CHECK_FALSE(bench.hangs_within(70s));
  }
  bench.watch.saw_output(bench.now);
  CHECK_FALSE(bench.hangs_within(70s));
  CHECK(bench.hangs_within(20s));
}

TEST_CASE("a timeout of nought watches nothing", "[hang_watch]") {
  Bench bench(0s);
  bench.beat(5000);
  CHECK_FALSE(bench.watch.watches());
  CHECK_FALSE(bench.watch.hangs(bench.now + 10'000'000s));
}
