// State of a Scheduler: agents (Fleet), waiting requests and potential victims (Queue) and allocations, each
// indexed for the queries of a pass. Internal to master/scheduler; same single thread as the Scheduler.
//
// Invariants
//   An agent is changed first and filed afterwards (Fleet::file). Its index keys are stored beside it, so
//   only the index entries that differ move.
//   The sort key of a job changes only inside of Queue::update, or between Queue::hide and Queue::show.
//   Index entries that move keep their memory: events arrive by the thousand, and calls of the allocator
//   dominate the slowest of them.
#pragma once

#include <algorithm>
#include <boost/container/flat_map.hpp>
#include <climits>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "master/scheduler/marks.h"
#include "master/scheduler/scheduler.h"
#include "master/scheduler/shared_table.h"

namespace det::scheduler {

struct JobState;

/// An allocation.
struct RunningState {
  std::shared_ptr<const Running> running;  ///< as it started; shared with images
  JobState* job = nullptr;
  bool preemptible = true, leaving = false;  ///< current values
  int slots = 0;                             ///< over all parts
  std::vector<struct Node*> nodes;           ///< the agent of each part
  /// The allocation may be chosen as a victim.
  bool may_leave() const { return preemptible && !leaving && slots > 0; }
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
  int promised_free = 0;     ///< free slots promised to holders
  int promised_leaving = 0;  ///< coming slots promised to holders
  bool hidden = false;       ///< kept for the holder of the reservation: in no slot index
  // Counts of enabled slots, computed by Fleet::file.
  int capacity = 0;   ///< all
  int free = 0;       ///< free and not promised
  int leaving = 0;    ///< held by leaving allocations and not promised
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
    int capacity = 0, free = 0, leaving = 0;
    std::vector<std::pair<int, int>> gains;
    std::vector<Room> rooms;  ///< in descending order of the level
  } entry;
  int zero_slot_filed = -1;  ///< key in the zero-slot index; -1 when not in it

  /// Free and coming slots.
  int base() const { return free + leaving; }
  /// The slot exists, is enabled, and its agent takes new work.
  bool usable(int slot) const;
  /// Usable slots of `part`: those that return to the pool when its allocation ends.
  int gain(const Part& part) const;
  /// Returns a mark for each slot id: usable and held by no allocation.
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
  using Rooms = MarksBy<Room>;

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
  void promise(Node& node, int free, int leaving);

  // Sums over the filed agents (open and not hidden), in slots.
  int free() const { return free_; }
  int base() const { return free_ + leaving_; }
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
  /// Returns at most kCandidates agents where preemption at `level` makes room for `slots`, in descending
  /// order of their free and coming slots.
  std::vector<Node*> candidates(int level, int slots) const;
  /// Returns the agent with the fewest zero-slot allocations that takes another one.
  Node* least_zero_slot() const;
  /// Returns a placement of a gang on free slots: agents and the number of slots on each.
  std::vector<std::pair<Node*, int>> spread(int slots) const;
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
  void file_free(Node& node, bool was);
  void file_rooms(Node& node);

  bool by_priority_;  ///< a level is a priority number; otherwise level 0 has all victims
  std::map<AgentId, Node> nodes_;
  std::vector<Node*> ordered_;  ///< by Node::order; null for a removed agent
  MarksBy<int> by_free_;        ///< filed agents by free slots
  MarksBy<int> by_zero_slot_;   ///< agents that take zero-slot allocations, by their number
  std::map<int, Rooms> levels_{{kNobody, {}}};
  std::vector<Node::Room> rooms_;  ///< scratch space of file_rooms
  std::map<int, int> gains_;       ///< slots of potential victims by level
  std::map<int, int> capacities_;  ///< number of filed agents by capacity
  int free_ = 0, leaving_ = 0, capacity_ = 0;
};

/// The properties that decide where a request fits. Requests of one shape form a line: when the first of them
/// cannot start, the others cannot either.
struct Shape {
  int slots = 0;
  bool single_node = false;  ///< always false for slots <= 1, where it makes no difference
  bool preemptible = true;
  auto operator<=>(const Shape&) const = default;
};
Shape shape_of(const Request& request);

