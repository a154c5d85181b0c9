// `det user`: login, logout and user accounts.
#include <cstdlib>
#include <iostream>

#include "cli/command.h"
#include "cli/commands/accounts.h"
#include "cli/commands/not_offered.h"
#include "cli/output/print.h"
#include "cli/output/terminal.h"
#include "common/base/files.h"
#include "common/base/text.h"
#include "det/v1/auth.grpc.pb.h"
#include "det/v1/user.grpc.pb.h"

namespace det::cli {
namespace {

struct LoginFlags {
  std::string name, password_file;
};

/// Reads the password from a file (without its line end), else from the terminal without echo.
Result<std::string> read_password(const LoginFlags& flags, const std::string& name) {
  if (flags.password_file.empty()) return ask_secret("Password for user " + name + ": ");
  auto text = read_file(flags.password_file, 64 << 10);
  if (!text) return fail(Code::kInvalidArgument, text.error().message);
  const std::size_t end = text->find_last_not_of("\r\n");
  return end == std::string::npos ? "" : text->substr(0, end + 1);
}

/// Logs in with a password from a file or the terminal, and stores the login.
Action declare_user_login(CLI::App& app) {
  auto flags = std::make_shared<LoginFlags>();
  app.add_option("NAME", flags->name, "The user's name; asked for when not said.");
  app.add_option("--password-file", flags->password_file, "A file that holds the password.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.anonymous());
    std::string name = flags->name.empty() ? session.user_flag : flags->name;
    if (name.empty()) {
      TRY_ASSIGN(name, ask("User: "));
    }
    TRY_ASSIGN(const std::string password, read_password(*flags, name));
    TRY_ASSIGN(const Login login, session.log_in(name, password));
    TokenFile tokens = session.tokens();
    TRY(tokens.save(client->address().url(), login));
    std::cout << "Logged in as " << printable(login.user) << " at " << client->address().url() << '\n';
    return 0;
  };
}

/// Ends the session of the selected user and removes its login. --all removes all logins at this master, but
/// ends only that session.
Action declare_logout(CLI::App& app) {
  auto all = std::make_shared<bool>(false);
  app.add_flag("-a,--all", *all, "Forget every user of this master.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.anonymous());
    TokenFile tokens = session.tokens();
    const std::string master = client->address().url();
    TRY_ASSIGN(const auto login, tokens.find(master, session.user_flag));
    if (login) {
      client->set_token(login->token);
      const auto ended = client->call(&v1::AuthService::Stub::Logout, v1::LogoutRequest());
      // An expired session needs no logout.
      if (!ended && ended.error().code != Code::kUnauthenticated) return tl::unexpected(ended.error());
    }
    TRY(tokens.forget(master, *all || !login ? "" : login->user));
    std::cout << (login ? "Logged out " + printable(login->user) : std::string("Nobody was logged in"))
              << '\n';
    return 0;
  };
}

Action declare_whoami(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "Print as JSON.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const auto response,
               client->call(&v1::AuthService::Stub::CurrentUser, v1::CurrentUserRequest()));
    if (*json) {
      TRY_ASSIGN(const Json value, to_json(response.user()));
      print_json(value);
    } else {
      std::cout << "You are logged in as user '" << printable(response.user().username()) << "'\n";
    }
    return 0;
  };
}

using UserStub = v1::UserService::Stub;

Action declare_user_list(CLI::App& app) {
  auto output = std::make_shared<Output>();
  auto all = std::make_shared<bool>(false);
  app.add_flag("-a,--all", *all, "Also users who are not active.");
  output->declare_list(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::GetUsersRequest request;
    if (!*all) request.mutable_active()->set_value(true);
    TRY_ASSIGN(const auto response, client->call(&UserStub::GetUsers, request));
    Table table{{"User ID", "Username", "Display Name", "Active", "Admin", "Last Login"}, {}, {1}};
    for (const v1::User& each : response.users()) {
      table.rows.push_back({std::to_string(each.id()), each.username(), each.display_name(),
                            yes_or_no(each.active()), yes_or_no(each.admin()),
                            time_text(each.last_auth_at(), each.has_last_auth_at())});
    }
    TRY(output->print(table, [&] { return list_to_json(response.users()); }));
    return 0;
  };
}

