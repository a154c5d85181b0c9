// Owns the state of a Scheduler: what is known of agents (Fleet), of those who wait (Queue) and of what runs,
// each indexed for the questions a pass asks. Internal to this room.
//
// An agent is changed and then filed: what it is filed by is kept beside it, so only the entries that differ
// move. What a job is sorted by changes inside of Queue::update, or between Queue::hide and show. Entries
// that move keep their memory: events come by the thousand, and an allocator that has to tidy up makes the
// slow ones.
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

struct RunningState {
  std::shared_ptr<const Running> running;  ///< as it was when it started
  JobState* job = nullptr;
  bool preemptible = true, leaving = false;  ///< by now
  int slots = 0;                             ///< over all parts
  std::vector<struct Node*> nodes;           ///< of each part
  bool may_leave() const { return preemptible && !leaving && slots > 0; }
};

/// An agent, known or only named by what runs there.
struct Node {
  struct Holding {
    RunningState* running = nullptr;
    const Part* part = nullptr;
    // So that a look for victims passes over the others without looking at each.
    JobState* job = nullptr;  ///< of `running`
    int slots = 0;            ///< over all its parts
    int gain =
        0;  ///< found by Fleet::file: slots that come back here when it is asked to leave; 0: it may not be
  };
  Agent agent;
  bool known = false;
  int order = 0;  ///< among the agents by id: it stands for this one in the indexes
  std::vector<Holding> here;
  // During a pass: what is promised to those who wait, and whether the agent is kept for who holds the
  // reservation.
  int promised_free = 0;
  int promised_leaving = 0;
  bool hidden = false;
  // Found by Fleet::file, of enabled slots:
  int capacity = 0;
  int free = 0;     ///< and not promised
  int leaving = 0;  ///< held by who leaves, and not promised
  int zero_slot = 0;
  /// Level of who may be asked to leave, and their slots; largest level first.
  std::vector<std::pair<int, int>> gains;

  /// Free, coming, and held by victims of this level or a larger one.
  struct Room {
    int level = 0;
    int total = 0;
    int base = 0;
    bool operator==(const Room&) const = default;
  };
  bool filed = false;
  // What it is filed by.
  struct {
    int capacity = 0, free = 0, leaving = 0;
    std::vector<std::pair<int, int>> gains;
    std::vector<Room> rooms;  ///< largest level first
  } entry;
  int zero_slot_filed = -1;  ///< what it is filed by; -1: not

  int base() const { return free + leaving; }
  bool usable(int slot) const;
  int gain(const Part& part) const;  ///< slots that come back to us when it ends
  std::vector<bool> free_slots() const;
};

/// The agents. A level is a class of victims: the priority number, or 0 where shares decide; kNobody is no
/// victim.
class Fleet {
 public:
  static constexpr int kNobody = 100;
  /// Rooms of agents at one level: the least total first, of one total the largest base.
  struct Room {
    int total = 0;  ///< free, coming, and held by victims of this level or a larger one
    int base = 0;
    bool operator<(const Room& b) const { return total != b.total ? total < b.total : base > b.base; }
  };
  /// Agents by their order: of so many so few kinds are there that a bit for each is all that moves.
  using Rooms = MarksBy<Room>;

  explicit Fleet(bool by_priority) : by_priority_(by_priority) {}
  static int level_of(int priority) { return std::clamp(priority, 0, kNobody - 1); }
  int level_of(const RunningState& running) const;

  Node& node(const AgentId& id);  ///< made when it is not there
  Node* find(const AgentId& id);
  const std::map<AgentId, Node>& nodes() const { return nodes_; }
  void forget_if_empty(const AgentId& id);

  /// After whatever changed of it.
  void file(Node& node);
  /// What these have there is held by victims of another level from now on.
  void relevel(const std::vector<std::pair<Node*, const Part*>>& parts, int from, int to);
  /// So many of its free and coming slots are promised from now on; negative: no longer.
  void promise(Node& node, int free, int leaving);

  int free() const { return free_; }
  int base() const { return free_ + leaving_; }
  int capacity() const { return capacity_; }
  int largest() const { return capacities_.empty() ? 0 : capacities_.rbegin()->first; }
  /// Slots of victims of a level above `level`.
  int gains_above(int level) const;

  Node* tightest(int slots) const;               ///< by free slots; null when none has so many
  Node* tightest_coming(int slots) const;        ///< by free and coming ones
  Node* fullest(int level, int capacity) const;  ///< most room at a level, of agents so large
  std::vector<Node*> candidates(int level, int slots) const;
  Node* least_zero_slot() const;
  std::vector<std::pair<Node*, int>> spread(
      int slots) const;  ///< agents and how many slots on each; or empty
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

  bool by_priority_;
  std::map<AgentId, Node> nodes_;
  std::vector<Node*> ordered_;  ///< by their order; null: one that is gone
  MarksBy<int> by_free_;
  MarksBy<int> by_zero_slot_;
  std::map<int, Rooms> levels_{{kNobody, {}}};
  std::vector<Node::Room> rooms_;  ///< of the node being filed
  std::map<int, int> gains_;
  std::map<int, int> capacities_;
  int free_ = 0, leaving_ = 0, capacity_ = 0;
};

/// What requests must have in common to stand in one line.
struct Shape {
  int slots = 0;
  bool single_node = false;  ///< false when slots <= 1: it makes no difference
  bool preemptible = true;
  auto operator<=>(const Shape&) const = default;
};
Shape shape_of(const Request& request);

