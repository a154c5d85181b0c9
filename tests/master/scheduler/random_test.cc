// Random events: at every step the decision equals the reference's, and no rule is broken.
#include "common/base/random.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <set>

#include "master/scheduler/explain.h"
#include "reference.h"

namespace det::scheduler {
namespace {

/// A pool with random events.
class World {
 public:
  explicit World(std::uint64_t seed) : random_{seed, 0}, scheduler_(rules()) {
    for (int i = below(6); i >= 0; --i) agent();
    for (int i = below(6); i >= 0; --i) job();
  }

  int starts() const { return starts_; }
  int overtaken() const { return overtaken_; }

  /// Checks the queue queries that work without a copy of the pool.
  void check_waiting() {
    const Snapshot pool = scheduler_.snapshot();
    std::map<JobKey, Scheduler::Standing> standing;
    for (const Request& request : pool.requests) {
      Scheduler::Standing& its = standing[request.job];
      // Requests are in queue order.
      if (its.requests++ == 0) its.first = request.task;
      its.slots += request.slots;
      REQUIRE(scheduler_.waits(request.task));
    }
    REQUIRE(scheduler_.queued() == static_cast<int>(pool.requests.size()));
    for (const Running& one : pool.running) {
      REQUIRE_FALSE(scheduler_.waits(one.task));
      ++standing[one.job].running;
      for (const Part& part : one.parts) standing[one.job].held += static_cast<int>(part.slots.size());
    }
    const auto said = scheduler_.standings();
    REQUIRE(std::map(said.begin(), said.end()) == standing);
    for (const auto& [job, its] : standing) REQUIRE(scheduler_.standing(job) == its);
  }

  /// Checks that images do not change after later events.
  void check_images() {
    for (const auto& [image, before] : images_) REQUIRE(show(image.snapshot()) == before);
    images_.emplace_back(scheduler_.image(), show(scheduler_.snapshot()));
    if (images_.size() > 4) images_.pop_front();
  }

  /// Applies every suggestion and checks with the reference that it works.
  int check_explanations() {
    const Snapshot pool = scheduler_.snapshot();
    int tried = 0;
    for (const Request& request : pool.requests) {
      INFO(show(pool) << "explain " << request.task);
      const Explanation found = explain(pool, request.task);
      REQUIRE(found.position >= 1);
      REQUIRE(found.position <= found.queued);
      REQUIRE(found.reason != Reason::kNotWaiting);
      REQUIRE(found.reason != Reason::kStartsNow);
      for (const Suggestion& suggestion : found.suggestions) {
        INFO("suggestion " << static_cast<int>(suggestion.what) << " " << suggestion.value);
        Snapshot other = apply(pool, request.task, suggestion);
        std::vector<Hold> holds;
        Plan plan = reference_decide(other, holds);
        if (!suggestion.preempts.empty()) {
          REQUIRE(suggestion.what == Suggestion::What::kPriority);
          Scheduler scheduler(other);
          scheduler.decide();
          for (TaskKey victim : suggestion.preempts) scheduler.ended(victim);
          plan = reference_decide(scheduler.snapshot(), holds);
        }
        REQUIRE(std::any_of(plan.start.begin(), plan.start.end(),
                            [&](const Placement& one) { return one.task == request.task; }));
        ++tried;
      }
    }
    return tried;
  }

  void step() {
    for (int changes = below(4); changes >= 0; --changes) change();
    Snapshot before = scheduler_.snapshot();
    std::vector<Hold> holds;
    const Plan wanted = reference_decide(before, holds);
    const Plan plan = scheduler_.decide();
    INFO(show(before));
    REQUIRE(show(plan) == show(wanted));
    REQUIRE(show(scheduler_.holds()) == show(holds));
    REQUIRE(show(scheduler_.decide()).empty());
    check(before, plan);
  }

