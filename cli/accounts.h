// Owns finding people, workspaces and projects by what users call them: a name or an id.
#pragma once

#include <map>
#include <string>

#include "cli/client.h"
#include "cli/print.h"
#include "det/v1/auth.pb.h"
#include "det/v1/project.pb.h"
#include "det/v1/workspace.pb.h"

namespace det::cli {

/// kNotFound.
Result<v1::User> find_user(Client& client, const std::string& name);
Result<v1::Workspace> find_workspace(Client& client, const std::string& name);
Result<v1::Project> find_project(Client& client, const std::string& workspace, const std::string& project);

/// How projects look in a list.
Table project_table(const google::protobuf::RepeatedPtrField<v1::Project>& projects);

/// The names of users by their ids, for lists.
Result<std::map<int, std::string>> user_names(Client& client);

/// Asks twice on a terminal, reads a line otherwise. kInvalidArgument when the two differ or it is empty.
Result<std::string> ask_new_password(const std::string& user);

}  // namespace det::cli
