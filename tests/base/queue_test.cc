#include "common/base/queue.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <thread>

#include "need.h"

using namespace det;
using namespace std::chrono_literals;

TEST_CASE("items leave in order, and a full queue refuses a push", "[queue]") {
  Queue<int> queue(2);
  CHECK(queue.try_push(1));
  CHECK(queue.try_push(2));
  CHECK_FALSE(queue.try_push(3));
  CHECK(queue.pop() == 1);
  CHECK(queue.try_push(3));
  CHECK(queue.pop_batch(10, 0s) == std::vector<int>{2, 3});
  CHECK(queue.pop_batch(10, 1ms).empty());
}

TEST_CASE("an item refused by a full queue is not moved from", "[queue]") {
  Queue<std::unique_ptr<int>> queue(1);
  CHECK(queue.try_push(std::make_unique<int>(1)));
  auto kept = std::make_unique<int>(2);
  CHECK_FALSE(queue.try_push(std::move(kept)));
  REQUIRE(kept != nullptr);
  CHECK(*kept == 2);
}

TEST_CASE("a batch has at most the requested size", "[queue]") {
  Queue<int> queue(10);
  for (int i = 0; i < 5; ++i) queue.try_push(int(i));
  CHECK(queue.pop_batch(3, 0s) == std::vector<int>{0, 1, 2});
  CHECK(queue.size() == 2);
}

TEST_CASE("after close, pushes are refused and pops drain the queue", "[queue]") {
  Queue<int> queue(3);
  queue.try_push(1);
  queue.close();
  CHECK(queue.closed());
  CHECK_FALSE(queue.try_push(2));
  CHECK_FALSE(queue.push(2));
  CHECK(queue.pop() == 1);
  CHECK_FALSE(queue.pop());
}

TEST_CASE("close wakes threads that wait for space or items", "[queue]") {
  Queue<int> full(1), empty(1);
  full.try_push(1);
  bool pushed = true, popped = true;  // Catch2 assertions are not thread-safe
  std::thread pusher([&] { pushed = full.push(2); });
  std::thread popper([&] { popped = empty.pop().has_value(); });
  full.close();
  empty.close();
  pusher.join();
  popper.join();
  CHECK_FALSE(pushed);
  CHECK_FALSE(popped);
}

TEST_CASE("many producers and consumers neither lose nor duplicate items", "[queue]") {
  constexpr int kProducers = 4, kEach = 5000;
  Queue<int> queue(16);
  std::vector<std::thread> producers, consumers;
  std::vector<std::vector<int>> taken(3);
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      for (int i = 0; i < kEach; ++i) queue.push(p * kEach + i);
    });
  }
  for (std::vector<int>& mine : taken) {
    consumers.emplace_back([&queue, &mine] {
      while (const auto item = queue.pop()) mine.push_back(*item);
    });
  }
  for (std::thread& thread : producers) thread.join();
  queue.close();
  for (std::thread& thread : consumers) thread.join();
  std::vector<int> all;
  for (const auto& mine : taken) all.insert(all.end(), mine.begin(), mine.end());
  std::sort(all.begin(), all.end());
  std::vector<int> expected(kProducers * kEach);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(all == expected);
}

TEST_CASE("a ring keeps the newest items with their numbers", "[queue]") {
  Newest<int> newest(3);
  CHECK(newest.last() == 0);
  CHECK(newest.after(0, 10).second.empty());
  for (int i = 1; i <= 5; ++i) newest.add(i);
  CHECK(newest.last() == 5);
  CHECK(newest.after(0, 10) == std::pair(std::uint64_t{3}, std::vector{3, 4, 5}));
  CHECK(newest.after(3, 1) == std::pair(std::uint64_t{4}, std::vector{4}));
  CHECK(newest.after(5, 10).second.empty());
  CHECK(newest.after(77, 10).second.empty());
}
