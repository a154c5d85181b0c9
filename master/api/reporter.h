// Owns how a process of the cluster is known by its allocation's token on calls over HTTP: which trial and
// run it speaks for.
#pragma once

#include "master/api/authorize.h"
#include "master/api/context.h"

namespace det::api {

/// What a call names; the token must be of a live allocation that fits all of it.
struct Named {
  std::optional<ExperimentId> experiment;
  std::optional<TrialId> trial;
  std::optional<AllocationId> allocation;  ///< outside the cluster: the task's id does as well
  std::optional<TaskId> task;
};

/// The allocation that a token stands for, and what its reports need.
struct Reporter {
  AllocationId allocation;
  TrialId trial;
  RunNumber run = 0;
  ExperimentId experiment;
  TaskId task;
  std::vector<core::AllocationPart> parts;  ///< in the order of ranks
  std::string metric, time;                 ///< the searcher's
  double length = 0;                        ///< of the training, in the unit of `time`; 0: nobody knows
  std::int64_t steps_completed = 0;
  bool invalid_hp = false;  ///< it has said so already
  bool preempt_requested = false;
};

/// kUnauthenticated without the token of a live allocation that is what `named` says, or of the owner of such
/// a trial outside the cluster; kUnavailable when the core does not answer.
Result<Reporter> find_reporter(const Context& context, const Caller& caller, const Named& named);
/// Lets users pass (their rules were asked before), and processes as find_reporter() does.
Status admit(const Context& context, const Caller& caller, const Named& named);

}  // namespace det::api
