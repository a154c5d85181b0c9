// Owns the index of agents: by free slots, by room at each level of victims, by zero-slot places.
#include <algorithm>

#include "master/scheduler/fitting.h"
#include "master/scheduler/pool.h"

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
  std::vector<bool> free(agent.slots.size());
  for (std::size_t slot = 0; slot < free.size(); ++slot) free[slot] = usable(static_cast<int>(slot));
  for (const Holding& holding : here) {
    for (int slot : holding.part->slots) {
      if (static_cast<std::size_t>(slot) < free.size()) free[static_cast<std::size_t>(slot)] = false;
    }
  }
  return free;
}

int Fleet::level_of(const RunningState& running) const {
  return by_priority_ ? std::clamp(running.job->job.priority, 0, kNobody - 1) : 0;
}

Node& Fleet::node(const AgentId& id) {
  auto [it, fresh] = nodes_.try_emplace(id);
  if (fresh) {
    it->second.agent.id = id;
    // No index minds: the order of those that it holds stays.
    int order = 0;
    for (auto& [name, node] : nodes_) node.order = order++;
  }
  return it->second;
}

Node* Fleet::find(const AgentId& id) {
  auto it = nodes_.find(id);
  return it == nodes_.end() ? nullptr : &it->second;
}

void Fleet::forget_if_empty(const AgentId& id) {
  auto it = nodes_.find(id);
  if (it != nodes_.end() && !it->second.known && it->second.here.empty()) nodes_.erase(it);
}

void Fleet::tally(Node& node) const {
  node.capacity = node.free = node.leaving = node.zero_slot = 0;
  node.gains.clear();
  for (std::size_t slot = 0; slot < node.agent.slots.size(); ++slot) {
    if (node.usable(static_cast<int>(slot))) ++node.capacity;
  }
  node.free = node.capacity - node.promised_free;
  for (const Node::Holding& holding : node.here) {
    if (holding.part->slots.empty()) {
      ++node.zero_slot;
      continue;
    }
    const int gain = node.gain(*holding.part);
    node.free -= gain;
    if (gain == 0) continue;
    if (holding.running->running.leaving) node.leaving += gain;
    if (holding.running->may_leave()) node.gains.emplace_back(level_of(*holding.running), gain);
  }
  node.leaving -= node.promised_leaving;
  if (node.gains.size() > 1) std::sort(node.gains.rbegin(), node.gains.rend());
}

/// Calls visit(rooms of a level, the node's entry there) for the levels where it has something to give. What
/// it could give at others it gives at a larger one already.
template <typename Visit>
void Fleet::each_room(Node& node, const Visit& visit) {
  int total = node.base();
  visit(levels_[kNobody], Room{total, node.base(), &node});
  for (std::size_t i = 0; i < node.gains.size(); ++i) {
    total += node.gains[i].second;
    const bool last = i + 1 == node.gains.size() || node.gains[i + 1].first != node.gains[i].first;
    if (last) visit(levels_[node.gains[i].first], Room{total, node.base(), &node});
  }
}

void Fleet::take_out(Node& node) {
  by_free_.erase({node.free, &node});
  if (auto it = agents_with_free_.find(node.free); --it->second == 0) agents_with_free_.erase(it);
  each_room(node, [](Rooms& rooms, const Room& room) { rooms.erase(room); });
  free_ -= node.free;
  leaving_ -= node.leaving;
}

void Fleet::put_in(Node& node) {
  by_free_.insert({node.free, &node});
  ++agents_with_free_[node.free];
  each_room(node, [](Rooms& rooms, const Room& room) { rooms.insert(room); });
  free_ += node.free;
  leaving_ += node.leaving;
}

void Fleet::unfile(Node& node) {
  if (!std::exchange(node.filed, false)) return;
  take_out(node);
  if (auto it = capacities_.find(node.capacity); --it->second == 0) capacities_.erase(it);
  for (const auto& [level, slots] : node.gains) gains_[level] -= slots;
  capacity_ -= node.capacity;
}

void Fleet::promise(Node& node, int free, int leaving) {
  if (node.filed) take_out(node);
  node.promised_free += free;
  node.promised_leaving += leaving;
  node.free -= free;
  node.leaving -= leaving;
  if (node.filed) put_in(node);
}

