// Queue positions: a moved job stands directly beside its anchor, and no other job changes its rank.
#include "master/scheduler/position.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <tuple>

#include "common/base/random.h"

namespace det::scheduler {
namespace {

std::vector<std::int64_t> order(std::vector<Job> queue) {
  std::sort(queue.begin(), queue.end(), [](const Job& a, const Job& b) {
    return std::tie(a.priority, a.position, a.id) < std::tie(b.priority, b.position, b.id);
  });
  std::vector<std::int64_t> ids;
  for (const Job& job : queue) ids.push_back(job.id.number());
  return ids;
}

TEST_CASE("a moved job stands directly beside its anchor and all others keep their order") {
  Random random{3, 0};
  for (int round = 0; round < 3000; ++round) {
    std::vector<Job> queue;
    const auto count = static_cast<std::int64_t>(2 + random.below(7));
    for (std::int64_t id = 1; id <= count; ++id) {
      queue.push_back({.id = ExperimentId(id),
                       .priority = static_cast<int>(42 + random.below(2)),
                       .position = static_cast<std::int64_t>(random.below(6))});
    }
    for (int turn = 0; turn < 10; ++turn) {
      const ExperimentId job(static_cast<std::int64_t>(1 + random.below(static_cast<std::uint64_t>(count))));
      const ExperimentId anchor(
          static_cast<std::int64_t>(1 + random.below(static_cast<std::uint64_t>(count))));
      if (job == anchor) continue;
      const Side side = random.below(2) == 0 ? Side::kAhead : Side::kBehind;
      auto wanted = order(queue);
      std::erase(wanted, job.value);
      const auto at = std::find(wanted.begin(), wanted.end(), anchor.value) + (side == Side::kBehind ? 1 : 0);
      wanted.insert(at, job.value);
      const auto changed = move(queue, job, side, anchor);
      REQUIRE(changed);
      REQUIRE(changed->front().id == job);
      for (const Job& one : *changed) {
        *std::find_if(queue.begin(), queue.end(), [&](const Job& old) { return old.id == one.id; }) = one;
      }
      REQUIRE(order(queue) == wanted);
    }
  }
}

TEST_CASE("moving between two experiments submitted a microsecond apart changes one position") {
  std::vector<Job> queue{{.id = ExperimentId(1), .position = position_of({1'700'000'000'000'000})},
                         {.id = ExperimentId(2), .position = position_of({1'700'000'000'000'001})},
                         {.id = ExperimentId(3), .position = position_of({1'700'000'000'000'002})}};
  const auto changed = move(queue, ExperimentId(3), Side::kBehind, ExperimentId(1));
  REQUIRE(changed);
  REQUIRE(changed->size() == 1);
}

TEST_CASE("an error names the job that is not in the queue") {
  const std::vector<Job> queue{{.id = ExperimentId(1)}};
  const auto lost = move(queue, ExperimentId(1), Side::kAhead, ExperimentId(9));
  REQUIRE_FALSE(lost);
  CHECK(lost.error().code == Code::kNotFound);
  CHECK(lost.error().message.find("experiment 9 is not in the queue") == 0);
  CHECK(move(queue, ExperimentId(1), Side::kAhead, ExperimentId(1)).error().code == Code::kInvalidArgument);
}

}  // namespace
}  // namespace det::scheduler
