// `det project`: lists, creates, changes and deletes projects.
#include <iostream>
#include <optional>

#include "cli/command.h"
#include "cli/commands/accounts.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "cli/output/terminal.h"
#include "cli/submit/follow.h"
#include "det/v1/project.methods.h"
#include "det/v1/workspace.methods.h"

namespace det::cli {
namespace {

struct ProjectOptions {
  std::string workspace, name;
  void declare(CLI::App& app) {
    app.add_option("WORKSPACE", workspace, "Workspace name.")->required();
    app.add_option("PROJECT", name, "Project name.")->required();
  }
};

struct ProjectListOptions {
  std::string workspace;
  bool all = false;
  Output output;
  void declare(CLI::App& app) {
    app.add_option("WORKSPACE", workspace, "Workspace name.")->required();
    app.add_flag("-a,--all", all, "Include archived projects.");
    output.declare_list(app);
  }
};

/// Lists the projects of a workspace; archived ones only with --all.
Status list_projects(Client& client, const ProjectListOptions& options) {
  TRY_ASSIGN(const v1::Workspace workspace, find_workspace(client, options.workspace));
  v1::GetWorkspaceProjectsRequest request;
  request.set_id(workspace.id());
  if (!options.all) request.mutable_archived()->set_value(false);
  TRY_ASSIGN(const auto response, client.call(v1::WorkspaceService::GetWorkspaceProjects, request));
  return options.output.print(project_table(response.projects()),
                              [&] { return list_to_json(response.projects()); });
}

struct ProjectDescribeOptions : ProjectOptions {
  Output output;
  void declare(CLI::App& app) {
    ProjectOptions::declare(app);
    output.declare(app);
  }
};

Status describe_project(Client& client, const ProjectDescribeOptions& options) {
  TRY_ASSIGN(const v1::Project project, find_project(client, options.workspace, options.name));
  google::protobuf::RepeatedPtrField<v1::Project> one;
  *one.Add() = project;
  return options.output.print(project_table(one), [&] { return to_json(project); });
}

struct ProjectExperimentsOptions : ProjectOptions {
  bool all = false;
  Output output;
  void declare(CLI::App& app) {
    ProjectOptions::declare(app);
    app.add_flag("-a,--all", all, "Include archived experiments.");
    output.declare_list(app);
  }
};

/// Lists the experiments of a project, all pages.
Status list_project_experiments(Client& client, const ProjectExperimentsOptions& options) {
  TRY_ASSIGN(const v1::Project project, find_project(client, options.workspace, options.name));
  v1::GetExperimentsRequest request;
  request.set_project_id(project.id());
  if (!options.all) request.mutable_archived()->set_value(false);
  google::protobuf::RepeatedPtrField<v1::Experiment> experiments;
  TRY(each_page(
      Paging(), request,
      [&](const auto& page) { return client.call(v1::ExperimentService::GetExperiments, page); },
      [&](const auto& response) { experiments.MergeFrom(response.experiments()); }));
  Table table{{"ID", "Owner", "Name", "State", "Started", "Ended"}, {}};
  for (const v1::Experiment& each : experiments) {
    table.rows.push_back({std::to_string(each.id()), each.username(), each.name(), state_text(each.state()),
                          time_text(each.start_time(), each.has_start_time()),
                          time_text(each.end_time(), each.has_end_time())});
  }
  return options.output.print(table, [&] { return list_to_json(experiments); });
}

struct ProjectCreateOptions : ProjectOptions {
  std::string description;
  void declare(CLI::App& app) {
    ProjectOptions::declare(app);
    app.add_option("--description", description, "Description.");
  }
};

Status create_project(Client& client, const ProjectCreateOptions& options) {
  TRY_ASSIGN(const v1::Workspace workspace, find_workspace(client, options.workspace));
  v1::PostProjectRequest request;
  request.set_workspace_id(workspace.id());
  request.set_name(options.name);
  request.set_description(options.description);
  TRY_ASSIGN(const auto response, client.call(v1::ProjectService::PostProject, request));
  std::cout << "Created project " << printable(response.project().name()) << " with id "
            << response.project().id() << '\n';
  return {};
}

/// An empty description is a legal new value.
struct ProjectEditOptions : ProjectOptions {
  std::string new_name;
  std::optional<std::string> description;
  void declare(CLI::App& app) {
    ProjectOptions::declare(app);
    app.add_option("--new_name,--new-name", new_name, "New name.");
    app.add_option("--description", description, "New description.");
  }
};

/// Changes the name, the description or both.
Status edit_project(Session& session, const ProjectEditOptions& options) {
  v1::PatchProjectRequest request;
  if (!options.new_name.empty()) request.mutable_project()->mutable_name()->set_value(options.new_name);
  if (options.description) request.mutable_project()->mutable_description()->set_value(*options.description);
  if (!request.has_project())
    return fail(Code::kInvalidArgument, "nothing to change; see `det project edit --help`");
  TRY_ASSIGN(Client * client, session.client());
  TRY_ASSIGN(const v1::Project project, find_project(*client, options.workspace, options.name));
  request.set_id(project.id());
  TRY(client->call(v1::ProjectService::PatchProject, request));
  std::cout << "Changed project " << printable(options.name) << '\n';
  return {};
}

/// Makes the call `method` for a project and prints `done`.
template <typename Method>
Status act_on_project(Client& client, const ProjectOptions& options, Method method, const char* done) {
  TRY_ASSIGN(const v1::Project project, find_project(client, options.workspace, options.name));
  v1::ProjectActionRequest request;
  request.set_id(project.id());
  TRY(client.call(method, request));
  std::cout << done << " project " << printable(options.name) << '\n';
  return {};
}

Status archive_project(Client& client, const ProjectOptions& options) {
  return act_on_project(client, options, v1::ProjectService::ArchiveProject, "Archived");
}

Status unarchive_project(Client& client, const ProjectOptions& options) {
  return act_on_project(client, options, v1::ProjectService::UnarchiveProject, "Unarchived");
}

struct ProjectDeleteOptions : ProjectOptions {
  bool yes = false;
  void declare(CLI::App& app) {
    ProjectOptions::declare(app);
    app.add_flag("-y,--yes", yes, "Skip the confirmation prompt.");
  }
};

Status delete_project(Client& client, const ProjectDeleteOptions& options) {
  TRY_ASSIGN(const v1::Project project, find_project(client, options.workspace, options.name));
  if (!options.yes) {
    TRY_ASSIGN(const bool sure,
               confirm("Delete project " + printable(options.name) + " with all its experiments?"));
    if (!sure) return fail(Code::kCancelled, "nothing was deleted");
  }
  v1::ProjectActionRequest request;
  request.set_id(project.id());
  TRY_ASSIGN(const auto response, client.call(v1::ProjectService::DeleteProject, request));
  if (!response.completed()) {
    TRY(wait_for_deletion([&]() -> Result<v1::Project> {
      v1::GetProjectRequest get;
      get.set_id(project.id());
      TRY_ASSIGN(auto now, client.call(v1::ProjectService::GetProject, get));
      return std::move(*now.mutable_project());
    }));
  }
  std::cout << "Deleted project " << printable(options.name) << '\n';
  return {};
}

}  // namespace

Command project_command() {
  return {{"project", "p"},
          "Manage projects.",
          {},
          {{{"list", "ls"}, "List the projects of a workspace.", action(list_projects)},
           {{"list-experiments"}, "List the experiments of a project.", action(list_project_experiments)},
           {{"describe"}, "Show a project.", action(describe_project)},
           {{"create"}, "Create a project.", action(create_project)},
           {{"edit"}, "Change name or description of a project.", action(edit_project)},
           {{"archive"}, "Archive a project. It accepts no new experiments.", action(archive_project)},
           {{"unarchive"}, "Unarchive a project.", action(unarchive_project)},
           {{"delete"}, "Delete a project with its experiments.", action(delete_project)}}};
}

}  // namespace det::cli
