// Owns ConfigPolicyService: what the admin fixes in new experiments, and how far users may go.
#pragma once

#include "det/v1/policy.grpc.pb.h"
#include "master/api/unary.h"

namespace det::api {

/// The one kind of workload there is, as the database and the API call it.
inline constexpr const char* kExperimentWorkload = "EXPERIMENT";

class ConfigPolicyService final : public v1::ConfigPolicyService::CallbackService {
 public:
  explicit ConfigPolicyService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* GetGlobalConfigPolicies(grpc::CallbackServerContext* call,
                                                    const v1::GetGlobalConfigPoliciesRequest* request,
                                                    v1::GetGlobalConfigPoliciesResponse* response) override;
  grpc::ServerUnaryReactor* PutGlobalConfigPolicies(grpc::CallbackServerContext* call,
                                                    const v1::PutGlobalConfigPoliciesRequest* request,
                                                    v1::PutGlobalConfigPoliciesResponse* response) override;
  grpc::ServerUnaryReactor* DeleteGlobalConfigPolicies(
      grpc::CallbackServerContext* call, const v1::DeleteGlobalConfigPoliciesRequest* request,
      v1::DeleteGlobalConfigPoliciesResponse* response) override;

 private:
  const Context& context_;
};

}  // namespace det::api
