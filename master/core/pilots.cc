#include "master/core/pilots.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "master/core/owners.h"

namespace det::core {
namespace {

constexpr auto kFirstDelay = std::chrono::seconds(5);
constexpr auto kMaxDelay = std::chrono::minutes(10);
constexpr int kMaxDoublings = 7;
/// Requests of one shape that are compared with pilots. More cannot change the decision, because pilots hold
/// fewer slots in practice.
constexpr int kMaxDemand = 4096;

/// Prefix of the names of a cluster's pilots.
std::string prefix(const Options& options) { return "det-" + options.cluster + "-"; }

/// Returns the time from which on a pilot takes no new work; nothing without a known end.
std::optional<WallTime> closes_at(const Pilot& pilot, const PilotRules& rules) {
  if (!pilot.until || rules.min_time_left <= Duration(0)) return std::nullopt;
  return WallTime{pilot.until->micros - rules.min_time_left.count()};
}

/// Returns the name of the pilot that an agent would belong to.
std::string pilot_of(const AgentId& agent) { return agent.value.substr(0, agent.value.rfind('-')); }

/// Slots of a pilot for one allocation that has a request.
constexpr int kTaken = -1;

/// Takes slots of one node, or of the nodes of one pilot together. Returns false when they do not suffice.
bool take(PilotRoom& room, int slots, bool single_node) {
  if (room.slots) return *room.slots == slots && (room.slots = kTaken, true);
  std::vector<int>& nodes = room.nodes;
  if (const auto node = std::find_if(nodes.begin(), nodes.end(), [&](int free) { return free >= slots; });
      node != nodes.end()) {
    *node -= slots;
    return true;
  }
  if (single_node || std::accumulate(nodes.begin(), nodes.end(), 0) < slots) return false;
  for (int& free : nodes) {
    const int taken = std::min(free, slots);
    free -= taken;
    slots -= taken;
  }
  return true;
}

}  // namespace

PilotNeed pack(const std::vector<scheduler::Demand>& demand, std::vector<PilotRoom> coming,
               const PilotRules& rules, int further) {
  const std::size_t known = coming.size();
  PilotNeed need{.used = std::vector<bool>(known), .further = {}};
  for (const scheduler::Demand& request : demand) {
    const int nodes = std::max(1, (request.slots + rules.slots_per_node - 1) / rules.slots_per_node);
    if (nodes > (request.single_node ? 1 : rules.max_nodes)) continue;
    std::size_t index = 0;
    while (index < coming.size() && !take(coming[index], request.slots, request.single_node)) ++index;
    if (index < known) need.used[index] = true;
    if (index < coming.size() || static_cast<int>(need.further.size()) >= further) continue;
    need.further.push_back({nodes, rules.per_allocation ? std::optional(request.slots) : std::nullopt});
    coming.push_back(
        {std::vector<int>(static_cast<std::size_t>(nodes), rules.slots_per_node), need.further.back().slots});
    take(coming.back(), request.slots, request.single_node);
  }
  return need;
}

bool Pilots::admits(const AgentId& agent) const {
  // Names of other agents never begin like those of pilots, which contain the id of the cluster.
  if (owners_.options.cluster.empty() || !agent.value.starts_with(prefix(owners_.options))) return true;
  if (owners_.is(Mutant::kZombieScheduled)) return true;
  const auto live = pilots_.find(pilot_of(agent));
  return live != pilots_.end() && live->second.row.phase < PilotPhase::kCanceling && !live->second.ending &&
         (!live->second.row.used || owners_.is(Mutant::kPilotUsedAgain));
}

std::optional<scheduler::Exclusive> Pilots::exclusive(const AgentId& agent) const {
  const auto live = pilots_.find(pilot_of(agent));
  if (live == pilots_.end() || !live->second.row.slots || owners_.is(Mutant::kPilotShared))
    return std::nullopt;
  const Pilot& row = live->second.row;
  return scheduler::Exclusive{.set = row.name, .agents = row.nodes, .slots = *row.slots};
}

void Pilots::close_ending(Now now, const std::string& pool) {
  const auto provider = owners_.options.providers.find(pool);
  if (provider == owners_.options.providers.end() || owners_.is(Mutant::kEndingScheduled)) return;
  for (auto& [name, live] : pilots_) {
    if (live.row.pool != pool || live.row.phase >= PilotPhase::kCanceling) continue;
    const auto at = closes_at(live.row, provider->second);
    const bool ending = at && now.wall >= *at;
    if (ending == std::exchange(live.ending, ending)) continue;
    put_agents(live.row);
  }
}

std::map<std::string, Pilot> Pilots::all() const {
  std::map<std::string, Pilot> rows;
  for (const auto& [name, live] : pilots_) rows.emplace(name, live.row);
  return rows;
}

std::string Pilots::problem(const std::string& name) const {
  const auto found = pools_.find(name);
  if (found == pools_.end()) return "";
  const Pool& pool = found->second;
  if (!pool.problem.empty()) return "the engine of pool " + name + " does not reply: " + pool.problem;
  return pool.failure.empty() ? ""
                              : "the last pilot of pool " + name + " ended without work: " + pool.failure;
}

SubmitPilot Pilots::submission(const Pilot& row) const {
  const int most = owners_.options.providers.at(row.pool).slots_per_node;
  // The slots of one allocation are spread evenly over its nodes.
  const int slots = row.slots ? (*row.slots + row.nodes - 1) / row.nodes : most;
  return {row.pool, row.name, row.nodes, slots};
}

bool Pilots::is_busy(const Pilot& pilot) const {
  for (int node = 0; node < pilot.nodes; ++node) {
    if (owners_.agents.is_held(AgentId(pilot.name + "-" + std::to_string(node)))) return true;
  }
  return false;
}

void Pilots::put_agents(const Pilot& pilot) {
  for (int node = 0; node < pilot.nodes; ++node) {
    owners_.agents.put_again(AgentId(pilot.name + "-" + std::to_string(node)));
  }
}

std::optional<PilotRoom> Pilots::room(const Live& live, const PilotRules& rules, Now now) const {
  const Pilot& row = live.row;
  if (row.phase >= PilotPhase::kCanceling || live.ending || row.used) return std::nullopt;
  if (row.phase == PilotPhase::kRunning) {
    int connected = 0;
    for (int node = 0; node < row.nodes; ++node) {
      const Agent* agent = owners_.agents.find(AgentId(row.name + "-" + std::to_string(node)));
      connected += agent && agent->session != 0 ? 1 : 0;
    }
    const bool late = now.mono >= *live.running_since + owners_.options.pilot_start;
    if (connected == row.nodes || late || live.worked) return std::nullopt;
  }
  return PilotRoom{std::vector<int>(static_cast<std::size_t>(row.nodes), rules.slots_per_node), row.slots};
}

void Pilots::handle(Step& step, const PilotState& input) {
  const auto found = pilots_.find(input.name);
  if (found == pilots_.end()) {
    // A pilot that has ended for the master: its job must not go on.
    if (input.phase != PilotPhase::kEnded && !owners_.is(Mutant::kZombieNotCanceled))
      step.send(CancelPilot{input.pool, input.name});
    return;
  }
  Live& live = found->second;
  if (input.phase == PilotPhase::kEnded) return end(step, live, input.reason);
  // An engine may be behind the connection of an agent: phases only advance.
  const bool starts = live.row.phase < PilotPhase::kRunning && input.phase == PilotPhase::kRunning;
  Pilot changed = live.row;
  changed.phase = std::max(live.row.phase, input.phase);
  changed.job = input.job;
  changed.reason = changed.phase == PilotPhase::kCanceling ? live.row.reason : input.reason;
  if (input.until) changed.until = input.until;
  if (changed != live.row) {
    live.row = std::move(changed);
    step.touch(live.row);
    owners_.queues.mark(live.row.pool);
  }
  if (starts) start(step, live);
}

void Pilots::handle(Step&, const ProviderState& input) {
  if (owners_.options.providers.contains(input.pool)) pools_[input.pool].problem = input.problem;
}

void Pilots::start(Step& step, Live& live) {
  live.row.phase = PilotPhase::kRunning;
  live.running_since = step.now.mono;
  live.idle_since.reset();
  step.touch(live.row);
}

void Pilots::agent_connected(Step& step, const AgentId& agent) {
  const auto found = pilots_.find(pilot_of(agent));
  if (found == pilots_.end()) return;
  owners_.queues.mark(found->second.row.pool);
  if (found->second.row.phase < PilotPhase::kRunning) start(step, found->second);
}

void Pilots::submit(Step& step, const std::string& pool, const PilotSize& size) {
  const std::int64_t id = next_++;
  Live live{.row = {.id = id,
                    .name = prefix(owners_.options) + pool + "-" + std::to_string(id),
                    .pool = pool,
                    .nodes = size.nodes,
                    .submitted = step.now.wall,
                    .slots = size.slots},
            .repeat_at = step.now.mono + owners_.options.pilot_repeat};
  step.send(submission(live.row));
  const std::string name = live.row.name;
  step.touch(pilots_.emplace(name, std::move(live)).first->second.row);
}

void Pilots::use(Step& step, Live& live) {
  // The first work of a pilot shows that the engine and the settings are in order. Its later work does not:
  // the engine may refuse the others meanwhile.
  if (!std::exchange(live.worked, true)) {
    Pool& pool = pools_[live.row.pool];
    pool.failures = 0;
    pool.failure.clear();
    pool.retry_at = {};
  }
  if (!live.row.slots || std::exchange(live.row.used, true)) return;
  put_agents(live.row);
  step.touch(live.row);
}

void Pilots::repeat(Step& step, Live& live) {
  const Pilot& row = live.row;
  const bool unconfirmed = row.phase == PilotPhase::kSubmitted || row.phase == PilotPhase::kCanceling;
  if (!unconfirmed || step.now.mono < live.repeat_at) return;
  live.repeat_at = step.now.mono + owners_.options.pilot_repeat;
  if (row.phase == PilotPhase::kCanceling) return step.send(CancelPilot{row.pool, row.name});
  if (!owners_.is(Mutant::kPilotNotRepeated)) step.send(submission(row));
}

void Pilots::release(Step& step, Live& live, const std::string& reason) {
  // The agents are closed first: their slots must not be assigned again.
  live.row.phase = PilotPhase::kCanceling;
  live.row.reason = reason;
  live.repeat_at = step.now.mono + owners_.options.pilot_repeat;
  put_agents(live.row);
  step.touch(live.row);
  step.send(CancelPilot{live.row.pool, live.row.name});
}

void Pilots::end(Step& step, Live& live, const std::string& reason) {
  if (live.row.phase == PilotPhase::kEnded) return;
  if (!live.worked && live.row.phase != PilotPhase::kCanceling)
    count_failure(pools_[live.row.pool], reason, step.now);
  if (live.row.phase != PilotPhase::kCanceling) live.row.reason = reason;
  live.row.phase = PilotPhase::kEnded;
  live.row.ended = step.now.wall;
  owners_.queues.mark(live.row.pool);
  put_agents(live.row);
  step.touch(live.row);
}

void Pilots::count_failure(Pool& pool, const std::string& reason, Now now) {
  pool.failure = reason;
  if (owners_.is(Mutant::kPilotRefusedAtOnce)) return;
  const Duration delay = kFirstDelay * (1 << std::min(pool.failures++, kMaxDoublings));
  pool.retry_at = now.mono + std::min<Duration>(delay, kMaxDelay);
}

void Pilots::adapt(Step& step, const std::string& name) {
  const auto provider = owners_.options.providers.find(name);
  if (provider == owners_.options.providers.end()) {
    for (auto& [key, live] : pilots_) {
      if (live.row.pool == name) end(step, live, "pool " + name + " has no provider any more");
    }
    return;
  }
  const PilotRules& rules = provider->second;
  Pool& pool = pools_[name];
  std::vector<Live*> coming, present;
  std::vector<PilotRoom> rooms;
  int alive = 0;
  for (auto& [key, live] : pilots_) {
    if (live.row.pool != name || live.row.phase == PilotPhase::kEnded) continue;
    ++alive;
    repeat(step, live);
    if (live.row.phase == PilotPhase::kCanceling) continue;
    if (is_busy(live.row)) {
      use(step, live);
      if (!owners_.is(Mutant::kPilotBusyReleased)) {
        live.idle_since.reset();
        continue;
      }
    }
    auto its = room(live, rules, step.now);
    (its ? coming : present).push_back(&live);
    if (its) rooms.push_back(std::move(*its));
  }
  const auto demand = owners_.queues.demand(name, kMaxDemand);
  const bool bounded = !owners_.is(Mutant::kPilotsUnbounded);
  const int further = std::max(0, bounded ? rules.max_pilots - alive : rules.max_pilots);
  const PilotNeed need = pack(demand, std::move(rooms), rules, further);
  const auto is_wanted = [&](const Pilot& row) {
    return std::any_of(demand.begin(), demand.end(),
                       [&](const auto& one) { return row.slots.value_or(one.slots) == one.slots; });
  };
  const auto idle = [&](Live& live, const std::string& reason) {
    if (!live.idle_since) live.idle_since = step.now.mono;
    const bool over = live.ending || (live.row.used && !owners_.is(Mutant::kSurplusNotReleased));
    if (!over && step.now.mono < *live.idle_since + rules.idle_timeout) return;
    if (owners_.is(Mutant::kPilotNeverReleased)) return;
    // The next one would end as soon: the engine gives less time than min_time_left.
    if (live.ending && !live.worked) count_failure(pool, "too little time is left on it", step.now);
    // Requests wait, and the pilot could hold none of them: another one would not either.
    if (!live.ending && !live.worked && live.row.phase == PilotPhase::kRunning && is_wanted(live.row))
      count_failure(pool, "none of the waiting requests fits its agents", step.now);
    release(step, live, reason);
  };
  for (Live* live : present) {
    idle(*live, live->row.used ? "its allocation has ended"
                : live->ending ? "its end is near"
                               : "it was idle");
  }
  for (std::size_t i = 0; i < coming.size(); ++i) {
    if (need.used[i]) {
      coming[i]->idle_since.reset();
    } else {
      idle(*coming[i], "no request waits for it");
    }
  }
  if (step.now.mono >= pool.retry_at) {
    for (const PilotSize& size : need.further) submit(step, name, size);
  }
  set_timer(name, step.now);
}

void Pilots::set_timer(const std::string& name, Now now) {
  const PilotRules& rules = owners_.options.providers.at(name);
  std::optional<MonoTime> next;
  const auto at = [&](MonoTime time) {
    if (time > now.mono && (!next || time < *next)) next = time;
  };
  at(pools_[name].retry_at);
  for (const auto& [key, live] : pilots_) {
    if (live.row.pool != name || live.row.phase == PilotPhase::kEnded) continue;
    at(live.repeat_at);
    if (live.idle_since) at(*live.idle_since + rules.idle_timeout);
    if (const auto closes = closes_at(live.row, rules))
      at(now.mono + Duration(closes->micros - now.wall.micros));
    if (live.running_since) at(*live.running_since + owners_.options.pilot_start);
  }
  owners_.timers.set({TimerKind::kPilots, name}, next);
}

void Pilots::forget_ended() {
  std::erase_if(pilots_, [](const auto& one) { return one.second.row.phase == PilotPhase::kEnded; });
}

Status Pilots::restore(std::vector<Pilot> rows, std::int64_t next, Now now) {
  next_ = next;
  if (owners_.is(Mutant::kPilotNumberReused)) {
    next_ = 1;
    for (const Pilot& row : rows) next_ = std::max(next_, row.id + 1);
  }
  for (Pilot& row : rows) {
    const std::string name = row.name;
    if (row.phase == PilotPhase::kEnded) return contradiction("pilot " + name + " has ended");
    Live live{.row = std::move(row), .repeat_at = now.mono};
    // Its agents have as long as after a start to connect again.
    if (live.row.phase == PilotPhase::kRunning) live.running_since = now.mono;
    live.worked = live.row.used;
    if (owners_.is(Mutant::kPilotUseForgotten)) live.row.used = false;
    owners_.timers.set({TimerKind::kPilots, live.row.pool}, now.mono);
    if (!pilots_.emplace(name, std::move(live)).second)
      return contradiction("pilot " + name + " is there twice");
  }
  return {};
}

}  // namespace det::core
