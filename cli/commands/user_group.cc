// `det user-group`: groups of users.
#include <iostream>

#include "cli/command.h"
#include "cli/commands/accounts.h"
#include "cli/output/print.h"
#include "cli/output/terminal.h"
#include "common/base/text.h"
#include "det/v1/group.methods.h"

namespace det::cli {
namespace {

/// Appends the ids of users. Errors: kNotFound for the first unknown name.
Status add_user_ids(Client& client, const std::vector<std::string>& names,
                    google::protobuf::RepeatedField<std::int32_t>* ids) {
  for (const std::string& name : names) {
    TRY_ASSIGN(const v1::User user, find_user(client, name));
    ids->Add(user.id());
  }
  return {};
}

struct GroupListOptions {
  std::string user;
  Output output;
  void declare(CLI::App& app) {
    app.add_option("--groups-user-belongs-to", user, "Only groups with this user.");
    output.declare_list(app);
  }
};

Status list_groups(Client& client, const GroupListOptions& options) {
  v1::GetGroupsRequest request;
  if (!options.user.empty()) {
    TRY_ASSIGN(const v1::User user, find_user(client, options.user));
    request.set_user_id(user.id());
  }
  TRY_ASSIGN(const auto response, client.call(v1::GroupService::GetGroups, request));
  Table table{{"ID", "Name", "Members"}, {}, {1}};
  for (const v1::GroupSearchResult& each : response.groups())
    table.rows.push_back(
        {std::to_string(each.group().group_id()), each.group().name(), std::to_string(each.num_members())});
  return options.output.print(table, [&] { return list_to_json(response.groups()); });
}

struct GroupDescribeOptions {
  std::string name;
  Output output;
  void declare(CLI::App& app) {
    app.add_option("GROUP", name, "Group name.")->required();
    output.declare(app);
  }
};

Status describe_group(Client& client, const GroupDescribeOptions& options) {
  TRY_ASSIGN(const v1::Group group, find_group(client, options.name));
  v1::GetGroupRequest request;
  request.set_group_id(group.group_id());
  TRY_ASSIGN(const auto response, client.call(v1::GroupService::GetGroup, request));
  Table table{{"User ID", "User", "Display Name", "Active"}, {}, {1}};
  for (const v1::User& user : response.group().users())
    table.rows.push_back(
        {std::to_string(user.id()), user.username(), user.display_name(), user.active() ? "yes" : "no"});
  return options.output.print(table, [&] { return to_json(response.group()); });
}

struct GroupCreateOptions {
  std::string name;
  std::vector<std::string> users;
  void declare(CLI::App& app) {
    app.add_option("GROUP", name, "Group name.")->required();
    app.add_option("--add-user", users, "User to add; may be repeated.");
  }
};

Status create_group(Client& client, const GroupCreateOptions& options) {
  v1::CreateGroupRequest request;
  request.set_name(options.name);
  TRY(add_user_ids(client, options.users, request.mutable_add_users()));
  TRY_ASSIGN(const auto response, client.call(v1::GroupService::CreateGroup, request));
  std::cout << "Created group " << printable(response.group().name()) << " with id "
            << response.group().group_id() << '\n';
  return {};
}

/// A group and users, separated by commas.
struct GroupUsersOptions {
  std::string name, users;
  void declare(CLI::App& app) {
    app.add_option("GROUP", name, "Group name.")->required();
    app.add_option("USERS", users, "User names, separated by commas.")->required();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const std::string& each : split(users, ',')) all.emplace_back(trim(each));
    return all;
  }
};

Status add_users(Client& client, const GroupUsersOptions& options) {
  v1::UpdateGroupRequest request;
  TRY_ASSIGN(const v1::Group group, find_group(client, options.name));
  request.set_group_id(group.group_id());
  TRY(add_user_ids(client, options.names(), request.mutable_add_users()));
  TRY(client.call(v1::GroupService::UpdateGroup, request));
  std::cout << "Added to group " << printable(group.name()) << ": " << join(options.names(), ", ") << '\n';
  return {};
}

Status remove_users(Client& client, const GroupUsersOptions& options) {
  v1::UpdateGroupRequest request;
  TRY_ASSIGN(const v1::Group group, find_group(client, options.name));
  request.set_group_id(group.group_id());
  TRY(add_user_ids(client, options.names(), request.mutable_remove_users()));
  TRY(client.call(v1::GroupService::UpdateGroup, request));
  std::cout << "Removed from group " << printable(group.name()) << ": " << join(options.names(), ", ")
            << '\n';
  return {};
}

struct GroupRenameOptions {
  std::string name, new_name;
  void declare(CLI::App& app) {
    app.add_option("GROUP", name, "Group name.")->required();
    app.add_option("NEW_NAME", new_name, "New name.")->required();
  }
};

Status rename_group(Client& client, const GroupRenameOptions& options) {
  v1::UpdateGroupRequest request;
  TRY_ASSIGN(const v1::Group group, find_group(client, options.name));
  request.set_group_id(group.group_id());
  request.set_name(options.new_name);
  TRY(client.call(v1::GroupService::UpdateGroup, request));
  std::cout << "Renamed group " << printable(group.name()) << " to " << printable(options.new_name) << '\n';
  return {};
}

struct GroupDeleteOptions {
  std::string name;
  bool yes = false;
  void declare(CLI::App& app) {
    app.add_option("GROUP", name, "Group name.")->required();
    app.add_flag("-y,--yes", yes, "Do not ask for confirmation.");
  }
};

Status delete_group(Client& client, const GroupDeleteOptions& options) {
  TRY_ASSIGN(const v1::Group group, find_group(client, options.name));
  if (!options.yes) {
    TRY_ASSIGN(const bool agreed, confirm("Delete group " + printable(group.name()) + " and its roles?"));
    if (!agreed) return fail(Code::kCancelled, "nothing was deleted");
  }
  v1::DeleteGroupRequest request;
  request.set_group_id(group.group_id());
  TRY(client.call(v1::GroupService::DeleteGroup, request));
  std::cout << "Deleted group " << printable(group.name()) << '\n';
  return {};
}

}  // namespace

Result<v1::Group> find_group(Client& client, const std::string& name) {
  v1::GetGroupsRequest request;
  request.set_name(name);
  TRY_ASSIGN(const auto response, client.call(v1::GroupService::GetGroups, request));
  if (response.groups().empty() || name.empty())
    return fail(Code::kNotFound, "group \"" + name + "\" not found");
  return response.groups(0).group();
}

Result<std::map<int, std::string>> group_names(Client& client) {
  TRY_ASSIGN(const auto response, client.call(v1::GroupService::GetGroups, v1::GetGroupsRequest()));
  std::map<int, std::string> names;
  for (const v1::GroupSearchResult& each : response.groups())
    names[each.group().group_id()] = each.group().name();
  return names;
}

Command user_group_command() {
  return {{"user-group", "ug"},
          "Manage groups of users. Members have the roles of their groups.",
          {},
          {{{"list", "ls"}, "List groups.", action(list_groups)},
           {{"describe"}, "List the members of a group.", action(describe_group)},
           {{"create"}, "Create a group.", action(create_group)},
           {{"add-user"}, "Add users to a group.", action(add_users)},
           {{"remove-user"}, "Remove users from a group.", action(remove_users)},
           {{"change-name"}, "Rename a group.", action(rename_group)},
           {{"delete"}, "Delete a group with its roles.", action(delete_group)}}};
}

}  // namespace det::cli
