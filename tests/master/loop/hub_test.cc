// The event hub and the workers.
#include "master/loop/hub.h"

#include <catch2/catch.hpp>

#include "common/base/queue.h"
#include "common/base/wait.h"
#include "master/loop/workers.h"

namespace det {
namespace {

using loop::Change;
using loop::Hub;

struct Ear {
  std::shared_ptr<Queue<std::shared_ptr<const loop::Event>>> heard =
      std::make_shared<Queue<std::shared_ptr<const loop::Event>>>(1000);
  Hub::Listener listener() {
    return [heard = heard](const std::shared_ptr<const loop::Event>& event) {
      heard->push(std::shared_ptr(event));
    };
  }
  std::vector<std::shared_ptr<const loop::Event>> wait(std::size_t count) {
    std::vector<std::shared_ptr<const loop::Event>> all;
    wait_until(
        [&] {
          for (auto& event : heard->pop_batch(100, std::chrono::seconds(0))) all.push_back(event);
          return all.size() >= count;
        },
        std::chrono::seconds(10));
    return all;
  }
};

Change experiment(std::int64_t id) {
  return {.kind = Change::Kind::kExperiment, .experiment = ExperimentId(id)};
}

TEST_CASE("listeners receive changes in order with growing ids") {
  Hub hub;
  Ear ear;
  hub.subscribe(ear.listener());
  for (int i = 1; i <= 3; ++i) hub.publish(experiment(i));
  const auto events = ear.wait(3);
  REQUIRE(events.size() == 3);
  CHECK(events[0]->change.experiment == ExperimentId(1));
  CHECK(events[2]->change.experiment == ExperimentId(3));
  CHECK(events[0]->id < events[1]->id);
}

TEST_CASE("a listener behind the last event receives exactly the later ones") {
  Hub hub;
  Ear first;
  hub.subscribe(first.listener());
  const std::uint64_t before = hub.last();
  CHECK(before > 0);
  hub.publish(experiment(1));
  const auto events = first.wait(1);
  REQUIRE(events.size() == 1);
  CHECK(events[0]->id == before + 1);
  CHECK(hub.last() == before + 1);
  Ear late;
  hub.subscribe(late.listener(), hub.last());
  hub.publish(experiment(2));
  CHECK(late.wait(1).at(0)->change.experiment == ExperimentId(2));
}

TEST_CASE("a resumed listener receives the missed events, or a gap marker when too many were missed") {
  Hub hub(2);
  Ear first;
  hub.subscribe(first.listener());
  for (int i = 1; i <= 4; ++i) hub.publish(experiment(i));
  const auto events = first.wait(4);
  REQUIRE(events.size() == 4);
  Ear back, long_gone;
  hub.subscribe(back.listener(), events[2]->id);
  hub.subscribe(long_gone.listener(), events[0]->id);
  CHECK(back.wait(1).at(0)->change.experiment == ExperimentId(4));
  const auto resumed = long_gone.wait(3);
  REQUIRE(resumed.size() == 3);
  CHECK(resumed[0] == nullptr);
  CHECK(resumed[1]->change.experiment == ExperimentId(3));
}

TEST_CASE("a log change carries the trial of its task after the hub has seen the trial") {
  Hub hub;
  Ear ear;
  hub.subscribe(ear.listener());
  hub.publish({.kind = Change::Kind::kLogs, .task = TaskId("1.a")});
  hub.publish({.kind = Change::Kind::kTrial,
               .experiment = ExperimentId(1),
               .trial = TrialId(2),
               .task = TaskId("1.a")});
  hub.publish({.kind = Change::Kind::kLogs, .task = TaskId("1.a")});
  const auto events = ear.wait(3);
  REQUIRE(events.size() == 3);
  CHECK(events[0]->change.trial == TrialId(0));
  CHECK(events[2]->change.trial == TrialId(2));
  CHECK(events[2]->change.experiment == ExperimentId(1));
}

TEST_CASE("an unsubscribed listener receives no more events") {
  Hub hub;
  Ear leaver, stayer;
  const auto subscription = hub.subscribe(leaver.listener());
  hub.subscribe(stayer.listener());
  hub.unsubscribe(subscription);
  hub.publish(experiment(1));
  CHECK(stayer.wait(1).size() == 1);
  CHECK(leaver.heard->size() == 0);
}

TEST_CASE("a single worker never overlaps its jobs and its tick") {
  std::atomic<int> inside{0}, most{0}, ticks{0}, jobs{0};
  auto enter = [&](std::atomic<int>& counter) {
    most = std::max(most.load(), ++inside);
    ++counter;
    --inside;
  };
  loop::Workers serial(
      1, 1000, [&] { enter(ticks); }, std::chrono::milliseconds(1));
  for (int i = 0; i < 500; ++i) serial.post([&] { enter(jobs); });
  CHECK(wait_until([&] { return jobs == 500 && ticks > 3; }, std::chrono::seconds(10)));
  serial.stop();
  CHECK(most == 1);
  CHECK_FALSE(serial.post([] {}));
}

}  // namespace
}  // namespace det
