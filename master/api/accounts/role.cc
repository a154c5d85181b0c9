#include "master/api/accounts/role.h"

#include <map>
#include <set>

#include "common/base/text.h"
#include "det/v1/role.methods.h"
#include "master/api/accounts/group.h"
#include "master/api/accounts/permissions.h"
#include "master/api/convert/convert.h"
#include "master/api/page.h"
#include "master/db/accounts/groups.h"
#include "master/db/queries/workspaces.h"

namespace det::api {
namespace {

void to_proto(const ShownRole& role, v1::Role* out) {
  out->set_role_id(role.id);
  out->set_name(std::string(role.name));
  out->mutable_scope_type_mask()->set_cluster(true);
  out->mutable_scope_type_mask()->set_workspace(!is_cluster_only(role.role));
  for (const Permission& each : kPermissions) {
    if (!permits(role.role, each)) continue;
    v1::Permission* permission = out->add_permissions();
    permission->set_id(each.id);
    permission->set_name(each.name);
    permission->mutable_scope_type_mask()->set_cluster(true);
    permission->mutable_scope_type_mask()->set_workspace(!each.cluster_only);
  }
}

/// The public form of a role.
const ShownRole& shown(db::Role role) {
  for (const ShownRole& each : kRoles)
    if (each.role == role) return each;
  return kRoles.back();
}

void to_proto(const db::GrantRow& row, v1::RoleAssignment* out) {
  to_proto(shown(row.role), out->mutable_role());
  out->set_scope_cluster(!row.workspace);
  if (row.workspace) out->mutable_scope_workspace_id()->set_value(static_cast<int>(*row.workspace));
}

void add_assignment(const db::GrantRow& row, v1::RoleWithAssignments* out) {
  if (row.group != 0) {
    v1::GroupRoleAssignment* one = out->add_group_role_assignments();
    one->set_group_id(static_cast<int>(row.group));
    to_proto(row, one->mutable_role_assignment());
  } else {
    v1::UserRoleAssignment* one = out->add_user_role_assignments();
    one->set_user_id(static_cast<int>(row.user.value));
    to_proto(row, one->mutable_role_assignment());
  }
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
      add_assignment(row, with);
    }
  }
}

/// Adds each role of `rows` once, with its scopes, in the order of ids.
template <typename Response>
void summarize(const std::vector<db::GrantRow>& rows, Response* response) {
  std::map<int, std::pair<bool, std::set<int>>> scopes;  // by role: whole cluster, workspaces
  for (const db::GrantRow& row : rows) {
    auto& [cluster, workspaces] = scopes[shown(row.role).id];
    if (row.workspace) workspaces.insert(static_cast<int>(*row.workspace));
    if (!row.workspace) cluster = true;
  }
  for (const auto& [id, scope] : scopes) {
    to_proto(shown(role_by_id(id)), response->add_roles());
    v1::RoleAssignmentSummary* summary = response->add_assignments();
    summary->set_role_id(id);
    summary->set_scope_cluster(scope.first);
    summary->mutable_scope_workspace_ids()->Add(scope.second.begin(), scope.second.end());
  }
}

/// Reads role and scope of an assignment.
Result<db::Grant> read_grant(const v1::RoleAssignment& wanted) {
  // Clients name a role by id or by name.
  const db::Role role =
      wanted.role().role_id() != 0 ? role_by_id(wanted.role().role_id()) : role_by_name(wanted.role().name());
  if (role == db::Role::kNone) {
    std::vector<std::string> names;
    for (const ShownRole& each : kRoles)
      names.push_back(std::string(each.name) + " (" + std::to_string(each.id) + ")");
    return fail(Code::kInvalidArgument, "role must be one of " + join(names, ", "));
  }
  // Without a workspace the role holds for the whole cluster, as in Determined AI.
  if (wanted.scope_cluster() && wanted.has_scope_workspace_id())
    return fail(Code::kInvalidArgument, "name scope_cluster or scope_workspace_id, not both");
  if (is_cluster_only(role) && wanted.has_scope_workspace_id())
    return fail(
        Code::kInvalidArgument,
        std::string(shown_name(role)) + " holds for the whole cluster; in a workspace use WorkspaceAdmin");
  db::Grant grant{.user = UserId(0), .role = role};
  if (wanted.has_scope_workspace_id()) grant.workspace = wanted.scope_workspace_id().value();
  return grant;
}