 private:
  int below(int bound) { return static_cast<int>(random_.below(static_cast<std::uint64_t>(bound))); }
  bool one_in(int n) { return below(n) == 0; }
  Rules rules() {
    Rules rules;
    rules.policy = static_cast<Policy>(below(3));
    rules.preemption = !one_in(4);
    rules.holders = one_in(3) ? 1 + below(3) : 32;
    for (int user = 0; user < 3; ++user) {
      if (one_in(2)) rules.user_weights[UserId(user)] = 1 + below(3);
    }
    return rules;
  }
  void agent() {
    Agent agent{.id = AgentId("a" + std::to_string(below(7))),
                .slots = std::vector<Slot>(static_cast<std::size_t>(below(9)))};
    for (Slot& slot : agent.slots) {
      slot.enabled = !one_in(10);
      slot.link = below(2);
    }
    agent.open = !one_in(6);
    agent.max_zero_slot = below(3);
    // An agent cannot lose slots; the core guarantees this.
    for (const Agent& known : scheduler_.snapshot().agents) {
      if (known.id == agent.id) agent.slots.resize(known.slots.size());
    }
    scheduler_.put_agent(agent);
  }
  void job() {
    // Experiments and commands with the same numbers.
    const int number = below(8);
    Job job{.id = number < 5 ? JobKey(ExperimentId(number)) : JobKey(CommandId(number - 4)),
            .user = UserId(below(3)),
            .priority = 40 + below(4),
            .position = below(3)};
    job.weight = 1 + below(3);
    if (one_in(3)) job.max_slots = below(9);
    job.workspace = below(3);
    scheduler_.put_job(job);
  }
  void quota() {
    const QuotaKey key{one_in(2) ? QuotaKey::Scope::kUser : QuotaKey::Scope::kWorkspace, below(3)};
    if (one_in(3)) return scheduler_.remove_quota(key);
    scheduler_.put_quota({key, below(16), one_in(3) ? below(4) : 0});
  }
  template <typename Things>
  auto any(const Things& things) {
    return things[static_cast<std::size_t>(below(static_cast<int>(things.size())))];
  }
  void change() {
    const Snapshot now = scheduler_.snapshot();
    if (one_in(15)) quota();
    switch (below(12)) {
      case 0:
        return agent();
      case 1:
        return job();
      case 2:
        if (!now.agents.empty() && one_in(4)) lose(any(now.agents).id, now);
        return;
      case 3:
        if (!now.requests.empty()) scheduler_.withdraw(any(now.requests).task);
        return;
      case 4:
        if (!now.running.empty()) scheduler_.terminating(any(now.running).task);
        return;
      case 5:
        if (one_in(6) && !now.jobs.empty()) scheduler_.remove_job(any(now.jobs).id);
        return;
      case 6:
        if (one_in(8)) {
          Snapshot all = scheduler_.snapshot();
          all.rules = rules();
          scheduler_ = Scheduler(all);
        }
        return;
      case 7:
      case 8:
      case 9:
        if (!now.running.empty()) scheduler_.ended(any(now.running).task);
        return;
      default:
        request(now);
    }
  }
  void lose(const AgentId& id, const Snapshot& now) {
    scheduler_.remove_agent(id);
    if (one_in(2)) return;  // Its work may return.
    for (const Running& one : now.running) {
      const bool there =
          std::any_of(one.parts.begin(), one.parts.end(), [&](const Part& part) { return part.agent == id; });
      if (there) scheduler_.ended(one.task);
    }
  }
  void request(const Snapshot& now) {
    for (int count = below(4); count >= 0 && !now.jobs.empty(); --count) {
      const TaskKey task = one_in(4) ? TaskKey(CommandId(++command_)) : TaskKey(TrialId(++trial_));
      std::set<AgentId> excluded;
      for (int agents = one_in(5) ? 1 + below(3) : 0; agents > 0; --agents)
        excluded.insert(AgentId("a" + std::to_string(below(7))));
      scheduler_.put_request({task, any(now.jobs).id, one_in(5) ? below(20) : below(5), one_in(2), !one_in(5),
                              std::vector<AgentId>(excluded.begin(), excluded.end())});
    }
  }

