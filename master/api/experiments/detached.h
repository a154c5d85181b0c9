// DetachedService: HTTP calls for trials that run outside the cluster (Determined AI: unmanaged).
#pragma once

#include "det/v1/detached.pb.h"
#include "master/api/service.h"

namespace det::api {

/// A detached experiment has exactly one trial. The cluster starts no processes for it; its owner reports.
class DetachedService final : public Service {
 public:
  explicit DetachedService(const Context& context);
  /// Creates the experiment with an external id, or returns it. Idempotent. Errors: kInvalidArgument;
  /// kAlreadyExists when another user has taken the id.
  Status PutExperiment(const Caller& caller, const v1::PutExperimentRequest& request,
                       v1::CreateExperimentResponse* response);
  /// Returns the trial of an experiment and sets its hyperparameters. Errors: kFailedPrecondition for an
  /// experiment of the cluster and for a trial that has begun; kUnavailable before the trial exists.
  Status CreateTrial(const Caller& caller, const v1::CreateTrialRequest& request,
                     v1::CreateTrialResponse* response);
  /// As CreateTrial, but accepts a trial that has begun. Idempotent.
  Status PutTrial(const Caller& caller, const v1::PutTrialRequest& request,
                  v1::CreateTrialResponse* response);
  /// Starts a new run of the trial and fences earlier runs. With `resume` it continues from the latest
  /// checkpoint. Errors: kFailedPrecondition when the trial has begun and `resume` is not set.
  Status StartTrial(const Caller& caller, const v1::StartTrialRequest& request,
                    v1::StartTrialResponse* response);
  /// Renews the lease of a running trial, or ends the trial in a terminal state. Idempotent. Clients renew
  /// about once a minute.
  Status PatchTrial(const Caller& caller, const v1::PatchTrialRequest& request,
                    v1::PatchTrialResponse* response);

 private:
  /// Returns the trial of an experiment. Stores the hyperparameters of the request, if any. `again` accepts a
  /// trial that has begun.
  Status trial_of(const v1::CreateTrialRequest& request, bool again, v1::Trial* out) const;
  Status patch(const v1::PatchTrialRequest& request, v1::Trial* out) const;
};

}  // namespace det::api
