// Owns the decision who runs where, for one resource pool. Pure: no clock, no I/O, no lock; the same changes
// in the same order give the same decisions on every machine, and a restarted master that tells the same
// cluster gets the same answer: nothing but the cluster and its queue is remembered between decisions.
//
// How to read a decision. `decide` walks the waiting requests in the order of the policy and does for each
// the first of these that it can:
//   1. start   it on free slots nobody more important is waiting for;
//   2. wait    for slots of allocations that already leave, and hold these and the free ones it needs with
//              them (for one slot, or where no agent alone will have enough: so many anywhere in the pool);
//   3. pre-empt the smallest set of less important allocations that makes room, and hold what they leave;
//   4. reserve (only one request at a time: the first that can do none of the above, of those that the pool
//              could hold when empty): the free and coming slots of the agent where most has gathered are
//              kept for it.
// Otherwise it goes without. Of requests of one shape nobody passes anybody: when one cannot start, those of
// its shape behind it do not either; requests of other shapes behind it still may (back-fill). At most
// Rules::holders requests are in 2 and 3 at a time. Passes are repeated until one decides nothing.
//
// Back-fill without run-time estimates (W13). Slots outside of a reservation cannot delay its holder: anybody
// may take them. Slots inside are taken only by who must give them back: pre-emptible, of a strictly lower
// priority, in a pool with pre-emption; the holder gets them by pre-empting as soon as that is enough for it
// to start. So what it waits for is equals and betters to end, and they cannot be followed there by others: a
// waiting gang is never starved by small jobs. (What gathers for the holder on the best agent never shrinks,
// and grows with each end there.)
//
// Policies (the order of the walk, and who may be pre-empted for whom):
//   priority     (priority, position, job, trial), smaller first; victims have a strictly larger priority
//   number. fair_share   weighted max-min, by user, then by experiment: the user with the least slots per
//   weight, in it
//                the experiment with the least slots per weight. A victim is taken only from one who has,
//                after losing it, still at least as much per weight as the taker has after starting: nothing
//                moves back (no thrash).
//   round_robin  the experiment with the fewest running trials; no pre-emption.
// Ties fall to (priority, position, job, trial). What leaves no longer counts for its user; what holds does.
// `max_slots` of an experiment bounds what it holds at any moment, in every policy; who would exceed it is
// passed over.
//
// Placement. One agent if any has room: the one with the fewest free slots that are enough (best fit), ties
// by id. Else, unless single_node, several: the fewest agents, of those the choice that leaves the fewest
// slots over (fitting.h). On an agent: one link group, adjacent slots. Victims for one agent: first by how
// little the most important of them matters, then the fewest slots vacated, then the fewest allocations;
// among at most kCandidates agents, those with most slots free or coming first. Victims are least important
// and newest first, and none leaves that is not needed. Zero-slot requests need a place on an agent
// (max_zero_slot), the least used first. Agents that are not open (disconnected, draining, disabled) and
// disabled slots take nothing new.
//
// Costs. A change and its decision touch the agents concerned and the head of each shape's queue: O(log
// agents + shapes) and what is decided; no queue is walked. Shapes in the queue are few (a handful of slot
// counts).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace det::scheduler {

enum class Policy { kPriority, kFairShare, kRoundRobin };

/// How a pool schedules.
struct Rules {
  Policy policy = Policy::kPriority;
  bool preemption = true;                 ///< in `priority` and `fair_share`
  std::map<UserId, double> user_weights;  ///< > 0; for `fair_share`; 1 when not named
  int holders = 16;                       ///< so many requests may wait for slots that are coming free
};

inline constexpr int kCandidates = 8;  ///< agents looked at for victims
inline constexpr int kLooks =
    8;  ///< allocations, of those who have too much, looked at for the next victim of a fair share

struct Slot {
  bool enabled = true;
  int link = 0;  ///< slots of one number reach each other fast (NVLink, one NUMA node)
  bool operator==(const Slot&) const = default;
};
struct Agent {
  AgentId id;
  std::vector<Slot> slots;  ///< by slot id
  bool open = true;         ///< takes new work: connected, enabled, not draining, rid of what is over
  int max_zero_slot = 100;  ///< how many zero-slot allocations it takes
  bool operator==(const Agent&) const = default;
};