/// Seldom changes, and is not the business of who holds slots: not taken out with the rest.
void Fleet::file_zero_slot(Node& node) {
  const bool takes = node.known && node.agent.open && node.zero_slot < node.agent.max_zero_slot;
  const int wanted = takes ? node.zero_slot : -1;
  if (wanted == node.zero_slot_filed) return;
  if (node.zero_slot_filed >= 0) by_zero_slot_.erase({node.zero_slot_filed, &node});
  if (wanted >= 0) by_zero_slot_.insert({wanted, &node});
  node.zero_slot_filed = wanted;
}

void Fleet::file(Node& node) {
  tally(node);
  file_zero_slot(node);
  if (!node.known || !node.agent.open || node.hidden) return;
  node.filed = true;
  put_in(node);
  ++capacities_[node.capacity];
  for (const auto& [level, slots] : node.gains) gains_[level] += slots;
  capacity_ += node.capacity;
}

int Fleet::gains_above(int level) const {
  int slots = 0;
  for (auto it = gains_.upper_bound(level); it != gains_.end(); ++it) slots += it->second;
  return slots;
}

Node* Fleet::tightest(int slots) const {
  auto it = by_free_.lower_bound(slots);
  return it == by_free_.end() ? nullptr : it->second;
}

Node* Fleet::tightest_coming(int slots) const {
  const Rooms& rooms = levels_.at(kNobody);
  auto it = rooms.lower_bound(slots);
  return it == rooms.end() ? nullptr : it->node;
}

Node* Fleet::fullest(int level, int capacity) const {
  const Room* best = nullptr;
  auto better = [](const Room& a, const Room& b) {
    return a.total != b.total ? a.total > b.total : ByRoom{}(a, b);
  };
  for (auto rooms = levels_.lower_bound(level); rooms != levels_.end(); ++rooms) {
    if (const Room* room = fullest_of(rooms->second, capacity); room && (!best || better(*room, *best)))
      best = room;
  }
  return best ? best->node : nullptr;
}

/// Downwards from the most room; of one total the first has the largest base, then the smallest id. Agents
/// that are too small are passed over: where all are, nobody asks.
const Fleet::Room* Fleet::fullest_of(const Rooms& rooms, int capacity) {
  for (auto end = rooms.end(); end != rooms.begin();) {
    auto first = rooms.lower_bound(std::prev(end)->total);
    for (auto it = first; it != end; ++it) {
      if (it->node->capacity >= capacity) return &*it;
    }
    end = first;
  }
  return nullptr;
}

std::vector<Node*> Fleet::candidates(int level, int slots) const {
  const Rooms& rooms = levels_.at(level);
  std::vector<Room> found;
  for (auto it = rooms.lower_bound(slots); it != rooms.end();) {
    const int total = it->total;
    for (int taken = 0; it != rooms.end() && it->total == total && taken < kCandidates; ++it, ++taken) {
      found.push_back(*it);
    }
    if (it != rooms.end() && it->total == total) it = rooms.lower_bound(total + 1);
  }
  std::sort(found.begin(), found.end(), [](const Room& a, const Room& b) {
    return a.base != b.base ? a.base > b.base : a.node->order < b.node->order;
  });
  std::vector<Node*> nodes;
  for (const Room& room : found) {
    if (nodes.size() < kCandidates) nodes.push_back(room.node);
  }
  return nodes;
}

Node* Fleet::least_zero_slot() const {
  return by_zero_slot_.empty() ? nullptr : by_zero_slot_.begin()->second;
}

std::vector<std::pair<Node*, int>> Fleet::spread(int slots) const {
  const std::vector<std::pair<int, int>> kinds(agents_with_free_.rbegin(), agents_with_free_.rend());
  std::vector<std::pair<int, int>> some;
  for (const auto& kind : kinds) {
    if (kind.first > 0) some.push_back(kind);
  }
  std::vector<std::pair<Node*, int>> parts;
  auto it = by_free_.end();
  for (int free : choose_agents(some, slots)) {
    it = it == by_free_.end() || it->first != free ? by_free_.lower_bound(free) : std::next(it);
    parts.emplace_back(it->second, std::min(free, slots));
    slots -= free;
  }
  return parts;
}

}  // namespace det::scheduler
