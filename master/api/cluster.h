// Owns ClusterService: master info, agents, slots. Agents are read from the core's memory.
#pragma once

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

 private:
  /// What runs in workspaces that the caller may not see shows as taken slots, without a name.
  Result<std::vector<v1::Agent>> agents(const Caller& caller) const;
  Result<v1::Agent> agent(const Caller& caller, const std::string& id) const;
  const Context& context_;
};

}  // namespace det::api
