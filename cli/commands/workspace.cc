// `det workspace`: lists, creates, changes and deletes workspaces.
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/commands/accounts.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "cli/output/terminal.h"
#include "cli/submit/follow.h"
#include "det/v1/binding.methods.h"
#include "det/v1/cluster.methods.h"
#include "det/v1/role.methods.h"
#include "det/v1/workspace.methods.h"

namespace det::cli {
namespace {

Table table_of(const google::protobuf::RepeatedPtrField<v1::Workspace>& workspaces) {
  Table table{{"ID", "Name", "Owner", "# Projects", "# Experiments", "Archived"}, {}, {1}};
  for (const v1::Workspace& each : workspaces) {
    table.rows.push_back({std::to_string(each.id()), each.name(), each.username(),
                          std::to_string(each.num_projects()), std::to_string(each.num_experiments()),
                          yes_or_no(each.archived())});
  }
  return table;
}

struct WorkspaceListOptions {
  bool all = false;
  Output output;
  void declare(CLI::App& app) {
    app.add_flag("-a,--all", all, "Include archived workspaces.");
    output.declare_list(app);
  }
};

/// Lists workspaces; archived ones only with --all.
Status list_workspaces(Client& client, const WorkspaceListOptions& options) {
  v1::GetWorkspacesRequest request;
  if (!options.all) request.mutable_archived()->set_value(false);
  TRY_ASSIGN(const auto response, client.call(v1::WorkspaceService::GetWorkspaces, request));
  return options.output.print(table_of(response.workspaces()),
                              [&] { return list_to_json(response.workspaces()); });
}

struct WorkspaceOptions {
  std::string name;
  void declare(CLI::App& app) { app.add_option("NAME", name, "Workspace name.")->required(); }
};

/// `list` adds --quiet.
struct WorkspaceShowOptions : WorkspaceOptions {
  bool list = false;
  Output output = {};
  void declare(CLI::App& app) {
    WorkspaceOptions::declare(app);
    list ? output.declare_list(app) : output.declare(app);
  }
};

/// Declares a verb that shows something of one workspace.
Declare show_action(bool list, Status (*show)(Client&, const v1::Workspace&, const Output&)) {
  const auto run = [=](Client& client, const WorkspaceShowOptions& options) -> Status {
    TRY_ASSIGN(const v1::Workspace workspace, find_workspace(client, options.name));
    return show(client, workspace, options.output);
  };
  return action(run, WorkspaceShowOptions{{}, list});
}

Status show_workspace(Client&, const v1::Workspace& workspace, const Output& output) {
  google::protobuf::RepeatedPtrField<v1::Workspace> one;
  *one.Add() = workspace;
  return output.print(table_of(one), [&] { return to_json(workspace); });
}

Status show_projects(Client& client, const v1::Workspace& workspace, const Output& output) {
  v1::GetWorkspaceProjectsRequest request;
  request.set_id(workspace.id());
  TRY_ASSIGN(const auto response, client.call(v1::WorkspaceService::GetWorkspaceProjects, request));
  return output.print(project_table(response.projects()), [&] { return list_to_json(response.projects()); });
}

/// Lists the pools that are open to the workspace, with their agents.
Status show_pools(Client& client, const v1::Workspace& workspace, const Output& output) {
  v1::ListRPsBoundToWorkspaceRequest request;
  request.set_workspace_id(workspace.id());
  TRY_ASSIGN(const auto open, client.call(v1::BindingService::ListRPsBoundToWorkspace, request));
  TRY_ASSIGN(const auto response, client.call(v1::ClusterService::GetAgents, v1::GetAgentsRequest()));
  struct Size {
    std::size_t agents = 0, slots = 0;
  };
  std::map<std::string, Size> pools;
  for (const std::string& pool : open.resource_pools()) pools.try_emplace(pool);
  for (const v1::Agent& agent : response.agents()) {
    for (const std::string& pool : agent.resource_pools()) {
      const auto found = pools.find(pool);
      if (found == pools.end()) continue;
      ++found->second.agents;
      found->second.slots += agent.slots().size();
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
  TRY_ASSIGN(const auto response, client.call(v1::RoleService::GetUsersAssignedToWorkspace, request));
  std::map<int, std::string> names;
  for (const v1::User& user : response.users_assigned_directly()) names[user.id()] = user.username();
  std::map<int, std::string> groups;
  for (const v1::GroupDetails& group : response.groups()) groups[group.group_id()] = group.name();
  Table table{{"Member", "Kind", "Role", "Scope"}, {}};
  for (const v1::RoleWithAssignments& role : response.assignments()) {
    for (const v1::UserRoleAssignment& each : role.user_role_assignments()) {
      table.rows.push_back({names[each.user_id()], "user", role.role().name(),
                            each.role_assignment().scope_cluster() ? "cluster" : "workspace"});
    }
    for (const v1::GroupRoleAssignment& each : role.group_role_assignments()) {
      table.rows.push_back({groups[each.group_id()], "group", role.role().name(),
                            each.role_assignment().scope_cluster() ? "cluster" : "workspace"});
    }
  }
  return output.print(table, [&] { return to_json(response); });
}

Status create_workspace(Client& client, const WorkspaceOptions& options) {
  v1::PostWorkspaceRequest request;
  request.set_name(options.name);
  TRY_ASSIGN(const auto response, client.call(v1::WorkspaceService::PostWorkspace, request));
  std::cout << "Created workspace " << printable(response.workspace().name()) << " with id "
            << response.workspace().id() << '\n';
  return {};
}

struct WorkspaceEditOptions : WorkspaceOptions {
  std::string new_name;
  void declare(CLI::App& app) {
    WorkspaceOptions::declare(app);
    app.add_option("NEW_NAME,--name", new_name, "New name.")->required();
  }
};

Status rename_workspace(Client& client, const WorkspaceEditOptions& options) {
  TRY_ASSIGN(const v1::Workspace workspace, find_workspace(client, options.name));
  v1::PatchWorkspaceRequest request;
  request.set_id(workspace.id());
  request.mutable_workspace()->mutable_name()->set_value(options.new_name);
  TRY(client.call(v1::WorkspaceService::PatchWorkspace, request));
  std::cout << "Renamed workspace " << printable(options.name) << " to " << printable(options.new_name)
            << '\n';
  return {};
}

/// Makes the call `method` for a workspace and prints `done`.
template <typename Method>
Status act_on_workspace(Client& client, const WorkspaceOptions& options, Method method, const char* done) {
  TRY_ASSIGN(const v1::Workspace workspace, find_workspace(client, options.name));
  v1::WorkspaceActionRequest request;
  request.set_id(workspace.id());
  TRY(client.call(method, request));
  std::cout << done << " workspace " << printable(options.name) << '\n';
  return {};
}

Status archive_workspace(Client& client, const WorkspaceOptions& options) {
  return act_on_workspace(client, options, v1::WorkspaceService::ArchiveWorkspace, "Archived");
}

Status unarchive_workspace(Client& client, const WorkspaceOptions& options) {
  return act_on_workspace(client, options, v1::WorkspaceService::UnarchiveWorkspace, "Unarchived");
}

struct WorkspaceDeleteOptions : WorkspaceOptions {
  bool yes = false;
  void declare(CLI::App& app) {
    WorkspaceOptions::declare(app);
    app.add_flag("-y,--yes", yes, "Skip the confirmation prompt.");
  }
};

Status delete_workspace(Client& client, const WorkspaceDeleteOptions& options) {
  TRY_ASSIGN(const v1::Workspace workspace, find_workspace(client, options.name));
  if (!options.yes) {
    TRY_ASSIGN(const bool sure, confirm("Delete workspace " + printable(options.name) +
                                        " with all its projects, experiments and commands?"));
    if (!sure) return fail(Code::kCancelled, "nothing was deleted");
  }
  v1::WorkspaceActionRequest request;
  request.set_id(workspace.id());
  TRY_ASSIGN(const auto response, client.call(v1::WorkspaceService::DeleteWorkspace, request));
  if (!response.completed()) {
    TRY(wait_for_deletion([&]() -> Result<v1::Workspace> {
      v1::GetWorkspaceRequest get;
      get.set_id(workspace.id());
      TRY_ASSIGN(auto now, client.call(v1::WorkspaceService::GetWorkspace, get));
      return std::move(*now.mutable_workspace());
    }));
  }
  std::cout << "Deleted workspace " << printable(options.name) << '\n';
  return {};
}

}  // namespace

Command workspace_command() {
  return {{"workspace", "w"},
          "Manage workspaces.",
          {},
          {{{"list", "ls"}, "List workspaces.", action(list_workspaces)},
           {{"list-projects"}, "List the projects of a workspace.", show_action(true, show_projects)},
           {{"list-pools"}, "List the resource pools of a workspace.", show_action(true, show_pools)},
           {{"list-members"},
            "List users and groups with their roles in a workspace.",
            show_action(true, show_members)},
           {{"describe"}, "Show a workspace.", show_action(false, show_workspace)},
           {{"create"}, "Create a workspace.", action(create_workspace)},
           {{"edit"}, "Rename a workspace.", action(rename_workspace)},
           {{"archive"}, "Archive a workspace. It accepts no new experiments.", action(archive_workspace)},
           {{"unarchive"}, "Unarchive a workspace.", action(unarchive_workspace)},
           {{"delete"}, "Delete a workspace with all that it contains.", action(delete_workspace)}}};
}

}  // namespace det::cli
