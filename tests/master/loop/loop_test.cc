// The loop releases nothing before it is durable, and releases in order.
#include "master/loop/loop.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "common/base/queue.h"
#include "common/base/wait.h"
#include "fake_store.h"

namespace det {
namespace {

using loop::Loop;

core::AgentConnected agent_connects(const std::string& name, std::uint64_t session) {
  return {
      .agent = AgentId(name), .instance = "i-" + name, .pool = "default", .slots = {{}}, .session = session};
}

core::SubmitExperiment submission(const std::string& request) {
  auto config = std::make_shared<expconf::ExperimentConfig>();
  config->name = "test";
  config->searcher.name = "single";
  config->searcher.metric = "loss";
  config->searcher.max_length = expconf::Length{expconf::Length::Unit::kBatches, 10};
  config->entrypoint = {"true"};
  config->resolved = {{"name", "test"}};
  return {.request_id = RequestId(request), .owner = UserId(1), .config = config};
}

struct Bench {
  test::FakeStore store;
  Queue<std::string> said{1000};
  Queue<Error> failures{10};
  Loop loop{test::empty_core(), store, test::test_now};

  Bench() {
    loop.start({.send = [this](core::Send) { said.push("send"); },
                .changed = [this](const loop::Change&) { said.push("change"); }},
               [this](Error error) { failures.push(std::move(error)); });
  }
  void submit(const std::string& name) {
    loop.call(submission(name), [this, name](loop::Answer answer) {
      said.push(name + (answer ? " created" : " refused: " + answer.error().message));
    });
  }
  /// The next released reply; changes and sends are skipped.
  std::string next() {
    for (;;) {
      auto batch = said.pop_batch(1, std::chrono::seconds(10));
      if (batch.empty()) return "nothing";
      if (batch[0] != "change" && batch[0] != "send") return batch[0];
    }
  }
};

/// The group with the `count`th row of this type, counted from now. Empty after ten seconds.
template <typename Row>
std::vector<core::Write> group_with(test::FakeStore& store, int count = 1) {
  std::vector<core::Write> found;
  wait_until(
      [&] {
        for (auto& group : store.groups()) {
          for (const core::Write& write : group) count -= std::holds_alternative<Row>(write) ? 1 : 0;
          if (count <= 0 && found.empty()) found = std::move(group);
        }
        return !found.empty();
      },
      std::chrono::seconds(10));
  return found;
}

TEST_CASE("a reply waits until its writes are durable") {
  Bench bench;
  bench.submit("a");
  REQUIRE(wait_until([&] { return bench.store.appended() >= 1; }, std::chrono::seconds(10)));
  CHECK(bench.said.pop_batch(1, std::chrono::milliseconds(50)).empty());
  bench.store.make_durable(bench.store.appended());
  CHECK(bench.next() == "a created");
}

TEST_CASE("replies come in input order, up to the last durable write") {
  Bench bench;
  bench.submit("a");
  REQUIRE(wait_until([&] { return bench.store.appended() >= 1; }, std::chrono::seconds(10)));
  const db::Sequence first = bench.store.appended();
  bench.submit("b");
  bench.submit("c");
  REQUIRE_FALSE(group_with<core::AppendSearcherEvent>(bench.store, 3).empty());
  bench.store.make_durable(first);
  CHECK(bench.next() == "a created");
  for (const std::string& word : bench.said.pop_batch(1000, std::chrono::milliseconds(50))) {
    CHECK(word.find("created") == std::string::npos);
  }
  bench.store.make_durable(bench.store.appended());
  CHECK(bench.next() == "b created");
  CHECK(bench.next() == "c created");
}

TEST_CASE("the reply to an input without writes waits for the writes before it") {
  Bench bench;
  bench.submit("a");
  REQUIRE(wait_until([&] { return bench.store.appended() >= 1; }, std::chrono::seconds(10)));
  bench.loop.call(core::KillTrial{.trial = TrialId(999)},
                  [&](loop::Answer answer) { bench.said.push(answer ? "done" : "not found"); });
  CHECK(bench.said.pop_batch(1, std::chrono::milliseconds(50)).empty());
  bench.store.make_durable(bench.store.appended());
  CHECK(bench.next() == "a created");
  CHECK(bench.next() == "not found");
}

TEST_CASE("a call with an input that has no reply is answered when the writes before it are durable") {
  Bench bench;
  bench.submit("a");
  REQUIRE(wait_until([&] { return bench.store.appended() >= 1; }, std::chrono::seconds(10)));
  bench.loop.call(core::AgentDisconnected{AgentId("a1"), 1},
                  [&](loop::Answer answer) { bench.said.push(answer ? "done" : "failed"); });
  CHECK(bench.said.pop_batch(1, std::chrono::milliseconds(50)).empty());
  bench.store.make_durable(bench.store.appended());
  CHECK(bench.next() == "a created");
  CHECK(bench.next() == "done");
}

TEST_CASE("a committed read of the core waits until all that it may have seen is durable") {
  Bench bench;
  bench.submit("a");
  REQUIRE(wait_until([&] { return bench.store.appended() >= 1; }, std::chrono::seconds(10)));
  auto seen = std::make_shared<std::size_t>(0);
  auto look = [seen](const core::Core& core) { *seen = core.experiments().size(); };
  CHECK_FALSE(bench.loop.inspect(look, std::chrono::milliseconds(50)));
  bench.store.make_durable(bench.store.appended());
  CHECK(bench.loop.inspect(look));
  CHECK(*seen == 1);
}

TEST_CASE("an uncommitted read of the core waits for no write") {
  Bench bench;
  bench.submit("a");
  REQUIRE(wait_until([&] { return bench.store.appended() >= 1; }, std::chrono::seconds(10)));
  auto seen = std::make_shared<std::size_t>(0);
  CHECK(bench.loop.inspect_uncommitted([seen](const core::Core& core) { *seen = core.experiments().size(); })
            .wait());
  CHECK(*seen == 1);
  CHECK(bench.said.pop_batch(1, std::chrono::milliseconds(50)).empty());
  bench.loop.stop();
  CHECK_FALSE(bench.loop.inspect_uncommitted([](const core::Core&) {}).wait());
}

TEST_CASE("commands to agents are held back like replies") {
  Bench bench;
  bench.loop.submit(agent_connects("a1", 1));
  bench.submit("a");
  const auto group = group_with<core::PutAllocation>(bench.store);
  // A free slot and its use are committed in different groups.
  CHECK(std::any_of(group.begin(), group.end(), [](const core::Write& write) {
    const auto* experiment = std::get_if<core::PutExperiment>(&write);
    return experiment && experiment->first;
  }));
  CHECK(bench.said.pop_batch(1000, std::chrono::milliseconds(50)).empty());
  bench.store.make_durable(bench.store.appended());
  bool sent = false;
  CHECK(wait_until(
      [&] {
        for (const std::string& word : bench.said.pop_batch(1000, std::chrono::seconds(0)))
          sent |= word == "send";
        return sent;
      },
      std::chrono::seconds(10)));
}

TEST_CASE("no success is reported after the store has failed") {
  Bench bench;
  bench.submit("a");
  REQUIRE(wait_until([&] { return bench.store.appended() >= 1; }, std::chrono::seconds(10)));
  bench.store.durable_on_stop = false;
  bench.store.break_down();
  CHECK(bench.next().starts_with("a refused"));
  CHECK(bench.failures.pop()->message == "disk on fire");
}

TEST_CASE("no committed read succeeds after the store has failed") {
  Bench bench;
  bench.submit("a");
  REQUIRE(wait_until([&] { return bench.store.appended() >= 1; }, std::chrono::seconds(10)));
  bench.store.durable_on_stop = false;
  bench.store.break_down();
  CHECK_FALSE(bench.loop.inspect([](const core::Core&) {}));
}

TEST_CASE("stop finishes queued inputs and refuses later ones") {
  Bench bench;
  for (int i = 0; i < 20; ++i) bench.submit("e" + std::to_string(i));
  bench.loop.stop();
  for (int i = 0; i < 20; ++i) CHECK(bench.next() == "e" + std::to_string(i) + " created");
  const auto late = bench.loop.ask(submission("late"));
  REQUIRE_FALSE(late);
  CHECK(late.error().code == Code::kUnavailable);
  CHECK_FALSE(bench.loop.submit(core::Tick{}));
}

}  // namespace
}  // namespace det
