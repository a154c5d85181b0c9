#include "master/api/accounts/role.h"

#include <map>
#include <set>

#include "common/base/text.h"
#include "master/api/auth/role_names.h"
#include "master/api/convert/convert.h"
#include "master/api/page.h"
#include "master/db/queries/workspaces.h"

namespace det::api {
namespace {

void to_proto(const ShownRole& role, v1::Role* out) {
  out->set_role_id(role.id);
  out->set_name(std::string(role.name));
  const bool cluster_only = role.role == db::Role::kClusterAdmin;
  out->mutable_scope_type_mask()->set_cluster(true);
  out->mutable_scope_type_mask()->set_workspace(!cluster_only);
  // Permissions are cumulative.
  const auto add = [out](const char* id, const char* name) {
    v1::Permission* permission = out->add_permissions();
    permission->set_id(id);
    permission->set_name(name);
  };
  add("PERMISSION_TYPE_VIEW_WORKSPACE", "view");
  if (role.role >= db::Role::kEditor) add("PERMISSION_TYPE_UPDATE_EXPERIMENT", "create and change");
  if (role.role >= db::Role::kWorkspaceAdmin)
    add("PERMISSION_TYPE_UPDATE_WORKSPACE", "manage the workspace and its roles");
  if (cluster_only) add("PERMISSION_TYPE_ADMINISTRATE_USER", "administer the cluster");
}

/// The public form of a role.
const ShownRole& shown(db::Role role) {
  for (const ShownRole& each : kRoles)
    if (each.role == role) return each;
  return kRoles.back();
}

void to_proto(const db::GrantRow& row, v1::UserRoleAssignment* out) {
  out->set_user_id(static_cast<int>(row.user.value));
  v1::RoleAssignment* assignment = out->mutable_role_assignment();
  to_proto(shown(row.role), assignment->mutable_role());
  assignment->set_scope_cluster(!row.workspace);
  if (row.workspace) assignment->mutable_scope_workspace_id()->set_value(static_cast<int>(*row.workspace));
}

/// Groups assignments by role.
template <typename List>
void by_role(const std::vector<db::GrantRow>& rows, List* out) {
  for (const ShownRole& role : kRoles) {
    v1::RoleWithAssignments* with = nullptr;
    for (const db::GrantRow& row : rows) {
      if (row.role != role.role) continue;
      if (!with) {
        with = out->Add();
        to_proto(role, with->mutable_role());
      }
      to_proto(row, with->add_user_role_assignments());
    }
  }
}

Result<std::vector<db::Grant>> read_grants(const v1::AssignRolesRequest& request) {
  constexpr int kMaxAssignments = 1000;
  if (request.user_role_assignments_size() == 0 || request.user_role_assignments_size() > kMaxAssignments)
    return fail(Code::kInvalidArgument, "user_role_assignments: name 1 to 1000; groups do not exist here");
  std::vector<db::Grant> grants;
  for (const v1::UserRoleAssignment& one : request.user_role_assignments()) {
    const v1::RoleAssignment& wanted = one.role_assignment();
    // Clients name a role by id or by name.
    const db::Role role = wanted.role().role_id() != 0 ? role_by_id(wanted.role().role_id())
                                                       : role_by_name(wanted.role().name());
    if (role == db::Role::kNone)
      return fail(Code::kInvalidArgument,
                  "role must be ClusterAdmin (1), WorkspaceAdmin (2), Viewer (4) or Editor (5)");
    // Without a workspace the role holds for the whole cluster, as in Determined AI.
    if (wanted.scope_cluster() && wanted.has_scope_workspace_id())
      return fail(Code::kInvalidArgument, "name scope_cluster or scope_workspace_id, not both");
    if (role == db::Role::kClusterAdmin && wanted.has_scope_workspace_id())
      return fail(Code::kInvalidArgument, "ClusterAdmin holds for the whole cluster; use WorkspaceAdmin");
    db::Grant grant{.user = UserId(one.user_id()), .role = role};
    if (wanted.has_scope_workspace_id()) grant.workspace = wanted.scope_workspace_id().value();
    grants.push_back(grant);
  }
  return grants;
}

/// Reads the assignments of a request and checks that the caller administers each scope.
Result<std::vector<db::Grant>> allowed_grants(const v1::AssignRolesRequest& request, const Caller& caller,
                                              db::Pool& pool) {
  TRY_ASSIGN(const std::vector<db::Grant> grants, read_grants(request));
  for (const db::Grant& grant : grants) {
    if (!grant.workspace) {
      TRY(authorize(caller, Action::kAdminister, Target::kCluster, {}, pool));
      continue;
    }
    TRY(authorize(caller, Action::kManage, Target::kWorkspace, {std::to_string(*grant.workspace)}, pool));
  }
  return grants;
}

}  // namespace

RoleService::RoleService(const Context& context) : Service(context, "det.v1.RoleService") {
  unary("ListRoles", &RoleService::ListRoles);
  unary("GetRolesByID", &RoleService::GetRolesByID);
  unary("GetPermissionsSummary", &RoleService::GetPermissionsSummary);
  unary("GetRolesAssignedToUser", &RoleService::GetRolesAssignedToUser);
  unary("GetUsersAssignedToWorkspace", &RoleService::GetUsersAssignedToWorkspace);
  unary("AssignRoles", &RoleService::AssignRoles);
  unary("RemoveAssignments", &RoleService::RemoveAssignments);
}

Status RoleService::ListRoles(const Caller&, const v1::ListRolesRequest& request,
                              v1::ListRolesResponse* response) {
  std::vector<ShownRole> all(kRoles.begin(), kRoles.end());
  if (request.has_workspace_id())
    std::erase_if(all, [](const ShownRole& role) { return role.role == db::Role::kClusterAdmin; });
  for (const ShownRole& role : page_of(all, request, response->mutable_pagination()))
    to_proto(role, response->add_roles());
  return {};
}

Status RoleService::GetRolesByID(const Caller& caller, const v1::GetRolesByIDRequest& request,
                                 v1::GetRolesByIDResponse* response) {
  // Only cluster admins may list the assignments of other users.
  std::optional<UserId> only;
  if (caller.grants.everywhere() != db::Role::kClusterAdmin) only = caller.user.id;
  TRY_ASSIGN(const auto rows, db::list_grants(context_.pool, only, std::nullopt));
  // Duplicates in the request are ignored.
  const std::set<int> wanted(request.role_ids().begin(), request.role_ids().end());
  for (const int id : wanted) {
    const db::Role role = role_by_id(id);
    if (role == db::Role::kNone) return fail(Code::kNotFound, "role " + std::to_string(id) + " not found");
    v1::RoleWithAssignments* out = response->add_roles();
    to_proto(shown(role), out->mutable_role());
    for (const db::GrantRow& row : rows)
      if (row.role == role) to_proto(row, out->add_user_role_assignments());
  }
  return {};
}

Status RoleService::GetPermissionsSummary(const Caller& caller, const v1::GetPermissionsSummaryRequest&,
                                          v1::GetPermissionsSummaryResponse* response) {
  TRY_ASSIGN(const auto rows, db::list_grants(context_.pool, caller.user.id, std::nullopt));
  std::map<int, v1::RoleAssignmentSummary> summaries;
  for (const db::GrantRow& row : rows) {
    // A role may be held in several scopes; the summary has one entry for it.
    v1::RoleAssignmentSummary& summary = summaries[shown(row.role).id];
    if (row.workspace) summary.add_scope_workspace_ids(static_cast<int>(*row.workspace));
    if (!row.workspace) summary.set_scope_cluster(true);
  }
  for (auto& [id, summary] : summaries) {
    to_proto(shown(role_by_id(id)), response->add_roles());
    summary.set_role_id(id);
    *response->add_assignments() = std::move(summary);
  }
  return {};
}

Status RoleService::GetRolesAssignedToUser(const Caller&, const v1::GetRolesAssignedToUserRequest& request,
                                           v1::GetRolesAssignedToUserResponse* response) {
  // Distinguishes an unknown user from one without roles.
  TRY(db::get_user(context_.pool, UserId(request.user_id())));
  TRY_ASSIGN(const auto rows, db::list_grants(context_.pool, UserId(request.user_id()), std::nullopt));
  by_role(rows, response->mutable_roles());
  return {};
}

Status RoleService::members(std::int64_t workspace, v1::GetUsersAssignedToWorkspaceResponse* response) const {
  // Distinguishes an unknown workspace from one without members.
  TRY(db::get_workspace(context_.pool, workspace));
  TRY_ASSIGN(const auto rows, db::list_grants(context_.pool, std::nullopt, workspace));
  std::set<std::int64_t> users;
  for (const db::GrantRow& row : rows) users.insert(row.user.value);
  TRY_ASSIGN(const auto page, db::list_users(context_.pool, {}));
  for (const db::User& user : page.rows)
    if (users.contains(user.id.value)) to_proto(user, response->add_users_assigned_directly());
  by_role(rows, response->mutable_assignments());
  return {};
}

Status RoleService::GetUsersAssignedToWorkspace(const Caller&,
                                                const v1::GetUsersAssignedToWorkspaceRequest& request,
                                                v1::GetUsersAssignedToWorkspaceResponse* response) {
  return members(request.workspace_id(), response);
}

Status RoleService::AssignRoles(const Caller& caller, const v1::AssignRolesRequest& request,
                                v1::AssignRolesResponse*) {
  TRY_ASSIGN(const auto grants, allowed_grants(request, caller, context_.pool));
  return db::add_grants(context_.pool, grants);
}

Status RoleService::RemoveAssignments(const Caller& caller, const v1::AssignRolesRequest& request,
                                      v1::AssignRolesResponse*) {
  TRY_ASSIGN(const auto grants, allowed_grants(request, caller, context_.pool));
  return db::remove_grants(context_.pool, grants);
}

}  // namespace det::api
