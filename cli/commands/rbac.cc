// `det rbac`: roles, and their assignments to users and groups.
#include <iostream>

#include "cli/command.h"
#include "cli/commands/accounts.h"
#include "cli/output/print.h"
#include "common/base/text.h"
#include "det/v1/role.methods.h"

namespace det::cli {
namespace {

std::string permissions_of(const v1::Role& role) {
  std::vector<std::string> names;
  for (const v1::Permission& each : role.permissions()) names.push_back(each.name());
  return join(names, ", ");
}

/// The scopes in which a role can be assigned.
std::string scopes_of(const v1::Role& role) {
  return role.scope_type_mask().workspace() ? "cluster, workspace" : "cluster";
}

/// Lists the roles with their permissions.
Status list_roles(Client& client, const ListOutput& output) {
  TRY_ASSIGN(const auto response, client.call(v1::RoleService::ListRoles, v1::ListRolesRequest()));
  Table table{{"ID", "Name", "Permissions", "Scopes"}, {}, {1}};
  for (const v1::Role& each : response.roles())
    table.rows.push_back(
        {std::to_string(each.role_id()), each.name(), permissions_of(each), scopes_of(each)});
  return output.print(table, [&] { return list_to_json(response.roles()); });
}

/// Returns the role of this name, in any case. Errors: kNotFound, with the nearest name.
Result<v1::Role> find_role(Client& client, const std::string& name) {
  TRY_ASSIGN(const auto response, client.call(v1::RoleService::ListRoles, v1::ListRolesRequest()));
  std::vector<std::string> names;
  for (const v1::Role& each : response.roles()) {
    if (to_lower(each.name()) == to_lower(name)) return each;
    names.push_back(each.name());
  }
  return fail(Code::kNotFound, "role \"" + name + "\" not found" + did_you_mean(name, names));
}

std::string scope_text(const v1::RoleAssignment& where) {
  return where.scope_cluster() ? "all" : std::to_string(where.scope_workspace_id().value());
}

/// Lists assignments: role, user or group, and workspace id or "all".
Result<Table> assignments_table(Client& client,
                                const google::protobuf::RepeatedPtrField<v1::RoleWithAssignments>& all) {
  TRY_ASSIGN(const auto users, user_names(client));
  TRY_ASSIGN(const auto groups, group_names(client));
  const auto name_in = [](const std::map<int, std::string>& names, int id) {
    const auto found = names.find(id);
    return found == names.end() ? std::to_string(id) : found->second;
  };
  Table table{{"Role", "User", "Group", "Workspace ID"}, {}};
  for (const v1::RoleWithAssignments& role : all) {
    const std::string& name = role.role().name();
    for (const v1::UserRoleAssignment& each : role.user_role_assignments())
      table.rows.push_back({name, name_in(users, each.user_id()), "", scope_text(each.role_assignment())});
    for (const v1::GroupRoleAssignment& each : role.group_role_assignments())
      table.rows.push_back({name, "", name_in(groups, each.group_id()), scope_text(each.role_assignment())});
  }
  return table;
}

struct RoleDescribeOptions {
  std::string name;
  Output output;
  void declare(CLI::App& app) {
    app.add_option("ROLE", name, "Role name.")->required();
    output.declare(app);
  }
};

Status describe_role(Client& client, const RoleDescribeOptions& options) {
  TRY_ASSIGN(const v1::Role role, find_role(client, options.name));
  v1::GetRolesByIDRequest request;
  request.add_role_ids(role.role_id());
  TRY_ASSIGN(const auto response, client.call(v1::RoleService::GetRolesByID, request));
  TRY_ASSIGN(const Table table, assignments_table(client, response.roles()));
  if (!options.output.for_programs())
    std::cout << "Permissions of " << role.name() << ": " << permissions_of(role) << "\n\n";
  return options.output.print(table, [&] { return list_to_json(response.roles()); });
}

struct UserRolesOptions {
  std::string user;
  Output output;
  void declare(CLI::App& app) {
    app.add_option("USER", user, "User name.")->required();
    output.declare_list(app);
  }
};

/// Lists the role assignments of one user.
Status list_user_roles(Client& client, const UserRolesOptions& options) {
  TRY_ASSIGN(const v1::User user, find_user(client, options.user));
  v1::GetRolesAssignedToUserRequest request;
  request.set_user_id(user.id());
  TRY_ASSIGN(const auto response, client.call(v1::RoleService::GetRolesAssignedToUser, request));
  TRY_ASSIGN(const Table table, assignments_table(client, response.roles()));
  return options.output.print(table, [&] { return list_to_json(response.roles()); });
}

/// Table of roles and the workspaces in which each applies.
template <typename Response>
Table summary_table(const Response& response) {
  std::map<int, v1::Role> roles;
  for (const v1::Role& each : response.roles()) roles[each.role_id()] = each;
  Table table{{"Role", "Permissions", "Workspace IDs"}, {}};
  for (const v1::RoleAssignmentSummary& each : response.assignments()) {
    std::vector<std::string> where;
    if (each.scope_cluster()) where.emplace_back("all");
    for (const int id : each.scope_workspace_ids()) where.push_back(std::to_string(id));
    const v1::Role& role = roles[each.role_id()];
    table.rows.push_back({role.name(), permissions_of(role), join(where, ", ")});
  }
  return table;
}

/// Shows the current user's roles, those of its groups included.
Status list_own_roles(Client& client, const Output& output) {
  TRY_ASSIGN(const auto response,
             client.call(v1::RoleService::GetPermissionsSummary, v1::GetPermissionsSummaryRequest()));
  return output.print(summary_table(response), [&] { return to_json(response); });
}

struct GroupRolesOptions {
  std::string group;
  Output output;
  void declare(CLI::App& app) {
    app.add_option("GROUP", group, "Group name.")->required();
    output.declare_list(app);
  }
};

Status list_group_roles(Client& client, const GroupRolesOptions& options) {
  TRY_ASSIGN(const v1::Group group, find_group(client, options.group));
  v1::GetRolesAssignedToGroupRequest request;
  request.set_group_id(group.group_id());
  TRY_ASSIGN(const auto response, client.call(v1::RoleService::GetRolesAssignedToGroup, request));
  return options.output.print(summary_table(response), [&] { return to_json(response); });
}

/// Without a workspace the scope is the whole cluster.
struct RoleAssignmentOptions {
  std::string role, user, group, workspace;
  void declare(CLI::App& app) {
    app.add_option("ROLE", role, "Role name.")->required();
    auto* of_user = app.add_option("-u,--username-to-assign", user, "User name.");
    auto* of_group = app.add_option("-g,--group-name-to-assign", group, "Group name.");
    of_user->excludes(of_group);
    app.add_option("-w,--workspace-name", workspace, "Workspace of the role (default: the whole cluster).");
  }
};

/// Makes the call `method` with one assignment and prints `done`.
template <typename Method>
Status change_assignment(Client& client, const RoleAssignmentOptions& options, Method method,
                         const char* done) {
  if (options.user.empty() && options.group.empty())
    return fail(Code::kInvalidArgument,
                "name a user or a group: --username-to-assign USER or --group-name-to-assign GROUP");
  TRY_ASSIGN(const v1::Role role, find_role(client, options.role));
  v1::RoleAssignment assignment;
  assignment.mutable_role()->set_role_id(role.role_id());
  if (options.workspace.empty()) {
    assignment.set_scope_cluster(true);
  } else {
    TRY_ASSIGN(const v1::Workspace workspace, find_workspace(client, options.workspace));
    assignment.mutable_scope_workspace_id()->set_value(workspace.id());
  }
  v1::AssignRolesRequest request;
  if (options.group.empty()) {
    TRY_ASSIGN(const v1::User user, find_user(client, options.user));
    v1::UserRoleAssignment* one = request.add_user_role_assignments();
    one->set_user_id(user.id());
    *one->mutable_role_assignment() = assignment;
  } else {
    TRY_ASSIGN(const v1::Group group, find_group(client, options.group));
    v1::GroupRoleAssignment* one = request.add_group_role_assignments();
    one->set_group_id(group.group_id());
    *one->mutable_role_assignment() = assignment;
  }
  TRY(client.call(method, request));
  std::cout << done << ' ' << role.name()
            << (options.workspace.empty() ? "" : " in " + printable(options.workspace)) << ": "
            << (options.group.empty() ? printable(options.user) : "group " + printable(options.group))
            << '\n';
  return {};
}

Status assign_role(Client& client, const RoleAssignmentOptions& options) {
  return change_assignment(client, options, v1::RoleService::AssignRoles, "Assigned");
}

Status unassign_role(Client& client, const RoleAssignmentOptions& options) {
  return change_assignment(client, options, v1::RoleService::RemoveAssignments, "Unassigned");
}

}  // namespace

Command rbac_command() {
  return {{"rbac"},
          "Manage roles of users and groups.",
          {},
          {{{"my-permissions"}, "Show your roles.", action(list_own_roles)},
           {{"list-roles"}, "List all roles.", action(list_roles)},
           {{"list-users-roles"}, "List the roles of a user.", action(list_user_roles)},
           {{"list-groups-roles"}, "List the roles of a group.", action(list_group_roles)},
           {{"describe-role"}, "Show permissions, users and groups of a role.", action(describe_role)},
           {{"assign-role"}, "Assign a role to a user or group.", action(assign_role)},
           {{"unassign-role"}, "Remove a role from a user or group.", action(unassign_role)}}};
}

}  // namespace det::cli
