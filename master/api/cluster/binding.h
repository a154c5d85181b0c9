// BindingService: bindings of resource pools to workspaces.
#pragma once

#include <string>
#include <vector>

#include "det/v1/binding.pb.h"
#include "master/api/service.h"
#include "master/db/queries/workspaces.h"

namespace det::api {

class BindingService final : public Service {
 public:
  explicit BindingService(const Context& context);

 private:
  /// Changes the bindings of a pool. Idempotent. Errors: kNotFound; kInvalidArgument (the default pool, no
  /// workspace).
  template <db::BindingChange kChange>
  Status change(const Caller& caller, const v1::WorkspaceBindingsRequest& request,
                v1::WorkspaceBindingsResponse* response);
  /// There is no Kubernetes resource manager: the answer is empty.
  template <typename Request, typename Response>
  Status none(const Caller& caller, const Request& request, Response* response);
  /// Lists the workspaces of a pool that the caller may see, paged. Errors: kNotFound.
  Status list_workspaces(const Caller& caller, const v1::ListWorkspacesBoundToRPRequest& request,
                         v1::ListWorkspacesBoundToRPResponse* response);
  /// Lists the pools that are open to a workspace, paged.
  Status list_pools(const Caller& caller, const v1::ListRPsBoundToWorkspaceRequest& request,
                    v1::ListRPsBoundToWorkspaceResponse* response);
  /// Names of all pools; the default one always exists. Errors: kUnavailable.
  Result<std::vector<std::string>> pool_names() const;
  Status check_pool(const std::string& name) const;
};

/// Checks that a pool runs work of a workspace. Blocks on the database. Errors: kInvalidArgument.
Status check_pool_open(const Context& context, const std::string& pool, std::int64_t workspace);

}  // namespace det::api
