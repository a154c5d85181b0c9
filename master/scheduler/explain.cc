#include "master/scheduler/explain.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

namespace det::scheduler {
namespace {

constexpr int kTries = 6;       // attempts for each kind of suggestion: each costs a whole decision
constexpr int kMaxEnds = 2000;  // decisions in the simulation of an estimate; without a start: no estimate

int slots_of(const Running& one) {
  int slots = 0;
  for (const Part& part : one.parts) slots += static_cast<int>(part.slots.size());
  return slots;
}
int enabled(const Agent& agent) {
  return static_cast<int>(
      std::count_if(agent.slots.begin(), agent.slots.end(), [](const Slot& slot) { return slot.enabled; }));
}
/// The agent is open, and not kept for one request.
bool takes_any(const Agent& agent) { return agent.open && !agent.exclusive; }
bool excludes(const Request& request, const Agent& agent) {
  return std::binary_search(request.excluded.begin(), request.excluded.end(), agent.id);
}
/// Finds an element by its `task` or its `id`.
template <typename Things, typename Id>
auto find(Things& things, const Id& id) {
  return std::find_if(things.begin(), things.end(), [&](const auto& one) {
    if constexpr (std::is_same_v<Id, TaskKey>) {
      return one.task == id;
    } else {
      return one.id == id;
    }
  });
}
bool starts(const Plan& plan, TaskKey task) { return find(plan.start, task) != plan.start.end(); }

/// Computes one explanation. Linear searches: the snapshot is private, and nothing waits for this thread.
class Explainer {
 public:
  Explainer(const Snapshot& pool, TaskKey task) : pool_(pool), task_(task) {}
  Explanation run(const RunLengths& lengths);

 private:
  void place_in_queue();
  Reason reason();
  bool exceeds_quota();
  bool counts_towards(const Quota& quota, JobKey job) const;
  void name_blockers();
  void suggest();
  void suggest_slots();
  void suggest_priority();
  bool offer(Suggestion suggestion);
  std::optional<Estimate> play(const RunLengths& lengths) const;
  const Job& job_of(JobKey id) const { return *find(pool_.jobs, id); }
  /// The request may start on the agent when that has room.
  bool takes(const Agent& agent) const { return takes_any(agent) && !excludes(request_, agent); }
  int free_on(const Agent& agent) const;
  int free() const;

