// Owns ConfigPolicyService: what admins fix in new experiments and tasks, and how far users may go; and which
// policies bind one.
#pragma once

#include <vector>

#include "det/v1/policy.pb.h"
#include "master/api/service.h"
#include "master/db/queries_config.h"
#include "master/db/queries_workspace.h"
#include "master/expconf/parse.h"
#include "master/expconf/policies.h"

namespace det::api {

/// The policies that bind an experiment which goes there.
std::vector<expconf::Document> policies_at(const db::Destination& place);
/// The policies of such workloads: the cluster's, then the workspace's when one is given; those that are set.
Result<std::vector<expconf::Document>> policies_of(db::Pool& pool, expconf::Workload workload,
                                                   std::optional<std::int64_t> workspace);
/// The strictest limits of those policies.
Result<expconf::Policies> limits_of(db::Pool& pool, expconf::Workload workload,
                                    std::optional<std::int64_t> workspace);

class ConfigPolicyService final : public Service {
 public:
  explicit ConfigPolicyService(const Context& context);
  Status GetGlobalConfigPolicies(const Caller& caller, const v1::GetGlobalConfigPoliciesRequest& request,
                                 v1::GetConfigPoliciesResponse* response);
  Status PutGlobalConfigPolicies(const Caller& caller, const v1::PutGlobalConfigPoliciesRequest& request,
                                 v1::PutConfigPoliciesResponse* response);
  Status DeleteGlobalConfigPolicies(const Caller& caller,
                                    const v1::DeleteGlobalConfigPoliciesRequest& request,
                                    v1::DeleteConfigPoliciesResponse* response);
  Status GetWorkspaceConfigPolicies(const Caller& caller,
                                    const v1::GetWorkspaceConfigPoliciesRequest& request,
                                    v1::GetConfigPoliciesResponse* response);
  Status PutWorkspaceConfigPolicies(const Caller& caller,
                                    const v1::PutWorkspaceConfigPoliciesRequest& request,
                                    v1::PutConfigPoliciesResponse* response);
  Status DeleteWorkspaceConfigPolicies(const Caller& caller,
                                       const v1::DeleteWorkspaceConfigPoliciesRequest& request,
                                       v1::DeleteConfigPoliciesResponse* response);

 private:
  Status get(const db::PolicyKey& key, v1::GetConfigPoliciesResponse* response) const;
  Status put(const db::PolicyKey& key, const std::string& text, const std::string& file_name,
             const Caller& caller, v1::PutConfigPoliciesResponse* response) const;
  Status remove(const db::PolicyKey& key, const Caller& caller) const;
};

}  // namespace det::api