/// Order of jobs with equal shares.
struct JobKey {
  int priority = 0;
  std::int64_t position = 0;
  std::int64_t job = 0;
  auto operator<=>(const JobKey&) const = default;
};
/// Sort key of a job within its user: the share of the policy, then the queue order.
struct JobRank {
  double share = 0;  ///< slots per weight (fair_share), running allocations (round_robin), 0 (priority)
  JobKey key;
  JobState* job = nullptr;
  bool operator<(const JobRank& b) const { return std::tie(share, key) < std::tie(b.share, b.key); }
};
/// A sorted vector: a set for few elements that often change their position.
template <typename T>
class Row : public std::vector<T> {
 public:
  void put(const T& value) { this->insert(place(value), value); }
  void drop(const T& value) { this->erase(place(value)); }
  /// Replaces `from`, which must be an element, by `to` at its sorted position.
  void move(const T& from, const T& to) {
    const auto was = place(from), is = place(to);
    if (was < is) {
      std::rotate(was, was + 1, is);
      *(is - 1) = to;
    } else {
      std::rotate(is, was, was + 1);
      *is = to;
    }
  }

 private:
  auto place(const T& value) { return std::lower_bound(this->begin(), this->end(), value); }
};

struct UserState;
/// Sort key of a user.
struct UserRank {
  double share = 0;  ///< slots per weight (fair_share); 0 under the other policies
  std::int64_t id = 0;
  UserState* user = nullptr;
  bool operator<(const UserRank& b) const { return std::tie(share, id) < std::tie(b.share, b.id); }
};
/// A user with at least one job. Under other policies than fair_share one user owns all jobs.
struct UserState {
  UserRank rank;
  double weight = 1;
  int used = 0;  ///< slots of allocations that are not leaving, and of holders
  int jobs = 0;  ///< number of jobs; the user is removed with the last one
  boost::container::flat_map<Shape, std::set<JobRank>> waiting;  ///< jobs with eligible requests, by shape
  std::set<JobRank> victims;                                     ///< jobs with potential victims
};
/// A job, its requests and the sums over its allocations.
struct JobState {
  Job job;
  JobRank rank;
  UserState* user = nullptr;
  /// The requests of one shape, by trial id.
  struct Line {
    std::set<std::int64_t> trials;
    int held = 0;         ///< holders of this pass; these are the first `held` trials
    bool listed = false;  ///< the job is in UserState::waiting for this shape
    /// The first request that is not a holder.
    auto first() const { return std::next(trials.begin(), held); }
  };
  boost::container::flat_map<Shape, Line> waiting;
  std::set<std::int64_t> victims;  ///< trials of allocations that may be preempted
  int held = 0;                    ///< slots of all allocations, leaving ones included
  int used = 0;                    ///< slots of allocations that are not leaving
  int running = 0;                 ///< allocations that are not leaving
  int live = 0;                    ///< allocations
  int promised = 0;                ///< slots of its holders in this pass
  int promised_count = 0;          ///< number of its holders in this pass
  bool gone = false;               ///< removed; kept until its last allocation has ended
  bool shown_victims = false;      ///< the job is in UserState::victims
  /// Another `slots` slots do not exceed max_slots.
  bool within_limit(int slots) const {
    return slots == 0 || !job.max_slots || held + promised + slots <= *job.max_slots;
  }
  /// The line has a request that is not a holder and that max_slots admits.
  bool wants(const Shape& shape, const Line& line) const {
    return line.trials.size() > static_cast<std::size_t>(line.held) && within_limit(shape.slots);
  }
};

/// The waiting requests in the order of the policy, one line for each shape, and the potential victims in the
/// same order. Three levels: users by share, their jobs by share and queue order, the trials of a job by id.
/// Ranks are up to date outside of the member functions, except between lend and give_back.
class Queue {
 public:
  /// `rules` must outlive the queue.
  explicit Queue(const Rules& rules) : rules_(rules) {}
  /// Returns the job, or null.
  JobState* find(ExperimentId id);
  /// Adds a job or replaces its settings. Keeps its requests and sums.
  JobState& put(const Job& job);
  /// Removes a job, which must have no requests and no allocations.
  void forget(JobState& job);
  std::map<std::int64_t, JobState>& jobs() { return jobs_; }

  /// Takes a job out of all indexes.
  void hide(JobState& job);
  /// Computes the rank of a hidden job and inserts it into the indexes.
  void show(JobState& job);
  /// Adds a request.
  void push(JobState& job, const Shape& shape, std::int64_t trial);
  /// Removes a request. No effect when the job does not have it.
  void pop(JobState& job, const Shape& shape, std::int64_t trial);
  /// Removes the first request of the line that is not a holder.
  void pop_first(JobState& job, const Shape& shape);
  /// Applies `change` to the sums and victims of a job and restores the order of all indexes.
  template <typename Change>
  void update(JobState& job, const Change& change) {
    // max_slots makes the eligibility of every line depend on the sums, so a limited job is listed again.
    const bool limited = job.job.max_slots.has_value();
    if (limited) hide(job);
    job.user->used -= job.used + job.promised;
    change(job);
    job.user->used += job.used + job.promised;
    if (limited) {
      show(job);
    } else {
      rank(job);
    }
  }

