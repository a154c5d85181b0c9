// Preemption: the choice of victims for a request (Pass::victims_on, Pass::victims_anywhere). A candidate set
// takes the least important and newest allocations first and then drops every victim that is not needed.
#include <algorithm>
#include <tuple>

#include "master/scheduler/pass.h"

namespace det::scheduler {
namespace {

/// Orders victims: the least important job first, within a job the newest task.
bool less_important(const RunningState* a, const RunningState* b) {
  const JobOrder &left = a->job->rank.key, &right = b->job->rank.key;
  return std::tie(right, b->running->task) < std::tie(left, a->running->task);
}

/// Drops victims without which the others still free `need` slots, the most important ones first.
template <typename Gain>
void spare(std::vector<RunningState*>& victims, int need, const Gain& gain) {
  int sum = 0;
  for (const RunningState* victim : victims) sum += gain(*victim);
  // `victims` is in the order of choice, so its end has the most important ones.
  for (std::size_t i = victims.size(); i-- > 0;) {
    if (sum - gain(*victims[i]) < need) continue;
    sum -= gain(*victims[i]);
    victims.erase(victims.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

/// Usable slots that an allocation holds on one agent.
int gain_on(const Node& node, const RunningState& state) {
  int slots = 0;
  for (std::size_t i = 0; i < state.nodes.size(); ++i) {
    if (state.nodes[i] == &node) slots += node.gain(state.running->parts[i]);
  }
  return slots;
}

/// True when `theirs` keeps, after losing `slots`, at least as many slots per weight as the preemptor's user
/// has after the start. This condition makes fair-share preemption irreversible, hence free of thrashing.
bool restores_share(const Preemptor& preemptor, const UserState& theirs, int slots) {
  const UserState& mine = *preemptor.job->user;
  return (mine.used + preemptor.shape.slots) / mine.weight <= (theirs.used - slots) / theirs.weight;
}

/// The same condition for a job: compares the users, or the jobs where both belong to one user.
bool restores_share(const Preemptor& preemptor, const JobState& theirs, int slots) {
  const JobState& mine = *preemptor.job;
  if (&mine == &theirs) return false;
  if (mine.user != theirs.user) return restores_share(preemptor, *theirs.user, slots);
  return (mine.used + mine.promised + preemptor.shape.slots) / mine.job.weight <=
         (theirs.used + theirs.promised - slots) / theirs.job.weight;
}

}  // namespace

int Pass::gain(const RunningState& state) const {
  int slots = 0;
  for (std::size_t i = 0; i < state.nodes.size(); ++i) {
    // Slots on a closed agent, or on the one kept for the reservation, do not help the preemptor.
    if (state.nodes[i]->filed) slots += state.nodes[i]->gain(state.running->parts[i]);
  }
  return slots;
}

int Pass::gain(const std::vector<RunningState*>& victims) const {
  int slots = 0;
  for (const RunningState* victim : victims) slots += gain(*victim);
  return slots;
}

std::vector<RunningState*> Pass::victims_on(const Preemptor& preemptor, Node*& best) {
  const int above = victims_above(preemptor), slots = preemptor.shape.slots;
  std::vector<RunningState*> victims;
  if (slots > pool_.fleet.largest()) return victims;
  // Two cheap exits that need no search. The first one counts over the pool: promises without an agent may
  // claim the free slots of any candidate.
  if (slack() + pool_.fleet.gains_above(above) < slots || !share_is_owed(preemptor)) return victims;
  pool_.queue.rank_holders();
  auto cost = [](const std::vector<RunningState*>& set) {
    int vacated = 0;
    for (const RunningState* victim : set) vacated += victim->slots;
    return std::pair(vacated, set.size());
  };
  // Levels from the least important down. The first level with a solution ends the search: a further one
  // would preempt a more important allocation.
  const auto& levels = pool_.fleet.levels();
  for (auto level = levels.rbegin(); level != levels.rend() && level->first > above; ++level) {
    if (level->first == Fleet::kNobody || level->second.empty()) continue;
    if (level->second.rbegin()->first.total < slots) continue;
    for (Node* node : pool_.fleet.candidates(level->first, slots)) {
      const int need = slots - node->base();
      // Candidates come in descending order of free and coming slots, so the need only grows from here.
      if (best && cost(victims).first < need) break;
      auto set = pool_.rules.policy == Policy::kPriority ? by_priority_on(*node, level->first, need)
                                                         : by_share_on(preemptor, *node, need);
      if (set.empty() || (best && cost(set) >= cost(victims))) continue;
      best = node;
      victims = std::move(set);
    }
    if (best) break;
  }
  // Starting here must not break promises that are not bound to an agent.
  if (best && slack() + gain(victims) < slots) {
    best = nullptr;
    victims.clear();
  }
  return victims;
}

/// False when no user or job has a share so large that losing a victim could satisfy restores_share. Two
/// comparisons with the largest shares spare the search in a pool that is already fair.
bool Pass::share_is_owed(const Preemptor& preemptor) const {
  if (pool_.rules.policy != Policy::kFairShare) return true;
  const JobState& mine = *preemptor.job;
  const auto& users = pool_.queue.victims();
  if (!users.empty() && (mine.user->used + preemptor.shape.slots) / mine.user->weight < users.rbegin()->share)
    return true;
  const auto& jobs = mine.user->victims;
  return !jobs.empty() &&
         (mine.used + mine.promised + preemptor.shape.slots) / mine.job.weight < jobs.rbegin()->share;
}

std::vector<RunningState*> Pass::by_priority_on(const Node& node, int level, int need) const {
  std::vector<RunningState*> there, chosen;
  for (const Node::Holding& holding : node.here) {
    if (holding.gain > 0 && holding.job->job.priority >= level) there.push_back(holding.running);
  }
  std::sort(there.begin(), there.end(), less_important);
  int gained = 0;
  for (RunningState* state : there) {
    if (gained >= need) break;
    chosen.push_back(state);
    gained += gain_on(node, *state);
  }
  if (gained < need) return {};
  spare(chosen, need, [&](const RunningState& state) { return gain_on(node, state); });
  return chosen;
}

std::vector<RunningState*> Pass::victims_anywhere(const Preemptor& preemptor) {
  const int above = victims_above(preemptor);
  const int need = preemptor.shape.slots - slack();
  if (need <= 0 || pool_.fleet.gains_above(above) < need || !share_is_owed(preemptor)) return {};
  pool_.queue.rank_holders();
  std::vector<RunningState*> chosen;
  int gained = 0;
  if (pool_.rules.policy == Policy::kFairShare) {
    chosen = by_share_anywhere(preemptor, need);
    gained = gain(chosen);
  } else {
    // Under the priority policy one user owns all jobs. Jobs in reverse order, tasks from the newest.
    for (auto job = pool_.queue.victims().begin()->user->victims.rbegin();
         gained < need && job != pool_.queue.victims().begin()->user->victims.rend(); ++job) {
      if (job->key.priority <= above) break;
      const auto& tasks = job->job->victims;
      for (auto task = tasks.rbegin(); gained < need && task != tasks.rend(); ++task) {
        RunningState& state = pool_.running.at(*task);
        const int slots = gain(state);
        if (slots == 0) continue;
        chosen.push_back(&state);
        gained += slots;
      }
    }
  }
  if (gained < need) return {};
  spare(chosen, need, [this](const RunningState& state) { return gain(state); });
  return chosen;
}

/// The bound assumes that the preemptor's user first loses everything it has on the agent, and tests each
/// other victim alone. Spares the search below, which changes the index of shares.
int Pass::most_by_share(const Preemptor& preemptor, const Node& node) const {
  const JobState& mine = *preemptor.job;
  int own = 0, slots = 0;
  for (const Node::Holding& holding : node.here) {
    if (holding.gain > 0 && holding.job->user == mine.user) own += holding.slots;
  }
  const double after = (mine.user->used - own + preemptor.shape.slots) / mine.user->weight;
  for (const Node::Holding& holding : node.here) {
    if (holding.gain == 0) continue;
    const UserState& theirs = *holding.job->user;
    const bool may = &theirs == mine.user ? restores_share(preemptor, *holding.job, holding.slots)
                                          : after <= (theirs.used - holding.slots) / theirs.weight;
    if (may) slots += holding.gain;
  }
  return slots;
}

/// Each chosen victim is lent while more are needed, so that the next one is taken from the user or job with
/// the largest share that remains.
std::vector<RunningState*> Pass::by_share_on(const Preemptor& preemptor, const Node& node, int need) {
  std::vector<RunningState*> chosen;
  if (most_by_share(preemptor, node) < need) return chosen;
  int gained = 0;
  while (gained < need) {
    RunningState* state = most_served_on(preemptor, node, chosen);
    if (!state) break;
    gained += gain_on(node, *state);
    chosen.push_back(state);
    if (gained < need) pool_.queue.lend(*state->job, state->running->task, state->slots);
  }
  // The victim that completed the set was not lent.
  restore_shares(chosen, gained < need || chosen.empty() ? chosen.size() : chosen.size() - 1);
  if (gained < need) return {};
  spare(chosen, need, [&](const RunningState& one) { return gain_on(node, one); });
  return chosen;
}

std::vector<RunningState*> Pass::by_share_anywhere(const Preemptor& preemptor, int need) {
  std::vector<RunningState*> chosen;
  int gained = 0;
  while (gained < need) {
    RunningState* state = most_served(preemptor);
    if (!state) break;
    gained += gain(*state);
    chosen.push_back(state);
    if (gained < need) pool_.queue.lend(*state->job, state->running->task, state->slots);
  }
  restore_shares(chosen, gained < need || chosen.empty() ? chosen.size() : chosen.size() - 1);
  return chosen;
}

void Pass::restore_shares(const std::vector<RunningState*>& victims, std::size_t lent) {
  for (std::size_t i = 0; i < lent; ++i) {
    pool_.queue.give_back(*victims[i]->job, victims[i]->running->task, victims[i]->slots);
  }
}

RunningState* Pass::most_served_on(const Preemptor& preemptor, const Node& node,
                                   const std::vector<RunningState*>& chosen) const {
  RunningState* best = nullptr;
  auto key = [](const RunningState& state) {
    return std::tuple(state.job->user->rank, state.job->rank, state.running->task);
  };
  for (const Node::Holding& holding : node.here) {
    if (holding.gain == 0) continue;
    RunningState& state = *holding.running;
    if (std::find(chosen.begin(), chosen.end(), &state) != chosen.end() ||
        !restores_share(preemptor, *state.job, state.slots))
      continue;
    if (!best || key(*best) < key(state)) best = &state;
  }
  return best;
}

RunningState* Pass::most_served(const Preemptor& preemptor) const {
  // The index of victims is in ascending order of shares: the reverse walk starts with the largest one.
  int examined = 0;
  const auto& users = pool_.queue.victims();
  for (auto user = users.rbegin(); user != users.rend(); ++user) {
    // Skips users, and below jobs, that cannot lose even one slot.
    if (user->user != preemptor.job->user && !restores_share(preemptor, *user->user, 1)) continue;
    const auto& jobs = user->user->victims;
    for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) {
      if (!restores_share(preemptor, *job->job, 1)) continue;
      const auto& tasks = job->job->victims;
      for (auto task = tasks.rbegin(); task != tasks.rend(); ++task) {
        // Bounds the cost of one victim. An allocation is rejected below when it is too large for the
        // difference of the shares, or holds no usable slot on an open agent.
        if (++examined > kMaxExamined) return nullptr;
        RunningState& state = pool_.running.at(*task);
        if (restores_share(preemptor, *state.job, state.slots) && gain(state) > 0) return &state;
      }
    }
  }
  return nullptr;
}

}  // namespace det::scheduler
