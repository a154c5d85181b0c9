// ClusterService: the master, its agents and slots. Agents are read from the memory of the core.
#pragma once

#include <optional>

#include "det/v1/cluster.pb.h"
#include "master/api/service.h"

namespace det::api {

/// Queries and administration of agents, slots and resource pools.
class ClusterService final : public Service {
 public:
  explicit ClusterService(const Context& context);
  /// Returns version and ids of the master. Open to callers without credentials.
  Status GetMaster(const Caller& caller, const v1::GetMasterRequest& request,
                   v1::GetMasterResponse* response);
  /// Lists agents by id or registration time, paged.
  Status GetAgents(const Caller& caller, const v1::GetAgentsRequest& request,
                   v1::GetAgentsResponse* response);
  /// Returns one agent. Errors: kNotFound.
  Status GetAgent(const Caller& caller, const v1::GetAgentRequest& request, v1::GetAgentResponse* response);
  /// Lists the slots of an agent by number. Errors: kNotFound.
  Status GetSlots(const Caller& caller, const v1::GetSlotsRequest& request, v1::GetSlotsResponse* response);
  /// Returns one slot. Errors: kNotFound.
  Status GetSlot(const Caller& caller, const v1::GetSlotRequest& request, v1::GetSlotResponse* response);
  // resource_pools.cc
  /// Lists the pools that have agents, and the default pool.
  Status GetResourcePools(const Caller& caller, const v1::GetResourcePoolsRequest& request,
                          v1::GetResourcePoolsResponse* response);
  /// Takes an agent out of service until it is enabled again, across restarts too. Its allocations are
  /// preempted, or with `drain` run to their end. Idempotent. Errors: kNotFound.
  Status DisableAgent(const Caller& caller, const v1::DisableAgentRequest& request,
                      v1::DisableAgentResponse* response);
  /// Returns an agent to service. Idempotent. Errors: kNotFound.
  Status EnableAgent(const Caller& caller, const v1::EnableAgentRequest& request,
                     v1::EnableAgentResponse* response);
  /// As DisableAgent, for one slot.
  Status DisableSlot(const Caller& caller, const v1::DisableSlotRequest& request,
                     v1::DisableSlotResponse* response);
  /// As EnableAgent, for one slot.
  Status EnableSlot(const Caller& caller, const v1::EnableSlotRequest& request,
                    v1::EnableSlotResponse* response);

 private:
  /// Enables or disables an agent, or one of its slots if `slot` is not empty.
  Status set_service(const std::string& agent, const std::string& slot, bool enabled, bool drain) const;
  Result<v1::Slot> slot(const Caller& caller, const std::string& agent, const std::string& id) const;
  /// Converts agents to proto form. Containers of workspaces that the caller may not see keep their slots but
  /// have no ids. Blocks on the core. Errors: kUnavailable.
  Result<std::vector<v1::Agent>> agents(const Caller& caller,
                                        const std::optional<AgentId>& only = std::nullopt) const;
  Result<v1::Agent> agent(const Caller& caller, const std::string& id) const;
};

}  // namespace det::api
