// Owns the priority policy. One pass over the requests, best claim first: place, or wait for slots that are
// coming free, or make room. A request that waits keeps what it needs of the free slots from less important
// ones behind it.
#include "master/scheduler/scheduler.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace det::scheduler {
namespace {

/// Agents are known by their position in the order of ids, so that ties fall to the smaller id.
using Index = std::size_t;

struct Room {
  AgentId id;
  std::vector<int>
      free;         ///< slot ids nobody has or is promised, descending: the lowest is taken from the back
  int leaving = 0;  ///< slots that will come free and are not promised
  std::vector<const Running*> victims;  ///< those that may be asked to leave, least important first
};

class Pass {
 public:
  explicit Pass(const Snapshot& snapshot);
  Plan run();

 private:
  bool place(const Request& request);
  bool wait(const Request& request);
  bool make_room(const Request& request);
  std::vector<const Running*> victims_for(const Request& request, const Room& room) const;
  /// Takes `count` of the slots coming free, and what lacks of the free ones, from everybody behind.
  void promise(Index agent, int count);
  int free_count(Index agent) const { return static_cast<int>(rooms_[agent].free.size()); }
  void file(Index agent) { by_free_[free_count(agent)].insert(agent); }
  void unfile(Index agent);

  std::vector<Request> requests_;
  std::vector<Room> rooms_;
  std::map<int, std::set<Index>> by_free_;
  Plan plan_;
};

Pass::Pass(const Snapshot& snapshot) : requests_(snapshot.requests) {
  std::sort(requests_.begin(), requests_.end(), [](const Request& a, const Request& b) {
    return std::tie(a.claim, a.trial) < std::tie(b.claim, b.trial);
  });
  std::map<AgentId, const AgentView*> agents;
  for (const AgentView& agent : snapshot.agents) {
    if (agent.schedulable) agents.emplace(agent.id, &agent);
  }
  std::map<AgentId, Index> index;
  for (const auto& [id, agent] : agents) {
    Room room{.id = id};
    for (int slot = static_cast<int>(agent->slot_free.size()) - 1; slot >= 0; --slot) {
      if (agent->slot_free[static_cast<std::size_t>(slot)]) room.free.push_back(slot);
    }
    index.emplace(id, rooms_.size());
    rooms_.push_back(std::move(room));
    file(rooms_.size() - 1);
  }
  for (const Running& running : snapshot.running) {
    auto it = index.find(running.agent);
    if (it == index.end() || running.slots.empty()) continue;
    Room& room = rooms_[it->second];
    if (running.leaving) {
      room.leaving += static_cast<int>(running.slots.size());
    } else if (running.preemptible) {
      room.victims.push_back(&running);
    }
  }
  for (Room& room : rooms_) {
    std::sort(room.victims.begin(), room.victims.end(), [](const Running* a, const Running* b) {
      return std::tie(b->claim, b->allocation) < std::tie(a->claim, a->allocation);
    });
  }
}

void Pass::unfile(Index agent) {
  auto it = by_free_.find(free_count(agent));
  it->second.erase(agent);
  if (it->second.empty()) by_free_.erase(it);
}

Plan Pass::run() {
  // Within a pass room only shrinks and later claims are weaker, so what failed once fails for all that need
  // as much, until somebody was asked to leave (whose slots may be more than were needed).
  int hopeless = std::numeric_limits<int>::max();
  for (const Request& request : requests_) {
    if (request.slots >= hopeless) continue;
    if (place(request) || wait(request)) continue;
    if (make_room(request)) {
      hopeless = std::numeric_limits<int>::max();
    } else {
      hopeless = request.slots;
    }
  }
  return std::move(plan_);
}

bool Pass::place(const Request& request) {
  auto it = by_free_.lower_bound(request.slots);
  if (it == by_free_.end()) return false;
  const Index agent = *it->second.begin();
  unfile(agent);
  Room& room = rooms_[agent];
  Placement placement{.trial = request.trial, .agent = room.id};
  for (int i = 0; i < request.slots; ++i) {
    placement.slots.push_back(room.free.back());
    room.free.pop_back();
  }
  file(agent);
  plan_.start.push_back(std::move(placement));
  return true;
}

bool Pass::wait(const Request& request) {
  std::optional<Index> best;
  auto total = [this](Index agent) { return free_count(agent) + rooms_[agent].leaving; };
  for (Index agent = 0; agent < rooms_.size(); ++agent) {
    if (rooms_[agent].leaving == 0 || total(agent) < request.slots) continue;
    if (!best || total(agent) < total(*best)) best = agent;
  }
  if (!best) return false;
  promise(*best, request.slots);
  return true;
}

void Pass::promise(Index agent, int count) {
  Room& room = rooms_[agent];
  const int coming = std::min(room.leaving, count);
  room.leaving -= coming;
  unfile(agent);
  room.free.resize(room.free.size() - static_cast<std::size_t>(count - coming));
  file(agent);
}

std::vector<const Running*> Pass::victims_for(const Request& request, const Room& room) const {
  const int have = static_cast<int>(room.free.size()) + room.leaving;
  int gained = 0;
  std::vector<const Running*> chosen;
  for (const Running* running : room.victims) {
    if (have + gained >= request.slots || running->claim.priority <= request.claim.priority) break;
    chosen.push_back(running);
    gained += static_cast<int>(running->slots.size());
  }
  if (have + gained < request.slots) return {};
  // Nobody leaves for nothing: let the most important stay first.
  for (std::size_t i = chosen.size(); i-- > 0;) {
    const int size = static_cast<int>(chosen[i]->slots.size());
    if (have + gained - size < request.slots) continue;
    gained -= size;
    chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return chosen;
}

bool Pass::make_room(const Request& request) {
  std::optional<Index> best;
  std::vector<const Running*> victims;
  // The set whose most important member matters least; then the smallest.
  auto better = [](const std::vector<const Running*>& a, const std::vector<const Running*>& b) {
    const int a_worst = a.back()->claim.priority, b_worst = b.back()->claim.priority;
    return a_worst != b_worst ? a_worst > b_worst : a.size() < b.size();
  };
  for (Index agent = 0; agent < rooms_.size(); ++agent) {
    auto candidate = victims_for(request, rooms_[agent]);
    if (candidate.empty() || (best && !better(candidate, victims))) continue;
    best = agent;
    victims = std::move(candidate);
  }
  if (!best) return false;
  Room& room = rooms_[*best];
  for (const Running* victim : victims) {
    plan_.preempt.push_back(victim->allocation);
    room.leaving += static_cast<int>(victim->slots.size());
    std::erase(room.victims, victim);
  }
  promise(*best, request.slots);
  return true;
}

}  // namespace

Plan schedule(const Snapshot& snapshot) { return Pass(snapshot).run(); }

}  // namespace det::scheduler
