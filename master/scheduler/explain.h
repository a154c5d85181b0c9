// Owns the answer to "why does it wait, and what would start it now": a function of a pool's snapshot, so
// that it may be computed beside the core. Every suggestion was applied to a scheduler of its own, and the
// request started there.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "master/scheduler/scheduler.h"

namespace det::scheduler {

enum class Reason {
  kNotWaiting,  ///< no such request in the pool
  kStartsNow,   ///< the next decision starts it
  kMaxSlots,    ///< its experiment has all the slots it may have
  kTooBig,      ///< the agents that take work cannot hold it, even when empty
  kZeroSlot,    ///< every agent has as many zero-slot tasks as it takes
  kLeaving,     ///< slots are coming free for it, of who was asked to leave
  kKept,        ///< enough slots are free, but a more important request waits for them
  kBusy,        ///< others run on the slots
};
std::string reason_name(Reason reason);  ///< "MAX_SLOTS", for programs

/// Who is in the way.
struct Blocker {
  enum class How { kRuns, kLeaves, kHolds };  ///< kHolds: a waiting request that free slots are kept for
  TrialId trial;
  ExperimentId job;
  How how = How::kRuns;
  int slots = 0;
  std::vector<AgentId> agents;
};

/// A change after which it starts: at once, or when who is pre-empted for it has left.
struct Suggestion {
  enum class What { kSlots, kSpread, kMaxSlots, kAgent, kEnds, kPriority };
  What what = What::kSlots;
  int value = 0;                  ///< of kSlots, kMaxSlots, kPriority
  AgentId agent;                  ///< kAgent: opens, with all its slots enabled
  TrialId trial;                  ///< kEnds
  std::vector<TrialId> preempts;  ///< asked to leave for it
};
/// The pool after the suggestion, for request `trial`.
Snapshot apply(Snapshot pool, TrialId trial, const Suggestion& suggestion);

/// What is known of how long runs take, in seconds.
struct RunLengths {
  std::vector<double> recent;     ///< lengths of allocations that ended lately, in the pool or the experiment
  std::map<TrialId, double> age;  ///< of what runs; 0 when not named
};
/// By playing on: everything runs as long as the median of the recent runs (or no longer, when it is older
/// already).
struct Estimate {
  double seconds = 0;
  double median = 0;
  int runs = 0;  ///< how many recent runs that is the median of
};

struct Explanation {
  TrialId trial;
  ExperimentId job;
  Reason reason = Reason::kNotWaiting;
  int slots = 0;
  bool single_node = false;
  int position = 0;               ///< from 1, in the order of the policy as shares are now
  int queued = 0;                 ///< requests that wait in the pool
  AgentId reserved;               ///< the agent that is kept for it, "" for none
  bool reserves = false;          ///< slots are kept for it
  std::vector<Blocker> blockers;  ///< the nearest ones, at most kMostNamed
  int more_blockers = 0;
  std::vector<Suggestion> suggestions;
  std::optional<Estimate> estimate;
};
inline constexpr int kMostNamed = 8;

/// `pool` as it is after a decision.
Explanation explain(const Snapshot& pool, TrialId trial, const RunLengths& lengths = {});

/// For people, some lines.
/// `names`: of what is no trial.
std::string to_text(const Explanation& explanation, const std::map<TrialId, std::string>& names = {});

}  // namespace det::scheduler
