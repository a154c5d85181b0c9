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
Action declare_list_roles(CLI::App& app) {
  auto output = std::make_shared<Output>();
  output->declare_list(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const auto response, client->call(&RoleStub::ListRoles, v1::ListRolesRequest()));
    Table table{{"ID", "Name", "May", "Scopes"}, {}, {1}};
    for (const v1::Role& each : response.roles())
      table.rows.push_back(
          {std::to_string(each.role_id()), each.name(), permissions_of(each), scopes_of(each)});
    TRY(output->print(table, [&] { return list_to_json(response.roles()); }));
    return 0;
  };
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

Action declare_describe_role(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  auto output = std::make_shared<Output>();
  app.add_option("ROLE", *name, "The role's name.")->required();
  output->declare(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const v1::Role role, find_role(*client, *name));
    v1::GetRolesByIDRequest request;
    request.add_role_ids(role.role_id());
    TRY_ASSIGN(const auto response, client->call(&RoleStub::GetRolesByID, request));
    TRY_ASSIGN(const Table table, assignments_table(*client, response.roles()));
    if (!output->structured() && !output->csv)
      std::cout << role.name() << " may: " << permissions_of(role) << "\n\n";
    TRY(output->print(table, [&] { return list_to_json(response.roles()); }));
    return 0;
  };
}

/// Lists the role assignments of one user.
Action declare_users_roles(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  auto output = std::make_shared<Output>();
  app.add_option("USER", *name, "The user.")->required();
  output->declare_list(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const v1::User user, find_user(*client, *name));
    v1::GetRolesAssignedToUserRequest request;
    request.set_user_id(user.id());
    TRY_ASSIGN(const auto response, client->call(&RoleStub::GetRolesAssignedToUser, request));
    TRY_ASSIGN(const Table table, assignments_table(*client, response.roles()));
    TRY(output->print(table, [&] { return list_to_json(response.roles()); }));
    return 0;
  };
}

/// Shows the current user's roles, and the workspaces in which each applies.
Action declare_my_permissions(CLI::App& app) {
  auto output = std::make_shared<Output>();
  output->declare(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const auto response,
               client->call(&RoleStub::GetPermissionsSummary, v1::GetPermissionsSummaryRequest()));
    std::map<int, v1::Role> roles;
    for (const v1::Role& each : response.roles()) roles[each.role_id()] = each;
    Table table{{"Role", "May", "Workspace IDs"}, {}};
    for (const v1::RoleAssignmentSummary& each : response.assignments()) {
      std::vector<std::string> where;
      if (each.scope_cluster()) where.emplace_back("all");
      for (const int id : each.scope_workspace_ids()) where.push_back(std::to_string(id));
      const v1::Role& role = roles[each.role_id()];
      table.rows.push_back({role.name(), permissions_of(role), join(where, ", ")});
    }
    TRY(output->print(table, [&] { return to_json(response); }));
    return 0;
  };
}

/// Declares assign-role or unassign-role. Without a workspace the scope is the whole cluster.
template <typename Method>
std::function<Action(CLI::App&)> declare_assignment(Method method, const char* done) {
  return [=](CLI::App& app) -> Action {
    struct Flags {
      std::string role, user, workspace;
    };
    auto flags = std::make_shared<Flags>();
    app.add_option("ROLE", flags->role, "The role's name.")->required();
    app.add_option("-u,--username-to-assign", flags->user, "Whose role.")->required();
    app.add_option("-w,--workspace-name", flags->workspace, "Where it holds; everywhere when not said.");
    return [=](Session& session) -> Result<int> {
      TRY_ASSIGN(Client * client, session.client());
      TRY_ASSIGN(const v1::Role role, find_role(*client, flags->role));
      TRY_ASSIGN(const v1::User user, find_user(*client, flags->user));
      v1::AssignRolesRequest request;
      v1::UserRoleAssignment* one = request.add_user_role_assignments();
      one->set_user_id(user.id());
      one->mutable_role_assignment()->mutable_role()->set_role_id(role.role_id());
      if (flags->workspace.empty()) {
        one->mutable_role_assignment()->set_scope_cluster(true);
      } else {
        TRY_ASSIGN(const v1::Workspace workspace, find_workspace(*client, flags->workspace));
        one->mutable_role_assignment()->mutable_scope_workspace_id()->set_value(workspace.id());
      }
      TRY(client->call(method, request));
      std::cout << done << ' ' << role.name()
                << (flags->workspace.empty() ? "" : " in " + printable(flags->workspace)) << ": "
                << printable(user.username()) << '\n';
      return 0;
    };
  };
}

}  // namespace

Command rbac_command() {
  return {{"rbac"},
          "Look after roles.",
          {},
          {{{"my-permissions"}, "Show your own roles.", declare_my_permissions},
           {{"list-roles"}, "List the roles there are.", declare_list_roles},
           {{"list-users-roles"}, "List a user's roles.", declare_users_roles},
           {{"describe-role"}, "Show what a role may do, and who has it.", declare_describe_role},
           {{"assign-role"}, "Give a user a role.", declare_assignment(&RoleStub::AssignRoles, "Assigned")},
           {{"unassign-role"},
            "Take a role from a user.",
            declare_assignment(&RoleStub::RemoveAssignments, "Unassigned")}}};
}

}  // namespace det::cli
