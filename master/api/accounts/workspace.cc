#include "master/api/accounts/workspace.h"

#include "common/base/json.h"
#include "common/base/text.h"
#include "common/expconf/parse.h"
#include "det/v1/workspace.methods.h"
#include "master/api/accounts/project.h"
#include "master/api/accounts/user.h"
#include "master/api/convert/convert.h"
#include "master/api/experiments/facts.h"
#include "master/api/submit/secrets.h"

namespace det::api {
namespace {

Status refuse_default_workspace(Code code) {
  return fail(code, "workspace 1 is the default one and cannot be changed");
}

/// Refuses changes of the default workspace, as Determined AI does: 400 for admins, 403 for other users.
Status check_workspace_changeable(const Caller& caller, std::int64_t id) {
  if (id != db::kDefaultWorkspace) return {};
  return refuse_default_workspace(caller.user.admin ? Code::kFailedPrecondition : Code::kPermissionDenied);
}

/// Checks a default checkpoint storage. Returns it as WorkspaceRow has it, in plain; nothing for an empty
/// map. Errors: kInvalidArgument with the problems.
Result<std::optional<std::string>> storage_text(const Context& context,
                                                const google::protobuf::Struct& storage) {
  if (storage.fields().empty()) return std::optional<std::string>();
  const std::string file = "checkpointStorageConfig";
  TRY_ASSIGN(const Json section, from_struct(storage, file));
  const Json part = {{"checkpoint_storage", section}};
  const std::string text = to_yaml(part);
  TRY(expconf::check_part(text, file));
  TRY_ASSIGN(const YamlNode tree, parse_yaml(text, file));
  TRY(check_storage_of_part(context, tree, file));
  return std::optional(dump_json(part));
}

/// Checks user and group of tasks, which only cluster administrators may set. Returns them as WorkspaceRow
/// has them; nothing without fields. Errors: kInvalidArgument; kPermissionDenied.
Result<std::optional<std::string>> account_text(const Context& context, const Caller& caller,
                                                const v1::AgentUserGroup& wanted) {
  if (!wanted.has_agent_uid() && !wanted.has_agent_gid() && wanted.agent_user().empty() &&
      wanted.agent_group().empty())
    return std::optional<std::string>();
  TRY(authorize(caller, Action::kAdminister, Target::kCluster, {}, context.pool));
  Json account = Json::object();
  const auto add = [&](bool has_id, int id, const std::string& name, const char* id_key,
                       const char* name_key) -> Status {
    if (!has_id && name.empty()) return {};
    if (!has_id || name.empty() || id < 0)
      return fail(Code::kInvalidArgument,
                  "agentUserGroup: agentUid belongs with agentUser, agentGid with agentGroup; ids are not "
                  "negative");
    TRY(check_account_name(name));
    account[id_key] = id;
    account[name_key] = name;
    return {};
  };
  TRY(add(wanted.has_agent_uid(), wanted.agent_uid(), wanted.agent_user(), "uid", "user"));
  TRY(add(wanted.has_agent_gid(), wanted.agent_gid(), wanted.agent_group(), "gid", "group"));
  return std::optional(dump_json(account));
}

void show_account(const std::string& text, v1::AgentUserGroup* out) {
  // Stored by account_text(), so that it can be read.
  const Json account = parse_json(text).value_or(Json::object());
  if (account.contains("uid")) {
    out->set_agent_uid(account.at("uid").get<int>());
    out->set_agent_user(account.at("user").get<std::string>());
  }
  if (account.contains("gid")) {
    out->set_agent_gid(account.at("gid").get<int>());
    out->set_agent_group(account.at("group").get<std::string>());
  }
}

void to_proto(const db::WorkspaceRow& row, v1::Workspace* out) {
  out->set_id(static_cast<int>(row.id));
  out->set_name(row.name);
  out->set_archived(row.archived);
  out->set_username(row.username);
  // The default workspace is protected by check_workspace_changeable().
  out->set_immutable(row.id == db::kDefaultWorkspace);
  out->set_pinned(row.pinned);
  out->set_num_projects(static_cast<int>(row.num_projects));
  out->set_num_experiments(static_cast<int>(row.num_experiments));
  show_deletion(row.deletion, out);
  if (row.checkpoint_storage) {
    // Stored by storage_text(), so that it can be read.
    Json shown =
        parse_json(*row.checkpoint_storage, {.bytes = 1 << 20, .depth = 16}).value_or(Json::object());
    mask_secrets(shown);
    to_struct(shown["checkpoint_storage"], out->mutable_checkpoint_storage_config());
  }
  if (row.agent_account) show_account(*row.agent_account, out->mutable_agent_user_group());
  if (row.owner) out->set_user_id(static_cast<int>(row.owner->value));
}

}  // namespace

WorkspaceService::WorkspaceService(const Context& context, Deletions& deletions)
    : Service(context, v1::WorkspaceService::full_name), deletions_(deletions) {
  unary(v1::WorkspaceService::GetWorkspaces, &WorkspaceService::GetWorkspaces);
  unary(v1::WorkspaceService::GetWorkspace, &WorkspaceService::GetWorkspace);
  unary(v1::WorkspaceService::PostWorkspace, &WorkspaceService::PostWorkspace);
  unary(v1::WorkspaceService::PatchWorkspace, &WorkspaceService::PatchWorkspace);
  unary(v1::WorkspaceService::ArchiveWorkspace, &WorkspaceService::ArchiveWorkspace);
  unary(v1::WorkspaceService::UnarchiveWorkspace, &WorkspaceService::UnarchiveWorkspace);
  unary(v1::WorkspaceService::PinWorkspace, &WorkspaceService::PinWorkspace);
  unary(v1::WorkspaceService::UnpinWorkspace, &WorkspaceService::UnpinWorkspace);
  unary(v1::WorkspaceService::DeleteWorkspace, &WorkspaceService::DeleteWorkspace);
  unary(v1::WorkspaceService::GetWorkspaceProjects, &WorkspaceService::GetWorkspaceProjects);
}

Status WorkspaceService::GetWorkspaces(const Caller& caller, const v1::GetWorkspacesRequest& request,
                                       v1::GetWorkspacesResponse* response) {
  // With the role ModelRegistryViewer a caller sees the models of a workspace, and needs its name to find
  // them.
  db::WorkspaceFilter filter{.visible = caller.grants.visible(db::Role::kModelRegistryViewer),
                             .name = make_utf8(request.name()),
                             .exact_name = make_utf8(request.name_case_sensitive()),
                             .users = {request.users().begin(), request.users().end()},
                             .user_ids = {request.user_ids().begin(), request.user_ids().end()},
                             // Pins are personal.
                             .viewer = caller.user.id,
                             .by_name = request.sort_by() == v1::GetWorkspacesRequest::SORT_BY_NAME,
                             .window = to_window(request.offset(), request.limit(), request.order_by(), -1)};
  if (request.has_archived()) filter.archived = request.archived().value();
  if (request.has_pinned()) filter.pinned = request.pinned().value();
  TRY_ASSIGN(const auto page, db::list_workspaces(context_.pool, filter));
  for (const db::WorkspaceRow& row : page.rows) to_proto(row, response->add_workspaces());
  to_pagination(page, filter.window, response->mutable_pagination());
  return {};
}

Status WorkspaceService::GetWorkspace(const Caller& caller, const v1::GetWorkspaceRequest& request,
                                      v1::GetWorkspaceResponse* response) {
  TRY_ASSIGN(const auto row, db::get_workspace(context_.pool, request.id(), caller.user.id));
  to_proto(row, response->mutable_workspace());
  return {};
}

Status WorkspaceService::post(const v1::PostWorkspaceRequest& request, const Caller& caller,
                              v1::Workspace* response) const {
  // Workspaces have no parent to check, so the right of editors is tied to the default workspace.
  if (!caller.grants.creates_workspaces())
    TRY(authorize(caller, Action::kEdit, Target::kWorkspace, {std::to_string(db::kDefaultWorkspace)},
                  context_.pool));
  TRY(check_title(request.name(), "workspace"));
  TRY_ASSIGN(const auto storage, storage_text(context_, request.checkpoint_storage_config()));
  TRY_ASSIGN(const auto account, account_text(context_, caller, request.agent_user_group()));
  TRY_ASSIGN(const std::int64_t id,
             db::create_workspace(context_.pool, request.name(), caller.user.id, storage, account));
  TRY_ASSIGN(const auto row, db::get_workspace(context_.pool, id, caller.user.id));
  to_proto(row, response);
  return {};
}

Status WorkspaceService::PostWorkspace(const Caller& caller, const v1::PostWorkspaceRequest& request,
                                       v1::PostWorkspaceResponse* response) {
  return post(request, caller, response->mutable_workspace());
}

Status WorkspaceService::PatchWorkspace(const Caller& caller, const v1::PatchWorkspaceRequest& request,
                                        v1::PatchWorkspaceResponse* response) {
  // As in Determined AI, this call has the same answer for all users.
  if (request.id() == db::kDefaultWorkspace) return refuse_default_workspace(Code::kFailedPrecondition);
  const v1::PatchWorkspace& patch = request.workspace();
  // All fields are checked before the first change.
  if (patch.has_name()) TRY(check_title(patch.name().value(), "workspace"));
  TRY_ASSIGN(const auto storage, storage_text(context_, patch.checkpoint_storage_config()));
  TRY_ASSIGN(const auto account, account_text(context_, caller, patch.agent_user_group()));
  // Removing an account is as much an administrator's choice as setting one.
  if (patch.has_agent_user_group() && !account)
    TRY(authorize(caller, Action::kAdminister, Target::kCluster, {}, context_.pool));
  if (patch.has_name() || patch.has_checkpoint_storage_config() || patch.has_agent_user_group()) {
    TRY_ASSIGN(const auto before, db::get_workspace(context_.pool, request.id()));
    if (before.archived)
      return fail(Code::kFailedPrecondition, "workspace " + before.name + " is archived; unarchive it first");
  }
  if (patch.has_name()) TRY(db::rename_workspace(context_.pool, request.id(), patch.name().value()));
  if (patch.has_checkpoint_storage_config())
    TRY(db::set_workspace_storage(context_.pool, request.id(), storage));
  if (patch.has_agent_user_group()) TRY(db::set_workspace_account(context_.pool, request.id(), account));
  TRY_ASSIGN(const auto row, db::get_workspace(context_.pool, request.id()));
  to_proto(row, response->mutable_workspace());
  return {};
}

Status WorkspaceService::archive(const Caller& caller, const v1::WorkspaceActionRequest& request,
                                 bool archived) const {
  TRY(check_workspace_changeable(caller, request.id()));
  return db::archive_workspace(context_.pool, request.id(), archived);
}

Status WorkspaceService::ArchiveWorkspace(const Caller& caller, const v1::WorkspaceActionRequest& request,
                                          v1::WorkspaceActionResponse*) {
  return archive(caller, request, true);
}

Status WorkspaceService::UnarchiveWorkspace(const Caller& caller, const v1::WorkspaceActionRequest& request,
                                            v1::WorkspaceActionResponse*) {
  return archive(caller, request, false);
}

Status WorkspaceService::PinWorkspace(const Caller& caller, const v1::WorkspaceActionRequest& request,
                                      v1::WorkspaceActionResponse*) {
  return db::pin_workspace(context_.pool, caller.user.id, request.id(), true);
}

Status WorkspaceService::UnpinWorkspace(const Caller& caller, const v1::WorkspaceActionRequest& request,
                                        v1::WorkspaceActionResponse*) {
  return db::pin_workspace(context_.pool, caller.user.id, request.id(), false);
}

Status WorkspaceService::DeleteWorkspace(const Caller& caller, const v1::WorkspaceActionRequest& request,
                                         v1::DeleteWorkspaceResponse* response) {
  TRY(check_workspace_changeable(caller, request.id()));
  TRY_ASSIGN(const bool completed, deletions_.start({db::Container::Kind::kWorkspace, request.id()}));
  response->set_completed(completed);
  return {};
}

Status WorkspaceService::GetWorkspaceProjects(const Caller&, const v1::GetWorkspaceProjectsRequest& request,
                                              v1::GetWorkspaceProjectsResponse* response) {
  // Distinguishes an unknown workspace from one without projects.
  TRY(db::get_workspace(context_.pool, request.id()));
  db::ProjectFilter filter{.workspace = request.id(),
                           .name = make_utf8(request.name()),
                           .users = {request.users().begin(), request.users().end()},
                           .user_ids = {request.user_ids().begin(), request.user_ids().end()},
                           .by_name = request.sort_by() == v1::GetWorkspaceProjectsRequest::SORT_BY_NAME,
                           .window = to_window(request.offset(), request.limit(), request.order_by(), -1)};
  if (request.has_archived()) filter.archived = request.archived().value();
  TRY_ASSIGN(const auto page, db::list_projects(context_.pool, filter));
  for (const db::ProjectRow& row : page.rows) to_proto(row, response->add_projects());
  to_pagination(page, filter.window, response->mutable_pagination());
  return {};
}

}  // namespace det::api
