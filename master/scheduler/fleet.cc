// Index of the agents: by free slots, by room at each level of victims, by zero-slot allocations. Every index
// is updated by the difference between Node::entry (filed values) and the fresh counts of `tally`.
#include "master/scheduler/fleet.h"

#include <algorithm>

#include "master/scheduler/fitting.h"
#include "master/scheduler/queue.h"

namespace det::scheduler {

bool Node::usable(int slot) const {
  const auto index = static_cast<std::size_t>(slot);
  return known && agent.open && index < agent.slots.size() && agent.slots[index].enabled;
}

int Node::gain(const Part& part) const {
  return static_cast<int>(
      std::count_if(part.slots.begin(), part.slots.end(), [this](int slot) { return usable(slot); }));
}

std::vector<bool> Node::free_slots() const {
  std::vector<bool> flags(agent.slots.size());
  for (std::size_t slot = 0; slot < flags.size(); ++slot) flags[slot] = usable(static_cast<int>(slot));
  for (const Holding& holding : here) {
    for (int slot : holding.part->slots) {
      if (static_cast<std::size_t>(slot) < flags.size()) flags[static_cast<std::size_t>(slot)] = false;
    }
  }
  return flags;
}

int Fleet::level_of(const RunningState& running) const {
  return by_priority_ ? level_of(running.job->job.priority) : 0;
}

Node& Fleet::node(const AgentId& id) {
  auto [it, fresh] = nodes_.try_emplace(id);
  if (fresh) {
    it->second.agent.id = id;
    // `order` must follow the ids, so that ties fall to the smallest id. Appending is the common case.
    if (std::next(it) != nodes_.end()) {
      renumber();
    } else {
      it->second.order = static_cast<int>(ordered_.size());
      ordered_.push_back(&it->second);
    }
  }
  return it->second;
}

/// Assigns new orders to all agents and rebuilds the bit sets. Runs after an insertion between existing
/// agents, or when more than half of the orders are unused. O(agents).
void Fleet::renumber() {
  ordered_.clear();
  by_free_.clear();
  by_zero_slot_.clear();
  for (auto& [level, rooms] : levels_) rooms.clear();
  for (auto& [name, node] : nodes_) {
    node.order = static_cast<int>(ordered_.size());
    ordered_.push_back(&node);
    if (node.zero_slot_filed >= 0) by_zero_slot_.insert(node.zero_slot_filed, node.order);
    if (!node.filed) continue;
    by_free_.insert(node.entry.free, node.order);
    for (const Node::Room& room : node.entry.rooms)
      levels_[room.level].insert({room.total, room.base}, node.order);
  }
}

Node* Fleet::find(const AgentId& id) {
  auto it = nodes_.find(id);
  return it == nodes_.end() ? nullptr : &it->second;
}

void Fleet::forget_if_empty(const AgentId& id) {
  auto it = nodes_.find(id);
  if (it == nodes_.end() || it->second.known || !it->second.here.empty()) return;
  // The orders of the others stay; holes are tolerated up to half of the table.
  ordered_[static_cast<std::size_t>(it->second.order)] = nullptr;
  nodes_.erase(it);
  while (!ordered_.empty() && !ordered_.back()) ordered_.pop_back();
  if (ordered_.size() > 2 * nodes_.size()) renumber();
}

/// Computes the counts of an agent from its slots, allocations and promises.
void Fleet::tally(Node& node) const {
  node.capacity = node.free = node.coming = node.zero_slot = 0;
  node.gains.clear();
  for (std::size_t slot = 0; slot < node.agent.slots.size(); ++slot) {
    if (node.usable(static_cast<int>(slot))) ++node.capacity;
  }
  node.free = node.capacity - node.promised_free;
  for (Node::Holding& holding : node.here) {
    holding.gain = 0;
    if (holding.part->slots.empty()) {
      ++node.zero_slot;
      continue;
    }
    // A slot that was disabled under an allocation is neither capacity nor free, so only usable slots count.
    const int gain = node.gain(*holding.part);
    node.free -= gain;
    if (gain == 0) continue;
    if (holding.running->terminating) node.coming += gain;
    if (!holding.running->is_victim()) continue;
    holding.gain = gain;
    node.gains.emplace_back(level_of(*holding.running), gain);
  }
  node.coming -= node.promised_coming;
  if (node.gains.size() > 1) std::sort(node.gains.rbegin(), node.gains.rend());
}

/// Updates the index by free slots. `was`: the agent is in it.
void Fleet::file_free(Node& node, bool was) {
  const int before = node.entry.free;
  if (was && node.filed && before == node.free) return;
  if (was) {
    by_free_.erase(before, node.order);
    free_ -= before;
  }
  if (!node.filed) return;
  node.entry.free = node.free;
  free_ += node.free;
  by_free_.insert(node.free, node.order);
}

/// Updates the index by room. An agent is filed only at levels where it has victims: at any other level its
/// room equals that of the next larger one where it is filed. The old and the new list are both in descending
/// order of the level; entries in both are left alone.
void Fleet::file_rooms(Node& node) {
  rooms_.clear();
  if (node.filed) {
    // Every agent is filed at kNobody with its free and coming slots alone; lower levels add their victims.
    int total = node.base();
    rooms_.push_back({kNobody, total, node.base()});
    for (const auto& [level, slots] : node.gains) {
      total += slots;
      if (rooms_.back().level != level) rooms_.push_back({level, 0, node.base()});
      rooms_.back().total = total;
    }
  }
  auto& filed = node.entry.rooms;
  if (rooms_ == filed) return;
  std::size_t next = 0;
  for (const Node::Room& room : filed) {
    while (next < rooms_.size() && rooms_[next].level > room.level) ++next;
    if (next < rooms_.size() && rooms_[next] == room) continue;
    levels_[room.level].erase({room.total, room.base}, node.order);
  }
  next = 0;
  for (const Node::Room& room : rooms_) {
    while (next < filed.size() && filed[next].level > room.level) ++next;
    if (next < filed.size() && filed[next] == room) continue;
    levels_[room.level].insert({room.total, room.base}, node.order);
  }
  std::swap(filed, rooms_);
}

void Fleet::relevel(const std::vector<std::pair<Node*, const Part*>>& parts, int from, int to) {
  // Two loops: an agent with several allocations of the job is filed only after all of its gains have
  // changed.
  for (const auto& [node, part] : parts) {
    const auto gain = std::find(node->gains.begin(), node->gains.end(), std::pair(from, node->gain(*part)));
    if (gain == node->gains.end()) continue;
    gain->first = to;
    std::sort(node->gains.rbegin(), node->gains.rend());
    if (!node->filed) continue;
    gains_[from] -= node->gain(*part);
    gains_[to] += node->gain(*part);
  }
  for (const auto& [node, part] : parts) {
    if (!node->filed) continue;
    node->entry.gains = node->gains;
    file_rooms(*node);
  }
}

void Fleet::promise(Node& node, int free, int coming) {
  node.promised_free += free;
  node.promised_coming += coming;
  node.free -= free;
  node.coming -= coming;
  if (!node.filed) return;
  coming_ += node.coming - std::exchange(node.entry.coming, node.coming);
  file_free(node, true);
  file_rooms(node);
}

/// Updates the index by zero-slot allocations. Ignores `hidden`: a reservation keeps slots, and zero-slot
/// requests take none.
void Fleet::file_zero_slot(Node& node) {
  const bool takes = node.takes_work() && !node.agent.exclusive && node.zero_slot < node.agent.max_zero_slot;
  const int wanted = takes ? node.zero_slot : -1;
  if (wanted == node.zero_slot_filed) return;
  if (node.zero_slot_filed >= 0) by_zero_slot_.erase(node.zero_slot_filed, node.order);
  if (wanted >= 0) by_zero_slot_.insert(wanted, node.order);
  node.zero_slot_filed = wanted;
}

/// Updates the index of exclusive sets.
void Fleet::file_set(Node& node) {
  const bool takes = node.takes_work() && node.agent.exclusive && node.here.empty();
  const std::string& wanted = takes ? node.agent.exclusive->set : std::string();
  if (wanted == node.set_filed) return;
  if (const auto set = sets_.find(node.set_filed); set != sets_.end()) {
    std::erase(set->second, &node);
    if (set->second.empty()) sets_.erase(set);
  }
  if (takes) {
    std::vector<Node*>& set = sets_[wanted];
    set.insert(std::lower_bound(set.begin(), set.end(), &node,
                                [](const Node* a, const Node* b) { return a->agent.id < b->agent.id; }),
               &node);
  }
  node.set_filed = wanted;
}

void Fleet::file(Node& node) {
  tally(node);
  file_zero_slot(node);
  file_set(node);
  // The sums are corrected by subtracting the filed values and adding the new ones.
  const bool open = node.takes_work() && !node.agent.exclusive;
  const bool was = std::exchange(node.filed, open && !node.hidden);
  auto& entry = node.entry;
  if (was) {
    coming_ -= entry.coming;
    capacity_ -= entry.capacity;
    for (const auto& [level, slots] : entry.gains) gains_[level] -= slots;
  }
  if (node.filed) {
    coming_ += entry.coming = node.coming;
    capacity_ += node.capacity;
    entry.gains = node.gains;
    for (const auto& [level, slots] : entry.gains) gains_[level] += slots;
  }
  if (was != node.filed || entry.capacity != node.capacity) {
    if (was && --capacities_[entry.capacity] == 0) capacities_.erase(entry.capacity);
    if (node.filed) ++capacities_[node.capacity];
    entry.capacity = node.capacity;
  }
  file_free(node, was);
  file_rooms(node);
}

int Fleet::gains_above(int level) const {
  int slots = 0;
  for (auto it = gains_.upper_bound(level); it != gains_.end(); ++it) slots += it->second;
  return slots;
}

Node* Fleet::tightest(int slots) const {
  auto it = by_free_.lower_bound(slots);
  return it == by_free_.end() ? nullptr : node_at(it->second.first());
}

Node* Fleet::tightest_coming(int slots) const {
  const Rooms& rooms = levels_.at(kNobody);
  auto it = at_least(rooms, slots);
  return it == rooms.end() ? nullptr : node_at(it->second.first());
}

Node* Fleet::fullest(int level, int capacity) const {
  // An agent is filed only at levels where it has victims, so all levels from `level` up are searched. Its
  // total is largest at the smallest of them.
  std::pair<Room, int> best{{}, -1};
  for (auto rooms = levels_.lower_bound(level); rooms != levels_.end(); ++rooms) {
    const auto found = fullest_of(rooms->second, capacity);
    if (found.second < 0) continue;
    const auto rank = [](const auto& one) {
      return std::tuple(-one.first.total, -one.first.base, one.second);
    };
    if (best.second < 0 || rank(found) < rank(best)) best = found;
  }
  return best.second < 0 ? nullptr : node_at(best.second);
}

/// Returns the largest room of an agent with enough capacity, and the order of that agent; -1 when there is
/// none. Searches in descending order of the total; within one total the largest base comes first, then the
/// smallest id. Callers check `largest` first, so some agent is large enough.
std::pair<Fleet::Room, int> Fleet::fullest_of(const Rooms& rooms, int capacity) const {
  for (auto end = rooms.end(); end != rooms.begin();) {
    auto first = at_least(rooms, std::prev(end)->first.total);
    for (auto it = first; it != end; ++it) {
      for (int order = it->second.first(); order >= 0; order = it->second.next(order + 1)) {
        if (node_at(order)->capacity >= capacity) return {it->first, order};
      }
    }
    end = first;
  }
  return {{}, -1};
}

std::vector<Node*> Fleet::candidates(int level, int slots) const {
  const Rooms& rooms = levels_.at(level);
  std::vector<std::pair<int, int>> found;  // (-base, order)
  // Within one total the best agents come first, so kMaxCandidates of each suffice for the best
  // kMaxCandidates of all.
  for (auto it = at_least(rooms, slots); it != rooms.end();) {
    const int total = it->first.total;
    for (int taken = 0; it != rooms.end() && it->first.total == total; ++it) {
      for (int order = it->second.first(); order >= 0 && taken < kMaxCandidates;
           order = it->second.next(order + 1), ++taken) {
        found.emplace_back(-it->first.base, order);
      }
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<Node*> nodes;
  for (const auto& [base, order] : found) {
    if (nodes.size() < kMaxCandidates) nodes.push_back(node_at(order));
  }
  return nodes;
}

std::vector<std::pair<Node*, int>> Fleet::whole_set(int slots, bool single_node) const {
  for (const auto& [name, nodes] : sets_) {
    const Exclusive& wanted = *nodes.front()->agent.exclusive;
    const auto count = static_cast<int>(nodes.size());
    if (wanted.slots != slots || wanted.agents != count || (single_node && count > 1)) continue;
    // Even shares; the first agents have the remainder.
    std::vector<std::pair<Node*, int>> parts;
    for (Node* node : nodes)
      parts.emplace_back(node, slots / count + (static_cast<int>(parts.size()) < slots % count ? 1 : 0));
    if (std::all_of(parts.begin(), parts.end(), [](auto& one) { return one.first->free >= one.second; }))
      return parts;
  }
  return {};
}

Node* Fleet::least_zero_slot() const {
  return by_zero_slot_.empty() ? nullptr : node_at(by_zero_slot_.begin()->second.first());
}

std::vector<std::pair<Node*, int>> Fleet::spread(int slots) const {
  // The search works on kinds of agents (equal numbers of free slots), which are few.
  std::vector<std::pair<int, int>> kinds;
  for (auto it = by_free_.rbegin(); it != by_free_.rend() && it->first > 0; ++it) {
    kinds.emplace_back(it->first, it->second.count());
  }
  std::vector<std::pair<Node*, int>> parts;
  // Agents of one kind are taken in the order of their ids; the last one may be used in part.
  int before = 0, order = -1;
  for (int free : choose_agents(kinds, slots)) {
    order = by_free_.at(free).next(free == before ? order + 1 : 0);
    before = free;
    parts.emplace_back(node_at(order), std::min(free, slots));
    slots -= free;
  }
  return parts;
}

}  // namespace det::scheduler
