#include "cli/commands/join_token.h"

#include <iostream>

#include "cli/output/print.h"
#include "det/v1/join.grpc.pb.h"

namespace det::cli {
namespace {

using JoinTokenStub = v1::JoinService::Stub;

/// Creates a token and prints it. The master keeps defaults for unset limits: one use, one hour.
Action declare_join_token_create(CLI::App& app) {
  auto request = std::make_shared<v1::PostJoinTokenRequest>();
  app.add_option_function<std::string>(
      "--pool", [=](const std::string& text) { request->set_pool(text); },
      "Agents that join with it belong to this resource pool.");
  app.add_option_function<std::string>(
      "--agent", [=](const std::string& text) { request->set_agent_id(text); },
      "Only the agent of this id may use it.");
  app.add_option_function<int>(
      "--uses", [=](int uses) { request->set_uses(uses); }, "How many agents may join with it (default: 1).");
  app.add_option_function<std::string>(
      "--expires", [=](const std::string& text) { request->set_lifespan(text); },
      "How long it is good, like 30m or 24h (default: 1h).");
  app.footer(
      "Example:\n  det join-token create > token      # then, on the agent's machine:\n"
      "  det-agent --master https://master:8443 --join-token-file token");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const auto response, client->call(&JoinTokenStub::PostJoinToken, *request));
    // The only line on standard output, which is usually redirected to a file.
    std::cout << response.token() << '\n';
    return 0;
  };
}

/// Lists the valid tokens by number; their secrets are not shown again.
Action declare_join_token_list(CLI::App& app) {
  auto output = std::make_shared<Output>();
  output->declare(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const auto response, client->call(&JoinTokenStub::GetJoinTokens, v1::GetJoinTokensRequest()));
    Table table{{"ID", "Resource Pool", "Agent ID", "Uses Left", "Expires", "Created", "Created By"}, {}};
    for (const v1::JoinTokenInfo& each : response.tokens()) {
      table.rows.push_back({std::to_string(each.id()), each.pool(), each.agent_id(),
                            std::to_string(each.uses_left()), time_text(each.expiry(), each.has_expiry()),
                            time_text(each.created_at(), each.has_created_at()), each.created_by()});
    }
    TRY(output->print(table, [&] { return list_to_json(response.tokens()); }));
    return 0;
  };
}

/// Revokes a token. Agents that joined with it stay in the cluster.
Action declare_join_token_delete(CLI::App& app) {
  auto request = std::make_shared<v1::DeleteJoinTokenRequest>();
  app.add_option_function<std::int64_t>(
         "ID", [=](std::int64_t id) { request->set_id(id); }, "The token's number.")
      ->required();
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY(client->call(&JoinTokenStub::DeleteJoinToken, *request));
    std::cout << "Deleted join token " << request->id() << '\n';
    return 0;
  };
}

}  // namespace

Command join_token_command() {
  return {{"join-token"},
          "Let agents of other machines into the cluster.",
          {},
          {{{"list", "ls"}, "List tokens that are still good.", declare_join_token_list},
           {{"create"}, "Make a token, which is told once.", declare_join_token_create},
           {{"delete", "rm"},
            "Make a token good for nothing; agents that joined with it stay.",
            declare_join_token_delete}}};
}

}  // namespace det::cli
