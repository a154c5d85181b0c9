#include "cli/commands/accounts.h"

#include "cli/output/terminal.h"
#include "det/v1/project.methods.h"
#include "det/v1/user.methods.h"
#include "det/v1/workspace.methods.h"

namespace det::cli {

Result<v1::User> find_user(Client& client, const std::string& name) {
  v1::GetUserByUsernameRequest request;
  request.set_username(name);
  TRY_ASSIGN(auto response, client.call(v1::UserService::GetUserByUsername, request));
  return std::move(*response.mutable_user());
}

Result<v1::Workspace> find_workspace(Client& client, const std::string& name) {
  v1::GetWorkspacesRequest request;
  request.set_name(name);
  TRY_ASSIGN(auto response, client.call(v1::WorkspaceService::GetWorkspaces, request));
  // The filter of the request matches substrings, in any case.
  for (v1::Workspace& each : *response.mutable_workspaces())
    if (each.name() == name) return std::move(each);
  return fail(Code::kNotFound, "workspace \"" + name + "\" not found; see `det workspace list`");
}

Result<v1::Project> find_project(Client& client, const std::string& workspace, const std::string& project) {
  TRY_ASSIGN(const v1::Workspace found, find_workspace(client, workspace));
  v1::GetWorkspaceProjectsRequest request;
  request.set_id(found.id());
  request.set_name(project);
  TRY_ASSIGN(auto response, client.call(v1::WorkspaceService::GetWorkspaceProjects, request));
  // The name filter of the request may match more than the exact name.
  for (v1::Project& each : *response.mutable_projects())
    if (each.name() == project) return std::move(each);
  return fail(Code::kNotFound, "project \"" + project + "\" not found in workspace \"" + workspace +
                                   "\"; see `det project list`");
}

Table project_table(const google::protobuf::RepeatedPtrField<v1::Project>& projects) {
  Table table{{"ID", "Name", "Description", "# Experiments", "# Active Experiments", "Archived"}, {}, {1}};
  for (const v1::Project& each : projects) {
    table.rows.push_back({std::to_string(each.id()), each.name(), each.description(),
                          std::to_string(each.num_experiments()),
                          std::to_string(each.num_active_experiments()), yes_or_no(each.archived())});
  }
  return table;
}

Result<std::map<int, std::string>> user_names(Client& client) {
  TRY_ASSIGN(const auto response, client.call(v1::UserService::GetUsers, v1::GetUsersRequest()));
  std::map<int, std::string> names;
  for (const v1::User& each : response.users()) names[each.id()] = each.username();
  return names;
}

Result<std::string> ask_new_password(const std::string& user) {
  TRY_ASSIGN(const std::string once, ask_secret("New password for user " + user + ": "));
  if (once.empty()) return fail(Code::kInvalidArgument, "the password is empty");
  // A script supplies the password once: there is no typing error to catch.
  if (!is_terminal(0)) return once;
  TRY_ASSIGN(const std::string again, ask_secret("Again: "));
  if (once != again) return fail(Code::kInvalidArgument, "the two passwords differ; try again");
  return once;
}

}  // namespace det::cli
