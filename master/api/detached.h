// Owns DetachedService: trials outside the cluster whose processes speak HTTP.
#pragma once

#include "det/v1/detached.pb.h"
#include "master/api/service.h"

namespace det::api {

class DetachedService final : public Service {
 public:
  explicit DetachedService(const Context& context);
  Status PutExperiment(const Caller& caller, const v1::PutExperimentRequest& request,
                       v1::CreateExperimentResponse* response);
  Status CreateTrial(const Caller& caller, const v1::CreateTrialRequest& request,
                     v1::CreateTrialResponse* response);
  Status PutTrial(const Caller& caller, const v1::PutTrialRequest& request,
                  v1::CreateTrialResponse* response);
  Status StartTrial(const Caller& caller, const v1::StartTrialRequest& request,
                    v1::StartTrialResponse* response);
  Status PatchTrial(const Caller& caller, const v1::PatchTrialRequest& request,
                    v1::PatchTrialResponse* response);

 private:
  /// The experiment's trial, with other hyperparameters when some are given. `again`: also one that has
  /// begun.
  Status trial_of(const v1::CreateTrialRequest& request, bool again, v1::Trial* out) const;
  Status patch(const v1::PatchTrialRequest& request, v1::Trial* out) const;
};

}  // namespace det::api
