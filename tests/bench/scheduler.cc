// Benchmark of the scheduler: the cost of an event in a pool of 100 slots and in one of 10,000 with 100,000
// waiting requests, alternating, and a naive pass over the large pool.
#include "master/scheduler/scheduler.h"

#include <time.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "figure.h"

namespace {

using namespace det;
using namespace det::scheduler;

/// CPU time of the thread in microseconds, which other load on the machine does not distort.
double cpu_micros() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

/// A full pool under load: trials end, arrive and are withdrawn, experiments change priority, important ones
/// preempt, agents drain and open. An event is one or more changes and the decision after them.
class World {
 public:
  World(int agents, int requests, Policy policy) : scheduler_(Rules{.policy = policy}) {
    for (int i = 0; i < agents; ++i) {
      std::string name = std::to_string(10000 + i);
      agents_.push_back({.id = AgentId("agent-" + name), .slots = std::vector<Slot>(8)});
      for (std::size_t slot = 0; slot < 8; ++slot) agents_.back().slots[slot].link = slot < 4 ? 0 : 1;
      scheduler_.put_agent(agents_.back());
    }
    jobs_ = std::max(requests / 100, 10);
    for (int i = 0; i < jobs_; ++i) put_job(i, 42 + i % 3);
    for (int i = 0; i < requests; ++i) request(below(jobs_), kSizes[below(8)]);
    fill_seconds = bench::seconds_of([&] { take(scheduler_.decide()); });
  }

  void event() {
    const int kind = below(100);
    const double start = cpu_micros();
    if (kind < 46 && !(running_.empty() && terminating_.empty())) {
      end();
    } else if (kind < 92) {
      request(below(jobs_), kSizes[below(8)]);
    } else if (kind < 95) {
      scheduler_.withdraw(TrialId(1 + below(static_cast<int>(trial_))));
    } else if (kind < 96) {
      put_job(below(jobs_), 40 + below(5));
    } else if (kind < 98) {
      request(important(), kSizes[below(8)]);
    } else {
      // One agent drains, and opens again at the next such event.
      if (agents_[drained_].open)
        drained_ = static_cast<std::size_t>(below(static_cast<int>(agents_.size())));
      agents_[drained_].open = !agents_[drained_].open;
      scheduler_.put_agent(agents_[drained_]);
    }
    Plan plan = scheduler_.decide();
    micros.push_back(cpu_micros() - start);
    take(plan);
  }

  Snapshot snapshot() const { return scheduler_.snapshot(); }
  std::vector<double> micros;
  double fill_seconds = 0;
  long starts = 0, preempted = 0;

 private:
  static constexpr int kSizes[] = {1, 1, 1, 1, 2, 4, 8, 16};
  int below(int bound) { return static_cast<int>(random_.below(static_cast<std::uint64_t>(bound))); }
  int important() {
    put_job(jobs_, 10);
    return jobs_;
  }
  void put_job(int id, int priority) {
    scheduler_.put_job(
        {.id = ExperimentId(id), .user = UserId(id % 20), .priority = priority, .position = id});
  }
  void request(int job, int slots) {
    scheduler_.put_request({TrialId(++trial_), ExperimentId(job), slots, slots <= 8 && below(2) == 0, true});
  }
  void end() {
    // Preempted trials end first.
    std::vector<TaskKey>& from = terminating_.empty() ? running_ : terminating_;
    const auto index = static_cast<std::size_t>(below(static_cast<int>(from.size())));
    scheduler_.ended(from[index]);
    from[index] = from.back();
    from.pop_back();
  }
  void take(const Plan& plan) {
    for (const Placement& one : plan.start) running_.push_back(one.task);
    for (TaskKey task : plan.preempt) {
      std::erase(running_, task);
      terminating_.push_back(task);
    }
    starts += static_cast<long>(plan.start.size());
    preempted += static_cast<long>(plan.preempt.size());
  }

  Random random_{7, 0};
  Scheduler scheduler_;
  std::vector<Agent> agents_;
  std::size_t drained_ = 0;
  std::vector<TaskKey> running_, terminating_;
  int jobs_ = 0;
  std::int64_t trial_ = 0;
};

double percentile(std::vector<double> values, double at) {
  auto place = values.begin() + static_cast<std::ptrdiff_t>(at * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

/// A pass without an index: sorts all requests and visits every agent for each.
double naive_seconds(const Snapshot& pool) {
  std::vector<int> free(pool.agents.size(), 0);
  int placed = 0;
  const double seconds = bench::seconds_of([&] {
    std::vector<Request> queue = pool.requests;
    std::sort(queue.begin(), queue.end(), [](const Request& a, const Request& b) {
      return std::tie(a.job, a.task) < std::tie(b.job, b.task);
    });
    for (const Request& request : queue) {
      std::size_t best = free.size();
      for (std::size_t i = 0; i < free.size(); ++i) {
        if (free[i] >= request.slots && (best == free.size() || free[i] < free[best])) best = i;
      }
      if (best < free.size()) free[best] -= request.slots, ++placed;
    }
  });
  return placed == 0 ? seconds : -1;
}

void compare(const std::string& name, Policy policy) {
  World small(13, 1000, policy), large(1250, 100000, policy);
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 1000; ++i) small.event();
    for (int i = 0; i < 1000; ++i) large.event();
  }
  const double small_p99 = percentile(small.micros, 0.99), large_p99 = percentile(large.micros, 0.99);
  bench::figure("scheduler_" + name + "_100_slots_p50", percentile(small.micros, 0.5), "us", "<=", 100);
  bench::figure("scheduler_" + name + "_100_slots_p99", small_p99, "us", "<=", 100);
  bench::figure("scheduler_" + name + "_10000_slots_p50", percentile(large.micros, 0.5), "us", "<=", 100);
  bench::figure("scheduler_" + name + "_10000_slots_p99", large_p99, "us", "<=", 100);
  bench::figure("scheduler_" + name + "_p99_ratio", large_p99 / small_p99, "x", "<=", 3);
  bench::figure("scheduler_" + name + "_fill_10000_slots", large.fill_seconds * 1e3, "ms", "<=", 200);
  bench::figure("scheduler_" + name + "_starts", static_cast<double>(large.starts), "starts", ">=", 20000);
  bench::figure("scheduler_" + name + "_naive_pass_to_p99", naive_seconds(large.snapshot()) * 1e6 / large_p99,
                "x", ">=", 100);
}

}  // namespace

int main() {
  compare("priority", Policy::kPriority);
  compare("fair_share", Policy::kFairShare);
  compare("round_robin", Policy::kRoundRobin);
}
