// Owns `det user`: logging in and out.
#include <cstdlib>
#include <iostream>

#include "base/files.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/terminal.h"
#include "det/v1/auth.grpc.pb.h"

namespace det::cli {
namespace {

struct LoginFlags {
  std::string name, password_file;
};

Result<std::string> read_password(const LoginFlags& flags, const std::string& name) {
  if (flags.password_file.empty()) return ask_secret("Password for user " + name + ": ");
  auto text = read_file(flags.password_file, 64 << 10);
  if (!text) return fail(Code::kInvalidArgument, text.error().message);
  const std::size_t end = text->find_last_not_of("\r\n");
  return end == std::string::npos ? "" : text->substr(0, end + 1);
}

Action declare_login(CLI::App& app) {
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
      // A session that is over already is as good.
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

}  // namespace

Command user_command() {
  return {{"user", "u"},
          "Log in and out.",
          {},
          {{{"login"}, "Log in and keep the session.", declare_login},
           {{"logout"}, "End the session and forget it.", declare_logout},
           {{"whoami"}, "Show who is logged in.", declare_whoami}}};
}

}  // namespace det::cli