Result<std::vector<db::Grant>> read_grants(const v1::AssignRolesRequest& request) {
  constexpr int kMaxAssignments = 1000;
  const int count = request.user_role_assignments_size() + request.group_role_assignments_size();
  if (count == 0 || count > kMaxAssignments)
    return fail(Code::kInvalidArgument,
                "user_role_assignments, group_role_assignments: name 1 to 1000 in total");
  std::vector<db::Grant> grants;
  for (const v1::UserRoleAssignment& one : request.user_role_assignments()) {
    TRY_ASSIGN(db::Grant grant, read_grant(one.role_assignment()));
    grant.user = UserId(one.user_id());
    grants.push_back(grant);
  }
  for (const v1::GroupRoleAssignment& one : request.group_role_assignments()) {
    TRY_ASSIGN(db::Grant grant, read_grant(one.role_assignment()));
    if (one.group_id() <= 0) return fail(Code::kInvalidArgument, "group_id: must be the id of a group");
    grant.group = one.group_id();
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

RoleService::RoleService(const Context& context) : Service(context, v1::RoleService::full_name) {
  unary(v1::RoleService::ListRoles, &RoleService::ListRoles);
  unary(v1::RoleService::GetRolesByID, &RoleService::GetRolesByID);
  unary(v1::RoleService::GetPermissionsSummary, &RoleService::GetPermissionsSummary);
  unary(v1::RoleService::GetRolesAssignedToUser, &RoleService::GetRolesAssignedToUser);
  unary(v1::RoleService::GetRolesAssignedToGroup, &RoleService::GetRolesAssignedToGroup);
  unary(v1::RoleService::GetUsersAssignedToWorkspace, &RoleService::GetUsersAssignedToWorkspace);
  unary(v1::RoleService::AssignRoles, &RoleService::AssignRoles);
  unary(v1::RoleService::RemoveAssignments, &RoleService::RemoveAssignments);
}

Status RoleService::ListRoles(const Caller&, const v1::ListRolesRequest& request,
                              v1::ListRolesResponse* response) {
  std::vector<ShownRole> all(kRoles.begin(), kRoles.end());
  if (request.has_workspace_id())
    std::erase_if(all, [](const ShownRole& role) { return is_cluster_only(role.role); });
  for (const ShownRole& role : page_of(all, request, response->mutable_pagination()))
    to_proto(role, response->add_roles());
  return {};
}

Status RoleService::GetRolesByID(const Caller& caller, const v1::GetRolesByIDRequest& request,
                                 v1::GetRolesByIDResponse* response) {
  // Only cluster admins may list the assignments of other users.
  std::optional<UserId> only;
  if (caller.grants.everywhere() != db::Role::kClusterAdmin) only = caller.user.id;
  TRY_ASSIGN(const auto rows, db::list_grants(context_.pool, {.user = only}));
  // Duplicates in the request are ignored.
  const std::set<int> wanted(request.role_ids().begin(), request.role_ids().end());
  for (const int id : wanted) {
    const db::Role role = role_by_id(id);
    if (role == db::Role::kNone) return fail(Code::kNotFound, "role " + std::to_string(id) + " not found");
    v1::RoleWithAssignments* out = response->add_roles();
    to_proto(shown(role), out->mutable_role());
    for (const db::GrantRow& row : rows)
      if (row.role == role) add_assignment(row, out);
  }
  return {};
}

Status RoleService::GetPermissionsSummary(const Caller& caller, const v1::GetPermissionsSummaryRequest&,
                                          v1::GetPermissionsSummaryResponse* response) {
  TRY_ASSIGN(const auto rows, db::list_grants(context_.pool, {.user = caller.user.id}));
  summarize(rows, response);
  return {};
}

Status RoleService::GetRolesAssignedToGroup(const Caller&, const v1::GetRolesAssignedToGroupRequest& request,
                                            v1::GetRolesAssignedToGroupResponse* response) {
  // Distinguishes an unknown group from one without roles.
  TRY(db::get_group(context_.pool, request.group_id()));
  TRY_ASSIGN(const auto rows, db::list_grants(context_.pool, {.group = request.group_id()}));
  summarize(rows, response);
  return {};
}

Status RoleService::GetRolesAssignedToUser(const Caller&, const v1::GetRolesAssignedToUserRequest& request,
                                           v1::GetRolesAssignedToUserResponse* response) {
  // Distinguishes an unknown user from one without roles.
  TRY(db::get_user(context_.pool, UserId(request.user_id())));
  TRY_ASSIGN(const auto rows, db::list_grants(context_.pool, {.user = UserId(request.user_id())}));
  by_role(rows, response->mutable_roles());
  return {};
}

Status RoleService::members(std::int64_t workspace, v1::GetUsersAssignedToWorkspaceResponse* response) const {
  // Distinguishes an unknown workspace from one without members.
  TRY(db::get_workspace(context_.pool, workspace));
  TRY_ASSIGN(const auto rows, db::list_grants(context_.pool, {.workspace = workspace}));
  std::set<std::int64_t> users, groups;
  for (const db::GrantRow& row : rows)
    (row.group != 0 ? groups : users).insert(row.group != 0 ? row.group : row.user.value);
  for (const std::int64_t id : groups) TRY(show_group(context_.pool, id, response->add_groups()));
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
