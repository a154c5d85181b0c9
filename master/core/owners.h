// The owners of the core's state and what they share; private to master/core. Each owner keeps its tables
// private. Same single thread as Core.
//
// A step: handler (all checks first, then changes) → settle (searcher events until there are none) → finish
// (a row for each touched object, then the step's own inserts; ended objects leave memory).
#pragma once

#include <string>
#include <utility>

#include "master/core/agents.h"
#include "master/core/allocations.h"
#include "master/core/builds.h"
#include "master/core/commands.h"
#include "master/core/experiments.h"
#include "master/core/pilots.h"
#include "master/core/queues/jobs.h"
#include "master/core/queues/queues.h"
#include "master/core/queues/quotas.h"
#include "master/core/reports.h"
#include "master/core/step.h"
#include "master/core/timers.h"
#include "master/core/trials.h"

namespace det::core {

enum class TimerKind {
  kAgent,       ///< a disconnected agent is lost
  kAllocation,  ///< a preemption becomes a kill, a kill is repeated, or an allocation is abandoned
  kTrial,       ///< a detached trial sent no report for too long
  kRetry,       ///< end of a trial's back-off
  kPilots       ///< a pilot of a pool is idle for too long, or is submitted or canceled again
};
/// The kind and the id of the object, as text.
using TimerKey = std::pair<TimerKind, std::string>;

struct Owners {
  explicit Owners(const Options& settings) : options(settings) {}
  Owners(const Owners&) = delete;

  bool is(Mutant mutant) const { return options.mutant == mutant; }

  const Options options;
  Timers<TimerKey> timers;
  Queues queues{options};
  Experiments experiments{*this};
  Trials trials{*this};
  Builds builds{*this};
  Commands commands{*this};
  Allocations allocations{*this};
  Agents agents{*this};
  Pilots pilots{*this};
  Jobs jobs{*this};
  Quotas quotas{*this};
  Reports reports{*this};
};

/// Returns the error of stored rows that contradict each other (kDataLoss).
tl::unexpected<Error> contradiction(const std::string& what);
/// Builds the state from stored rows. Errors: kDataLoss (the rows contradict each other).
Status restore(Owners& owners, Step& step, Recovered recovered);

}  // namespace det::core