struct JobKey {
  int priority = 0;
  std::int64_t position = 0;
  std::int64_t job = 0;
  auto operator<=>(const JobKey&) const = default;
};
struct JobRank {
  double share = 0;
  JobKey key;
  JobState* job = nullptr;
  bool operator<(const JobRank& b) const { return std::tie(share, key) < std::tie(b.share, b.key); }
};
/// A set in one piece: for the few things that often change their place.
template <typename T>
class Row : public std::vector<T> {
 public:
  void put(const T& value) { this->insert(place(value), value); }
  void drop(const T& value) { this->erase(place(value)); }
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
struct UserRank {
  double share = 0;
  std::int64_t id = 0;
  UserState* user = nullptr;
  bool operator<(const UserRank& b) const { return std::tie(share, id) < std::tie(b.share, b.id); }
};
struct UserState {
  UserRank rank;
  double weight = 1;
  int used = 0;  ///< slots of what runs and does not leave, and of what is promised
  int jobs = 0;
  boost::container::flat_map<Shape, std::set<JobRank>> waiting;
  std::set<JobRank> victims;
};
struct JobState {
  Job job;
  JobRank rank;
  UserState* user = nullptr;
  /// Its trials of one shape.
  struct Line {
    std::set<std::int64_t> trials;
    int held = 0;         ///< during a pass: so many of the first hold what comes free, and stand in no line
    bool listed = false;  ///< among those that wait
    auto first() const { return std::next(trials.begin(), held); }
  };
  boost::container::flat_map<Shape, Line> waiting;
  std::set<std::int64_t> victims;  ///< trials that may be asked to leave
  int held = 0;                    ///< slots of all that runs, leaving or not
  int used = 0;                    ///< slots of what runs and does not leave
  int running = 0;                 ///< allocations that do not leave
  int live = 0;                    ///< allocations
  int promised = 0;                ///< during a pass: slots of its requests that hold
  int promised_count = 0;
  bool gone = false;
  bool shown_victims = false;
  bool within_limit(int slots) const {
    return slots == 0 || !job.max_slots || held + promised + slots <= *job.max_slots;
  }
  bool wants(const Shape& shape, const Line& line) const {
    return line.trials.size() > static_cast<std::size_t>(line.held) && within_limit(shape.slots);
  }
};

/// Who waits, in the order of the policy, a line for each shape; and who may be asked to leave.
class Queue {
 public:
  explicit Queue(const Rules& rules) : rules_(rules) {}
  JobState* find(ExperimentId id);
  JobState& put(const Job& job);
  void forget(JobState& job);
  std::map<std::int64_t, JobState>& jobs() { return jobs_; }

  void hide(JobState& job);
  void show(JobState& job);
  void push(JobState& job, const Shape& shape, std::int64_t trial);
  void pop(JobState& job, const Shape& shape, std::int64_t trial);
  /// The first of the line that does not hold.
  void pop_first(JobState& job, const Shape& shape);
  /// Changes what the job uses, holds, is promised, and its victims; `change` gets the job.
  template <typename Change>
  void update(JobState& job, const Change& change) {
    // With a limit its right to stand in line may depend on it.
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

  /// The first of the line that does not hold yet holds from now on: its slots count as if it ran.
  void hold(JobState& job, const Shape& shape);
  /// No longer, for all that do.
  void release(const std::vector<std::pair<JobState*, Shape>>& holders);

  /// Takes a victim out of the shares, to see who would be the next, or back in. In between nobody may look
  /// at lines.
  void lend(JobState& job, std::int64_t trial, int slots);
  void give_back(JobState& job, std::int64_t trial, int slots);

  const boost::container::flat_map<Shape, Row<UserRank>>& lines() const { return lines_; }
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

/// A pool at one moment, shared with it.
struct Image::State {
  /// What runs.
  struct Runs {
    std::shared_ptr<const Running> running;
    bool leaving = false;  ///< by then
  };
  Rules rules;
  std::shared_ptr<const std::vector<Agent>> agents;
  SharedTable<Job>::Copy jobs;
  SharedTable<Request>::Copy waiting;
  SharedTable<Runs>::Copy running;
};

struct Pool {
  explicit Pool(Rules rules_in)
      : rules(std::move(rules_in)), fleet(rules.policy == Policy::kPriority), queue(rules) {}
  Pool(const Pool&) = delete;

  Rules rules;
  Fleet fleet;
  Queue queue;
  SharedTable<Request> waiting;
  std::unordered_map<std::int64_t, RunningState> running;
  std::vector<Hold> holds;

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
  /// The same of the first of its line that does not hold, on agents that are at hand: those of its parts, in
  /// their order.
  void start(JobState& job, const Shape& shape, Running started, std::vector<Node*> nodes);
  void leave(RunningState& state);
  void end(TrialId trial);

 private:
  template <typename Change>
  void change_nodes(RunningState& state, const Change& change);
  void begin(JobState& job, Running started, std::vector<Node*> nodes);
  void forget(JobState& job);

  // What images share, beside what the queue and the fleet know.
  SharedTable<Job> jobs_;
  SharedTable<Image::State::Runs> runs_;
  std::shared_ptr<const std::vector<Agent>> agents_;  ///< null: they have changed since the last image
};

/// One walk over the queue; true when it decided anything.
bool walk(Pool& pool, Plan& plan);

}  // namespace det::scheduler
