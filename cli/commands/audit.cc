// `det audit`: the log of changes and of rejected requests.
#include <iostream>

#include "cli/command.h"
#include "cli/output/print.h"
#include "det/v1/audit.methods.h"

namespace det::cli {
namespace {

struct AuditOptions {
  std::string user;
  int tail = 100;
  Output output;
  void declare(CLI::App& app) {
    app.add_option("USER", user, "Only entries of this user.");
    app.add_option("--tail", tail, "Number of entries, the newest ones.")
        ->check(kPositive)
        ->capture_default_str();
    output.declare_list(app);
  }
};

Status list_audit_log(Client& client, const AuditOptions& options) {
  v1::GetAuditLogRequest request;
  request.set_username(options.user);
  request.set_limit(options.tail);
  // Descending order with a limit selects the newest entries.
  request.set_order_by(v1::ORDER_BY_DESC);
  TRY_ASSIGN(auto response, client.call(v1::AuditService::GetAuditLog, request));
  // Printed in ascending order, as logs are read.
  std::reverse(response.mutable_entries()->pointer_begin(), response.mutable_entries()->pointer_end());
  Table table{{"Time", "User", "Action", "Object", "Outcome", "Address"}, {}};
  for (const v1::AuditEntry& each : response.entries()) {
    table.rows.push_back({time_text(each.timestamp(), each.has_timestamp()), each.username(), each.action(),
                          each.object(), each.outcome(), each.address()});
  }
  return options.output.print(table, [&] { return list_to_json(response.entries()); });
}

}  // namespace

Command audit_command() {
  return {{"audit"},
          "Show changes and rejected requests.",
          {},
          {{{"list", "ls"}, "List audit log entries.", action(list_audit_log)}}};
}

}  // namespace det::cli
