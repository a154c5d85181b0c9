// Status line, throughput and the progress of a trial as text.
#include "cli/output/progress.h"

#include <catch2/catch.hpp>
#include <limits>
#include <sstream>

#include "cli/submit/trial_progress.h"

namespace det::cli::test {
namespace {

using namespace std::chrono_literals;

constexpr MonoTime kBegin{1'000'000};

TrialReading running(std::int64_t batches, double progress) { return {v1::STATE_RUNNING, batches, progress}; }

}  // namespace

TEST_CASE("a status line without a terminal prints one line every ten seconds, none for short work") {
  std::ostringstream out;
  StatusLine line(out, false, kBegin);
  line.show("building 9s", kBegin + 9s);
  CHECK(out.str().empty());
  line.show("building 10s", kBegin + 10s);
  line.show("building 11s", kBegin + 11s);
  line.show("building 19s", kBegin + 19s);
  line.show("building 20s", kBegin + 20s);
  line.hide();
  CHECK(out.str() == "building 10s\nbuilding 20s\n");
}

TEST_CASE("a status line on a terminal is redrawn only when it changes, and erased") {
  std::ostringstream out;
  {
    StatusLine line(out, true, kBegin);
    line.show("building 1s", kBegin + 1s);
    line.show("building 1s", kBegin + 1s);
    line.show("building 2s", kBegin + 2s);
  }
  CHECK(out.str() == "\r\033[Kbuilding 1s\r\033[Kbuilding 2s\r\033[K");
}

TEST_CASE("a trial's progress names its state, the time in it and the reason of a wait") {
  TrialProgress progress;
  CHECK(progress.text(kBegin, "") == "state unknown");
  progress.add({}, kBegin);
  progress.add({v1::STATE_QUEUED, 0, 0}, kBegin + 2s);
  CHECK(progress.text(kBegin + 12s, "no agent has a free slot") == "queued 12s: no agent has a free slot");
  CHECK(progress.text(kBegin + 12s, "") == "queued 12s");
  progress.add({v1::STATE_PULLING, 0, 0}, kBegin + 20s);
  CHECK(progress.text(kBegin + 34s, "no agent has a free slot") == "building 14s");
  progress.add({v1::STATE_PAUSED, 0, 0}, kBegin + 40s);
  CHECK(progress.text(kBegin + 41s, "") == "PAUSED 1s");
}

TEST_CASE("a running trial's progress has throughput and remaining time of the last readings") {
  TrialProgress progress;
  progress.add(running(0, 0), kBegin);
  CHECK(progress.text(kBegin + 1s, "") == "running 1s");
  progress.add(running(100, 0.1), kBegin + 10s);
  CHECK(progress.text(kBegin + 10s, "") == "running 10s, batch 100, 10.0%, 10.0 batches/s, 1m 30s left");
  // The remaining time runs down between readings.
  CHECK(progress.text(kBegin + 40s, "") == "running 40s, batch 100, 10.0%, 10.0 batches/s, 1m left");
  for (int i = 2; i <= 9; ++i) progress.add(running(i * 100, i * 0.1), kBegin + 10s + (i - 1) * 5s);
  CHECK(progress.text(kBegin + 50s, "") == "running 50s, batch 900, 90.0%, 20.0 batches/s, 5s left");
  progress.add(running(1000, 1), kBegin + 55s);
  CHECK(progress.text(kBegin + 55s, "") == "running 55s, batch 1000, 100.0%, 20.0 batches/s");
}

TEST_CASE("a restart of a trial discards its former throughput, and damaged progress counts as none") {
  TrialProgress progress;
  progress.add(running(100, 0.1), kBegin);
  progress.add(running(200, 0.2), kBegin + 1s);
  progress.add(running(100, 0.1), kBegin + 2s);
  CHECK(progress.text(kBegin + 2s, "") == "running 2s, batch 100, 10.0%");
  progress.add(running(300, std::numeric_limits<double>::quiet_NaN()), kBegin + 4s);
  CHECK(progress.text(kBegin + 4s, "") == "running 4s, batch 300, 0.0%, 100.0 batches/s");
}

}  // namespace det::cli::test
