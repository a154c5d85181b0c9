// `det user`: login, logout and user accounts.
#include <cstdlib>
#include <iostream>
#include <optional>

#include "cli/command.h"
#include "cli/commands/accounts.h"
#include "cli/output/print.h"
#include "cli/output/terminal.h"
#include "common/base/files.h"
#include "common/base/text.h"
#include "det/v1/auth.methods.h"
#include "det/v1/user.methods.h"

namespace det::cli {
namespace {

/// Reads the password from `file` (without its line end), else from the terminal without echo.
Result<std::string> read_password(const std::string& file, const std::string& user) {
  if (file.empty()) return ask_secret("Password for user " + user + ": ");
  auto text = read_file(file, 64 << 10);
  if (!text) return fail(Code::kInvalidArgument, text.error().message);
  const std::size_t end = text->find_last_not_of("\r\n");
  return end == std::string::npos ? "" : text->substr(0, end + 1);
}

void declare_password_file(CLI::App& app, std::string& file) {
  app.add_option("--password-file", file, "File with the password (default: prompt).");
}

struct LoginOptions {
  std::string name, password_file;
  void declare(CLI::App& app) {
    app.add_option("NAME", name, "User name (default: prompt).");
    declare_password_file(app, password_file);
  }
};

/// Logs in with a password from a file or the terminal, and stores the login.
Status log_in_user(Session& session, const LoginOptions& options) {
  TRY_ASSIGN(Client * client, session.anonymous());
  std::string name = options.name.empty() ? session.user_flag : options.name;
  if (name.empty()) {
    TRY_ASSIGN(name, ask("User: "));
  }
  TRY_ASSIGN(const std::string password, read_password(options.password_file, name));
  TRY_ASSIGN(const Login login, session.log_in(name, password));
  TokenFile tokens = session.tokens();
  TRY(tokens.save(client->address().url(), login));
  std::cout << "Logged in as " << printable(login.user) << " at " << client->address().url() << '\n';
  return {};
}

struct LogoutOptions {
  bool all = false;
  void declare(CLI::App& app) {
    app.add_flag("-a,--all", all, "Remove the stored logins of all users at this master.");
  }
};

/// Ends the session of the selected user and removes its login. --all removes all logins at this master, but
/// ends only that session.
Status log_out_user(Session& session, const LogoutOptions& options) {
  TRY_ASSIGN(Client * client, session.anonymous());
  TokenFile tokens = session.tokens();
  const std::string master = client->address().url();
  TRY_ASSIGN(const auto login, tokens.find(master, session.user_flag));
  if (login) {
    client->set_token(login->token);
    const auto ended = client->call(v1::AuthService::Logout, v1::LogoutRequest());
    // An expired session needs no logout.
    if (!ended && ended.error().code != Code::kUnauthenticated) return tl::unexpected(ended.error());
  }
  if (options.all || login) TRY(tokens.forget(master, options.all ? "" : login->user));
  std::cout << (login ? "Logged out " + printable(login->user) : std::string("No user was logged in"))
            << '\n';
  return {};
}

struct WhoamiOptions {
  bool json = false;
  void declare(CLI::App& app) { app.add_flag("--json", json, "Print as JSON."); }
};

Status print_current_user(Client& client, const WhoamiOptions& options) {
  TRY_ASSIGN(const auto response, client.call(v1::AuthService::CurrentUser, v1::CurrentUserRequest()));
  if (options.json) return print_json(response.user());
  std::cout << "You are logged in as user '" << printable(response.user().username()) << "'\n";
  return {};
}

struct UserListOptions {
  bool all = false;
  Output output;
  void declare(CLI::App& app) {
    app.add_flag("-a,--all", all, "Include inactive users.");
    output.declare_list(app);
  }
};

Status list_users(Client& client, const UserListOptions& options) {
  v1::GetUsersRequest request;
  if (!options.all) request.mutable_active()->set_value(true);
  TRY_ASSIGN(const auto response, client.call(v1::UserService::GetUsers, request));
  Table table{{"User ID", "Username", "Display Name", "Active", "Admin", "Last Login"}, {}, {1}};
  for (const v1::User& each : response.users()) {
    table.rows.push_back({std::to_string(each.id()), each.username(), each.display_name(),
                          yes_or_no(each.active()), yes_or_no(each.admin()),
                          time_text(each.last_auth_at(), each.has_last_auth_at())});
  }
  return options.output.print(table, [&] { return list_to_json(response.users()); });
}

constexpr const char* kDisplayNameHelp = "Name shown in the web UI.";

struct UserCreateOptions {
  std::string name, password, password_file, display_name;
  bool admin = false;
  void declare(CLI::App& app) {
    app.add_option("NAME", name, "Name of the new user.")->required();
    app.add_flag("--admin", admin, "Assign the role cluster admin.");
    app.add_option("--password", password,
                   "Password (default: prompt). Visible to other users of this machine.");
    declare_password_file(app, password_file);
    app.add_option("--display-name", display_name, kDisplayNameHelp);
  }
};

/// Creates an active user. Prompts for the password unless one is given.
Status create_user(Client& client, const UserCreateOptions& options) {
  v1::PostUserRequest request;
  std::string password = options.password;
  if (password.empty()) {
    TRY_ASSIGN(password, options.password_file.empty() ? ask_new_password(options.name)
                                                       : read_password(options.password_file, options.name));
  }
  request.set_password(password);
  request.mutable_user()->set_username(options.name);
  request.mutable_user()->set_display_name(options.display_name);
  request.mutable_user()->set_admin(options.admin);
  request.mutable_user()->set_active(true);
  TRY_ASSIGN(const auto response, client.call(v1::UserService::PostUser, request));
  std::cout << "Created user " << printable(response.user().username()) << '\n';
  return {};
}

/// Applies the set fields of `patch` to the user of this name.
Status change_user(Client& client, const std::string& name, v1::PatchUser patch) {
  TRY_ASSIGN(const v1::User user, find_user(client, name));
  v1::PatchUserRequest request;
  request.set_user_id(user.id());
  *request.mutable_user() = std::move(patch);
  TRY(client.call(v1::UserService::PatchUser, request));
  return {};
}

struct UserOptions {
  std::string name;
  void declare(CLI::App& app) { app.add_option("NAME", name, "User name.")->required(); }
};

/// An empty display name is a legal new value.
struct UserEditOptions : UserOptions {
  std::string username;
  std::optional<std::string> display_name;
  std::optional<bool> active, admin;
  void declare(CLI::App& app) {
    UserOptions::declare(app);
    app.add_option("--username", username, "New user name.");
    app.add_option("--display-name", display_name, kDisplayNameHelp);
    app.add_option("--active", active, "Allow logins: true or false.")
        ->check(CLI::IsMember({"true", "false"}));
    app.add_option("--admin", admin, "Role cluster admin: true or false.")
        ->check(CLI::IsMember({"true", "false"}));
  }
};

Status edit_user(Session& session, const UserEditOptions& options) {
  v1::PatchUser patch;
  if (!options.username.empty()) patch.mutable_username()->set_value(options.username);
  if (options.display_name) patch.mutable_display_name()->set_value(*options.display_name);
  if (options.active) patch.mutable_active()->set_value(*options.active);
  if (options.admin) patch.mutable_admin()->set_value(*options.admin);
  if (patch.ByteSizeLong() == 0)
    return fail(Code::kInvalidArgument, "nothing to change; see `det user edit --help`");
  TRY_ASSIGN(Client * client, session.client());
  TRY(change_user(*client, options.name, std::move(patch)));
  std::cout << "Changed user " << printable(options.name) << '\n';
  return {};
}

struct PasswordOptions {
  std::string name, password_file;
  void declare(CLI::App& app) {
    app.add_option("NAME", name, "User name (default: the current user).");
    declare_password_file(app, password_file);
  }
};

/// Changes the password of the named user, else of the current one.
Status change_password(Session& session, const PasswordOptions& options) {
  TRY_ASSIGN(Client * client, session.client());
  std::string name = options.name;
  if (name.empty()) {
    TRY_ASSIGN(name, session.user_name());
  }
  TRY_ASSIGN(const std::string password, options.password_file.empty()
                                             ? ask_new_password(name)
                                             : read_password(options.password_file, name));
  v1::PatchUser patch;
  patch.mutable_password()->set_value(password);
  TRY(change_user(*client, name, std::move(patch)));
  std::cout << "Changed the password of user " << printable(name) << '\n';
  return {};
}

Status set_active(Client& client, const UserOptions& options, bool active) {
  v1::PatchUser patch;
  patch.mutable_active()->set_value(active);
  TRY(change_user(client, options.name, std::move(patch)));
  std::cout << (active ? "Activated user " : "Deactivated user ") << printable(options.name) << '\n';
  return {};
}

Status activate_user(Client& client, const UserOptions& options) { return set_active(client, options, true); }

Status deactivate_user(Client& client, const UserOptions& options) {
  return set_active(client, options, false);
}

struct UserRenameOptions : UserOptions {
  std::string new_name;
  void declare(CLI::App& app) {
    UserOptions::declare(app);
    app.add_option("NEW_NAME", new_name, "New user name.")->required();
  }
};

Status rename_user(Client& client, const UserRenameOptions& options) {
  v1::PatchUser patch;
  patch.mutable_username()->set_value(options.new_name);
  TRY(change_user(client, options.name, std::move(patch)));
  std::cout << "Renamed user " << printable(options.name) << " to " << printable(options.new_name) << '\n';
  return {};
}

struct UserLinkOptions : UserOptions {
  int uid = 0, gid = 0;
  std::string user, group;
  void declare(CLI::App& app) {
    UserOptions::declare(app);
    app.add_option("--agent-uid", uid, "User id.")->required()->check(CLI::PositiveNumber);
    app.add_option("--agent-user", user, "Name of the user.")->required();
    app.add_option("--agent-gid", gid, "Group id.")->required()->check(CLI::PositiveNumber);
    app.add_option("--agent-group", group, "Name of the group.")->required();
  }
};

/// Tasks see themselves as this user; it needs no account on the machines of agents.
Status link_user(Client& client, const UserLinkOptions& options) {
  v1::PatchUser patch;
  v1::AgentUserGroup& account = *patch.mutable_agent_user_group();
  account.set_agent_uid(options.uid);
  account.set_agent_user(options.user);
  account.set_agent_gid(options.gid);
  account.set_agent_group(options.group);
  TRY(change_user(client, options.name, std::move(patch)));
  std::cout << "Tasks of " << printable(options.name) << " run as " << printable(options.user) << " ("
            << options.uid << ")\n";
  return {};
}

}  // namespace

Command user_command() {
  return {{"user", "u"},
          "Log in and out, and manage users.",
          {},
          {{{"list", "ls"}, "List users.", action(list_users)},
           {{"login"}, "Log in and store the session.", action(log_in_user)},
           {{"logout"}, "End the session and remove the stored login.", action(log_out_user)},
           {{"whoami"}, "Show the current user.", action(print_current_user)},
           {{"create"}, "Create a user.", action(create_user)},
           {{"edit"}, "Change a user.", action(edit_user)},
           {{"change-password"}, "Change the password of a user.", action(change_password)},
           {{"link-with-agent-user"}, "Set the user and group that tasks of a user have.", action(link_user)},
           {{"rename"}, "Rename a user.", action(rename_user)},
           {{"activate"}, "Allow a deactivated user to log in.", action(activate_user)},
           {{"deactivate"}, "End all sessions of a user and reject logins.", action(deactivate_user)}}};
}

}  // namespace det::cli
