// RoleService: roles of users and groups, for the whole cluster or a workspace.
#pragma once

#include "det/v1/role.pb.h"
#include "master/api/service.h"

namespace det::api {

/// Roles are fixed; role_names.h lists them, permissions.h what they permit.
class RoleService final : public Service {
 public:
  explicit RoleService(const Context& context);
  /// Lists the roles and their permissions.
  Status ListRoles(const Caller& caller, const v1::ListRolesRequest& request,
                   v1::ListRolesResponse* response);
  /// Returns roles with their assignments: all for cluster admins, own ones for other users. Errors:
  /// kNotFound.
  Status GetRolesByID(const Caller& caller, const v1::GetRolesByIDRequest& request,
                      v1::GetRolesByIDResponse* response);
  /// Returns the roles of the caller and of its groups, with their scopes.
  Status GetPermissionsSummary(const Caller& caller, const v1::GetPermissionsSummaryRequest& request,
                               v1::GetPermissionsSummaryResponse* response);
  /// Returns the roles of a user. Errors: kNotFound.
  Status GetRolesAssignedToUser(const Caller& caller, const v1::GetRolesAssignedToUserRequest& request,
                                v1::GetRolesAssignedToUserResponse* response);
  /// Returns the roles of a group. Errors: kNotFound.
  Status GetRolesAssignedToGroup(const Caller& caller, const v1::GetRolesAssignedToGroupRequest& request,
                                 v1::GetRolesAssignedToGroupResponse* response);
  /// Returns the users and groups with a role in a workspace. Errors: kNotFound.
  Status GetUsersAssignedToWorkspace(const Caller& caller,
                                     const v1::GetUsersAssignedToWorkspaceRequest& request,
                                     v1::GetUsersAssignedToWorkspaceResponse* response);
  /// Assigns up to 1,000 roles, all or none. Cluster admins may assign every role, workspace admins those in
  /// their workspace. Errors: kInvalidArgument, kPermissionDenied, kNotFound, kAlreadyExists.
  Status AssignRoles(const Caller& caller, const v1::AssignRolesRequest& request,
                     v1::AssignRolesResponse* response);
  /// Inverse of AssignRoles, with the same rules.
  Status RemoveAssignments(const Caller& caller, const v1::AssignRolesRequest& request,
                           v1::AssignRolesResponse* response);

 private:
  Status members(std::int64_t workspace, v1::GetUsersAssignedToWorkspaceResponse* response) const;
};

}  // namespace det::api
