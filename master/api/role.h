// Owns RoleService: roles and who has them where.
#pragma once

#include "det/v1/role.pb.h"
#include "master/api/service.h"

namespace det::api {

class RoleService final : public Service {
 public:
  explicit RoleService(const Context& context);
  Status ListRoles(const Caller& caller, const v1::ListRolesRequest& request,
                   v1::ListRolesResponse* response);
  Status GetRolesByID(const Caller& caller, const v1::GetRolesByIDRequest& request,
                      v1::GetRolesByIDResponse* response);
  Status GetPermissionsSummary(const Caller& caller, const v1::GetPermissionsSummaryRequest& request,
                               v1::GetPermissionsSummaryResponse* response);
  Status GetRolesAssignedToUser(const Caller& caller, const v1::GetRolesAssignedToUserRequest& request,
                                v1::GetRolesAssignedToUserResponse* response);
  Status GetUsersAssignedToWorkspace(const Caller& caller,
                                     const v1::GetUsersAssignedToWorkspaceRequest& request,
                                     v1::GetUsersAssignedToWorkspaceResponse* response);
  Status AssignRoles(const Caller& caller, const v1::AssignRolesRequest& request,
                     v1::AssignRolesResponse* response);
  Status RemoveAssignments(const Caller& caller, const v1::AssignRolesRequest& request,
                           v1::AssignRolesResponse* response);

 private:
  Status members(std::int64_t workspace, v1::GetUsersAssignedToWorkspaceResponse* response) const;
};

}  // namespace det::api
