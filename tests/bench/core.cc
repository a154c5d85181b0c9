// Benchmark of the whole core. Compares the cost of an event and all its effects (searcher, scheduler, rows,
// messages) on 10,000 slots with 100,000 waiting trials and on 100 slots, alternating. Measures the time of
// 100,000 trials from submission to end with stub agents, and how long queue reads block the core.
#include "master/core/core.h"

#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/random.h"
#include "figure.h"
#include "tests/sim/memory_store.h"

namespace {

using namespace det;
using namespace det::core;

/// CPU time of the thread in microseconds, which other load on the machine does not distort.
double cpu_micros() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

expconf::Hyperparameter real(double low, double high) {
  expconf::Hyperparameter range;
  range.type = expconf::Hyperparameter::Type::kDouble;
  range.min = low;
  range.max = high;
  return range;
}

std::shared_ptr<expconf::ExperimentConfig> search(const std::string& name, std::int64_t trials,
                                                  std::int64_t concurrent) {
  auto config = std::make_shared<expconf::ExperimentConfig>();
  config->searcher.name = name;
  config->searcher.metric = "loss";
  config->searcher.max_trials = trials;
  config->searcher.max_concurrent_trials = concurrent;
  config->searcher.num_rungs = 4;
  config->searcher.max_time = 64;
  config->preemption_timeout = 60;
  config->hyperparameters = {{"dropout", real(0, 1)}, {"momentum", real(0, 1)}, {"rate", real(0, 1)}};
  return config;
}

/// A core with stub agents that collect its messages.
class World {
 public:
  World(int agents, scheduler::Policy policy) {
    Options options;
    options.pool_rules.policy = policy;
    core_.emplace(std::move(*Core::restore(options, {}, now())));
    for (int i = 0; i < agents; ++i) connect("agent-" + std::to_string(10000 + i));
  }

  /// Applies the input and the scheduling after it. Returns the microseconds.
  double step(const Input& input) {
    wall_.micros += 1000;
    mono_.micros += 1000;
    Effects effects;
    const double start = cpu_micros();
    core_->step(input, now(), effects);
    core_->schedule(now(), effects);
    const double micros = cpu_micros() - start;
    for (Send& send : effects.sends) take(send);
    for (const Write& write : effects.writes) {
      if (disk_) disk_->apply(write);
    }
    return micros;
  }

  void submit(std::shared_ptr<const expconf::ExperimentConfig> config, std::int64_t owner = 1) {
    SubmitExperiment input;
    input.request_id = RequestId("request" + std::to_string(++requests_));
    input.owner = UserId(owner);
    input.original_config = std::string(1000, '#');
    input.config = std::move(config);
    step(input);
  }

  Input update(const StartAllocation& start, AllocationState state) {
    HeldAllocation held{start.allocation.id, state, std::nullopt};
    if (state == AllocationState::kTerminated) held.exit = Exit{ExitKind::kSucceeded, 0, "exit code 0"};
    return AllocationUpdated{start.agent, start.session, std::move(held)};
  }

  Core& core() { return *core_; }
  std::vector<StartAllocation> started;  ///< Starts sent by the latest steps.
  std::vector<AllocationId> asked_to_leave;
  /// Receives the rows; null drops them.
  sim::MemoryDisk* disk_ = nullptr;

 private:
  Now now() const { return {mono_, wall_}; }
  void connect(const std::string& name) {
    AgentConnected input;
    input.agent = AgentId(name);
    input.instance = "machine of " + name;
    input.slots.assign(8, Device{});
    input.session = ++sessions_;
    step(input);
  }
  void take(Send& send) {
    if (auto* start = std::get_if<StartAllocation>(&send)) started.push_back(std::move(*start));
    if (auto* kill = std::get_if<KillAllocation>(&send)) asked_to_leave.push_back(kill->allocation);
    if (auto* preempt = std::get_if<PreemptAllocation>(&send)) asked_to_leave.push_back(preempt->allocation);
  }

