// WorkspaceService: workspaces, the unit that roles are granted in.
#pragma once

#include "det/v1/workspace.pb.h"
#include "master/api/accounts/deletions.h"
#include "master/api/service.h"

namespace det::api {

/// Workspace 1 is the default one and cannot be changed.
class WorkspaceService final : public Service {
 public:
  /// `deletions` must outlive the service.
  WorkspaceService(const Context& context, Deletions& deletions);
  /// Lists workspaces that the caller may see, paged.
  Status GetWorkspaces(const Caller& caller, const v1::GetWorkspacesRequest& request,
                       v1::GetWorkspacesResponse* response);
  /// Returns a workspace. Errors: kNotFound.
  Status GetWorkspace(const Caller& caller, const v1::GetWorkspaceRequest& request,
                      v1::GetWorkspaceResponse* response);
  /// Creates a workspace; the caller becomes its admin. Needs the right to edit in the default workspace.
  /// Errors: kAlreadyExists; kInvalidArgument.
  Status PostWorkspace(const Caller& caller, const v1::PostWorkspaceRequest& request,
                       v1::PostWorkspaceResponse* response);
  /// Changes name and default checkpoint storage. Unset fields keep their value. Errors: kNotFound;
  /// kAlreadyExists; kFailedPrecondition for an archived workspace; kInvalidArgument for a storage that the
  /// administrators have not named.
  Status PatchWorkspace(const Caller& caller, const v1::PatchWorkspaceRequest& request,
                        v1::PatchWorkspaceResponse* response);
  /// Archives a workspace: nothing can be created in it. Idempotent.
  Status ArchiveWorkspace(const Caller& caller, const v1::WorkspaceActionRequest& request,
                          v1::WorkspaceActionResponse* response);
  /// Inverse of ArchiveWorkspace. Idempotent.
  Status UnarchiveWorkspace(const Caller& caller, const v1::WorkspaceActionRequest& request,
                            v1::WorkspaceActionResponse* response);
  /// Pins a workspace for the caller. Idempotent.
  Status PinWorkspace(const Caller& caller, const v1::WorkspaceActionRequest& request,
                      v1::WorkspaceActionResponse* response);
  /// Inverse of PinWorkspace. Idempotent.
  Status UnpinWorkspace(const Caller& caller, const v1::WorkspaceActionRequest& request,
                        v1::WorkspaceActionResponse* response);
  /// Deletes a workspace with all that it contains but models. See Deletions::start().
  Status DeleteWorkspace(const Caller& caller, const v1::WorkspaceActionRequest& request,
                         v1::DeleteWorkspaceResponse* response);
  /// Lists the projects of a workspace, paged. Errors: kNotFound.
  Status GetWorkspaceProjects(const Caller& caller, const v1::GetWorkspaceProjectsRequest& request,
                              v1::GetWorkspaceProjectsResponse* response);

 private:
  Status post(const v1::PostWorkspaceRequest& request, const Caller& caller, v1::Workspace* response) const;
  Status archive(const Caller& caller, const v1::WorkspaceActionRequest& request, bool archived) const;

  Deletions& deletions_;
};

}  // namespace det::api
