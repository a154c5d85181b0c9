// `det workspace`: lists, creates, changes and deletes workspaces.
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/commands/accounts.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "cli/output/terminal.h"
#include "det/v1/cluster.grpc.pb.h"
#include "det/v1/role.grpc.pb.h"
#include "det/v1/workspace.grpc.pb.h"

namespace det::cli {
namespace {

using WorkspaceStub = v1::WorkspaceService::Stub;

Table table_of(const google::protobuf::RepeatedPtrField<v1::Workspace>& workspaces) {
  Table table{{"ID", "Name", "Owner", "# Projects", "# Experiments", "Archived"}, {}, {1}};
  for (const v1::Workspace& each : workspaces) {
    table.rows.push_back({std::to_string(each.id()), each.name(), each.username(),
                          std::to_string(each.num_projects()), std::to_string(each.num_experiments()),
                          yes_or_no(each.archived())});
  }
  return table;
}

/// Flags of all verbs.
struct NamedWorkspace {
  std::string name;
  Output output;
  bool all = false, yes = false;
};

/// Lists workspaces; archived ones only with --all.
Action declare_workspace_list(CLI::App& app) {
  auto flags = std::make_shared<NamedWorkspace>();
  app.add_flag("-a,--all", flags->all, "Also archived ones.");
  flags->output.declare_list(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::GetWorkspacesRequest request;
    if (!flags->all) request.mutable_archived()->set_value(false);
    TRY_ASSIGN(const auto response, client->call(&WorkspaceStub::GetWorkspaces, request));
    TRY(flags->output.print(table_of(response.workspaces()),
                            [&] { return list_to_json(response.workspaces()); }));
    return 0;
  };
}

/// Declares a verb that shows something of one workspace. `list` adds --quiet.
std::function<Action(CLI::App&)> about_one(bool list,
                                           Status (*show)(Client&, const v1::Workspace&, const Output&)) {
  return [=](CLI::App& app) -> Action {
    auto flags = std::make_shared<NamedWorkspace>();
    app.add_option("NAME", flags->name, "The workspace.")->required();
    list ? flags->output.declare_list(app) : flags->output.declare(app);
    return [=](Session& session) -> Result<int> {
      TRY_ASSIGN(Client * client, session.client());
      TRY_ASSIGN(const v1::Workspace workspace, find_workspace(*client, flags->name));
      TRY(show(*client, workspace, flags->output));
      return 0;
    };
  };
}

Status show_workspace(Client&, const v1::Workspace& workspace, const Output& output) {
  google::protobuf::RepeatedPtrField<v1::Workspace> one;
  *one.Add() = workspace;
  return output.print(table_of(one), [&] { return to_json(workspace); });
}

Status show_projects(Client& client, const v1::Workspace& workspace, const Output& output) {
  v1::GetWorkspaceProjectsRequest request;
  request.set_id(workspace.id());
  TRY_ASSIGN(const auto response, client.call(&WorkspaceStub::GetWorkspaceProjects, request));
  return output.print(project_table(response.projects()), [&] { return list_to_json(response.projects()); });
}

/// Lists the pools that agents name. Each pool is open to every workspace.
Status show_pools(Client& client, const v1::Workspace&, const Output& output) {
  TRY_ASSIGN(const auto response, client.call(&v1::ClusterService::Stub::GetAgents, v1::GetAgentsRequest()));
  struct Size {
    std::size_t agents = 0, slots = 0;
  };
  std::map<std::string, Size> pools;
  for (const v1::Agent& agent : response.agents()) {
    for (const std::string& pool : agent.resource_pools()) {
      ++pools[pool].agents;
      pools[pool].slots += agent.slots().size();
    }
  }
  Table table{{"Resource Pool", "# Agents", "# Slots"}, {}};
  Json list = Json::array();
  for (const auto& [name, size] : pools) {
    table.rows.push_back({name, std::to_string(size.agents), std::to_string(size.slots)});
    list.push_back({{"name", name}, {"numAgents", size.agents}, {"numSlots", size.slots}});
  }
  return output.print(table, [&]() -> Result<Json> { return list; });
}

/// Lists the role assignments that apply to the workspace, also those of the whole cluster.
Status show_members(Client& client, const v1::Workspace& workspace, const Output& output) {
  v1::GetUsersAssignedToWorkspaceRequest request;
  request.set_workspace_id(workspace.id());
  TRY_ASSIGN(const auto response, client.call(&v1::RoleService::Stub::GetUsersAssignedToWorkspace, request));
  std::map<int, std::string> names;
  for (const v1::User& user : response.users_assigned_directly()) names[user.id()] = user.username();
  Table table{{"User", "Role", "Scope"}, {}};
  for (const v1::RoleWithAssignments& role : response.assignments()) {
    for (const v1::UserRoleAssignment& each : role.user_role_assignments()) {
      table.rows.push_back({names[each.user_id()], role.role().name(),
                            each.role_assignment().scope_cluster() ? "cluster" : "workspace"});
    }
  }
  return output.print(table, [&] { return to_json(response); });
}

Action declare_workspace_create(CLI::App& app) {
  auto flags = std::make_shared<NamedWorkspace>();
  app.add_option("NAME", flags->name, "The new workspace's name.")->required();
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::PostWorkspaceRequest request;
    request.set_name(flags->name);
    TRY_ASSIGN(const auto response, client->call(&WorkspaceStub::PostWorkspace, request));
    std::cout << "Created workspace " << printable(response.workspace().name()) << " with id "
              << response.workspace().id() << '\n';
    return 0;
  };
}

/// Renames a workspace.
Action declare_workspace_edit(CLI::App& app) {
  auto name = std::make_shared<std::string>(), to = std::make_shared<std::string>();
  app.add_option("NAME", *name, "The workspace.")->required();
  app.add_option("NEW_NAME,--name", *to, "The new name.")->required();
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const v1::Workspace workspace, find_workspace(*client, *name));
    v1::PatchWorkspaceRequest request;
    request.set_id(workspace.id());
    request.mutable_workspace()->mutable_name()->set_value(*to);
    TRY(client->call(&WorkspaceStub::PatchWorkspace, request));
    std::cout << "Renamed workspace " << printable(*name) << " to " << printable(*to) << '\n';
    return 0;
  };
}

