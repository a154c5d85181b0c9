// Owns WorkspaceService: workspaces.
#pragma once

#include "det/v1/workspace.grpc.pb.h"
#include "master/api/unary.h"

namespace det::api {

class WorkspaceService final : public v1::WorkspaceService::CallbackService {
 public:
  explicit WorkspaceService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* GetWorkspaces(grpc::CallbackServerContext* call,
                                          const v1::GetWorkspacesRequest* request,
                                          v1::GetWorkspacesResponse* response) override;
  grpc::ServerUnaryReactor* GetWorkspace(grpc::CallbackServerContext* call,
                                         const v1::GetWorkspaceRequest* request,
                                         v1::GetWorkspaceResponse* response) override;
  grpc::ServerUnaryReactor* PostWorkspace(grpc::CallbackServerContext* call,
                                          const v1::PostWorkspaceRequest* request,
                                          v1::PostWorkspaceResponse* response) override;
  grpc::ServerUnaryReactor* PatchWorkspace(grpc::CallbackServerContext* call,
                                           const v1::PatchWorkspaceRequest* request,
                                           v1::PatchWorkspaceResponse* response) override;
  grpc::ServerUnaryReactor* ArchiveWorkspace(grpc::CallbackServerContext* call,
                                             const v1::WorkspaceActionRequest* request,
                                             v1::WorkspaceActionResponse* response) override;
  grpc::ServerUnaryReactor* UnarchiveWorkspace(grpc::CallbackServerContext* call,
                                               const v1::WorkspaceActionRequest* request,
                                               v1::WorkspaceActionResponse* response) override;
  grpc::ServerUnaryReactor* PinWorkspace(grpc::CallbackServerContext* call,
                                         const v1::WorkspaceActionRequest* request,
                                         v1::WorkspaceActionResponse* response) override;
  grpc::ServerUnaryReactor* UnpinWorkspace(grpc::CallbackServerContext* call,
                                           const v1::WorkspaceActionRequest* request,
                                           v1::WorkspaceActionResponse* response) override;
  grpc::ServerUnaryReactor* DeleteWorkspace(grpc::CallbackServerContext* call,
                                            const v1::WorkspaceActionRequest* request,
                                            v1::DeleteWorkspaceResponse* response) override;
  grpc::ServerUnaryReactor* GetWorkspaceProjects(grpc::CallbackServerContext* call,
                                                 const v1::GetWorkspaceProjectsRequest* request,
                                                 v1::GetWorkspaceProjectsResponse* response) override;

 private:
  Status post(const v1::PostWorkspaceRequest& request, const Caller& caller, v1::Workspace* response) const;
  Status archive(const v1::WorkspaceActionRequest& request, bool archived) const;
  const Context& context_;
};

}  // namespace det::api
