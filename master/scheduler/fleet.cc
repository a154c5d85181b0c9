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
  return by_priority_ ? level_of(running.job->job.priority) : 0;
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

/// By free slots; `was` says whether it is there.
void Fleet::file_free(Node& node, bool was) {
  const int before = node.entry.free;
  if (was && node.filed && before == node.free) return;
  std::set<std::pair<int, Node*>, ByFree>::node_type entry;
  if (was) {
    entry = by_free_.extract({before, &node});
    if (auto it = agents_with_free_.find(before); --it->second == 0) agents_with_free_.erase(it);
    free_ -= before;
  }
  if (!node.filed) return;
  node.entry.free = node.free;
  free_ += node.free;
  ++agents_with_free_[node.free];
  if (!entry) {
    by_free_.emplace(node.free, &node);
  } else {
    entry.value().first = node.free;
    by_free_.insert(std::move(entry));
  }
}

/// By its room at the levels where it has something to give: what it could give at others it gives at a larger one
/// already. Both lists are by level, the largest first; what stands in both stays where it is.
void Fleet::file_rooms(Node& node) {
  rooms_.clear();
  if (node.filed) {
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
    spare_.push_back(levels_[room.level].extract(Room{room.total, room.base, &node}));
  }
  next = 0;
  for (const Node::Room& room : rooms_) {
    while (next < filed.size() && filed[next].level > room.level) ++next;
    if (next < filed.size() && filed[next] == room) continue;
    Rooms& rooms = levels_[room.level];
    if (spare_.empty()) {
      rooms.insert(Room{room.total, room.base, &node});
      continue;
    }
    spare_.back().value() = Room{room.total, room.base, &node};
    rooms.insert(std::move(spare_.back()));
    spare_.pop_back();
  }
  spare_.clear();
  std::swap(filed, rooms_);
}

void Fleet::relevel(const std::vector<std::pair<Node*, const Part*>>& parts, int from, int to) {
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

void Fleet::promise(Node& node, int free, int leaving) {
  node.promised_free += free;
  node.promised_leaving += leaving;
  node.free -= free;
  node.leaving -= leaving;
  if (!node.filed) return;
  leaving_ += node.leaving - std::exchange(node.entry.leaving, node.leaving);
  file_free(node, true);
  file_rooms(node);
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
  const bool was = std::exchange(node.filed, node.known && node.agent.open && !node.hidden);
  auto& entry = node.entry;
  if (was) {
    leaving_ -= entry.leaving;
    capacity_ -= entry.capacity;
    for (const auto& [level, slots] : entry.gains) gains_[level] -= slots;
  }
  if (node.filed) {
    leaving_ += entry.leaving = node.leaving;
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
