#include "reference.h"

#include <algorithm>
#include <climits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "master/scheduler/fitting.h"

namespace det::scheduler {
namespace {

constexpr int kNobody = 100;
using Victims = std::vector<std::size_t>;  // Positions in Snapshot::running.

/// One pass over the queue, and the slots promised on the way.
class Walk {
 public:
  Walk(Snapshot& snapshot, Plan& plan, std::vector<Hold>& holds) : s_(snapshot), plan_(plan), holds_(holds) {}

  bool run() {
    while (const Request* found = next()) {
      const Request request = *found;
      excluded_ = {request.excluded.begin(), request.excluded.end()};
      serve(request);
      excluded_.clear();
    }
    return decided_;
  }

 private:
  struct Shape {
    int slots;
    bool single, preemptible;
    std::vector<AgentId> excluded;
    auto operator<=>(const Shape&) const = default;
  };
  static Shape shape(const Request& r) {
    return {r.slots, r.single_node && r.slots > 1, r.preemptible, r.excluded};
  }
  const Job& job(JobKey id) const {
    return *std::find_if(s_.jobs.begin(), s_.jobs.end(), [&](const Job& j) { return j.id == id; });
  }
  static int size(const Running& r) {
    int slots = 0;
    for (const Part& part : r.parts) slots += static_cast<int>(part.slots.size());
    return slots;
  }
  bool by_priority() const { return s_.rules.policy == Policy::kPriority; }
  double user_weight(UserId user) const {
    auto it = s_.rules.user_weights.find(user);
    return it == s_.rules.user_weights.end() ? 1 : it->second;
  }
  int used(JobKey id) const {
    int slots = promised_to_.contains(id) ? promised_to_.at(id).first : 0;
    for (std::size_t i = 0; i < s_.running.size(); ++i) {
      if (s_.running[i].job == id && !s_.running[i].terminating && !lost_.contains(i))
        slots += size(s_.running[i]);
    }
    return slots;
  }
  int user_used(UserId user) const {
    int slots = 0;
    for (const Job& j : s_.jobs) {
      if (j.user == user) slots += used(j.id);
    }
    return slots;
  }
  double user_share(const Job& j) const {
    return s_.rules.policy == Policy::kFairShare ? user_used(j.user) / user_weight(j.user) : 0;
  }
  double job_share(const Job& j) const {
    if (by_priority()) return 0;
    if (s_.rules.policy == Policy::kFairShare) return used(j.id) / j.weight;
    int count = promised_to_.contains(j.id) ? promised_to_.at(j.id).second : 0;
    for (const Running& r : s_.running) count += r.job == j.id && !r.terminating;
    return count;
  }
  auto rank(JobKey id, TaskKey task) const {
    const Job& j = job(id);
    const std::int64_t user = s_.rules.policy == Policy::kFairShare ? j.user.value : 0;
    return std::tuple(user_share(j), user, job_share(j), j.priority, j.position, j.id, task);
  }
  bool within_limit(const Request& r) const {
    const Job& j = job(r.job);
    const auto held = [&](const Job& of, int slots) {
      if (promised_to_.contains(of.id)) slots += promised_to_.at(of.id).first;
      for (const Running& one : s_.running) slots += one.job == of.id ? size(one) : 0;
      return slots;
    };
    if (r.slots == 0) return true;
    if (j.max_slots && held(j, r.slots) > *j.max_slots) return false;
    return std::none_of(s_.quotas.begin(), s_.quotas.end(), [&](const Quota& quota) {
      const bool user = quota.key.scope == QuotaKey::Scope::kUser;
      const auto is_of = [&](const Job& one) {
        return (user ? one.user.value : one.workspace) == quota.key.id;
      };
      int slots = quota.elsewhere + r.slots;
      for (const Job& one : s_.jobs) slots = is_of(one) ? held(one, slots) : slots;
      return is_of(j) && slots > quota.slots;
    });
  }

  const Request* next() const {
    const Request* best = nullptr;
    for (const Request& r : s_.requests) {
      if (holding_.contains(r.task) || !within_limit(r)) continue;
      auto dropped = dropped_.find(shape(r));
      if (dropped != dropped_.end() && job(r.job).priority < dropped->second) continue;
      if (!best || rank(r.job, r.task) < rank(best->job, best->task)) best = &r;
    }
    return best;
  }

