// Owns ClusterService: master info, agents, slots, in and out of service. Agents are read from the core's
// memory.
#pragma once

#include <optional>

#include "det/v1/cluster.pb.h"
#include "master/api/service.h"

namespace det::api {

class ClusterService final : public Service {
 public:
  explicit ClusterService(const Context& context);
  Status GetMaster(const Caller& caller, const v1::GetMasterRequest& request,
                   v1::GetMasterResponse* response);
  Status GetAgents(const Caller& caller, const v1::GetAgentsRequest& request,
                   v1::GetAgentsResponse* response);
  Status GetAgent(const Caller& caller, const v1::GetAgentRequest& request, v1::GetAgentResponse* response);
  Status GetSlots(const Caller& caller, const v1::GetSlotsRequest& request, v1::GetSlotsResponse* response);
  Status GetSlot(const Caller& caller, const v1::GetSlotRequest& request, v1::GetSlotResponse* response);
  // resource_pools.cc
  Status GetResourcePools(const Caller& caller, const v1::GetResourcePoolsRequest& request,
                          v1::GetResourcePoolsResponse* response);
  Status DisableAgent(const Caller& caller, const v1::DisableAgentRequest& request,
                      v1::DisableAgentResponse* response);
  Status EnableAgent(const Caller& caller, const v1::EnableAgentRequest& request,
                     v1::EnableAgentResponse* response);
  Status DisableSlot(const Caller& caller, const v1::DisableSlotRequest& request,
                     v1::DisableSlotResponse* response);
  Status EnableSlot(const Caller& caller, const v1::EnableSlotRequest& request,
                    v1::EnableSlotResponse* response);

 private:
  Status set_service(const std::string& agent, const std::string& slot, bool enabled, bool drain) const;
  Result<v1::Slot> slot(const Caller& caller, const std::string& agent, const std::string& id) const;
  /// What runs in workspaces that the caller may not see shows as taken slots, without a name.
  Result<std::vector<v1::Agent>> agents(const Caller& caller,
                                        const std::optional<AgentId>& only = std::nullopt) const;
  Result<v1::Agent> agent(const Caller& caller, const std::string& id) const;
};

}  // namespace det::api
