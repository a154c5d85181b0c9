// `det join-token`: tokens with which agents join the cluster.
#include <iostream>

#include "cli/command.h"
#include "cli/output/print.h"
#include "det/v1/join.methods.h"

namespace det::cli {
namespace {

/// Unset limits take the defaults of the master: one use, one hour.
struct JoinTokenCreateOptions {
  std::string pool, agent, lifespan;
  int uses = 0;
  void declare(CLI::App& app) {
    app.add_option("--pool", pool, "Resource pool of agents that join with the token.");
    app.add_option("--agent", agent, "Id of the only agent that may use the token.");
    app.add_option("--uses", uses, "Number of agents that may join (default: 1).");
    app.add_option("--expires", lifespan, "Lifetime, such as 30m or 24h (default: 1h).");
    app.footer(
        "Example:\n  det join-token create > token      # then, on the agent's machine:\n"
        "  det-agent --master https://master:8443 --join-token-file token");
  }
};

/// Creates a token and prints it.
Status create_join_token(Client& client, const JoinTokenCreateOptions& options) {
  v1::PostJoinTokenRequest request;
  request.set_pool(options.pool);
  request.set_agent_id(options.agent);
  request.set_lifespan(options.lifespan);
  request.set_uses(options.uses);
  TRY_ASSIGN(const auto response, client.call(v1::JoinService::PostJoinToken, request));
  // The only line on standard output, which is usually redirected to a file.
  std::cout << response.token() << '\n';
  return {};
}

/// Lists the valid tokens by number; their secrets are not shown again.
Status list_join_tokens(Client& client, const Output& output) {
  TRY_ASSIGN(const auto response, client.call(v1::JoinService::GetJoinTokens, v1::GetJoinTokensRequest()));
  Table table{{"ID", "Resource Pool", "Agent ID", "Uses Left", "Expires", "Created", "Created By"}, {}};
  for (const v1::JoinTokenInfo& each : response.tokens()) {
    table.rows.push_back({std::to_string(each.id()), each.pool(), each.agent_id(),
                          std::to_string(each.uses_left()), time_text(each.expiry(), each.has_expiry()),
                          time_text(each.created_at(), each.has_created_at()), each.created_by()});
  }
  return output.print(table, [&] { return list_to_json(response.tokens()); });
}

struct JoinTokenDeleteOptions {
  std::int64_t id = 0;
  void declare(CLI::App& app) { app.add_option("ID", id, "Token id.")->required(); }
};

/// Revokes a token. Agents that joined with it stay in the cluster.
Status delete_join_token(Client& client, const JoinTokenDeleteOptions& options) {
  v1::DeleteJoinTokenRequest request;
  request.set_id(options.id);
  TRY(client.call(v1::JoinService::DeleteJoinToken, request));
  std::cout << "Deleted join token " << options.id << '\n';
  return {};
}

}  // namespace

Command join_token_command() {
  return {{"join-token"},
          "Manage join tokens of agents.",
          {},
          {{{"list", "ls"}, "List valid join tokens.", action(list_join_tokens)},
           {{"create"}, "Create a join token and print it.", action(create_join_token)},
           {{"delete", "rm"},
            "Revoke a join token. Agents that joined with it keep their certificates.",
            action(delete_join_token)}}};
}

}  // namespace det::cli