/// Creates an active user. Prompts for the password unless one is given.
Action declare_user_create(CLI::App& app) {
  struct Flags : LoginFlags {
    std::string password, display_name;
    bool admin = false;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("NAME", flags->name, "The new user's name.")->required();
  app.add_flag("--admin", flags->admin, "Make the user a cluster admin.");
  app.add_option("--password", flags->password,
                 "The password; seen by others on this machine: better leave it out.");
  app.add_option("--password-file", flags->password_file, "A file that holds the password.");
  app.add_option("--display-name", flags->display_name, "What the user is called in the web UI.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::PostUserRequest request;
    std::string password = flags->password;
    if (password.empty() && flags->password_file.empty()) {
      TRY_ASSIGN(password, ask_new_password(flags->name));
    } else if (password.empty()) {
      TRY_ASSIGN(password, read_password(*flags, flags->name));
    }
    request.set_password(password);
    request.mutable_user()->set_username(flags->name);
    request.mutable_user()->set_display_name(flags->display_name);
    request.mutable_user()->set_admin(flags->admin);
    request.mutable_user()->set_active(true);
    TRY_ASSIGN(const auto response, client->call(&UserStub::PostUser, request));
    std::cout << "Created user " << printable(response.user().username()) << '\n';
    return 0;
  };
}

/// Applies the set fields of `wanted` to the user of this name.
Result<v1::User> change_user(Client& client, const std::string& name, v1::PatchUser wanted) {
  TRY_ASSIGN(const v1::User user, find_user(client, name));
  v1::PatchUserRequest request;
  request.set_user_id(user.id());
  *request.mutable_user() = std::move(wanted);
  TRY_ASSIGN(auto response, client.call(&UserStub::PatchUser, request));
  return std::move(*response.mutable_user());
}

/// Changes the given properties; the others keep their values.
Action declare_user_edit(CLI::App& app) {
  struct Flags {
    std::string name, username, display_name, active, admin;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("NAME", flags->name, "The user.")->required();
  app.add_option("--username", flags->username, "A new name.");
  // Counted, not compared with "": an empty display name is a legal value.
  auto* display =
      app.add_option("--display-name", flags->display_name, "What the user is called in the web UI.");
  app.add_option("--active", flags->active, "May the user log in: true or false.")
      ->check(CLI::IsMember({"true", "false"}));
  app.add_option("--admin", flags->admin, "Is the user a cluster admin: true or false.")
      ->check(CLI::IsMember({"true", "false"}));
  return [=](Session& session) -> Result<int> {
    v1::PatchUser wanted;
    if (!flags->username.empty()) wanted.mutable_username()->set_value(flags->username);
    if (display->count() > 0) wanted.mutable_display_name()->set_value(flags->display_name);
    if (!flags->active.empty()) wanted.mutable_active()->set_value(flags->active == "true");
    if (!flags->admin.empty()) wanted.mutable_admin()->set_value(flags->admin == "true");
    if (wanted.ByteSizeLong() == 0)
      return fail(Code::kInvalidArgument, "nothing to change; see `det user edit --help`");
    TRY_ASSIGN(Client * client, session.client());
    TRY(change_user(*client, flags->name, std::move(wanted)));
    std::cout << "Changed user " << printable(flags->name) << '\n';
    return 0;
  };
}

/// Changes the password of the named user, else of the current one.
Action declare_change_password(CLI::App& app) {
  auto flags = std::make_shared<LoginFlags>();
  app.add_option("NAME", flags->name, "The user; whoever is logged in when not said.");
  app.add_option("--password-file", flags->password_file, "A file that holds the new password.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    std::string name = flags->name;
    if (name.empty()) {
      TRY_ASSIGN(name, session.user_name());
    }
    std::string password;
    if (flags->password_file.empty()) {
      TRY_ASSIGN(password, ask_new_password(name));
    } else {
      TRY_ASSIGN(password, read_password(*flags, name));
    }
    v1::PatchUser wanted;
    wanted.mutable_password()->set_value(password);
    TRY(change_user(*client, name, std::move(wanted)));
    std::cout << "Changed the password of user " << printable(name) << '\n';
    return 0;
  };
}

/// Declares `activate` or `deactivate`.
std::function<Action(CLI::App&)> declare_active(bool active) {
  return [=](CLI::App& app) -> Action {
    auto name = std::make_shared<std::string>();
    app.add_option("NAME", *name, "The user.")->required();
    return [=](Session& session) -> Result<int> {
      TRY_ASSIGN(Client * client, session.client());
      v1::PatchUser wanted;
      wanted.mutable_active()->set_value(active);
      TRY(change_user(*client, *name, std::move(wanted)));
      std::cout << (active ? "Activated user " : "Deactivated user ") << printable(*name) << '\n';
      return 0;
    };
  };
}

Action declare_rename(CLI::App& app) {
  auto name = std::make_shared<std::string>(), to = std::make_shared<std::string>();
  app.add_option("NAME", *name, "The user.")->required();
  app.add_option("NEW_NAME", *to, "The new name.")->required();
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::PatchUser wanted;
    wanted.mutable_username()->set_value(*to);
    TRY(change_user(*client, *name, std::move(wanted)));
    std::cout << "Renamed user " << printable(*name) << " to " << printable(*to) << '\n';
    return 0;
  };
}

}  // namespace

Command user_command() {
  return {{"user", "u"},
          "Log in and out; look after users.",
          {},
          {{{"list", "ls"}, "List users.", declare_user_list},
           {{"login"}, "Log in and keep the session.", declare_user_login},
           {{"logout"}, "End the session and forget it.", declare_logout},
           {{"whoami"}, "Show who is logged in.", declare_whoami},
           {{"create"}, "Make a user.", declare_user_create},
           {{"edit"}, "Change a user.", declare_user_edit},
           {{"change-password"}, "Change a password.", declare_change_password},
           not_offered({"link-with-agent-user"}, "tasks run as the agent's own user"),
           {{"rename"}, "Change a user's name.", declare_rename},
           {{"activate"}, "Let a user log in again.", declare_active(true)},
           {{"deactivate"}, "Keep a user out, at once.", declare_active(false)}}};
}

}  // namespace det::cli