  const Snapshot& pool_;
  TaskKey task_;
  Request request_;
  Job job_;
  std::vector<Hold> holds_;
  Explanation out_;
};

/// Free usable slots of an agent, with no regard to holds.
int Explainer::free_on(const Agent& agent) const {
  if (!takes(agent)) return 0;
  int slots = enabled(agent);
  for (const Running& one : pool_.running) {
    for (const Part& part : one.parts) {
      if (part.agent != agent.id) continue;
      for (int slot : part.slots) {
        const auto index = static_cast<std::size_t>(slot);
        slots -= index < agent.slots.size() && agent.slots[index].enabled;
      }
    }
  }
  return slots;
}

int Explainer::free() const {
  int slots = 0;
  for (const Agent& agent : pool_.agents) slots += free_on(agent);
  return slots;
}

Explanation Explainer::run(const RunLengths& lengths) {
  out_.task = task_;
  const auto request = find(pool_.requests, task_);
  if (request == pool_.requests.end()) return out_;
  request_ = *request;
  job_ = job_of(request_.job);
  out_.job = job_.id;
  out_.slots = request_.slots;
  out_.single_node = request_.single_node;
  out_.excluded = request_.excluded;
  place_in_queue();
  // Decisions depend on the contents of the pool alone, so a fresh scheduler arrives at the same holds.
  Scheduler scheduler(pool_);
  const Plan plan = scheduler.decide();
  holds_ = scheduler.holds();
  out_.reason = starts(plan, task_) ? Reason::kStartsNow : reason();
  if (out_.reason == Reason::kStartsNow) return out_;
  name_blockers();
  suggest();
  if (!lengths.recent.empty()) out_.estimate = play(lengths);
  return out_;
}

/// Counts the requests ahead, by the sort key of the policy with the present shares (queue.cc has the same
/// order).
void Explainer::place_in_queue() {
  std::map<UserId, double> users;
  std::map<JobKey, double> jobs;
  if (pool_.rules.policy != Policy::kPriority) {
    for (const Running& one : pool_.running) {
      if (one.terminating) continue;
      const Job& job = job_of(one.job);
      if (pool_.rules.policy == Policy::kRoundRobin) {
        jobs[job.id] += 1;
        continue;
      }
      const auto weight = pool_.rules.user_weights.find(job.user);
      users[job.user] += slots_of(one) / (weight == pool_.rules.user_weights.end() ? 1 : weight->second);
      jobs[job.id] += slots_of(one) / job.weight;
    }
  }
  std::map<JobKey, const Job*> known;
  for (const Job& job : pool_.jobs) known[job.id] = &job;
  auto key = [&](const Request& one) {
    const Job& job = *known.at(one.job);
    const UserId user = pool_.rules.policy == Policy::kFairShare ? job.user : UserId{};
    return std::tuple(users[user], user, jobs[job.id], job.priority, job.position, job.id, one.task);
  };
  const auto mine = key(request_);
  out_.queued = static_cast<int>(pool_.requests.size());
  out_.position = 1 + static_cast<int>(std::count_if(pool_.requests.begin(), pool_.requests.end(),
                                                     [&](const Request& one) { return key(one) < mine; }));
}

bool Explainer::counts_towards(const Quota& quota, JobKey job) const {
  const Job& its = job_of(job);
  return (quota.key.scope == QuotaKey::Scope::kUser ? its.user.value : its.workspace) == quota.key.id;
}

/// Sets Explanation::quota if a quota excludes the request.
bool Explainer::exceeds_quota() {
  for (const Quota& quota : pool_.quotas) {
    if (!counts_towards(quota, job_.id)) continue;
    int held = 0;
    for (const Running& one : pool_.running) held += counts_towards(quota, one.job) ? slots_of(one) : 0;
    if (quota.elsewhere + held + request_.slots <= quota.slots) continue;
    out_.quota = quota;
    out_.quota_held = held;
    return true;
  }
  return false;
}

/// Classifies a request that does not start. The conditions are tested from the most to the least specific
/// one.
Reason Explainer::reason() {
  if (request_.slots == 0) {
    const bool any = std::any_of(pool_.agents.begin(), pool_.agents.end(),
                                 [this](const Agent& agent) { return takes(agent); });
    return any || request_.excluded.empty() ? Reason::kZeroSlot : Reason::kExcluded;
  }
  int held = 0, most = 0, all = 0, excluded_most = 0, excluded_all = 0, largest_free = 0;
  for (const Running& one : pool_.running) held += one.job == job_.id ? slots_of(one) : 0;
  if (job_.max_slots && held + request_.slots > *job_.max_slots) return Reason::kMaxSlots;
  if (exceeds_quota()) return Reason::kQuota;
  for (const Agent& agent : pool_.agents) {
    if (takes_any(agent) && excludes(request_, agent)) {
      excluded_most = std::max(excluded_most, enabled(agent));
      excluded_all += enabled(agent);
    }
    if (!takes(agent)) continue;
    most = std::max(most, enabled(agent));
    all += enabled(agent);
    largest_free = std::max(largest_free, free_on(agent));
  }
  if ((request_.single_node ? most : all) < request_.slots) {
    const int with_excluded = request_.single_node ? std::max(most, excluded_most) : all + excluded_all;
    return with_excluded < request_.slots ? Reason::kTooBig : Reason::kExcluded;
  }
  if (const auto hold = find(holds_, task_); hold != holds_.end()) {
    out_.reserves = true;
    out_.reserved = hold->agent;
    if (hold->why != Hold::Why::kReserved) return Reason::kComing;
  }
  return (request_.single_node ? largest_free : free()) >= request_.slots ? Reason::kKept : Reason::kBusy;
}

/// Collects the holders (kKept) or the allocations (other reasons, except kTooBig) that are in the way, the
/// nearest first: terminating ones, then the largest.
void Explainer::name_blockers() {
  std::vector<Blocker> found;
  if (out_.reason == Reason::kKept) {
    for (const Hold& hold : holds_) {
      if (hold.task == task_) continue;
      const auto holder = find(pool_.requests, hold.task);
      if (holder == pool_.requests.end()) continue;
      found.push_back({hold.task, holder->job, Blocker::How::kHolds, hold.slots, {}});
      if (!hold.agent.value.empty()) found.back().agents.push_back(hold.agent);
    }
  }
  // A single-node request waits for one agent: the one kept for it, else the one with most free slots. Only
  // allocations on that agent block it. Without such an agent those of the whole pool do.
  const Agent* nearest = nullptr;
  for (const Agent& agent : pool_.agents) {
    if (!request_.single_node || !takes(agent) || enabled(agent) < request_.slots) continue;
    const bool kept = agent.id == out_.reserved;
    if (kept || !nearest || (nearest->id != out_.reserved && free_on(agent) > free_on(*nearest)))
      nearest = &agent;
  }
  std::vector<const Running*> running;
  for (const Running& one : pool_.running) {
    const bool there = std::any_of(one.parts.begin(), one.parts.end(),
                                   [&](const Part& part) { return !nearest || part.agent == nearest->id; });
    const bool concerned = out_.reason == Reason::kMaxSlots ? one.job == job_.id
                           : out_.quota                     ? counts_towards(*out_.quota, one.job)
                                                            : there;
    if (!concerned) continue;
    if ((slots_of(one) == 0) != (request_.slots == 0)) continue;
    if (out_.reason == Reason::kComing && !one.terminating) continue;
    running.push_back(&one);
  }
  std::sort(running.begin(), running.end(), [&](const Running* a, const Running* b) {
    return std::tuple(!a->terminating, -slots_of(*a), a->task) <
           std::tuple(!b->terminating, -slots_of(*b), b->task);
  });
  for (const Running* one : running) {
    if (out_.reason == Reason::kTooBig || out_.reason == Reason::kExcluded || out_.reason == Reason::kKept)
      break;
    const auto how = one->terminating ? Blocker::How::kTerminates : Blocker::How::kRuns;
    found.push_back({one->task, one->job, how, slots_of(*one), {}});
    for (const Part& part : one->parts) found.back().agents.push_back(part.agent);
  }
  out_.more_blockers = std::max(0, static_cast<int>(found.size()) - kMaxBlockers);
  if (out_.more_blockers > 0) found.resize(kMaxBlockers);
  out_.blockers = std::move(found);
}

/// Adds a suggestion when it makes the request start. Returns false when it does not.
bool Explainer::offer(Suggestion suggestion) {
  Scheduler scheduler(apply(pool_, task_, suggestion));
  const Plan plan = scheduler.decide();
  if (!starts(plan, task_)) {
    // A better priority may preempt first. It counts when the request starts once its victims have
    // terminated; having the reservation is not enough, because that promises no start.
    const auto hold = find(scheduler.holds(), task_);
    if (suggestion.what != Suggestion::What::kPriority || plan.preempt.empty() ||
        hold == scheduler.holds().end() || hold->why == Hold::Why::kReserved) {
      return false;
    }
    for (TaskKey victim : plan.preempt) scheduler.ended(victim);
    if (!starts(scheduler.decide(), task_)) return false;
    suggestion.preempts = plan.preempt;
  }
  out_.suggestions.push_back(std::move(suggestion));
  return true;
}

/// Suggests the largest number of slots that starts now. Only numbers equal to the free slots of an agent, or
/// of the pool, can be the largest one.
void Explainer::suggest_slots() {
  std::set<int, std::greater<>> sizes;
  for (const Agent& agent : pool_.agents) sizes.insert(free_on(agent));
  if (!request_.single_node) sizes.insert(free());
  int tries = 0;
  for (int slots : sizes) {
    if (slots < 1 || slots >= request_.slots) continue;
    if (tries++ == kTries || offer({.what = Suggestion::What::kSlots, .value = slots})) return;
  }
}

/// Suggests the least change of the priority that helps. Tries the number just below that of each job that is
/// not less important.
void Explainer::suggest_priority() {
  if (pool_.rules.policy != Policy::kPriority) return;
  std::set<int, std::greater<>> better;
  for (const Job& job : pool_.jobs) {
    if (job.priority <= job_.priority && job.priority > 1) better.insert(job.priority - 1);
  }
  for (const Running& one : pool_.running) {
    const int priority = job_of(one.job).priority;
    if (priority <= job_.priority && priority > 1) better.insert(priority - 1);
  }
  int tries = 0;
  for (int priority : better) {
    if (tries++ == kTries || offer({.what = Suggestion::What::kPriority, .value = priority})) return;
  }
}

void Explainer::suggest() {
  int held = 0;
  for (const Running& one : pool_.running) held += one.job == job_.id ? slots_of(one) : 0;
  if (out_.reason == Reason::kMaxSlots) {
    offer({.what = Suggestion::What::kMaxSlots, .value = held + request_.slots});
  }
  suggest_slots();
  if (request_.single_node && request_.slots > 1) offer({.what = Suggestion::What::kSpread});
  int tries = 0;
  for (const Agent& agent : pool_.agents) {
    if (agent.exclusive || excludes(request_, agent)) continue;
    if (agent.open && enabled(agent) == static_cast<int>(agent.slots.size())) continue;
    if (tries++ == kTries) break;
    offer({.what = Suggestion::What::kAgent, .agent = agent.id});
  }
  for (const Blocker& blocker : out_.blockers) {
    if (blocker.how != Blocker::How::kHolds) offer({.what = Suggestion::What::kEnds, .task = blocker.task});
  }
  if (out_.reason != Reason::kMaxSlots && out_.reason != Reason::kQuota) suggest_priority();
}

// Below this progress the pace of a run is unknown.
constexpr double kMinProgress = 0.01;

/// Expected seconds until a running allocation ends, by its own pace or age; nothing if the recent runs have
/// to tell.
std::optional<double> remaining(const RunLengths& lengths, TaskKey task, double median) {
  const auto found = lengths.age.find(task);
  const double age = found == lengths.age.end() ? 0 : found->second;
  const auto progress = lengths.progress.find(task);
  if (progress != lengths.progress.end() && progress->second >= kMinProgress && age > 0)
    return age * std::max(0.0, 1 - progress->second) / progress->second;
  if (age < median) return std::nullopt;
  return age;
}

/// Simulates the pool from one end of an allocation to the next until the request starts.
std::optional<Estimate> Explainer::play(const RunLengths& lengths) const {
  std::vector<double> recent = lengths.recent;
  const auto middle = recent.begin() + static_cast<std::ptrdiff_t>(recent.size() / 2);
  std::nth_element(recent.begin(), middle, recent.end());
  const double median = *middle;
  Estimate estimate;
  std::set<std::pair<double, TaskKey>> ends;
  std::set<TaskKey> assumed;  // runs of which only the recent ones tell the end
  for (const Running& one : pool_.running) {
    const auto left = remaining(lengths, one.task, median);
    if (!left) assumed.insert(one.task);
    const auto age = lengths.age.find(one.task);
    ends.insert({left.value_or(median - (age == lengths.age.end() ? 0 : age->second)), one.task});
  }
  Scheduler scheduler(pool_);
  for (int count = 0; count < kMaxEnds; ++count) {
    const Plan plan = scheduler.decide();
    if (starts(plan, task_)) return estimate;
    for (const Placement& one : plan.start) {
      assumed.insert(one.task);
      ends.insert({estimate.seconds + median, one.task});
    }
    // How long victims take to save a checkpoint is unknown: they terminate at once here.
    if (!plan.preempt.empty()) {
      for (TaskKey victim : plan.preempt) scheduler.ended(victim);
      continue;
    }
    if (ends.empty()) return std::nullopt;
    estimate.seconds = ends.begin()->first;
    if (assumed.contains(ends.begin()->second)) {
      estimate.median = median;
      estimate.runs = static_cast<int>(recent.size());
    } else {
      estimate.paced = true;
    }
    scheduler.ended(ends.begin()->second);
    ends.erase(ends.begin());
  }
  return std::nullopt;
}

}  // namespace

Snapshot apply(Snapshot pool, TaskKey task, const Suggestion& suggestion) {
  Request& request = *find(pool.requests, task);
  Job& job = *find(pool.jobs, request.job);
  switch (suggestion.what) {
    case Suggestion::What::kSlots:
      request.slots = suggestion.value;
      break;
    case Suggestion::What::kSpread:
      request.single_node = false;
      break;
    case Suggestion::What::kMaxSlots:
      job.max_slots = suggestion.value;
      break;
    case Suggestion::What::kPriority:
      job.priority = suggestion.value;
      break;
    case Suggestion::What::kAgent: {
      Agent& agent = *find(pool.agents, suggestion.agent);
      agent.open = true;
      for (Slot& slot : agent.slots) slot.enabled = true;
      break;
    }
    case Suggestion::What::kEnds:
      std::erase_if(pool.running, [&](const Running& one) { return one.task == suggestion.task; });
      break;
  }
  return pool;
}

Explanation explain(const Snapshot& pool, TaskKey task, const RunLengths& lengths) {
  return Explainer(pool, task).run(lengths);
}

}  // namespace det::scheduler
