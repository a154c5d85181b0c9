// `det token`: access tokens for programs.
#include <iostream>

#include "cli/command.h"
#include "cli/commands/accounts.h"
#include "cli/output/print.h"
#include "cli/output/terminal.h"
#include "det/v1/auth.methods.h"
#include "det/v1/token.methods.h"

namespace det::cli {
namespace {

struct TokenCreateOptions {
  std::string user, description, role;
  int days = 30;
  void declare(CLI::App& app) {
    app.add_option("USER", user, "Owner of the token (default: the current user).");
    app.add_option("-e,--expiration-days", days, "Lifetime in days; -1: ten years.")
        ->check(CLI::Range(-1, 3650))
        ->capture_default_str();
    app.add_option("-d,--description", description, "Description.");
    app.add_option("--role", role, "Limit the token to a role: Viewer, Editor or WorkspaceAdmin.");
  }
};

/// Creates a token for the caller or another user and prints it.
Status create_token(Client& client, const TokenCreateOptions& options) {
  v1::PostAccessTokenRequest request;
  if (!options.user.empty()) {
    TRY_ASSIGN(const v1::User user, find_user(client, options.user));
    request.set_user_id(user.id());
  }
  // The API takes a duration in hours; "-1" selects the longest lifetime.
  request.set_lifespan(options.days < 0 ? "-1" : std::to_string(options.days * 24) + "h");
  request.set_description(options.description);
  request.set_role(options.role);
  TRY_ASSIGN(const auto response, client.call(v1::TokenService::PostAccessToken, request));
  std::cout << "TokenID: " << response.token_id() << "\nAccess-Token: " << response.token() << '\n';
  // On stderr: standard output is parsed or redirected.
  std::cerr << "The token is not shown again.\n";
  return {};
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

struct TokenListOptions {
  std::string user;
  bool inactive = false;
  Output output;
  void declare(CLI::App& app) {
    app.add_option("USER", user, "Only tokens of this user.");
    app.add_flag("--show-inactive", inactive, "Include expired and revoked tokens.");
    output.declare_list(app);
  }
};

Status list_tokens(Client& client, const TokenListOptions& options) {
  v1::GetAccessTokensRequest request;
  request.set_username(options.user);
  request.set_show_inactive(options.inactive);
  TRY_ASSIGN(const auto response, client.call(v1::TokenService::GetAccessTokens, request));
  return print_tokens(response, options.output);
}

struct TokenDescribeOptions {
  std::vector<int> ids;
  Output output;
  void declare(CLI::App& app) {
    app.add_option("ID", ids, "Token ids.")->required();
    output.declare(app);
  }
};

Status describe_tokens(Client& client, const TokenDescribeOptions& options) {
  v1::GetAccessTokensRequest request;
  for (const int id : options.ids) request.add_token_ids(id);
  // A named token is shown in any state.
  request.set_show_inactive(true);
  TRY_ASSIGN(const auto response, client.call(v1::TokenService::GetAccessTokens, request));
  if (response.token_info_size() == 0) return fail(Code::kNotFound, "token not found; see `det token list`");
  return print_tokens(response, options.output);
}

struct TokenOptions {
  int id = 0;
  void declare(CLI::App& app) { app.add_option("ID", id, "Token id.")->required(); }
};

/// Revokes a token permanently.
Status revoke_token(Client& client, const TokenOptions& options) {
  v1::PatchAccessTokenRequest request;
  request.set_token_id(options.id);
  request.set_set_revoked(true);
  TRY(client.call(v1::TokenService::PatchAccessToken, request));
  std::cout << "Revoked token " << options.id << '\n';
  return {};
}

struct TokenEditOptions : TokenOptions {
  std::string description;
  void declare(CLI::App& app) {
    TokenOptions::declare(app);
    app.add_option("-d,--description", description, "New description.")->required();
  }
};

Status edit_token(Client& client, const TokenEditOptions& options) {
  v1::PatchAccessTokenRequest request;
  request.set_token_id(options.id);
  request.mutable_description()->set_value(options.description);
  TRY(client.call(v1::TokenService::PatchAccessToken, request));
  std::cout << "Changed token " << options.id << '\n';
  return {};
}

struct TokenLoginOptions {
  std::string token;
  void declare(CLI::App& app) {
    app.add_option("TOKEN", token,
                   "Access token (default: prompt). Arguments are visible to other users of this machine.");
  }
};

/// Stores a token as a login. Prompts for it by default: arguments are visible to other users of the machine.
Status log_in_with_token(Session& session, const TokenLoginOptions& options) {
  TRY_ASSIGN(Client * client, session.anonymous());
  std::string text = options.token;
  if (text.empty()) {
    TRY_ASSIGN(text, ask_secret("Access token: "));
  }
  // The master verifies the token before it is stored.
  client->set_token(text);
  TRY_ASSIGN(const auto response, client->call(v1::AuthService::CurrentUser, v1::CurrentUserRequest()));
  TokenFile tokens = session.tokens();
  TRY(tokens.save(client->address().url(), {response.user().username(), text}));
  std::cout << "Logged in as " << printable(response.user().username()) << " at " << client->address().url()
            << '\n';
  return {};
}

}  // namespace

Command token_command() {
  return {{"token", "tkn"},
          "Manage access tokens.",
          {},
          {{{"list", "ls"}, "List access tokens.", action(list_tokens)},
           {{"describe"}, "Show access tokens.", action(describe_tokens)},
           {{"create"}, "Create an access token and print it.", action(create_token)},
           {{"edit"}, "Change the description of an access token.", action(edit_token)},
           {{"revoke"}, "Revoke an access token permanently.", action(revoke_token)},
           {{"login"}, "Log in with an access token.", action(log_in_with_token)}}};
}

}  // namespace det::cli