/// Declares `archive` or `unarchive`.
template <typename Method>
std::function<Action(CLI::App&)> declare_act(Method method, const char* done) {
  return [=](CLI::App& app) -> Action {
    auto flags = std::make_shared<NamedWorkspace>();
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

/// Deletes a workspace with its projects and templates. Prompts unless --yes is set.
Action declare_workspace_delete(CLI::App& app) {
  auto flags = std::make_shared<NamedWorkspace>();
  app.add_option("NAME", flags->name, "The workspace.")->required();
  app.add_flag("-y,--yes", flags->yes, "Do not ask.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const v1::Workspace workspace, find_workspace(*client, flags->name));
    if (!flags->yes) {
      TRY_ASSIGN(const bool sure,
                 confirm("Delete workspace " + printable(flags->name) + " with its projects and templates?"));
      if (!sure) return fail(Code::kCancelled, "nothing was deleted");
    }
    v1::WorkspaceActionRequest request;
    request.set_id(workspace.id());
    TRY(client->call(&WorkspaceStub::DeleteWorkspace, request));
    std::cout << "Deleted workspace " << printable(flags->name) << '\n';
    return 0;
  };
}

}  // namespace

Command workspace_command() {
  return {{"workspace", "w"},
          "Look after workspaces.",
          {},
          {{{"list", "ls"}, "List workspaces.", declare_workspace_list},
           {{"list-projects"}, "List a workspace's projects.", about_one(true, show_projects)},
           {{"list-pools"}, "List the resource pools open to a workspace.", about_one(true, show_pools)},
           {{"list-members"}, "List who has which role in a workspace.", about_one(true, show_members)},
           {{"describe"}, "Show a workspace.", about_one(false, show_workspace)},
           {{"create"}, "Make a workspace.", declare_workspace_create},
           {{"edit"}, "Change a workspace's name.", declare_workspace_edit},
           {{"archive"},
            "Let nothing new be made in a workspace.",
            declare_act(&WorkspaceStub::ArchiveWorkspace, "Archived")},
           {{"unarchive"},
            "Take an archived workspace up again.",
            declare_act(&WorkspaceStub::UnarchiveWorkspace, "Unarchived")},
           {{"delete"}, "Delete a workspace that has no experiments.", declare_workspace_delete}}};
}

}  // namespace det::cli
