// Identification of trial processes on HTTP calls: maps the allocation token of a call to trial and run.
#pragma once

#include "master/api/auth/authorize.h"
#include "master/api/context.h"
#include "master/db/accounts/quotas.h"

namespace det::api {

/// Objects that a call refers to. The token must belong to a live allocation that matches all of them.
struct Named {
  std::optional<ExperimentId> experiment;
  std::optional<TrialId> trial;
  /// For a trial outside the cluster the id of its task is accepted as well.
  std::optional<AllocationId> allocation;
  std::optional<TaskId> task;
};

/// The identified process: its allocation, and trial data that its reports need.
struct Reporter {
  AllocationId allocation;
  TrialId trial;
  RunNumber run = 0;
  ExperimentId experiment;
  TaskId task;
  std::vector<core::AllocationPart> parts;  ///< in the order of ranks; empty outside the cluster
  std::string metric, time;                 ///< objective and time metric of the searcher
  /// Length of the training in units of `time`; 0 when unknown.
  double length = 0;
  std::int64_t steps_completed = 0;
  db::TaskOwner owner;      ///< of the experiment
  WallTime started;         ///< of the trial
  bool invalid_hp = false;  ///< invalid hyperparameters were reported before
  bool preempt_requested = false;
};

/// Finds the process behind a call. Blocks on the core. Errors: kUnauthenticated without the token of a live
/// allocation that matches `named`; for a trial outside the cluster also without the token of its owner;
/// kUnavailable.
Result<Reporter> find_reporter(const Context& context, const Caller& caller, const Named& named);
/// Finds a live trial that a user may edit. Blocks on the database and the core. Errors: kUnauthenticated for
/// an ended session; kNotFound and kPermissionDenied as authorize(); kFailedPrecondition for an ended trial.
Result<Reporter> find_editable(const Context& context, const Caller& caller, TrialId trial);
/// Accepts users, because their rules have been checked, and processes as find_reporter() does.
Status admit(const Context& context, const Caller& caller, const Named& named);

}  // namespace det::api
