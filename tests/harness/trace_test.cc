#include "harness/src/observability/trace.h"

#include <ATen/record_function.h>
#include <torch/types.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "common/base/files.h"
#include "common/base/json.h"
#include "det/profiler.h"
#include "optim/optim_golden.h"

namespace det {
namespace {

std::string plan(const ProfilerOptions& options, int steps) {
  std::string text;
  for (int i = 0; i < steps; ++i) text += "-wal"[static_cast<int>(trace_step(options, i).action)];
  return text;
}

std::vector<std::string> traces(const std::string& directory) {
  std::vector<std::string> paths;
  if (!path_exists(directory)) return paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// The events of phase X (complete events).
std::vector<Json> events_of(const std::string& path) {
  const Json trace = parse_json(read_file(path).value(), {.bytes = 64 << 20}).value();
  CHECK(trace.at("schemaVersion") == 1);
  CHECK(trace.at("droppedEvents") == 0);
  std::vector<Json> events;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") events.push_back(event);
  }
  return events;
}

int count(const std::vector<Json>& events, const std::string& name) {
  int count = 0;
  for (const Json& event : events) count += event["name"] == name;
  return count;
}

/// One matrix multiplication, forward and backward.
void train() {
  const torch::Tensor a = torch::ones({3, 4}, torch::requires_grad()), b = torch::ones({4, 5});
  torch::mm(a, b).sum().backward();
}

TEST_CASE("the schedule follows torch.profiler") {
  CHECK(plan({.wait = 1, .warmup = 1, .active = 2, .repeat = 2}, 11) == "-wal-wal---");
  CHECK(plan({.wait = 0, .warmup = 0, .active = 1, .repeat = 1}, 3) == "l--");
  CHECK(plan({.skip_first = 2, .wait = 1, .warmup = 0, .active = 3, .repeat = 0}, 10) == "---aal-aal");
  CHECK(trace_step({.wait = 1, .active = 1}, 5).cycle == 2);
}

TEST_CASE("the schedule equals torch.profiler.schedule at every step") {
  std::vector<ProfilerOptions> schedules;
  Json input = Json::array();
  for (const std::int64_t skip : {0, 3})
    for (const std::int64_t wait : {0, 1, 4})
      for (const std::int64_t warmup : {0, 2})
        for (const std::int64_t active : {1, 3})
          for (const std::int64_t repeat : {0, 1, 2}) {
            schedules.push_back(
                {.skip_first = skip, .wait = wait, .warmup = warmup, .active = active, .repeat = repeat});
            input.push_back({{"skip_first", skip},
                             {"wait", wait},
                             {"warmup", warmup},
                             {"active", active},
                             {"repeat", repeat},
                             {"steps", 40}});
          }
  const Json expected = golden("profiler", input);
  if (expected.is_null()) return;
  REQUIRE(expected.size() == schedules.size());
  for (std::size_t i = 0; i < schedules.size(); ++i) {
    INFO(input[i].dump());
    CHECK(plan(schedules[i], 40) == expected[i].get<std::string>());
  }
}

TEST_CASE("the trace holds active steps only, forward and backward") {
  const auto directory = TemporaryDirectory::create().value();
  {
    TraceProfiler profiler({.wait = 1, .warmup = 1, .active = 2, .repeat = 1}, directory.path());
    for (int step = 0; step < 8; ++step) {
      train();
      profiler.step();
      CHECK(traces(directory.path()).size() == (step >= 3 ? 1 : 0));
      CHECK(at::hasGlobalCallbacks() == (step < 3 && step >= 0));
    }
  }
  REQUIRE(traces(directory.path()).size() == 1);
  CHECK_THAT(traces(directory.path()).front(), Catch::EndsWith(".0.pt.trace.json"));
  const auto events = events_of(traces(directory.path()).front());
  // In each of the two steps: one mm forward and one backward (for `a` only).
  CHECK(count(events, "aten::mm") == 4);
  CHECK(count(events, "MmBackward0") == 2);
  CHECK(count(events, "ProfilerStep#2") == 1);
  CHECK(count(events, "ProfilerStep#3") == 1);
  CHECK(count(events, "ProfilerStep#1") == 0);
  const auto backward =
      std::find_if(events.begin(), events.end(), [](const Json& e) { return e["name"] == "MmBackward0"; });
  CHECK(backward->at("args").at("Backward") == true);
  const std::int64_t sequence = backward->at("args").at("Sequence number");
  CHECK(std::any_of(events.begin(), events.end(), [&](const Json& e) {
    return e["name"] == "aten::mm" && e["args"].contains("Sequence number") &&
           e["args"]["Sequence number"] == sequence;
  }));
}

TEST_CASE("events nest on each thread and lie within their step") {
  const auto directory = TemporaryDirectory::create().value();
  {
    TraceProfiler profiler({.active = 3, .repeat = 1}, directory.path());
    for (int step = 0; step < 3; ++step) {
      train();
      profiler.step();
    }
  }
  const auto events = events_of(traces(directory.path()).at(0));
  // By thread: begin and end of the enclosing events.
  std::map<int, std::vector<std::pair<double, double>>> open;
  double before = 0;
  for (const Json& event : events) {
    const double begin = event["ts"], duration = event["dur"];
    CHECK(begin >= before);
    CHECK(duration >= 0);
    before = begin;
    auto& around = open[event["tid"]];
    // Near 1e15 microseconds a double resolves about 1/8 microsecond, so the comparison needs a tolerance.
    while (!around.empty() && begin >= around.back().second - 0.5) around.pop_back();
    if (!around.empty()) CHECK(begin + duration <= around.back().second + 0.5);
    around.emplace_back(begin, begin + duration);
  }
  CHECK(count(events, "ProfilerStep#0") == 1);
}

TEST_CASE("every cycle has a file, and a given name is kept") {
  const auto directory = TemporaryDirectory::create().value();
  {
    TraceProfiler profiler({.wait = 1, .active = 1, .repeat = 3, .output = "rank0"}, directory.path());
    for (int step = 0; step < 20; ++step) {
      train();
      profiler.step();
    }
  }
  const auto paths = traces(directory.path());
  REQUIRE(paths.size() == 3);
  for (const auto& path : paths) {
    CHECK_THAT(path, Catch::Contains("/rank0."));
    CHECK(count(events_of(path), "aten::mm") == 2);
  }
}

TEST_CASE("shapes, user scopes and other threads are recorded") {
  const auto directory = TemporaryDirectory::create().value();
  {
    TraceProfiler profiler({.active = 1, .repeat = 1, .record_shapes = true}, directory.path());
    {
      RECORD_USER_SCOPE("my \"scope\"");
      (void)torch::mm(torch::ones({3, 4}), torch::ones({4, 5}));
    }
    std::thread([] { (void)torch::mm(torch::ones({7, 2}), torch::ones({2, 1})); }).join();
    profiler.step();
  }
  const auto events = events_of(traces(directory.path()).at(0));
  CHECK(count(events, "my \"scope\"") == 1);
  std::vector<Json> products;
  for (const Json& event : events)
    if (event["name"] == "aten::mm") products.push_back(event);
  REQUIRE(products.size() == 2);
  CHECK(products[0]["args"]["Input Dims"] == Json::array({{3, 4}, {4, 5}}));
  CHECK(products[1]["args"]["Input Dims"] == Json::array({{7, 2}, {2, 1}}));
  CHECK(products[0]["tid"] != products[1]["tid"]);
}

TEST_CASE("training that ends in an active step writes its trace, one that ends in warm-up writes none") {
  const auto directory = TemporaryDirectory::create().value();
  {
    TraceProfiler profiler({.warmup = 1, .active = 5}, directory.path() + "/active");
    for (int step = 0; step < 3; ++step) {
      train();
      profiler.step();
    }
  }
  {
    TraceProfiler profiler({.warmup = 3, .active = 1}, directory.path() + "/warmup");
    train();
    profiler.step();
  }
  REQUIRE(traces(directory.path() + "/active").size() == 1);
  CHECK(count(events_of(traces(directory.path() + "/active").at(0)), "aten::mm") == 4);
  CHECK(traces(directory.path() + "/warmup").empty());
  CHECK_FALSE(at::hasGlobalCallbacks());
}

TEST_CASE("an invalid schedule, a second recorder and an unwritable path are refused") {
  const auto directory = TemporaryDirectory::create().value();
  CHECK_THROWS_AS(TraceProfiler({.active = 0}, directory.path()), std::invalid_argument);
  CHECK_THROWS_AS(TraceProfiler({.wait = -1}, directory.path()), std::invalid_argument);
  TraceProfiler first({.active = 2}, directory.path());
  CHECK_THROWS_AS(TraceProfiler({.active = 2}, directory.path()), std::logic_error);
  TraceProfiler late({.skip_first = 100}, directory.path());
  TraceProfiler nowhere({.skip_first = 0, .wait = 1, .active = 1}, "/proc/nothing");
  first.step();
  first.step();
}

TEST_CASE("a trace that cannot be written fails the step") {
  TraceProfiler profiler({.active = 1, .repeat = 1}, "/proc/nothing/here");
  CHECK_THROWS_AS(profiler.step(), std::runtime_error);
  CHECK_FALSE(at::hasGlobalCallbacks());
}

/// All events of the trace that a profiler with `options` writes for one step of train().
std::vector<Json> one_step(ProfilerOptions options) {
  const auto directory = TemporaryDirectory::create().value();
  options.active = options.repeat = 1;
  {
    TraceProfiler profiler(options, directory.path());
    train();
    profiler.step();
  }
  return parse_json(read_file(traces(directory.path()).at(0)).value(), {.bytes = 64 << 20})
      .value()
      .at("traceEvents");
}

TEST_CASE("allocations of the program and of the backward pass are recorded with their totals") {
  ProfilerOptions options;
  options.profile_memory = true;
  std::int64_t balance = 0, curve = 0;
  std::set<std::int64_t> sizes;
  for (const Json& event : one_step(options)) {
    if (event["name"] == "[memory]") {
      CHECK(event["ph"] == "i");
      CHECK(event["args"]["Device Type"] == 0);
      balance += event["args"]["Bytes"].get<std::int64_t>();
      sizes.insert(event["args"]["Bytes"].get<std::int64_t>());
    }
    curve += event["ph"] == "C" && event["name"] == "allocated (cpu)";
  }
  // The product of [3, 4] and [4, 5] has 60 bytes, the gradient of its first factor 48.
  CHECK(sizes.contains(60));
  CHECK(sizes.contains(48));
  CHECK(sizes.contains(-60));
  CHECK(balance == 0);
  CHECK(curve > 4);
  for (const Json& event : one_step({})) CHECK(event["name"] != "[memory]");
}

TEST_CASE("activities select what is recorded, and without a GPU its time is left out") {
  ProfilerOptions options;
  options.activities = {ProfilerActivity::kCuda};
  int spans = 0;
  for (const Json& event : one_step(options))
    if (event["ph"] == "X") {
      CHECK(event["name"] == "ProfilerStep#0");
      ++spans;
    }
  CHECK(spans == 1);
  options.activities = {};
  CHECK_THROWS_AS(one_step(options), std::invalid_argument);
}

}  // namespace
}  // namespace det
