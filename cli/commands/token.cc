// `det token`: access tokens for programs.
#include <iostream>

#include "cli/command.h"
#include "cli/commands/accounts.h"
#include "cli/output/print.h"
#include "cli/output/terminal.h"
#include "det/v1/auth.grpc.pb.h"
#include "det/v1/token.grpc.pb.h"

namespace det::cli {
namespace {

using TokenStub = v1::TokenService::Stub;

/// Creates a token for the caller or another user and prints it.
Action declare_token_create(CLI::App& app) {
  struct Flags {
    std::string user, description, role;
    int days = 30;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("USER", flags->user, "Whose token; the caller's when not said.");
  app.add_option("-e,--expiration-days", flags->days, "How many days it is good for; -1: ten years.")
      ->check(CLI::Range(-1, 3650));
  app.add_option("-d,--description", flags->description, "What it is for.");
  app.add_option("--role", flags->role, "The most that it may do: Viewer, Editor or WorkspaceAdmin.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::PostAccessTokenRequest request;
    if (!flags->user.empty()) {
      TRY_ASSIGN(const v1::User user, find_user(*client, flags->user));
      request.set_user_id(user.id());
    }
    // The API takes a duration in hours; "-1" selects the longest lifetime.
    request.set_lifespan(flags->days < 0 ? "-1" : std::to_string(flags->days * 24) + "h");
    request.set_description(flags->description);
    request.set_role(flags->role);
    TRY_ASSIGN(const auto response, client->call(&TokenStub::PostAccessToken, request));
    std::cout << "TokenID: " << response.token_id() << "\nAccess-Token: " << response.token() << '\n';
    // On stderr: standard output is parsed or redirected.
    std::cerr << "The token is not shown again.\n";
    return 0;
  };
}

Status print_tokens(const v1::GetAccessTokensResponse& response, const Output& output) {
  Table table{{"ID", "User ID", "Description", "Created At", "Expires At", "Revoked", "Token Type", "Role"},
              {}};
  for (const v1::TokenInfo& each : response.token_info()) {
    table.rows.push_back({std::to_string(each.id()), std::to_string(each.user_id()), each.description(),
                          time_text(each.created_at(), each.has_created_at()),
                          time_text(each.expiry(), each.has_expiry()), yes_or_no(each.revoked()),
                          v1::TokenType_Name(each.token_type()), each.role()});
  }
  return output.print(table, [&] { return list_to_json(response.token_info()); });
}

Action declare_token_list(CLI::App& app) {
  struct Flags {
    std::string user;
    bool inactive = false;
    Output output;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("USER", flags->user, "Only this user's.");
  app.add_flag("--show-inactive", flags->inactive, "Also those that have expired or are revoked.");
  flags->output.declare_list(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::GetAccessTokensRequest request;
    request.set_username(flags->user);
    request.set_show_inactive(flags->inactive);
    TRY_ASSIGN(const auto response, client->call(&TokenStub::GetAccessTokens, request));
    TRY(print_tokens(response, flags->output));
    return 0;
  };
}

Action declare_token_describe(CLI::App& app) {
  struct Flags {
    std::vector<int> ids;
    Output output;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("ID", flags->ids, "The tokens' ids.")->required();
  flags->output.declare(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::GetAccessTokensRequest request;
    for (const int id : flags->ids) request.add_token_ids(id);
    // A named token is shown in any state.
    request.set_show_inactive(true);
    TRY_ASSIGN(const auto response, client->call(&TokenStub::GetAccessTokens, request));
    if (response.token_info_size() == 0) return fail(Code::kNotFound, "no such token");
    TRY(print_tokens(response, flags->output));
    return 0;
  };
}

/// Revokes a token permanently.
Action declare_token_revoke(CLI::App& app) {
  auto id = std::make_shared<int>(0);
  app.add_option("ID", *id, "The token's id.")->required();
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::PatchAccessTokenRequest request;
    request.set_token_id(*id);
    request.set_set_revoked(true);
    TRY(client->call(&TokenStub::PatchAccessToken, request));
    std::cout << "Revoked token " << *id << '\n';
    return 0;
  };
}

Action declare_token_edit(CLI::App& app) {
  auto id = std::make_shared<int>(0);
  auto description = std::make_shared<std::string>();
  app.add_option("ID", *id, "The token's id.")->required();
  app.add_option("-d,--description", *description, "What it is for.")->required();
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::PatchAccessTokenRequest request;
    request.set_token_id(*id);
    request.mutable_description()->set_value(*description);
    TRY(client->call(&TokenStub::PatchAccessToken, request));
    std::cout << "Changed token " << *id << '\n';
    return 0;
  };
}

/// Stores a token as a login. Prompts for it by default: arguments are visible to other users of the machine.
Action declare_token_login(CLI::App& app) {
  auto token = std::make_shared<std::string>();
  app.add_option("TOKEN", *token,
                 "The token; asked for when not said, which keeps it from other users' eyes.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.anonymous());
    std::string text = *token;
    if (text.empty()) {
      TRY_ASSIGN(text, ask_secret("Access token: "));
    }
    // The master verifies the token before it is stored.
    client->set_token(text);
    TRY_ASSIGN(const auto response,
               client->call(&v1::AuthService::Stub::CurrentUser, v1::CurrentUserRequest()));
    TokenFile tokens = session.tokens();
    TRY(tokens.save(client->address().url(), {response.user().username(), text}));
    std::cout << "Logged in as " << printable(response.user().username()) << " at " << client->address().url()
              << '\n';
    return 0;
  };
}

}  // namespace

Command token_command() {
  return {{"token", "tkn"},
          "Look after access tokens.",
          {},
          {{{"list", "ls"}, "List tokens.", declare_token_list},
           {{"describe"}, "Show tokens.", declare_token_describe},
           {{"create"}, "Make a token.", declare_token_create},
           {{"edit"}, "Change what a token is for.", declare_token_edit},
           {{"revoke"}, "End a token, at once and for good.", declare_token_revoke},
           {{"login"}, "Log in with a token.", declare_token_login}}};
}

}  // namespace det::cli
