#include "common/base/event.h"

#include <thread>
#include <vector>

#include "need.h"

using namespace det;
using namespace std::chrono_literals;

TEST_CASE("a wait ends at its timeout, and at once when the event is set", "[event]") {
  Event event;
  CHECK_FALSE(event.wait_for(1ms));
  CHECK_FALSE(event.is_set());
  event.set();
  event.set();
  CHECK(event.is_set());
  CHECK(event.wait_for(0s));
  CHECK(event.wait_for(1h));
}

TEST_CASE("a set event wakes every waiting thread", "[event]") {
  Event event;
  std::vector<int> woken(4);  // Catch2 assertions are not thread-safe
  std::vector<std::thread> waiting;
  for (int& one : woken) waiting.emplace_back([&] { one = event.wait_for(1h); });
  event.set();
  for (std::thread& thread : waiting) thread.join();
  CHECK(woken == std::vector<int>(4, 1));
}

TEST_CASE("a taken event is clear until the next set", "[event]") {
  Event event;
  event.set();
  CHECK(event.take_for(0s));
  CHECK_FALSE(event.take_for(0s));
  std::thread setter([&] { event.set(); });
  CHECK(event.take_for(1h));
  setter.join();
  CHECK_FALSE(event.is_set());
}
