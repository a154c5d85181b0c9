#include "master/api/streams/storage_calls.h"

#include <catch2/catch.hpp>

#include "common/base/queue.h"

namespace det::api {
namespace {

struct Desk {
  loop::Workers edge{1};
  StorageCalls calls{edge};
  Queue<std::int64_t> sent{16};

  std::future<Result<storage::Done>> call(std::uint64_t session, Duration timeout) {
    return std::async(std::launch::async, [this, session, timeout] {
      return calls.call(
          [this, session](std::int64_t number) {
            sent.push(std::int64_t{number});
            return session;
          },
          timeout);
    });
  }
  void on_edge(std::function<void()> job) {
    std::promise<void> done;
    edge.post([&] {
      job();
      done.set_value();
    });
    done.get_future().wait();
  }
  std::size_t size() {
    std::size_t size = 0;
    on_edge([&] { size = calls.size(); });
    return size;
  }
};

}  // namespace

TEST_CASE("a storage call returns the result of its session only") {
  Desk desk;
  auto result = desk.call(7, std::chrono::seconds(30));
  const std::int64_t number = *desk.sent.pop();
  desk.on_edge([&] {
    desk.calls.complete(8, number, {.error = "another session"});
    desk.calls.complete(7, number + 1, {.error = "another call"});
    desk.calls.complete(7, number, {.removed = {"a"}});
  });
  const auto done = result.get();
  REQUIRE(done);
  CHECK(done->removed == std::vector<std::string>{"a"});
  CHECK(desk.size() == 0);
}

TEST_CASE("a storage call fails when its agent is absent or leaves") {
  Desk desk;
  CHECK(desk.call(0, std::chrono::seconds(30)).get().error().code == Code::kUnavailable);
  auto result = desk.call(7, std::chrono::seconds(30));
  (void)desk.sent.pop();
  (void)desk.sent.pop();
  desk.on_edge([&] { desk.calls.expire(7); });
  CHECK(result.get().error().code == Code::kUnavailable);
  CHECK(desk.size() == 0);
}

TEST_CASE("a storage call without a result leaves no entry behind after its timeout") {
  Desk desk;
  const auto result = desk.call(7, std::chrono::milliseconds(10)).get();
  REQUIRE_FALSE(result);
  CHECK(result.error().code == Code::kDeadlineExceeded);
  CHECK(desk.size() == 0);
  // A late result is ignored.
  desk.on_edge([&] { desk.calls.complete(7, 1, {}); });
}

}  // namespace det::api
