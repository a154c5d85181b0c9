// `det rbac`: roles and their assignments.
#include <iostream>

#include "cli/command.h"
#include "cli/commands/accounts.h"
#include "cli/output/print.h"
#include "common/base/text.h"
#include "det/v1/role.grpc.pb.h"

namespace det::cli {
namespace {

using RoleStub = v1::RoleService::Stub;

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
  TRY_ASSIGN(const auto response, client.call(&RoleStub::ListRoles, v1::ListRolesRequest()));
  Table table{{"ID", "Name", "Permissions", "Scopes"}, {}, {1}};
  for (const v1::Role& each : response.roles())
    table.rows.push_back(
        {std::to_string(each.role_id()), each.name(), permissions_of(each), scopes_of(each)});
  return output.print(table, [&] { return list_to_json(response.roles()); });
}

/// Returns the role of this name, in any case. Errors: kNotFound, with the nearest name.
Result<v1::Role> find_role(Client& client, const std::string& name) {
  TRY_ASSIGN(const auto response, client.call(&RoleStub::ListRoles, v1::ListRolesRequest()));
  std::vector<std::string> names;
  for (const v1::Role& each : response.roles()) {
    if (to_lower(each.name()) == to_lower(name)) return each;
    names.push_back(each.name());
  }
  return fail(Code::kNotFound, "role \"" + name + "\" not found" + did_you_mean(name, names));
}

/// Lists assignments: role, user, and workspace id or "all".
Result<Table> assignments_table(Client& client,
                                const google::protobuf::RepeatedPtrField<v1::RoleWithAssignments>& all) {
  TRY_ASSIGN(const auto names, user_names(client));
  Table table{{"Role", "User", "Workspace ID"}, {}};
  for (const v1::RoleWithAssignments& role : all) {
    for (const v1::UserRoleAssignment& each : role.user_role_assignments()) {
      const auto name = names.find(each.user_id());
      const v1::RoleAssignment& where = each.role_assignment();
      table.rows.push_back(
          {role.role().name(), name == names.end() ? std::to_string(each.user_id()) : name->second,
           where.scope_cluster() ? "all" : std::to_string(where.scope_workspace_id().value())});
    }
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
  TRY_ASSIGN(const auto response, client.call(&RoleStub::GetRolesByID, request));
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
  TRY_ASSIGN(const auto response, client.call(&RoleStub::GetRolesAssignedToUser, request));
  TRY_ASSIGN(const Table table, assignments_table(client, response.roles()));
  return options.output.print(table, [&] { return list_to_json(response.roles()); });
}

/// Shows the current user's roles, and the workspaces in which each applies.
Status list_own_roles(Client& client, const Output& output) {
  TRY_ASSIGN(const auto response,
             client.call(&RoleStub::GetPermissionsSummary, v1::GetPermissionsSummaryRequest()));
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
  return output.print(table, [&] { return to_json(response); });
}

/// Without a workspace the scope is the whole cluster.
struct RoleAssignmentOptions {
  std::string role, user, workspace;
  void declare(CLI::App& app) {
    app.add_option("ROLE", role, "Role name.")->required();
    app.add_option("-u,--username-to-assign", user, "User name.")->required();
    app.add_option("-w,--workspace-name", workspace, "Workspace of the role (default: the whole cluster).");
  }
};

/// Makes the call `method` with one assignment and prints `done`.
template <typename Method>
Status change_assignment(Client& client, const RoleAssignmentOptions& options, Method method,
                         const char* done) {
  TRY_ASSIGN(const v1::Role role, find_role(client, options.role));
  TRY_ASSIGN(const v1::User user, find_user(client, options.user));
  v1::AssignRolesRequest request;
  v1::UserRoleAssignment* one = request.add_user_role_assignments();
  one->set_user_id(user.id());
  one->mutable_role_assignment()->mutable_role()->set_role_id(role.role_id());
  if (options.workspace.empty()) {
    one->mutable_role_assignment()->set_scope_cluster(true);
  } else {
    TRY_ASSIGN(const v1::Workspace workspace, find_workspace(client, options.workspace));
    one->mutable_role_assignment()->mutable_scope_workspace_id()->set_value(workspace.id());
  }
  TRY(client.call(method, request));
  std::cout << done << ' ' << role.name()
            << (options.workspace.empty() ? "" : " in " + printable(options.workspace)) << ": "
            << printable(user.username()) << '\n';
  return {};
}

Status assign_role(Client& client, const RoleAssignmentOptions& options) {
  return change_assignment(client, options, &RoleStub::AssignRoles, "Assigned");
}

Status unassign_role(Client& client, const RoleAssignmentOptions& options) {
  return change_assignment(client, options, &RoleStub::RemoveAssignments, "Unassigned");
}

}  // namespace

Command rbac_command() {
  return {{"rbac"},
          "Manage roles of users.",
          {},
          {{{"my-permissions"}, "Show your roles.", action(list_own_roles)},
           {{"list-roles"}, "List all roles.", action(list_roles)},
           {{"list-users-roles"}, "List the roles of a user.", action(list_user_roles)},
           {{"describe-role"}, "Show permissions and users of a role.", action(describe_role)},
           {{"assign-role"}, "Assign a role to a user.", action(assign_role)},
           {{"unassign-role"}, "Remove a role from a user.", action(unassign_role)}}};
}

}  // namespace det::cli
