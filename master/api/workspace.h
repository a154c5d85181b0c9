// Owns WorkspaceService: workspaces.
#pragma once

#include "det/v1/workspace.pb.h"
#include "master/api/service.h"

namespace det::api {

class WorkspaceService final : public Service {
 public:
  explicit WorkspaceService(const Context& context);
  Status GetWorkspaces(const Caller& caller, const v1::GetWorkspacesRequest& request,
                       v1::GetWorkspacesResponse* response);
  Status GetWorkspace(const Caller& caller, const v1::GetWorkspaceRequest& request,
                      v1::GetWorkspaceResponse* response);
  Status PostWorkspace(const Caller& caller, const v1::PostWorkspaceRequest& request,
                       v1::PostWorkspaceResponse* response);
  Status PatchWorkspace(const Caller& caller, const v1::PatchWorkspaceRequest& request,
                        v1::PatchWorkspaceResponse* response);
  Status ArchiveWorkspace(const Caller& caller, const v1::WorkspaceActionRequest& request,
                          v1::WorkspaceActionResponse* response);
  Status UnarchiveWorkspace(const Caller& caller, const v1::WorkspaceActionRequest& request,
                            v1::WorkspaceActionResponse* response);
  Status PinWorkspace(const Caller& caller, const v1::WorkspaceActionRequest& request,
                      v1::WorkspaceActionResponse* response);
  Status UnpinWorkspace(const Caller& caller, const v1::WorkspaceActionRequest& request,
                        v1::WorkspaceActionResponse* response);
  Status DeleteWorkspace(const Caller& caller, const v1::WorkspaceActionRequest& request,
                         v1::DeleteWorkspaceResponse* response);
  Status GetWorkspaceProjects(const Caller& caller, const v1::GetWorkspaceProjectsRequest& request,
                              v1::GetWorkspaceProjectsResponse* response);

 private:
  Status post(const v1::PostWorkspaceRequest& request, const Caller& caller, v1::Workspace* response) const;
  Status archive(const v1::WorkspaceActionRequest& request, bool archived) const;
};

}  // namespace det::api
