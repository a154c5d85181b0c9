// PilotService: jobs of Slurm and Kubernetes that run agents.
#pragma once

#include "det/v1/pilot.pb.h"
#include "master/api/service.h"

namespace det::api {

class PilotService final : public Service {
 public:
  explicit PilotService(const Context& context);
  /// Lists the pilots that have not ended, and the pools with a provider.
  Status GetPilots(const Caller& caller, const v1::GetPilotsRequest& request,
                   v1::GetPilotsResponse* response);
};

}  // namespace det::api
