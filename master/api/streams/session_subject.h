// The trial and the process of a harness session, found and checked by the credentials of the caller.
#pragma once

#include <string>

#include "master/api/context.h"
#include "master/db/accounts/quotas.h"

namespace det::api {

/// The subject of an admitted session.
struct SessionSubject {
  AllocationId allocation;
  ExperimentId experiment;
  db::TaskOwner owner;  ///< of the experiment
  WallTime started;     ///< of the trial
  TaskId task;
  std::string metric, time;  ///< metrics of the searcher: objective and time
};

// Both functions block on the core. Errors: kAborted (the run is not the current one of its trial, or the
// trial has ended); kUnauthenticated; kUnavailable.

/// The current run of a trial, by the token of its allocation.
Result<SessionSubject> find_allocation(const Context& context, const Credentials& credentials,
                                       const AllocationId& allocation, TrialId trial, RunNumber run);
/// A trial outside the cluster, by the token of its owner. Error: kPermissionDenied.
Result<SessionSubject> find_detached(const Context& context, const Credentials& credentials, TrialId trial,
                                     RunNumber run);

}  // namespace det::api
