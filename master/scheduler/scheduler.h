// Scheduler of one resource pool: decides which requests start on which slots and which allocations are
// preempted. Pure and single-threaded: no clock, no I/O, no lock. A decision depends on the agents, jobs,
// requests and allocations of the pool alone and never on an earlier decision, so the same changes in the
// same order give the same decisions on every machine, and a restarted master that loads the same cluster
// goes on with the same ones.
//
// Vocabulary
//   task         a trial or a command
//   request      a task that waits for slots
//   allocation   a task that holds slots (struct Running)
//   terminating  of an allocation: preempted or being killed; its slots are "coming free"
//   gang         a request or allocation over several agents; it starts with all of its slots or not at all
//   preemptor    the request that victims are chosen for
//   victim       an allocation that is preempted
//   holder       a request that waits for slots that are coming free and are promised to it
//   reservation  free and coming slots kept for the first request that can neither start, hold nor preempt
//   back-fill    a start of a request that stands behind the reservation
//
// Decision. `decide` walks the requests in the order of the policy and applies to each the first rule that
// fits. A set of agents for one request (Exclusive) precedes these rules, and they leave its agents out:
//   1. start    on free slots that are promised to no request ahead of it;
//   2. hold     slots that are coming free, plus the free ones that it needs with them: on one agent, or
//               anywhere in the pool (for one slot, or where no single agent will have enough);
//   3. preempt  the smallest set of less important allocations that makes room, then hold their slots;
//   4. reserve  (at most one request a walk, and only one that the pool could hold when empty) the free and
//               coming slots of the agent where most have gathered, or of the whole pool for a gang.
// A request that fits no rule is passed over. Requests of one shape (slots, single_node, preemptible) never
// pass each other: when one cannot start, those of its shape behind it do not start either. Requests of other
// shapes may (back-fill). At most Rules::holders requests hold slots by rules 2 and 3. Walks repeat until one
// decides nothing.
//
// Back-fill without run-time estimates. Slots outside of the reservation cannot delay its holder and are free
// for every request. Slots inside of it are lent only to requests that can be preempted for the holder:
// preemptible, of a strictly larger priority number, in a `priority` pool with preemption. The holder
// preempts them as soon as that suffices to start. It therefore waits only for allocations of equal or better
// priority, and no further ones of these can start on its slots: a gang is never starved by small jobs. The
// slots that gather for the holder on its agent never shrink, and grow whenever an allocation ends there.
//
// Policies: order of the walk, and eligible victims
//   priority     Ascending (priority, position, job, task). Victims: a strictly larger priority number.
//   fair_share   Weighted max-min: the user with the fewest slots per weight first, then that user's
//                experiment with the fewest slots per weight. Victims: allocations of a user (within one
//                user: of an experiment) that keeps, after losing them, at least as many slots per weight as
//                the preemptor's has after starting. A preemption is therefore never reversed (no thrashing).
//   round_robin  The experiment with the fewest running allocations first. No preemption.
// Ties are broken by user id (fair_share), then by (priority, position, job, task). Terminating allocations
// do not count towards a share; holders do. `max_slots` limits the slots that an experiment holds at any
// moment, in every policy; a request that would exceed it is passed over. A quota does the same for all jobs
// of a user or of a workspace. A lower quota preempts nothing.
//
// Placement. Best fit: of the agents with enough free slots the one with the fewest, ties by id. Otherwise,
// unless single_node, a gang over the fewest agents, and among these choices the one that leaves the fewest
// slots over (fitting.h). Within an agent: one link group, adjacent slots. Victims on one agent are chosen by
// the importance of the most important victim, then the fewest slots vacated, then the fewest allocations,
// among at most kMaxCandidates candidate agents (those with most slots free or coming first). The least
// important and newest allocations are taken first, and a set contains no victim that is not needed.
// Zero-slot requests take a place on the agent with the fewest of them (Agent::max_zero_slot). Agents that
// are not open (disconnected, draining, disabled) and disabled slots take nothing new.
//
// Cost. A change and its decision touch the agents concerned and the head of each shape's queue: O(log agents
// + shapes) plus the size of the decision, however long the queue. There are few shapes (a handful of slot
// counts). `tests/bench/run.sh scheduler` measures it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"

