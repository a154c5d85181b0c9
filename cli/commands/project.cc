// `det project`: lists, creates, changes and deletes projects.
#include <iostream>

#include "cli/command.h"
#include "cli/commands/accounts.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "cli/output/terminal.h"
#include "det/v1/project.grpc.pb.h"
#include "det/v1/workspace.grpc.pb.h"

namespace det::cli {
namespace {

using ProjectStub = v1::ProjectService::Stub;

/// Flags of all verbs.
struct NamedProject {
  std::string workspace, name, new_name, description;
  Output output;
  bool all = false, yes = false;
};

/// Adds the arguments that name an existing project.
void add_names(CLI::App& app, NamedProject& flags) {
  app.add_option("WORKSPACE", flags.workspace, "The workspace.")->required();
  app.add_option("PROJECT", flags.name, "The project.")->required();
}

/// Lists the projects of a workspace; archived ones only with --all.
Action declare_project_list(CLI::App& app) {
  auto flags = std::make_shared<NamedProject>();
  app.add_option("WORKSPACE", flags->workspace, "The workspace.")->required();
  app.add_flag("-a,--all", flags->all, "Also archived ones.");
  flags->output.declare_list(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const v1::Workspace workspace, find_workspace(*client, flags->workspace));
    v1::GetWorkspaceProjectsRequest request;
    request.set_id(workspace.id());
    if (!flags->all) request.mutable_archived()->set_value(false);
    TRY_ASSIGN(const auto response, client->call(&v1::WorkspaceService::Stub::GetWorkspaceProjects, request));
    TRY(flags->output.print(project_table(response.projects()),
                            [&] { return list_to_json(response.projects()); }));
    return 0;
  };
}

Action declare_project_describe(CLI::App& app) {
  auto flags = std::make_shared<NamedProject>();
  add_names(app, *flags);
  flags->output.declare(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const v1::Project project, find_project(*client, flags->workspace, flags->name));
    google::protobuf::RepeatedPtrField<v1::Project> one;
    *one.Add() = project;
    TRY(flags->output.print(project_table(one), [&] { return to_json(project); }));
    return 0;
  };
}

/// Lists the experiments of a project, all pages.
Action declare_experiments(CLI::App& app) {
  auto flags = std::make_shared<NamedProject>();
  add_names(app, *flags);
  app.add_flag("-a,--all", flags->all, "Also archived ones.");
  flags->output.declare_list(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const v1::Project project, find_project(*client, flags->workspace, flags->name));
    v1::GetExperimentsRequest request;
    request.set_project_id(project.id());
    if (!flags->all) request.mutable_archived()->set_value(false);
    google::protobuf::RepeatedPtrField<v1::Experiment> experiments;
    TRY(each_page(
        Paging(), request,
        [&](const auto& page) { return client->call(&v1::ExperimentService::Stub::GetExperiments, page); },
        [&](const auto& response) { experiments.MergeFrom(response.experiments()); }));
    Table table{{"ID", "Owner", "Name", "State", "Started", "Ended"}, {}};
    for (const v1::Experiment& each : experiments) {
      table.rows.push_back({std::to_string(each.id()), each.username(), each.name(), state_text(each.state()),
                            time_text(each.start_time(), each.has_start_time()),
                            time_text(each.end_time(), each.has_end_time())});
    }
    TRY(flags->output.print(table, [&] { return list_to_json(experiments); }));
    return 0;
  };
}

Action declare_project_create(CLI::App& app) {
  auto flags = std::make_shared<NamedProject>();
  add_names(app, *flags);
  app.add_option("--description", flags->description, "What it is for.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const v1::Workspace workspace, find_workspace(*client, flags->workspace));
    v1::PostProjectRequest request;
    request.set_workspace_id(workspace.id());
    request.set_name(flags->name);
    request.set_description(flags->description);
    TRY_ASSIGN(const auto response, client->call(&ProjectStub::PostProject, request));
    std::cout << "Created project " << printable(response.project().name()) << " with id "
              << response.project().id() << '\n';
    return 0;
  };
}

/// Changes the name, the description or both.
Action declare_project_edit(CLI::App& app) {
  auto flags = std::make_shared<NamedProject>();
  add_names(app, *flags);
  app.add_option("--new_name,--new-name", flags->new_name, "A new name.");
  auto* description = app.add_option("--description", flags->description, "What it is for.");
  return [=](Session& session) -> Result<int> {
    v1::PatchProjectRequest request;
    if (!flags->new_name.empty()) request.mutable_project()->mutable_name()->set_value(flags->new_name);
    // An empty description is a legal new value.
    if (description->count() > 0)
      request.mutable_project()->mutable_description()->set_value(flags->description);
    if (!request.has_project())
      return fail(Code::kInvalidArgument, "nothing to change; see `det project edit --help`");
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const v1::Project project, find_project(*client, flags->workspace, flags->name));
    request.set_id(project.id());
    TRY(client->call(&ProjectStub::PatchProject, request));
    std::cout << "Changed project " << printable(flags->name) << '\n';
    return 0;
  };
}

/// Declares archive, unarchive or delete. `delete` prompts the user and has the flag --yes.
template <typename Method>
std::function<Action(CLI::App&)> declare_act(Method method, const char* done, bool asks) {
  return [=](CLI::App& app) -> Action {
    auto flags = std::make_shared<NamedProject>();
    add_names(app, *flags);
    if (asks) app.add_flag("-y,--yes", flags->yes, "Do not ask.");
    return [=](Session& session) -> Result<int> {
      TRY_ASSIGN(Client * client, session.client());
      TRY_ASSIGN(const v1::Project project, find_project(*client, flags->workspace, flags->name));
      if (asks && !flags->yes) {
        TRY_ASSIGN(const bool sure, confirm("Delete project " + printable(flags->name) + "?"));
        if (!sure) return fail(Code::kCancelled, "nothing was deleted");
      }
      v1::ProjectActionRequest request;
      request.set_id(project.id());
      TRY(client->call(method, request));
      std::cout << done << " project " << printable(flags->name) << '\n';
      return 0;
    };
  };
}

}  // namespace

Command project_command() {
  return {{"project", "p"},
          "Look after projects.",
          {},
          {{{"list", "ls"}, "List a workspace's projects.", declare_project_list},
           {{"list-experiments"}, "List a project's experiments.", declare_experiments},
           {{"describe"}, "Show a project.", declare_project_describe},
           {{"create"}, "Make a project.", declare_project_create},
           {{"edit"}, "Change a project.", declare_project_edit},
           {{"archive"},
            "Let nothing new be made in a project.",
            declare_act(&ProjectStub::ArchiveProject, "Archived", false)},
           {{"unarchive"},
            "Take an archived project up again.",
            declare_act(&ProjectStub::UnarchiveProject, "Unarchived", false)},
           {{"delete"},
            "Delete a project that has no experiments.",
            declare_act(&ProjectStub::DeleteProject, "Deleted", true)}}};
}

}  // namespace det::cli
