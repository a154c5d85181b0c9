// Agents of a pool, indexed by free slots, by room at each level and by zero-slot allocations. Internal to
// master/scheduler; same single thread as the Scheduler.
//
// Agents of exclusive sets are in an index of their own and in no other one.
//
// An agent is changed first and filed afterwards (Fleet::file). Its index keys are stored beside it, so only
// the index entries that differ move.
#pragma once

#include <algorithm>
#include <climits>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "master/scheduler/bit_set.h"
#include "master/scheduler/scheduler.h"

namespace det::scheduler {

struct JobState;

/// An allocation.
struct RunningState {
  std::shared_ptr<const Running> running;  ///< as it started; shared with images
  JobState* job = nullptr;
  bool preemptible = true, terminating = false;  ///< current values
  int slots = 0;                                 ///< over all parts
  std::vector<struct Node*> nodes;               ///< the agent of each part
  /// The allocation may be chosen as a victim.
  bool is_victim() const { return preemptible && !terminating && slots > 0; }
};

/// An agent: one that was put (`known`), or one that only an allocation names.
struct Node {
  /// A part of an allocation on this agent.
  struct Holding {
    RunningState* running = nullptr;
    const Part* part = nullptr;
    // Copies of fields of `running`: the search for victims skips most holdings and should not dereference
    // them.
    JobState* job = nullptr;  ///< job of `running`
    int slots = 0;            ///< slots of `running` over all of its parts
    /// Slots that become usable on this agent when `running` is preempted; 0 when it is no potential victim.
    /// Computed by Fleet::file.
    int gain = 0;
  };
  Agent agent;
  bool known = false;
  int order = 0;  ///< position among the agents sorted by id; identifies the agent in the indexes
  std::vector<Holding> here;
  // State of the current pass.
  int promised_free = 0;    ///< free slots promised to holders
  int promised_coming = 0;  ///< coming slots promised to holders
  bool hidden = false;      ///< kept for the holder of the reservation: in no slot index
  bool excluded = false;    ///< excluded by the request that is being served: in no index
  // Counts of enabled slots, computed by Fleet::file.
  int capacity = 0;   ///< all
  int free = 0;       ///< free and not promised
  int coming = 0;     ///< held by terminating allocations and not promised
  int zero_slot = 0;  ///< number of zero-slot allocations
  /// (level, gain) of each potential victim, in descending order of the level.
  std::vector<std::pair<int, int>> gains;

  /// Slots that a preemptor could get on this agent by preempting victims of `level` and above.
  struct Room {
    int level = 0;
    int total = 0;  ///< base plus the gains of those victims
    int base = 0;   ///< free and coming slots
    bool operator==(const Room&) const = default;
  };
  bool filed = false;  ///< the slot indexes contain this agent
  /// The values under which the slot indexes contain this agent.
  struct {
    int capacity = 0, free = 0, coming = 0;
    std::vector<std::pair<int, int>> gains;
    std::vector<Room> rooms;  ///< in descending order of the level
  } entry;
  int zero_slot_filed = -1;    ///< key in the zero-slot index; -1 when not in it
  std::string set_filed = {};  ///< key in the index of exclusive sets; "" when not in it

  /// The request that is being served, or any request between two, may start here.
  bool takes_work() const { return known && agent.open && !excluded; }
  /// Free and coming slots.
  int base() const { return free + coming; }
  /// The slot exists, is enabled, and its agent takes new work.
  bool usable(int slot) const;
  /// Usable slots of `part`: those that return to the pool when its allocation ends.
  int gain(const Part& part) const;
  /// Returns a flag for each slot id: usable and held by no allocation.
  std::vector<bool> free_slots() const;
};

/// The agents of a pool, indexed by free slots, by room at each level and by zero-slot allocations.
///
/// A level is a class of victims: the priority number, or 0 for all victims where shares decide. Preempting
/// at a level may take victims of that level and all larger ones. Level kNobody stands for no preemption at
/// all.
class Fleet {
 public:
  static constexpr int kNobody = 100;
  /// Index key at one level, in ascending order of the total; among equal totals the largest base first.
  struct Room {
    int total = 0;  ///< free slots, coming slots, and slots of victims of this level or a larger one
    int base = 0;   ///< free and coming slots
    bool operator<(const Room& b) const { return total != b.total ? total < b.total : base > b.base; }
  };
  /// Agents by room, each a bit at its `order`: thousands of agents have only a few distinct rooms, so a
  /// change moves bits instead of tree nodes.
  using Rooms = BitSetMap<Room>;