  static int slots_of(const std::vector<Part>& parts) {
    int slots = 0;
    for (const Part& part : parts) slots += static_cast<int>(part.slots.size());
    return slots;
  }
  /// Invariants of every decision, checked without the reference.
  void check(const Snapshot& before, const Plan& plan) {
    const Snapshot after = scheduler_.snapshot();
    std::set<std::pair<AgentId, int>> given;
    std::map<JobKey, int> held;
    std::map<QuotaKey, int> taken;
    for (const Running& one : after.running) {
      held[one.job] += slots_of(one.parts);
      const Job& its = *std::find_if(after.jobs.begin(), after.jobs.end(),
                                     [&](const Job& job) { return job.id == one.job; });
      taken[{QuotaKey::Scope::kUser, its.user.value}] += slots_of(one.parts);
      taken[{QuotaKey::Scope::kWorkspace, its.workspace}] += slots_of(one.parts);
      for (const Part& part : one.parts) {
        for (int slot : part.slots) REQUIRE(given.insert({part.agent, slot}).second);
      }
    }
    starts_ += static_cast<int>(plan.start.size());
    for (const Placement& start : plan.start) {
      const auto request = std::find_if(before.requests.begin(), before.requests.end(),
                                        [&](const Request& one) { return one.task == start.task; });
      REQUIRE(request != before.requests.end());
      REQUIRE(slots_of(start.parts) == request->slots);
      if (request->single_node) REQUIRE(start.parts.size() == 1);
      for (const Job& job : before.jobs) {
        if (job.id == request->job && job.max_slots && request->slots > 0)
          REQUIRE(held[job.id] <= *job.max_slots);
        if (job.id != request->job || request->slots == 0) continue;
        for (const Quota& quota : before.quotas) {
          const bool user = quota.key.scope == QuotaKey::Scope::kUser;
          if ((user ? job.user.value : job.workspace) == quota.key.id)
            REQUIRE(taken[quota.key] + quota.elsewhere <= quota.slots);
        }
      }
      for (const Part& part : start.parts) {
        const auto agent = std::find_if(before.agents.begin(), before.agents.end(),
                                        [&](const Agent& one) { return one.id == part.agent; });
        REQUIRE(agent != before.agents.end());
        REQUIRE(agent->open);
        REQUIRE(std::find(request->excluded.begin(), request->excluded.end(), part.agent) ==
                request->excluded.end());
        for (int slot : part.slots) REQUIRE(agent->slots.at(static_cast<std::size_t>(slot)).enabled);
      }
    }
    for (TaskKey task : plan.preempt) {
      for (const Placement& start : plan.start) overtaken_ += start.task == task;
      REQUIRE(before.rules.preemption);
      REQUIRE(before.rules.policy != Policy::kRoundRobin);
      const auto victim = std::find_if(after.running.begin(), after.running.end(),
                                       [&](const Running& one) { return one.task == task; });
      REQUIRE(victim != after.running.end());
      REQUIRE(victim->preemptible);
      REQUIRE(victim->terminating);
    }
  }

  Random random_;
  Scheduler scheduler_;
  std::deque<std::pair<Image, std::string>> images_;
  std::int64_t trial_ = 0, command_ = 0;
  int starts_ = 0, overtaken_ = 0;
};

TEST_CASE("the scheduler decides like the reference after any sequence of events") {
#ifdef DET_SANITIZED
  constexpr std::uint64_t kSeeds = 300;  // Sanitizers make a seed ten times slower.
#else
  constexpr std::uint64_t kSeeds = 1500;
#endif
  int starts = 0, overtaken = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    for (int step = 0; step < 100; ++step) world.step();
    starts += world.starts();
    overtaken += world.overtaken();
  }
  // A later pass of the same decision may take a start back. This is legal and rare.
  INFO(overtaken << " of " << starts);
  CHECK(overtaken * 1000 < starts);
}

TEST_CASE("applying a suggestion of an explanation starts the request") {
  int tried = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    for (int step = 0; step < 60; ++step) {
      world.step();
      world.check_waiting();
      world.check_images();
      if (step % 10 == 9) tried += world.check_explanations();
    }
  }
  REQUIRE(tried > 1000);
}

}  // namespace
}  // namespace det::scheduler