  /// Whether the request may use the agent: it is open, not excluded and not reserved for another request.
  bool seen(const Agent& a) const {
    return a.open && !excluded_.contains(a.id) && !(reserved_ && reserved_->agent == a.id && !lifted_);
  }
  static bool usable(const Agent& a, int slot) {
    return slot < static_cast<int>(a.slots.size()) && a.slots[static_cast<std::size_t>(slot)].enabled;
  }
  static int gain_on(const Agent& a, const Running& r) {
    int slots = 0;
    for (const Part& part : r.parts) {
      for (int slot : part.slots) slots += part.agent == a.id && usable(a, slot);
    }
    return slots;
  }
  int gain(const Running& r) const {
    int slots = 0;
    for (const Agent& a : s_.agents) slots += seen(a) ? gain_on(a, r) : 0;
    return slots;
  }
  static int capacity(const Agent& a) {
    return static_cast<int>(
        std::count_if(a.slots.begin(), a.slots.end(), [](const Slot& x) { return x.enabled; }));
  }
  int free(const Agent& a) const {
    int slots = capacity(a);
    for (const Running& r : s_.running) slots -= gain_on(a, r);
    return slots - (promised_.contains(a.id) ? promised_.at(a.id).first : 0);
  }
  int coming(const Agent& a) const {
    int slots = 0;
    for (const Running& r : s_.running) slots += r.terminating ? gain_on(a, r) : 0;
    return slots - (promised_.contains(a.id) ? promised_.at(a.id).second : 0);
  }
  int base(const Agent& a) const { return free(a) + coming(a); }
  int total(const Agent& a, int level) const {
    int slots = base(a);
    for (const Running& r : s_.running) slots += is_victim(r) && this->level(r) >= level ? gain_on(a, r) : 0;
    return slots;
  }
  int slack() const {
    int slots = -anywhere_;
    if (reserved_ && reserved_->agent.value.empty() && !lifted_) slots -= reserved_->slots;
    for (const Agent& a : s_.agents) slots += seen(a) ? base(a) : 0;
    return slots;
  }
  static bool is_victim(const Running& r) { return r.preemptible && !r.terminating && size(r) > 0; }
  int level(const Running& r) const { return by_priority() ? job(r.job).priority : 0; }

  void serve(const Request& r) {
    if (r.slots == 0) return serve_zero_slot(r);
    if (place(r)) return;
    const bool giving = by_priority() && s_.rules.preemption && r.preemptible;
    const bool borrows = giving && reserved_ && job(r.job).priority > reserved_->priority;
    lifted_ = borrows;
    const bool served = (borrows && place(r)) || wait(r) || preempt(r);
    lifted_ = false;
    if (served) return;
    if (!reserved_) reserve(r);
    dropped_[shape(r)] = giving && reserved_ && !borrows ? reserved_->priority + 1 : INT_MAX;
  }

  void serve_zero_slot(const Request& r) {
    const Agent* best = nullptr;
    int fewest = 0;
    for (const Agent& a : s_.agents) {
      if (!a.open || excluded_.contains(a.id)) continue;  // Reservations concern slots only.
      int count = 0;
      for (const Running& one : s_.running) {
        for (const Part& part : one.parts) count += part.agent == a.id && part.slots.empty();
      }
      if (count >= a.max_zero_slot) continue;
      if (!best || std::tie(count, a.id) < std::tie(fewest, best->id)) best = &a, fewest = count;
    }
    if (!best) {
      dropped_[shape(r)] = INT_MAX;
    } else {
      start(r, {{best->id, {}}});
    }
  }

  std::vector<int> devices(const Agent& a, int count) const {
    std::vector<bool> free(a.slots.size());
    for (std::size_t i = 0; i < free.size(); ++i) free[i] = a.slots[i].enabled;
    for (const Running& r : s_.running) {
      for (const Part& part : r.parts) {
        for (int slot : part.slots) {
          if (part.agent == a.id && slot < static_cast<int>(free.size()))
            free[static_cast<std::size_t>(slot)] = false;
        }
      }
    }
    return choose_slots(a.slots, free, count);
  }
  void start(const Request& r, std::vector<Part> parts) {
    plan_.start.push_back({r.task, parts});
    s_.running.push_back({r.task, r.job, std::move(parts), r.preemptible, false});
    std::erase_if(s_.requests, [task = r.task](const Request& one) { return one.task == task; });
    decided_ = true;
  }
  bool place(const Request& r) {
    if (slack() < r.slots) return false;
    const Agent* best = nullptr;
    std::map<int, std::vector<const Agent*>, std::greater<>> kinds;
    for (const Agent& a : s_.agents) {
      if (!seen(a)) continue;
      if (free(a) > 0) kinds[free(a)].push_back(&a);
      if (free(a) < r.slots) continue;
      if (!best || std::pair(free(a), a.id) < std::pair(free(*best), best->id)) best = &a;
    }
    if (best) return start(r, {{best->id, devices(*best, r.slots)}}), true;
    if (shape(r).single) return false;
    std::vector<std::pair<int, int>> counts;
    for (auto& [free, agents] : kinds) {
      counts.emplace_back(free, agents.size());
      std::sort(agents.begin(), agents.end(), [](auto* a, auto* b) { return b->id < a->id; });
    }
    std::vector<Part> parts;
    int need = r.slots;
    for (int count : choose_agents(counts, need)) {
      const Agent* a = kinds[count].back();
      kinds[count].pop_back();
      parts.push_back({a->id, devices(*a, std::min(count, need))});
      need -= count;
    }
    if (parts.empty()) return false;
    start(r, std::move(parts));
    return true;
  }

