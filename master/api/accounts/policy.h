// ConfigPolicyService: policies with which admins fix fields of configurations and set limits, for the
// cluster or a workspace. Also the lookup of the policies that apply to a submission.
#pragma once

#include <vector>

#include "common/expconf/parse.h"
#include "common/expconf/policies.h"
#include "det/v1/policy.pb.h"
#include "master/api/service.h"
#include "master/db/queries/config_policies.h"
#include "master/db/queries/projects.h"
#include "master/db/queries/workspaces.h"

namespace det::api {

/// Policies that apply to an experiment in a project: those of the cluster, then those of its workspace.
std::vector<expconf::Document> policies_at(const db::Destination& place);
/// Stored policies for a kind of workload: those of the cluster, then those of `workspace` if given. Unset
/// ones are left out. Blocks on the database.
Result<std::vector<expconf::Document>> policies_of(db::Pool& pool, expconf::Workload workload,
                                                   std::optional<std::int64_t> workspace);
/// The strictest limits of policies_of(). Blocks on the database.
Result<expconf::Policies> limits_of(db::Pool& pool, expconf::Workload workload,
                                    std::optional<std::int64_t> workspace);

/// Policies apply to later submissions and changes; existing experiments keep their configuration. Workload
/// types are EXPERIMENT and NTSC. All calls fail with kInvalidArgument for another type.
class ConfigPolicyService final : public Service {
 public:
  explicit ConfigPolicyService(const Context& context);
  /// Returns the cluster's policies with secrets masked; an empty struct when none are set.
  Status GetGlobalConfigPolicies(const Caller& caller, const v1::GetGlobalConfigPoliciesRequest& request,
                                 v1::GetConfigPoliciesResponse* response);
  /// Sets the cluster's policies. Idempotent. Errors: kInvalidArgument with Problems; nothing changes then.
  Status PutGlobalConfigPolicies(const Caller& caller, const v1::PutGlobalConfigPoliciesRequest& request,
                                 v1::PutConfigPoliciesResponse* response);
  /// Removes the cluster's policies.
  Status DeleteGlobalConfigPolicies(const Caller& caller,
                                    const v1::DeleteGlobalConfigPoliciesRequest& request,
                                    v1::DeleteConfigPoliciesResponse* response);
  /// As the calls above, for a workspace.
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
  // The calls share their implementation; the key holds workload type and optional workspace.
  Status get(const db::PolicyKey& key, v1::GetConfigPoliciesResponse* response) const;
  Status put(const db::PolicyKey& key, const std::string& text, const std::string& file_name,
             const Caller& caller, v1::PutConfigPoliciesResponse* response) const;
  Status remove(const db::PolicyKey& key, const Caller& caller) const;
};

}  // namespace det::api
