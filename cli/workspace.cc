// Owns `det workspace`.
#include <iostream>

#include "cli/accounts.h"
#include "cli/command.h"
#include "cli/paging.h"
#include "cli/print.h"
#include "cli/terminal.h"
#include "det/v1/role.grpc.pb.h"
#include "det/v1/workspace.grpc.pb.h"

namespace det::cli {
namespace {

using Stub = v1::WorkspaceService::Stub;

Table table_of(const google::protobuf::RepeatedPtrField<v1::Workspace>& workspaces) {
  Table table{{"ID", "Name", "Owner", "# Projects", "# Experiments", "Archived"}, {}};
  for (const v1::Workspace& each : workspaces) {
    table.rows.push_back({std::to_string(each.id()), each.name(), each.username(),
                          std::to_string(each.num_projects()), std::to_string(each.num_experiments()),
                          yes_or_no(each.archived())});
  }
  return table;
}

struct Named {
  std::string name;
  Output output;
  bool all = false, yes = false;
};

Action declare_list(CLI::App& app) {
  auto flags = std::make_shared<Named>();
  app.add_flag("-a,--all", flags->all, "Also archived ones.");
  flags->output.declare(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::GetWorkspacesRequest request;
    if (!flags->all) request.mutable_archived()->set_value(false);
    TRY_ASSIGN(const auto response, client->call(&Stub::GetWorkspaces, request));
    TRY(flags->output.print(table_of(response.workspaces()),
                            [&] { return list_to_json(response.workspaces()); }));
    return 0;
  };
}

Action declare_describe(CLI::App& app) {
  auto flags = std::make_shared<Named>();
  app.add_option("NAME", flags->name, "The workspace.")->required();
  flags->output.declare(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const v1::Workspace workspace, find_workspace(*client, flags->name));
    google::protobuf::RepeatedPtrField<v1::Workspace> one;
    *one.Add() = workspace;
    TRY(flags->output.print(table_of(one), [&] { return to_json(workspace); }));
    return 0;
  };
}

Action declare_projects(CLI::App& app) {
  auto flags = std::make_shared<Named>();
  app.add_option("NAME", flags->name, "The workspace.")->required();
  flags->output.declare(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const v1::Workspace workspace, find_workspace(*client, flags->name));
    v1::GetWorkspaceProjectsRequest request;
    request.set_id(workspace.id());
    TRY_ASSIGN(const auto response, client->call(&Stub::GetWorkspaceProjects, request));
    Table table{{"ID", "Name", "Description", "# Experiments", "# Active Experiments", "Archived"}, {}};
    for (const v1::Project& each : response.projects()) {
      table.rows.push_back({std::to_string(each.id()), each.name(), each.description(),
                            std::to_string(each.num_experiments()),
                            std::to_string(each.num_active_experiments()), yes_or_no(each.archived())});
    }
    TRY(flags->output.print(table, [&] { return list_to_json(response.projects()); }));
    return 0;
  };
}

Action declare_members(CLI::App& app) {
  auto flags = std::make_shared<Named>();
  app.add_option("NAME", flags->name, "The workspace.")->required();
  flags->output.declare(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const v1::Workspace workspace, find_workspace(*client, flags->name));
    v1::GetUsersAssignedToWorkspaceRequest request;
    request.set_workspace_id(workspace.id());
    TRY_ASSIGN(const auto response,
               client->call(&v1::RoleService::Stub::GetUsersAssignedToWorkspace, request));
    std::map<int, std::string> names;
    for (const v1::User& user : response.users_assigned_directly()) names[user.id()] = user.username();
    Table table{{"User", "Role", "Scope"}, {}};
    for (const v1::RoleWithAssignments& role : response.assignments())
      for (const v1::UserRoleAssignment& each : role.user_role_assignments())
        table.rows.push_back({names[each.user_id()], role.role().name(),
                              each.role_assignment().scope_cluster() ? "cluster" : "workspace"});
    TRY(flags->output.print(table, [&] { return to_json(response); }));
    return 0;
  };
}

Action declare_create(CLI::App& app) {
  auto flags = std::make_shared<Named>();
  app.add_option("NAME", flags->name, "The new workspace's name.")->required();
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::PostWorkspaceRequest request;
    request.set_name(flags->name);
    TRY_ASSIGN(const auto response, client->call(&Stub::PostWorkspace, request));
    std::cout << "Created workspace " << printable(response.workspace().name()) << " with id "
              << response.workspace().id() << '\n';
    return 0;
  };
}

Action declare_edit(CLI::App& app) {
  auto name = std::make_shared<std::string>(), to = std::make_shared<std::string>();
  app.add_option("NAME", *name, "The workspace.")->required();
  app.add_option("NEW_NAME,--name", *to, "The new name.")->required();
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const v1::Workspace workspace, find_workspace(*client, *name));
    v1::PatchWorkspaceRequest request;
    request.set_id(workspace.id());
    request.mutable_workspace()->mutable_name()->set_value(*to);
    TRY(client->call(&Stub::PatchWorkspace, request));
    std::cout << "Renamed workspace " << printable(*name) << " to " << printable(*to) << '\n';
    return 0;
  };
}

template <typename Method>
std::function<Action(CLI::App&)> declare_act(Method method, const char* done) {
  return [=](CLI::App& app) -> Action {
    auto flags = std::make_shared<Named>();
    app.add_option("NAME", flags->name, "The workspace.")->required();
    return [=](Session& session) -> Result<int> {
      TRY_ASSIGN(Client * client, session.client());
      TRY_ASSIGN(const v1::Workspace workspace, find_workspace(*client, flags->name));
      v1::WorkspaceActionRequest request;
      request.set_id(workspace.id());
      TRY(client->call(method, request));
      std::cout << done << " workspace " << printable(flags->name) << '\n';
      return 0;
    };
  };
}

Action declare_delete(CLI::App& app) {
  auto flags = std::make_shared<Named>();
  app.add_option("NAME", flags->name, "The workspace.")->required();
  app.add_flag("-y,--yes", flags->yes, "Do not ask.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const v1::Workspace workspace, find_workspace(*client, flags->name));
    if (!flags->yes) {
      TRY_ASSIGN(const std::string answer, ask("Delete workspace " + printable(flags->name) +
                                               " with its projects and templates? [y/N] "));
      if (answer != "y" && answer != "Y" && answer != "yes")
        return fail(Code::kCancelled, "nothing was deleted");
    }
    v1::WorkspaceActionRequest request;
    request.set_id(workspace.id());
    TRY(client->call(&Stub::DeleteWorkspace, request));
    std::cout << "Deleted workspace " << printable(flags->name) << '\n';
    return 0;
  };
}

}  // namespace

Command workspace_command() {
  return {{"workspace", "w"},
          "Look after workspaces.",
          {},
          {{{"list", "ls"}, "List workspaces.", declare_list},
           {{"list-projects"}, "List a workspace's projects.", declare_projects},
           {{"list-members"}, "List who has which role in a workspace.", declare_members},
           {{"describe"}, "Show a workspace.", declare_describe},
           {{"create"}, "Make a workspace.", declare_create},
           {{"edit"}, "Change a workspace's name.", declare_edit},
           {{"archive"},
            "Let nothing new be made in a workspace.",
            declare_act(&Stub::ArchiveWorkspace, "Archived")},
           {{"unarchive"},
            "Take an archived workspace up again.",
            declare_act(&Stub::UnarchiveWorkspace, "Unarchived")},
           {{"delete"}, "Delete a workspace that has no experiments.", declare_delete}}};
}

}  // namespace det::cli