namespace det::scheduler {

enum class Policy { kPriority, kFairShare, kRoundRobin };

/// Scheduling rules of a pool.
struct Rules {
  Policy policy = Policy::kPriority;
  /// Allows preemption in `priority` and `fair_share`. `round_robin` never preempts.
  bool preemption = true;
  /// Weights > 0 of users for `fair_share`; an absent user has weight 1.
  std::map<UserId, double> user_weights;
  /// Maximum number of requests that hold slots that are coming free. Bounds the preemptions under way, so a
  /// large change of priorities takes effect in waves.
  int holders = 16;
};

/// Candidate agents examined for victims at each level of importance.
inline constexpr int kMaxCandidates = 8;
/// Allocations examined for the next victim of a pool-wide fair-share preemption, among users above their
/// share.
inline constexpr int kMaxExamined = 8;

/// One device of an agent. Its index in Agent::slots is its slot id.
struct Slot {
  bool enabled = true;
  int link = 0;  ///< link group: slots of one group are connected fast (NVLink)
  bool operator==(const Slot&) const = default;
};

/// The user or the workspace that a quota limits.
struct QuotaKey {
  enum class Scope { kUser, kWorkspace };
  Scope scope = Scope::kUser;
  std::int64_t id = 0;
  auto operator<=>(const QuotaKey&) const = default;
};
/// Limit on the slots that all jobs of a user or of a workspace hold together, in all pools.
struct Quota {
  QuotaKey key;
  int slots = 0;
  int elsewhere = 0;  ///< slots that these jobs hold in other pools
  bool operator==(const Quota&) const = default;
};

/// A set of agents for one request, such as the nodes of a job that its engine grants to one task. It starts
/// only a request of exactly `slots` slots, on all of its agents, while all of them are open and empty. Its
/// agents take no other work, nothing is preempted there, and no slot of them is held or reserved.
struct Exclusive {
  std::string set;  ///< name of the set
  int agents = 1;   ///< agents of the set
  int slots = 1;    ///< slots of the request; 0: a request without slots
  bool operator==(const Exclusive&) const = default;
};

/// A machine of the pool.
struct Agent {
  AgentId id;
  std::vector<Slot> slots;  ///< by slot id
  /// Takes new work: connected, enabled, not draining, and free of allocations that ended for the master.
  bool open = true;
  int max_zero_slot = 100;  ///< maximum number of zero-slot allocations
  std::optional<Exclusive> exclusive = std::nullopt;
  bool operator==(const Agent&) const = default;
};

/// The properties that all tasks of an experiment share. A command is a job with one task.
struct Job {
  JobKey id;
  UserId user;
  std::int64_t workspace = 0;
  int priority = 42;             ///< 1..99, smaller is more important
  std::int64_t position = 0;     ///< order within a priority, see position.h
  double weight = 1;             ///< > 0; share of the user's slots (fair_share)
  std::optional<int> max_slots;  ///< limit on the slots that its allocations hold together
  bool operator==(const Job&) const = default;
};

/// A task that waits for slots. A task has at most one request or allocation at a time; its key names both.
struct Request {
  TaskKey task;
  JobKey job;
  int slots = 1;             ///< all or nothing; 0 takes only a place on an agent
  bool single_node = false;  ///< all slots on one agent
  bool preemptible = true;   ///< the allocation that follows may be preempted
  /// Agents on which it does not start, ascending. Its slots are not expected from them either.
  std::vector<AgentId> excluded = {};
  bool operator==(const Request&) const = default;
};

/// Slots of an allocation on one agent, ascending. Empty for a zero-slot allocation.
struct Part {
  AgentId agent;
  std::vector<int> slots;
  bool operator==(const Part&) const = default;
};

/// An allocation: a task that holds slots.
struct Running {
  TaskKey task;
  JobKey job;
  std::vector<Part> parts;
  bool preemptible = true;
  bool terminating = false;  ///< its slots are coming free
  bool operator==(const Running&) const = default;
};

/// The whole contents of a pool as plain values.
struct Snapshot {
  Rules rules;
  std::vector<Agent> agents;
  std::vector<Job> jobs;
  std::vector<Request> requests;
  std::vector<Running> running;
  std::vector<Quota> quotas = {};
};

/// A request that starts, and its slots.
struct Placement {
  TaskKey task;
  std::vector<Part> parts;  ///< rank order: the first agent hosts rank 0
  bool operator==(const Placement&) const = default;
};

/// The outcome of a decision.
struct Plan {
  std::vector<Placement> start;
  /// Allocations to preempt. Rarely contains a task of `start`: a later walk of the same decision
  /// found a better use of its slots.
  std::vector<TaskKey> preempt;
  bool operator==(const Plan&) const = default;
};

/// A waiting request without slots: neither free ones nor ones that are coming free for it.
struct Demand {
  TaskKey task;
  int slots = 0;
  bool single_node = false;
  bool operator==(const Demand&) const = default;
};

/// A waiting request that keeps slots from the requests behind it.
struct Hold {
  enum class Why {
    kComing,      ///< enough slots are coming free without further preemption
    kPreempting,  ///< victims were preempted for it in this decision
    kReserved     ///< it has the reservation
  };
  TaskKey task;
  Why why = Why::kComing;
  AgentId agent;  ///< "" when the slots may be anywhere in the pool
  int slots = 0;
};

/// An immutable image of a pool at one moment. Shares memory with its scheduler until that changes
/// (copy-on-write, shared_table.h). May be read and destroyed on any thread.
class Image {
 public:
  /// Returns a copy of the whole pool, sorted by id: O(n log n) in requests and allocations.
  Snapshot snapshot() const;