  void keep(const Request& r, const Agent* a, Hold::Why why) {
    if (r.slots == 1 && r.excluded.empty()) a = nullptr;  // Any agent will do.
    if (a) {
      const int from_coming = std::min(coming(*a), r.slots);
      promised_[a->id].first += r.slots - from_coming;
      promised_[a->id].second += from_coming;
    } else {
      anywhere_ += r.slots;
    }
    holding_.insert(r.task);
    promised_to_[r.job].first += r.slots;
    ++promised_to_[r.job].second;
    holds_.push_back({r.task, why, a ? a->id : AgentId(), r.slots});
  }
  bool may_hold() const { return static_cast<int>(holding_.size()) < s_.rules.holders; }
  bool wait(const Request& r) {
    if (!may_hold() || slack() < r.slots) return false;
    const Agent* best = nullptr;
    for (const Agent& a : s_.agents) {
      if (!seen(a) || base(a) < r.slots) continue;
      if (!best || std::pair(base(a), a.id) < std::pair(base(*best), best->id)) best = &a;
    }
    if (!best && shape(r).single) return false;
    keep(r, best, Hold::Why::kComing);
    return true;
  }

  int above(const Request& r) const {
    if (!s_.rules.preemption || s_.rules.policy == Policy::kRoundRobin) return kNobody;
    return by_priority() ? job(r.job).priority : -1;
  }
  bool preempt(const Request& r) {
    if (!may_hold()) return false;
    const Agent* agent = nullptr;
    Victims victims = victims_on(r, agent);
    if (victims.empty() && !shape(r).single) victims = victims_anywhere(r);
    if (victims.empty()) return false;
    for (std::size_t victim : victims) {
      s_.running[victim].terminating = true;
      plan_.preempt.push_back(s_.running[victim].task);
    }
    decided_ = true;
    keep(r, agent, Hold::Why::kPreempting);
    return true;
  }
  int gain_of(const Victims& victims) const {
    int slots = 0;
    for (std::size_t victim : victims) slots += gain(s_.running[victim]);
    return slots;
  }
  template <typename Gain>
  static void spare(Victims& victims, int need, const Gain& gain) {
    for (std::size_t i = victims.size(); i-- > 0;) {
      int without = 0;
      for (std::size_t k = 0; k < victims.size(); ++k) without += k == i ? 0 : gain(victims[k]);
      if (without >= need) victims.erase(victims.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  /// Takes victims until they give `need` slots. Each is the lowest-ranked of the running trials that may be
  /// taken at that point. Inspects at most `looks` of those that `owe` a slot for each victim.
  template <typename Owes, typename May, typename Gain>
  Victims take(int need, int looks, const Owes& owes, const May& may, const Gain& gain) {
    Victims chosen;
    int gained = 0;
    while (gained < need) {
      Victims order;
      for (std::size_t i = 0; i < s_.running.size(); ++i) {
        if (is_victim(s_.running[i]) && !lost_.contains(i) && owes(i)) order.push_back(i);
      }
      auto key = [&](std::size_t i) { return rank(s_.running[i].job, s_.running[i].task); };
      std::sort(order.begin(), order.end(), [&](auto a, auto b) { return key(b) < key(a); });
      if (order.size() > static_cast<std::size_t>(looks)) order.resize(static_cast<std::size_t>(looks));
      const auto best =
          std::find_if(order.begin(), order.end(), [&](auto i) { return gain(i) > 0 && may(i); });
      if (best == order.end()) break;
      chosen.push_back(*best);
      gained += gain(*best);
      lost_.insert(*best);
    }
    lost_.clear();
    if (gained < need) return {};
    spare(chosen, need, gain);
    return chosen;
  }
  bool restores_share(const Request& r, std::size_t i) const {
    return restores_share(r, i, size(s_.running[i]));
  }
  bool restores_share(const Request& r, std::size_t i, int lost) const {
    const Job &mine = job(r.job), &theirs = job(s_.running[i].job);
    if (mine.id == theirs.id) return false;
    if (mine.user != theirs.user) {
      return (user_used(mine.user) + r.slots) / user_weight(mine.user) <=
             (user_used(theirs.user) - lost) / user_weight(theirs.user);
    }
    return (used(mine.id) + r.slots) / mine.weight <= (used(theirs.id) - lost) / theirs.weight;
  }
  Victims victims_on(const Request& r, const Agent*& best) {
    Victims victims;
    std::set<int, std::greater<>> levels;
    for (const Running& one : s_.running) {
      if (is_victim(one) && level(one) > above(r)) levels.insert(level(one));
    }
    for (int level : levels) {
      std::vector<const Agent*> agents;
      for (const Agent& a : s_.agents) {
        if (seen(a) && total(a, level) >= r.slots) agents.push_back(&a);
      }
      std::sort(agents.begin(), agents.end(),
                [&](auto* a, auto* b) { return std::pair(-base(*a), a->id) < std::pair(-base(*b), b->id); });
      if (agents.size() > kMaxCandidates) agents.resize(kMaxCandidates);
      for (const Agent* a : agents) {
        auto gain = [&](std::size_t i) { return gain_on(*a, s_.running[i]); };
        auto may = [&](std::size_t i) {
          return by_priority() ? this->level(s_.running[i]) >= level : restores_share(r, i);
        };
        const Victims set = take(
            r.slots - base(*a), INT_MAX, [](std::size_t) { return true; }, may, gain);
        auto cost = [&](const Victims& of) {
          int vacated = 0;
          for (std::size_t i : of) vacated += size(s_.running[i]);
          return std::pair(vacated, of.size());
        };
        if (set.empty() || (best && cost(set) >= cost(victims))) continue;
        best = a;
        victims = set;
      }
      if (best) break;
    }
    if (best && slack() + gain_of(victims) < r.slots) best = nullptr, victims.clear();
    return victims;
  }
  Victims victims_anywhere(const Request& r) {
    const int need = r.slots - slack();
    if (need <= 0 || above(r) >= kNobody) return {};
    auto gain = [&](std::size_t i) { return this->gain(s_.running[i]); };
    auto may = [&](std::size_t i) {
      return by_priority() ? level(s_.running[i]) > above(r) : restores_share(r, i);
    };
    // Trials without a slot to give do not count as inspected.
    auto owes = [&](std::size_t i) { return by_priority() || restores_share(r, i, 1); };
    return take(need, by_priority() ? INT_MAX : kMaxExamined, owes, may, gain);
  }

  void reserve(const Request& r) {
    int most = 0, all = 0;
    for (const Agent& a : s_.agents) {
      if (!seen(a)) continue;
      most = std::max(most, capacity(a));
      all += capacity(a);
    }
    if ((shape(r).single ? most : all) < r.slots) return;
    Reserved reserved{job(r.job).priority, AgentId(), r.slots};
    if (shape(r).single || (!r.excluded.empty() && most >= r.slots)) {
      const int level = by_priority() ? above(r) + 1 : kNobody;
      const Agent* best = nullptr;
      auto key = [&](const Agent& a) { return std::tuple(-total(a, level), -base(a), a.id); };
      for (const Agent& a : s_.agents) {
        if (seen(a) && capacity(a) >= r.slots && (!best || key(a) < key(*best))) best = &a;
      }
      reserved.agent = best->id;
    }
    reserved_ = reserved;
    holds_.push_back({r.task, Hold::Why::kReserved, reserved.agent, r.slots});
  }

  struct Reserved {
    int priority;
    AgentId agent;
    int slots;
  };
  Snapshot& s_;
  Plan& plan_;
  std::vector<Hold>& holds_;
  std::map<Shape, int> dropped_;
  std::set<AgentId> excluded_;  // Of the request that is served.
  std::set<TaskKey> holding_;
  std::map<JobKey, std::pair<int, int>> promised_to_;  // Slots, requests.
  std::map<AgentId, std::pair<int, int>> promised_;    // Free, coming.
  int anywhere_ = 0;
  std::optional<Reserved> reserved_;
  bool lifted_ = false;
  std::set<std::size_t> lost_;
  bool decided_ = false;
};

}  // namespace

Plan reference_decide(const Snapshot& snapshot, std::vector<Hold>& holds) {
  Snapshot now = snapshot;
  Plan plan;
  do {
    holds.clear();
  } while (Walk(now, plan, holds).run());
  return plan;
}

}  // namespace det::scheduler