  std::optional<Core> core_;
  MonoTime mono_{1000};
  WallTime wall_{1700000000000000};
  std::uint64_t sessions_ = 0;
  int requests_ = 0;
};

/// Experiments of a hundred trials each, with requests of different sizes.
void fill(World& world, int trials) {
  constexpr int kSizes[] = {1, 1, 1, 1, 2, 4, 8, 16};
  for (int i = 0; i < trials / 100; ++i) {
    auto config = search("random", 1'000'000, 100);
    config->resources.slots_per_trial = kSizes[i % 8];
    config->resources.is_single_node = kSizes[i % 8] <= 8 && i % 2 == 0;
    config->resources.priority = 42 + i % 3;
    world.submit(config, 1 + i % 20);
  }
}

/// A full cluster under load: trials attach, report, end and are killed; searches continue; important
/// experiments arrive; jobs move in the queue; agents are disabled and enabled.
class Busy {
 public:
  Busy(int agents, int trials, scheduler::Policy policy) : world_(agents, policy) { fill(world_, trials); }

  void event() {
    take();
    const int kind = below(100);
    if (kind < 40) return report(kind < 20);
    if (kind < 92) return end();
    if (kind < 95) return measure(KillTrial{.reply = 0, .trial = any().trial.id});
    if (kind < 97) return submit_important();
    if (kind < 98) return measure(UpdateJob{.job = any().experiment, .priority = 40 + below(5)});
    serve();
  }
  std::vector<double> micros;
  const scheduler::Scheduler& pool() { return world_.core().pools().begin()->second; }
  std::size_t waiting() { return world_.core().trials().size() - world_.core().allocations().size(); }

 private:
  int below(int bound) { return static_cast<int>(random_.below(static_cast<std::uint64_t>(bound))); }
  void measure(const Input& input) { micros.push_back(world_.step(input)); }
  const StartAllocation& any() {
    return running_[static_cast<std::size_t>(below(static_cast<int>(running_.size())))];
  }

  void take() {
    for (StartAllocation& start : world_.started) {
      positions_[start.allocation.id] = running_.size();
      running_.push_back(std::move(start));
    }
    world_.started.clear();
    for (const AllocationId& id : world_.asked_to_leave) terminating_.push_back(id);
    world_.asked_to_leave.clear();
  }
  void report(bool attach) {
    const StartAllocation& one = any();
    if (attach) return measure(HarnessAttached{.reply = 0, .trial = one.trial.id, .run = one.allocation.run});
    ReportValidation input{.trial = one.trial.id, .run = one.allocation.run};
    input.steps_completed = ++steps_;
    input.metrics = "{\"loss\":0.5}";
    input.searcher_metric = 0.5;
    measure(input);
  }
  /// Ends a part of an allocation, one in termination if there is any.
  void end() {
    std::size_t index = static_cast<std::size_t>(below(static_cast<int>(running_.size())));
    if (!terminating_.empty()) {
      if (const auto at = positions_.find(terminating_.back()); at != positions_.end()) index = at->second;
      terminating_.pop_back();
    }
    const Input input = world_.update(running_[index], AllocationState::kTerminated);
    positions_[running_.back().allocation.id] = index;
    positions_.erase(running_[index].allocation.id);
    if (index + 1 < running_.size()) running_[index] = std::move(running_.back());
    running_.pop_back();
    measure(input);
  }
  void submit_important() {
    auto config = search("single", 1, 1);
    config->hyperparameters.clear();
    config->resources.priority = 10;
    SubmitExperiment input;
    input.request_id = RequestId("important" + std::to_string(++steps_));
    input.owner = UserId(1 + below(20));
    input.config = std::move(config);
    measure(input);
  }
  /// Disables an agent, and enables it again at the next such event.
  void serve() {
    if (!closed_) {
      closed_ = any().agent;
      return measure(SetService{.agent = *closed_, .enabled = false, .drain = true});
    }
    measure(SetService{.agent = *std::exchange(closed_, std::nullopt)});
  }

