// Delays between the attempts of an agent to connect.
#include "agent/master_link/link.h"

#include <catch2/catch.hpp>

#include "common/base/queue.h"
#include "fake_master.h"

using namespace det;
using namespace det::agent;
using namespace std::chrono_literals;

namespace {

constexpr double kMaxJitter = 1.25;

/// Returns the longest time from the end of a connection to the first attempt after `outage`.
Duration time_away(Duration outage, Duration lease) {
  Duration time{}, delay{};
  while (time <= outage) {
    delay = retry_delay(delay, false, lease);
    time += std::chrono::duration_cast<Duration>(delay * kMaxJitter);
  }
  return time;
}

}  // namespace

TEST_CASE("an agent sends Left when it ends before the Welcome of the master", "[link]") {
  FakeMaster master;
  const auto channel = open_channel(master.address()).value();
  Queue<LinkEvent> events(100);
  Link link(
      channel, [&](LinkEvent event) { events.try_push(std::move(event)); }, [] { return v1::Hello(); }, 1);
  link.tick(mono_now());
  master.hellos.pop();
  v1::AgentMessage left;
  left.mutable_left();
  link.close(left);
  const MonoTime by = mono_now() + 20s;
  while (!link.closed() && mono_now() < by)
    for (const LinkEvent& event : events.pop_batch(16, 100ms))
      std::visit(
          [&](const auto& one) {
            if constexpr (std::is_same_v<std::decay_t<decltype(one)>, LinkWritten>)
              link.handle(one);
            else
              (void)link.handle(one, mono_now());
          },
          event);
  CHECK(link.closed());
  CHECK(master.lefts == 1);
}

TEST_CASE("an agent is back within its lease after an outage of three quarters of it", "[link]") {
  for (const Duration lease : {Duration(6s), Duration(30s), Duration(1min), Duration(10min)}) {
    CAPTURE(lease.count());
    for (int part = 0; part <= 300; ++part) CHECK(time_away(lease * part / 400, lease) < lease);
  }
}

TEST_CASE("the delays between attempts begin with 0.2 s and grow to 5 s at most", "[link]") {
  Duration delay{};
  for (const Duration expected : {200ms, 400ms, 800ms, 1600ms, 3200ms, 5000ms, 5000ms}) {
    delay = retry_delay(delay, false, 10min);
    CHECK(delay == expected);
  }
  CHECK(retry_delay(Duration(0), true, 10min) == Duration(5s));
}

TEST_CASE("a refused agent tries again before its lease ends", "[link]") {
  CHECK(retry_delay(Duration(0), true, 6s) == Duration(500ms));
  CHECK(retry_delay(Duration(0), true, Duration(0)) == Duration(200ms));
}
