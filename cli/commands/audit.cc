// `det audit`: the log of changes and of refused requests.
#include <iostream>

#include "cli/command.h"
#include "cli/output/print.h"
#include "det/v1/audit.grpc.pb.h"

namespace det::cli {
namespace {

Action declare_audit_list(CLI::App& app) {
  struct Flags {
    std::string user;
    int tail = 100;
    Output output;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("USER", flags->user, "Only what this user did.");
  app.add_option("--tail", flags->tail, "How many of the newest.")->check(kPositive);
  flags->output.declare_list(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::GetAuditLogRequest request;
    request.set_username(flags->user);
    request.set_limit(flags->tail);
    // Descending order with a limit selects the newest entries.
    request.set_order_by(v1::ORDER_BY_DESC);
    TRY_ASSIGN(auto response, client->call(&v1::AuditService::Stub::GetAuditLog, request));
    // Printed in ascending order, as logs are read.
    std::reverse(response.mutable_entries()->pointer_begin(), response.mutable_entries()->pointer_end());
    Table table{{"Time", "User", "Action", "Object", "Outcome", "Address"}, {}};
    for (const v1::AuditEntry& each : response.entries()) {
      table.rows.push_back({time_text(each.timestamp(), each.has_timestamp()), each.username(), each.action(),
                            each.object(), each.outcome(), each.address()});
    }
    TRY(flags->output.print(table, [&] { return list_to_json(response.entries()); }));
    return 0;
  };
}

}  // namespace

Command audit_command() {
  return {{"audit"},
          "Show who changed what, and who was refused.",
          {},
          {{{"list", "ls"}, "List the log.", declare_audit_list}}};
}

}  // namespace det::cli
