// Resolves the users, workspaces and projects that users name on the command line.
#pragma once

#include <map>
#include <string>

#include "cli/output/print.h"
#include "common/client/client.h"
#include "det/v1/auth.pb.h"
#include "det/v1/group.pb.h"
#include "det/v1/project.pb.h"
#include "det/v1/workspace.pb.h"

namespace det::cli {

/// Returns the object with exactly this name. Errors: kNotFound; those of Client::call(). Blocks for one
/// call, find_project() for two.
Result<v1::User> find_user(Client& client, const std::string& name);
Result<v1::Workspace> find_workspace(Client& client, const std::string& name);
Result<v1::Project> find_project(Client& client, const std::string& workspace, const std::string& project);

/// Formats projects as a table, one row each. --quiet prints their names.
Table project_table(const google::protobuf::RepeatedPtrField<v1::Project>& projects);

/// Returns the names of all users by user id. Blocks for one call.
Result<std::map<int, std::string>> user_names(Client& client);

/// Returns the group with exactly this name. Errors: kNotFound. Defined in user_group.cc.
Result<v1::Group> find_group(Client& client, const std::string& name);
/// Returns the names of all groups by id. Blocks for one call.
Result<std::map<int, std::string>> group_names(Client& client);

/// Reads a new password: twice and without echo on a terminal, else one line of standard input. Errors:
/// kInvalidArgument (empty, or the two entries differ); those of ask_secret().
Result<std::string> ask_new_password(const std::string& user);

}  // namespace det::cli