  /// Makes the first request of the line that is not a holder one: its slots count towards the shares.
  void hold(JobState& job, const Shape& shape);
  /// Ends the state of all holders of a pass.
  void release(const std::vector<std::pair<JobState*, Shape>>& holders);

  /// Removes a victim from the shares as if it had terminated, so that the next victim is taken from the user
  /// or job with the largest remaining share. Must be undone by give_back; in between lines() is not in
  /// order.
  void lend(JobState& job, std::int64_t trial, int slots);
  void give_back(JobState& job, std::int64_t trial, int slots);

  /// Users with eligible requests, by shape, the next to be served first.
  const boost::container::flat_map<Shape, Row<UserRank>>& lines() const { return lines_; }
  /// Users with potential victims, in ascending order of their shares.
  const Row<UserRank>& victims() const { return victims_; }

 private:
  UserState& user(UserId id);
  void leave_user(JobState& job);
  double share_of(const UserState& user) const;
  double share_of(const JobState& job) const;
  void rank(UserState& user);
  void rank(JobState& job);
  void move(JobState& job);
  void show_victims(JobState& job);
  void hide_victims(JobState& job);
  void reweigh(JobState& job, int slots);
  void relist(JobState& job, const Shape& shape, JobState::Line& line);
  void list(JobState& job, const Shape& shape, JobState::Line& line);
  void unlist(JobState& job, const Shape& shape, JobState::Line& line);
  void tidy(JobState& job, decltype(JobState::waiting)::iterator line);

  const Rules& rules_;
  std::map<std::int64_t, JobState> jobs_;
  std::map<std::int64_t, UserState> users_;
  boost::container::flat_map<Shape, Row<UserRank>> lines_;
  Row<UserRank> victims_;
};

/// Contents of an image. The tables share their memory with the pool (copy-on-write).
struct Image::State {
  /// An allocation. `leaving` is the value at the time of the image; Running::leaving is the one at its
  /// start.
  struct Runs {
    std::shared_ptr<const Running> running;
    bool leaving = false;
  };
  Rules rules;
  std::shared_ptr<const std::vector<Agent>> agents;
  SharedTable<Job>::Copy jobs;
  SharedTable<Request>::Copy waiting;
  SharedTable<Runs>::Copy running;
};

/// The whole state behind a Scheduler. Its functions are those of Scheduler (see there for contracts); they
/// keep queue, fleet, allocations and the tables of images consistent.
struct Pool {
  explicit Pool(Rules rules_in)
      : rules(std::move(rules_in)), fleet(rules.policy == Policy::kPriority), queue(rules) {}
  Pool(const Pool&) = delete;

  Rules rules;
  Fleet fleet;
  Queue queue;
  SharedTable<Request> waiting;                            ///< requests by trial
  std::unordered_map<std::int64_t, RunningState> running;  ///< allocations by trial; addresses are stable
  std::vector<Hold> holds;                                 ///< of the last pass

  bool preempts() const { return rules.preemption && rules.policy != Policy::kRoundRobin; }
  void load(const Snapshot& snapshot);
  Image::State image();
  void put_agent(Agent agent);
  void remove_agent(const AgentId& id);
  void put_job(const Job& job);
  void remove_job(ExperimentId id);
  void put_request(const Request& request);
  void withdraw(TrialId trial);
  void start(Running started);
  /// Starts the first request of the line that is not a holder. `nodes` are the agents of its parts, in
  /// order: spares the lookups of the other overload.
  void start(JobState& job, const Shape& shape, Running started, std::vector<Node*> nodes);
  void leave(RunningState& state);
  void end(TrialId trial);

 private:
  template <typename Change>
  void change_nodes(RunningState& state, const Change& change);
  void begin(JobState& job, Running started, std::vector<Node*> nodes);
  void forget(JobState& job);

  // Copies for images of what the queue, `running` and the fleet contain.
  SharedTable<Job> jobs_;
  SharedTable<Image::State::Runs> runs_;
  std::shared_ptr<const std::vector<Agent>> agents_;  ///< null after a change of an agent; built by image()
};

/// Runs one pass over the queue and appends its decisions to `plan`. Returns false when it decided nothing.
bool walk(Pool& pool, Plan& plan);

}  // namespace det::scheduler
