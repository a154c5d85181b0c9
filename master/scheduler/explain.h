// Explains why a request waits and which changes would start it. Pure function of a pool's snapshot, so it
// runs on any thread beside the core. Every suggestion has been verified: it was applied to a private
// scheduler, and the request started there.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "master/scheduler/scheduler.h"

namespace det::scheduler {

/// The reason why a request waits. The first that applies.
enum class Reason {
  kNotWaiting,  ///< the pool has no such request
  kStartsNow,   ///< the next decision starts it
  kMaxSlots,    ///< it would exceed max_slots of its experiment
  kQuota,       ///< it would exceed the quota of its user or workspace
  kTooBig,      ///< the open agents could not hold it even when empty
  kExcluded,    ///< the same, but for the agents that it excludes
  kZeroSlot,    ///< every open agent has its maximum of zero-slot allocations
  kComing,      ///< it is a holder: slots are coming free for it
  kKept,        ///< enough slots are free, but they are kept for requests ahead of it
  kBusy,        ///< too few slots are free
};
/// Returns the machine-readable name, for example "MAX_SLOTS".
std::string reason_name(Reason reason);

/// An allocation or request that keeps slots from the explained request.
struct Blocker {
  enum class How {
    kRuns,        ///< an allocation
    kTerminates,  ///< a terminating allocation
    kHolds        ///< a waiting request that slots are kept for
  };
  TaskKey task;
  JobKey job;
  How how = How::kRuns;
  int slots = 0;
  /// The agents with its slots; for kHolds the agent that is kept for it, if any.
  std::vector<AgentId> agents;
};

/// A change after which the request starts, at once or when the allocations preempted for it have terminated.
struct Suggestion {
  enum class What {
    kSlots,     ///< request fewer slots: `value`
    kSpread,    ///< allow several agents (single_node: false)
    kMaxSlots,  ///< raise max_slots of the experiment to `value`
    kAgent,     ///< open `agent` and enable all its slots
    kEnds,      ///< wait for allocation `task` to end
    kPriority   ///< set the priority of the experiment to `value`
  };
  What what = What::kSlots;
  int value = 0;
  AgentId agent;
  TaskKey task;
  std::vector<TaskKey> preempts;  ///< kPriority: allocations that would be preempted
};
/// Returns the pool after a suggestion for request `task`, which must be in the pool.
Snapshot apply(Snapshot pool, TaskKey task, const Suggestion& suggestion);

/// Observed run times, in seconds. Input of the estimate.
struct RunLengths {
  std::vector<double> recent;          ///< recently ended allocations of the pool or the experiment
  std::map<TaskKey, double> age;       ///< age of current allocations; 0 when absent
  std::map<TaskKey, double> progress;  ///< reported progress, 0..1; absent when unknown
};
/// Predicted waiting time. A simulation of the queue in which every allocation runs for the median of the
/// recent runs. A running one with progress continues at its pace; an older one without runs as long again.
struct Estimate {
  double seconds = 0;  ///< until the request starts
  double median = 0;   ///< assumed run time, in seconds; 0 if only ends of running ones count
  int runs = 0;        ///< number of recent runs behind the median
  bool paced = false;  ///< it depends on the progress or the age of a running one
};

/// The answer for one request. Without a request of that task only `task` and `reason` are set.
struct Explanation {
  TaskKey task;
  JobKey job;
  Reason reason = Reason::kNotWaiting;
  int slots = 0;
  bool single_node = false;
  /// Position in the queue, from 1, in the order of the policy with the present shares.
  int position = 0;
  /// Number of requests in the pool.
  int queued = 0;
  /// The agent with slots that are kept for the request; "" for none, or for slots anywhere in the pool.
  AgentId reserved;
  /// Slots are kept for the request: it is a holder or has the reservation.
  bool reserves = false;
  /// The quota of Reason::kQuota, and the slots that are held under it in this pool.
  std::optional<Quota> quota;
  int quota_held = 0;
  std::vector<AgentId> excluded;  ///< agents on which it does not start
  /// The nearest blockers, at most kMaxBlockers.
  std::vector<Blocker> blockers;
  /// Number of blockers left out.
  int more_blockers = 0;
  /// Verified changes, in no order of preference.
  std::vector<Suggestion> suggestions;
  /// Absent without recent runs, or when the simulation reaches no start.
  std::optional<Estimate> estimate;
};
/// Maximum number of blockers in an explanation.
inline constexpr int kMaxBlockers = 8;

/// Explains why request `task` waits. `pool` must be the state after a decision: anything that can start has
/// started.
Explanation explain(const Snapshot& pool, TaskKey task, const RunLengths& lengths = {});

/// Returns the explanation as several lines of text. `names` has display names of tasks that are not trials.
std::string to_text(const Explanation& explanation, const std::map<TaskKey, std::string>& names = {});

}  // namespace det::scheduler
