#include "master/api/workspace.h"

#include "base/text.h"
#include "master/api/convert.h"
#include "master/api/project.h"

namespace det::api {
namespace {

Status check_workspace_changeable(std::int64_t id) {
  if (id != db::kDefaultWorkspace) return {};
  return fail(Code::kFailedPrecondition, "workspace 1 is the default one and stays as it is");
}

void to_proto(const db::WorkspaceRow& row, v1::Workspace* out) {
  out->set_id(static_cast<int>(row.id));
  out->set_name(row.name);
  out->set_archived(row.archived);
  out->set_username(row.username);
  out->set_immutable(row.id == db::kDefaultWorkspace);
  out->set_pinned(row.pinned);
  out->set_num_projects(static_cast<int>(row.num_projects));
  out->set_num_experiments(static_cast<int>(row.num_experiments));
  if (row.owner) out->set_user_id(static_cast<int>(row.owner->value));
}

}  // namespace

grpc::ServerUnaryReactor* WorkspaceService::GetWorkspaces(grpc::CallbackServerContext* call,
                                                          const v1::GetWorkspacesRequest* request,
                                                          v1::GetWorkspacesResponse* response) {
  auto body = [this, request, response](const Caller& caller) -> Status {
    db::WorkspaceFilter filter{
        .visible = caller.grants.visible(),
        .name = make_utf8(request->name()),
        .exact_name = make_utf8(request->name_case_sensitive()),
        .users = {request->users().begin(), request->users().end()},
        .user_ids = {request->user_ids().begin(), request->user_ids().end()},
        .viewer = caller.user.id,
        .by_name = request->sort_by() == v1::GetWorkspacesRequest::SORT_BY_NAME,
        .window = to_window(request->offset(), request->limit(), request->order_by(), -1)};
    if (request->has_archived()) filter.archived = request->archived().value();
    if (request->has_pinned()) filter.pinned = request->pinned().value();
    TRY_ASSIGN(const auto page, db::list_workspaces(context_.pool, filter));
    for (const db::WorkspaceRow& row : page.rows) to_proto(row, response->add_workspaces());
    to_pagination(page, filter.window, response->mutable_pagination());
    return {};
  };
  return unary(context_, call, request, "/det.v1.WorkspaceService/GetWorkspaces", body);
}

grpc::ServerUnaryReactor* WorkspaceService::GetWorkspace(grpc::CallbackServerContext* call,
                                                         const v1::GetWorkspaceRequest* request,
                                                         v1::GetWorkspaceResponse* response) {
  return unary(context_, call, request, "/det.v1.WorkspaceService/GetWorkspace",
               [this, request, response](const Caller& caller) -> Status {
                 TRY_ASSIGN(const auto row, db::get_workspace(context_.pool, request->id(), caller.user.id));
                 to_proto(row, response->mutable_workspace());
                 return {};
               });
}

Status WorkspaceService::post(const v1::PostWorkspaceRequest& request, const Caller& caller,
                              v1::Workspace* response) const {
  TRY(authorize(caller, Action::kEdit, Target::kWorkspace, {std::to_string(db::kDefaultWorkspace)},
                context_.pool));
  TRY(check_title(request.name(), "workspace"));
  TRY_ASSIGN(const std::int64_t id, db::create_workspace(context_.pool, request.name(), caller.user.id));
  TRY_ASSIGN(const auto row, db::get_workspace(context_.pool, id));
  to_proto(row, response);
  return {};
}

grpc::ServerUnaryReactor* WorkspaceService::PostWorkspace(grpc::CallbackServerContext* call,
                                                          const v1::PostWorkspaceRequest* request,
                                                          v1::PostWorkspaceResponse* response) {
  return unary(context_, call, request, "/det.v1.WorkspaceService/PostWorkspace",
               [this, request, response](const Caller& caller) {
                 return post(*request, caller, response->mutable_workspace());
               });
}

grpc::ServerUnaryReactor* WorkspaceService::PatchWorkspace(grpc::CallbackServerContext* call,
                                                           const v1::PatchWorkspaceRequest* request,
                                                           v1::PatchWorkspaceResponse* response) {
  auto body = [this, request, response](const Caller&) -> Status {
    TRY(check_workspace_changeable(request->id()));
    if (request->workspace().has_name()) {
      const std::string& name = request->workspace().name().value();
      TRY(check_title(name, "workspace"));
      TRY(db::rename_workspace(context_.pool, request->id(), name));
    }
    TRY_ASSIGN(const auto row, db::get_workspace(context_.pool, request->id()));
    to_proto(row, response->mutable_workspace());
    return {};
  };
  return unary(context_, call, request, "/det.v1.WorkspaceService/PatchWorkspace", body);
}

Status WorkspaceService::archive(const v1::WorkspaceActionRequest& request, bool archived) const {
  TRY(check_workspace_changeable(request.id()));
  return db::archive_workspace(context_.pool, request.id(), archived);
}

grpc::ServerUnaryReactor* WorkspaceService::ArchiveWorkspace(grpc::CallbackServerContext* call,
                                                             const v1::WorkspaceActionRequest* request,
                                                             v1::WorkspaceActionResponse*) {
  return unary(context_, call, request, "/det.v1.WorkspaceService/ArchiveWorkspace",
               [this, request](const Caller&) { return archive(*request, true); });
}

grpc::ServerUnaryReactor* WorkspaceService::UnarchiveWorkspace(grpc::CallbackServerContext* call,
                                                               const v1::WorkspaceActionRequest* request,
                                                               v1::WorkspaceActionResponse*) {
  return unary(context_, call, request, "/det.v1.WorkspaceService/UnarchiveWorkspace",
               [this, request](const Caller&) { return archive(*request, false); });
}

grpc::ServerUnaryReactor* WorkspaceService::PinWorkspace(grpc::CallbackServerContext* call,
                                                         const v1::WorkspaceActionRequest* request,
                                                         v1::WorkspaceActionResponse*) {
  return unary(context_, call, request, "/det.v1.WorkspaceService/PinWorkspace", [this, request](const Caller& caller) {
    return db::pin_workspace(context_.pool, caller.user.id, request->id(), true);
  });
}

grpc::ServerUnaryReactor* WorkspaceService::UnpinWorkspace(grpc::CallbackServerContext* call,
                                                           const v1::WorkspaceActionRequest* request,
                                                           v1::WorkspaceActionResponse*) {
  return unary(context_, call, request, "/det.v1.WorkspaceService/UnpinWorkspace",
               [this, request](const Caller& caller) {
                 return db::pin_workspace(context_.pool, caller.user.id, request->id(), false);
               });
}

grpc::ServerUnaryReactor* WorkspaceService::DeleteWorkspace(grpc::CallbackServerContext* call,
                                                            const v1::WorkspaceActionRequest* request,
                                                            v1::DeleteWorkspaceResponse* response) {
  return unary(context_, call, request, "/det.v1.WorkspaceService/DeleteWorkspace",
               [this, request, response](const Caller&) -> Status {
                 TRY(check_workspace_changeable(request->id()));
                 TRY(db::delete_workspace(context_.pool, request->id()));
                 response->set_completed(true);
                 return {};
               });
}

grpc::ServerUnaryReactor* WorkspaceService::GetWorkspaceProjects(
    grpc::CallbackServerContext* call, const v1::GetWorkspaceProjectsRequest* request,
    v1::GetWorkspaceProjectsResponse* response) {
  auto body = [this, request, response](const Caller&) -> Status {
    TRY(db::get_workspace(context_.pool, request->id()));
    db::ProjectFilter filter{
        .workspace = request->id(),
        .name = make_utf8(request->name()),
        .users = {request->users().begin(), request->users().end()},
        .user_ids = {request->user_ids().begin(), request->user_ids().end()},
        .by_name = request->sort_by() == v1::GetWorkspaceProjectsRequest::SORT_BY_NAME,
        .window = to_window(request->offset(), request->limit(), request->order_by(), -1)};
    if (request->has_archived()) filter.archived = request->archived().value();
    TRY_ASSIGN(const auto page, db::list_projects(context_.pool, filter));
    for (const db::ProjectRow& row : page.rows) to_proto(row, response->add_projects());
    to_pagination(page, filter.window, response->mutable_pagination());
    return {};
  };
  return unary(context_, call, request, "/det.v1.WorkspaceService/GetWorkspaceProjects", body);
}

}  // namespace det::api