  Random random_{7, 0};
  World world_;
  std::vector<StartAllocation> running_;
  /// Of running_. A scan of it between the events would evict the core's data from the processor's caches.
  std::unordered_map<AllocationId, std::size_t> positions_;
  std::vector<AllocationId> terminating_;
  std::optional<AgentId> closed_;
  std::int64_t steps_ = 0;
};

double percentile(std::vector<double> values, double at) {
  auto place = values.begin() + static_cast<std::ptrdiff_t>(at * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

/// Measures the core's time for an image of the whole queue, and the cost of later events.
void look(const std::string& name, Busy& busy) {
  std::vector<double> images, standings;
  busy.micros.clear();
  for (int round = 0; round < 50; ++round) {
    const double start = cpu_micros();
    const scheduler::Image image = busy.pool().image();
    const double seen = cpu_micros();
    const auto jobs = busy.pool().standings();
    images.push_back(seen - start);
    standings.push_back(cpu_micros() - seen);
    for (int i = 0; i < 100; ++i) busy.event();
  }
  bench::figure("core_" + name + "_image_most", percentile(images, 1), "us", "<=", 1000);
  bench::figure("core_" + name + "_standings_most", percentile(standings, 1), "us", "<=", 1000);
  bench::figure("core_" + name + "_p50_after_images", percentile(busy.micros, 0.5), "us", "<=", 100);
}

void compare(const std::string& name, scheduler::Policy policy) {
  Busy small(13, 1000, policy), large(1250, 110'000, policy);
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 1000; ++i) small.event();
    for (int i = 0; i < 1000; ++i) large.event();
  }
  const double small_p99 = percentile(small.micros, 0.99), large_p99 = percentile(large.micros, 0.99);
  bench::figure("core_" + name + "_waiting", static_cast<double>(large.waiting()), "trials", ">=", 100'000);
  bench::figure("core_" + name + "_100_slots_p99", small_p99, "us", "<=", 100);
  bench::figure("core_" + name + "_10000_slots_p50", percentile(large.micros, 0.5), "us", "<=", 100);
  bench::figure("core_" + name + "_10000_slots_p99", large_p99, "us", "<=", 100);
  bench::figure("core_" + name + "_p99_ratio", large_p99 / small_p99, "x", "<=", 3);
  look(name, large);
}

/// Each trial starts, attaches, validates until its search stops it, and exits.
void run_all(const std::string& name, std::int64_t trials) {
  const double seconds = bench::seconds_of([&] {
    World world(1250, scheduler::Policy::kPriority);
    sim::MemoryDisk disk;
    world.disk_ = &disk;
    world.submit(search(name, trials, 10'000));
    std::int64_t ended = 0;
    std::deque<StartAllocation> running;
    auto play = [&](const StartAllocation& one) {
      world.step(world.update(one, AllocationState::kRunning));
      world.step(HarnessAttached{.reply = 0, .trial = one.trial.id, .run = one.allocation.run});
      for (std::int64_t time = 1; time <= 64 && world.asked_to_leave.empty(); time *= 4) {
        ReportValidation input{.trial = one.trial.id, .run = one.allocation.run};
        input.steps_completed = time;
        input.metrics = "{\"loss\":0.5,\"epochs\":1}";
        input.searcher_metric = static_cast<double>((one.trial.seed ^ 0x9e37) % 1000);
        input.searcher_time = static_cast<double>(time);
        world.step(input);
      }
      world.asked_to_leave.clear();
      world.step(world.update(one, AllocationState::kTerminated));
      ++ended;
    };
    while (!world.core().experiments().empty()) {
      for (StartAllocation& start : world.started) running.push_back(std::move(start));
      world.started.clear();
      if (running.empty()) break;
      play(running.front());
      running.pop_front();
    }
    if (!world.core().experiments().empty() || ended < trials) std::exit(1);
  });
  bench::figure("core_100000_trials_" + name, seconds, "s", "<=", 10);
}

/// Restores a core from rows in memory. Reading the rows from the database is not included.
void restart() {
  World world(1250, scheduler::Policy::kPriority);
  sim::MemoryDisk disk;
  world.disk_ = &disk;
  fill(world, 110'000);
  core::Recovered rows = disk.recover();
  std::optional<Result<Core>> core;
  const double seconds = bench::seconds_of([&] { core.emplace(Core::restore({}, std::move(rows), {})); });
  if (!*core || (*core)->pools().at("default").queued() < 100'000) std::exit(1);
  bench::figure("core_restart_100000_waiting", seconds, "s", "<=", 3);
}

}  // namespace

int main() {
  compare("priority", scheduler::Policy::kPriority);
  compare("fair_share", scheduler::Policy::kFairShare);
  compare("round_robin", scheduler::Policy::kRoundRobin);
  run_all("random", 100'000);
  run_all("async_halving", 100'000);
  restart();
}
