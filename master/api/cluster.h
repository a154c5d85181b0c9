// Owns ClusterService: master info, agents, slots, in and out of service. Agents are read from the core's memory.
#pragma once

#include <optional>

#include "det/v1/cluster.grpc.pb.h"
#include "master/api/unary.h"

namespace det::api {

class ClusterService final : public v1::ClusterService::CallbackService {
 public:
  explicit ClusterService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* GetMaster(grpc::CallbackServerContext* call, const v1::GetMasterRequest* request,
                                      v1::GetMasterResponse* response) override;
  grpc::ServerUnaryReactor* GetAgents(grpc::CallbackServerContext* call, const v1::GetAgentsRequest* request,
                                      v1::GetAgentsResponse* response) override;
  grpc::ServerUnaryReactor* GetAgent(grpc::CallbackServerContext* call, const v1::GetAgentRequest* request,
                                     v1::GetAgentResponse* response) override;
  grpc::ServerUnaryReactor* GetSlots(grpc::CallbackServerContext* call, const v1::GetSlotsRequest* request,
                                     v1::GetSlotsResponse* response) override;
  grpc::ServerUnaryReactor* GetSlot(grpc::CallbackServerContext* call, const v1::GetSlotRequest* request,
                                    v1::GetSlotResponse* response) override;
  // resource_pools.cc
  grpc::ServerUnaryReactor* GetResourcePools(grpc::CallbackServerContext* call,
                                             const v1::GetResourcePoolsRequest* request,
                                             v1::GetResourcePoolsResponse* response) override;
  grpc::ServerUnaryReactor* DisableAgent(grpc::CallbackServerContext* call, const v1::DisableAgentRequest* request,
                                         v1::DisableAgentResponse* response) override;
  grpc::ServerUnaryReactor* EnableAgent(grpc::CallbackServerContext* call, const v1::EnableAgentRequest* request,
                                        v1::EnableAgentResponse* response) override;
  grpc::ServerUnaryReactor* DisableSlot(grpc::CallbackServerContext* call, const v1::DisableSlotRequest* request,
                                        v1::DisableSlotResponse* response) override;
  grpc::ServerUnaryReactor* EnableSlot(grpc::CallbackServerContext* call, const v1::EnableSlotRequest* request,
                                       v1::EnableSlotResponse* response) override;

 private:
  Status set_service(const std::string& agent, const std::string& slot, bool enabled, bool drain) const;
  Result<v1::Slot> slot(const Caller& caller, const std::string& agent, const std::string& id) const;
  /// What runs in workspaces that the caller may not see shows as taken slots, without a name.
  Result<std::vector<v1::Agent>> agents(const Caller& caller, const std::optional<AgentId>& only = std::nullopt) const;
  Result<v1::Agent> agent(const Caller& caller, const std::string& id) const;
  const Context& context_;
};

}  // namespace det::api