/// What all trials of an experiment have in common.
struct Job {
  ExperimentId id;
  UserId user;
  int priority = 42;          ///< 1..99, smaller is more important
  std::int64_t position = 0;  ///< order inside a priority, see position.h
  double weight = 1;          ///< > 0
  std::optional<int> max_slots;
  bool operator==(const Job&) const = default;
};

/// A trial has at most one allocation at a time: its id names its request, and then its allocation.
struct Request {
  TrialId trial;
  ExperimentId job;
  int slots = 1;
  bool single_node = false;  ///< all slots on one agent
  bool preemptible = true;   ///< once it runs
  bool operator==(const Request&) const = default;
};

/// The slots given on one agent, ascending; empty for a zero-slot allocation.
struct Part {
  AgentId agent;
  std::vector<int> slots;
  bool operator==(const Part&) const = default;
};
struct Running {
  TrialId trial;
  ExperimentId job;
  std::vector<Part> parts;
  bool preemptible = true;
  bool leaving = false;  ///< already told to end: its slots will come free
  bool operator==(const Running&) const = default;
};

struct Snapshot {
  Rules rules;
  std::vector<Agent> agents;
  std::vector<Job> jobs;
  std::vector<Request> requests;
  std::vector<Running> running;
};

struct Placement {
  TrialId trial;
  std::vector<Part> parts;  ///< rank order: the first agent hosts rank 0
  bool operator==(const Placement&) const = default;
};
struct Plan {
  std::vector<Placement> start;
  std::vector<TrialId>
      preempt;  ///< rarely names one of `start`: a later pass found a better use of its slots
  bool operator==(const Plan&) const = default;
};

/// Who keeps slots from those behind it, and why it has not started.
struct Hold {
  enum class Why { kLeaving, kPreempting, kReserved };
  TrialId trial;
  Why why = Why::kLeaving;
  AgentId agent;  ///< "" when it takes slots anywhere in the pool
  int slots = 0;
};

/// A pool at one moment, shared with its scheduler piece by piece as long as these do not change. Any thread
/// may have it.
class Image {
 public:
  /// All there was, copied: as long as there are requests.
  Snapshot snapshot() const;

 private:
  friend class Scheduler;
  friend struct Pool;
  struct State;
  explicit Image(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

class Scheduler {
 public:
  explicit Scheduler(Rules rules = {});
  explicit Scheduler(const Snapshot& snapshot);
  Scheduler(Scheduler&&) noexcept;
  Scheduler& operator=(Scheduler&&) noexcept;
  ~Scheduler();

  // Changes. `put_` adds or replaces; what names an unknown thing changes nothing.
  void put_rules(Rules rules);  ///< rebuilds everything
  void put_agent(Agent agent);  ///< joins, is drained, gets or loses slots, has one disabled …
  /// Its allocations stay until they have `ended`; they hold their slots when the agent comes back before
  /// that.
  void remove_agent(const AgentId& agent);
  void put_job(Job job);
  /// Withdraws its requests; the job is forgotten when its last allocation has ended.
  void remove_job(ExperimentId job);
  void put_request(Request request);  ///< of a known job; not of a trial that runs
  void withdraw(TrialId trial);
  void started(Running running);  ///< outside of `decide`: found running after a restart
  void leaving(TrialId trial);    ///< it was told to end, by whomever
  void ended(TrialId trial);

  /// What to do now. It counts as done: what is started runs from here on, what is pre-empted leaves.
  Plan decide();

  /// As of the last `decide`, in the order of the walk.
  const std::vector<Hold>& holds() const;
  const Rules& rules() const;
  /// Requests that wait.
  int queued() const;
  bool waits(TrialId trial) const;
  /// Of one job; looks at none of its requests and allocations.
  struct Standing {
    int requests = 0, slots = 0;  ///< that wait, and the slots that they ask for together
    TrialId first = {};           ///< of these by number; 0 for none
    int running = 0, held = 0;    ///< allocations, leaving or not, and their slots
    bool operator==(const Standing&) const = default;
  };
  std::vector<std::pair<ExperimentId, Standing>> standings()
      const;  ///< of jobs that have any of these, by id
  Standing standing(ExperimentId job) const;
  /// Costs little, however much there is.
  Image image() const;
  Snapshot snapshot() const { return image().snapshot(); }

 private:
  std::unique_ptr<struct Pool> pool_;
};

/// One decision over a whole snapshot.
Plan schedule(const Snapshot& snapshot);

}  // namespace det::scheduler
