// Owns RoleService: roles and who has them where.
#pragma once

#include "det/v1/role.grpc.pb.h"
#include "master/api/unary.h"

namespace det::api {

class RoleService final : public v1::RoleService::CallbackService {
 public:
  explicit RoleService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* ListRoles(grpc::CallbackServerContext* call, const v1::ListRolesRequest* request,
                                      v1::ListRolesResponse* response) override;
  grpc::ServerUnaryReactor* GetRolesByID(grpc::CallbackServerContext* call,
                                         const v1::GetRolesByIDRequest* request,
                                         v1::GetRolesByIDResponse* response) override;
  grpc::ServerUnaryReactor* GetPermissionsSummary(grpc::CallbackServerContext* call,
                                                  const v1::GetPermissionsSummaryRequest* request,
                                                  v1::GetPermissionsSummaryResponse* response) override;
  grpc::ServerUnaryReactor* GetRolesAssignedToUser(grpc::CallbackServerContext* call,
                                                   const v1::GetRolesAssignedToUserRequest* request,
                                                   v1::GetRolesAssignedToUserResponse* response) override;
  grpc::ServerUnaryReactor* GetUsersAssignedToWorkspace(
      grpc::CallbackServerContext* call, const v1::GetUsersAssignedToWorkspaceRequest* request,
      v1::GetUsersAssignedToWorkspaceResponse* response) override;
  grpc::ServerUnaryReactor* AssignRoles(grpc::CallbackServerContext* call,
                                        const v1::AssignRolesRequest* request,
                                        v1::AssignRolesResponse* response) override;
  grpc::ServerUnaryReactor* RemoveAssignments(grpc::CallbackServerContext* call,
                                              const v1::AssignRolesRequest* request,
                                              v1::AssignRolesResponse* response) override;

 private:
  Status members(std::int64_t workspace, v1::GetUsersAssignedToWorkspaceResponse* response) const;
  const Context& context_;
};

}  // namespace det::api