  /// `by_priority`: levels are priority numbers. Otherwise all victims are of level 0.
  explicit Fleet(bool by_priority) : by_priority_(by_priority) {}
  static int level_of(int priority) { return std::clamp(priority, 0, kNobody - 1); }
  int level_of(const RunningState& running) const;

  /// Returns the agent, and creates an unknown one when it does not exist.
  Node& node(const AgentId& id);
  /// Returns the agent, or null.
  Node* find(const AgentId& id);
  const std::map<AgentId, Node>& nodes() const { return nodes_; }
  /// Removes an agent that is not `known` and has no allocations.
  void forget_if_empty(const AgentId& id);

  /// Recomputes the counts of an agent and updates every index. Must follow any change of the agent.
  void file(Node& node);
  /// Moves the gains of these parts to another level: the priority of their job has changed.
  void relevel(const std::vector<std::pair<Node*, const Part*>>& parts, int from, int to);
  /// Promises free and coming slots of an agent to a holder. Negative numbers take a promise back.
  void promise(Node& node, int free, int coming);

  // Sums over the filed agents (open and not hidden), in slots.
  int free() const { return free_; }
  int base() const { return free_ + coming_; }
  int capacity() const { return capacity_; }
  /// Capacity of the largest agent.
  int largest() const { return capacities_.empty() ? 0 : capacities_.rbegin()->first; }
  /// Slots of victims of all levels above `level`.
  int gains_above(int level) const;

  // Queries. Each returns null or an empty vector when no agent qualifies; ties fall to the smallest id.

  /// Returns the agent with the fewest free slots that are at least `slots` (best fit).
  Node* tightest(int slots) const;
  /// Returns the agent with the fewest free and coming slots that are at least `slots`.
  Node* tightest_coming(int slots) const;
  /// Returns the agent with most room at `level` or above, among those with at least `capacity` slots.
  Node* fullest(int level, int capacity) const;
  /// Returns at most kMaxCandidates agents where preemption at `level` makes room for `slots`, in descending
  /// order of their free and coming slots.
  std::vector<Node*> candidates(int level, int slots) const;
  /// Returns the agent with the fewest zero-slot allocations that takes another one.
  Node* least_zero_slot() const;
  /// Returns a placement of a gang on free slots: agents and the number of slots on each.
  std::vector<std::pair<Node*, int>> spread(int slots) const;
  /// Returns a placement on a whole exclusive set for `slots` slots.
  std::vector<std::pair<Node*, int>> whole_set(int slots, bool single_node) const;
  const std::map<int, Rooms>& levels() const { return levels_; }

 private:
  void renumber();
  Node* node_at(int order) const { return ordered_[static_cast<std::size_t>(order)]; }
  static Rooms::const_iterator at_least(const Rooms& rooms, int total) {
    return rooms.lower_bound({total, INT_MAX});
  }
  std::pair<Room, int> fullest_of(const Rooms& rooms, int capacity) const;
  void tally(Node& node) const;
  void file_zero_slot(Node& node);
  void file_set(Node& node);
  void file_free(Node& node, bool was);
  void file_rooms(Node& node);

  bool by_priority_;  ///< a level is a priority number; otherwise level 0 has all victims
  std::map<AgentId, Node> nodes_;
  std::vector<Node*> ordered_;   ///< by Node::order; null for a removed agent
  BitSetMap<int> by_free_;       ///< filed agents by free slots
  BitSetMap<int> by_zero_slot_;  ///< agents that take zero-slot allocations, by their number
  std::map<int, Rooms> levels_{{kNobody, {}}};
  std::vector<Node::Room> rooms_;  ///< scratch space of file_rooms
  std::map<int, int> gains_;       ///< slots of potential victims by level
  std::map<int, int> capacities_;  ///< number of filed agents by capacity
  int free_ = 0, coming_ = 0, capacity_ = 0;
  std::map<std::string, std::vector<Node*>> sets_;  ///< open and empty agents of exclusive sets, by id
};

}  // namespace det::scheduler