 private:
  friend class Scheduler;
  friend struct Pool;
  struct State;
  explicit Image(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// A pool that follows the cluster by changes and decides on demand. Not thread-safe.
class Scheduler {
 public:
  explicit Scheduler(Rules rules = {});
  explicit Scheduler(const Snapshot& snapshot);
  Scheduler(Scheduler&&) noexcept;
  Scheduler& operator=(Scheduler&&) noexcept;
  ~Scheduler();

  // Changes. `put_` functions add or replace. A change that names an unknown object has no effect.

  /// Adds an agent or replaces its state (drained, slots added or removed, a slot disabled).
  void put_agent(Agent agent);
  /// Removes an agent. Its allocations stay until `ended`, and hold their slots again when the agent returns
  /// before that.
  void remove_agent(const AgentId& agent);
  /// Adds a job or replaces its queue settings.
  void put_job(Job job);
  /// Adds or replaces a quota. O(jobs) for a new one, else O(jobs of the quota).
  void put_quota(const Quota& quota);
  void remove_quota(const QuotaKey& key);
  /// Withdraws the requests of a job. The job itself is removed when its last allocation has ended.
  void remove_job(JobKey job);
  /// Adds or replaces the request of a task. Ignored when the job is unknown or removed, or when the task
  /// has an allocation.
  void put_request(const Request& request);
  void withdraw(TaskKey task);
  /// Adds an allocation that was not started by `decide` (found running after a restart of the master).
  void started(Running running);
  /// Marks an allocation as terminating for a reason outside of the scheduler. Idempotent.
  void terminating(TaskKey task);
  /// Removes an allocation and frees its slots.
  void ended(TaskKey task);

  /// Decides, and applies the decision to the pool: requests in Plan::start are allocations from here on, and
  /// those in Plan::preempt are terminating.
  Plan decide();

  /// Holders and the reservation as of the last `decide`, in the order of the walk.
  const std::vector<Hold>& holds() const;
  /// Returns the demand as of the last `decide` in the order of the policy, at most `limit` requests of each
  /// shape. Requests beyond max_slots or a quota are no demand. O(limit) for each shape.
  std::vector<Demand> demand(int limit) const;
  const Rules& rules() const;
  /// Number of requests.
  int queued() const;
  bool waits(TaskKey task) const;

  /// Requests and allocations of one job. Computed without visiting them one by one: O(shapes).
  struct Standing {
    int requests = 0, slots = 0;  ///< requests, and the slots that they need together
    TaskKey first = {};           ///< smallest key among the requests; meaningless without requests
    int running = 0, held = 0;    ///< allocations, terminating ones included, and their slots
    bool operator==(const Standing&) const = default;
  };
  /// Returns the standing of every job with a request or an allocation, by job id.
  std::vector<std::pair<JobKey, Standing>> standings() const;
  Standing standing(JobKey job) const;
  /// Slots of the allocations that count towards a quota; 0 for an unknown one.
  int held(const QuotaKey& key) const;

  /// Returns an image of the pool. Copies pointers to shared memory, however many requests there are; the
  /// agents are copied once after each change of an agent.
  Image image() const;
  Snapshot snapshot() const { return image().snapshot(); }

 private:
  std::unique_ptr<struct Pool> pool_;
};

/// Returns the decision of a scheduler that is loaded with `snapshot`.
Plan schedule(const Snapshot& snapshot);

}  // namespace det::scheduler
