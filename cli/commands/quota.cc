// `det quota`: limits of users and workspaces.
#include <iostream>

#include "cli/command.h"
#include "cli/commands/accounts.h"
#include "cli/output/print.h"
#include "common/base/text.h"
#include "common/base/units.h"
#include "det/v1/quota.methods.h"

namespace det::cli {
namespace {

bool is_bytes(const std::string& resource) { return resource.ends_with("_bytes"); }

std::string amount_text(const std::string& resource, std::int64_t amount) {
  return is_bytes(resource) ? format_bytes(amount) : std::to_string(amount);
}

/// Lists quotas and their use. Users without administration rights get their own and those of their
/// workspaces.
Status list_quotas(Client& client, const Output& output) {
  TRY_ASSIGN(const auto response, client.call(v1::QuotaService::GetQuotas, v1::GetQuotasRequest()));
  Table table{{"Scope", "Name", "Resource", "Used", "Limit"}, {}};
  for (const v1::Quota& each : response.quotas()) {
    table.rows.push_back({each.scope(), each.name().empty() ? std::to_string(each.id()) : each.name(),
                          each.resource(), amount_text(each.resource(), each.used()),
                          amount_text(each.resource(), each.limit())});
  }
  return output.print(table, [&] { return list_to_json(response.quotas()); });
}

/// Names one quota.
struct QuotaOptions {
  std::string user, workspace, resource;

  void declare(CLI::App& app) {
    auto* of_user = app.add_option("-u,--user", user, "User.");
    auto* of_workspace = app.add_option("-w,--workspace", workspace, "Workspace.");
    of_user->excludes(of_workspace);
    app.add_option("RESOURCE", resource, "slots, experiments, metric_series, log_bytes or checkpoint_bytes.")
        ->required()
        ->check(CLI::IsMember({"slots", "experiments", "metric_series", "log_bytes", "checkpoint_bytes"}));
  }
  /// Sets scope, id and resource. Errors: kInvalidArgument without an owner; kNotFound.
  template <typename Request>
  Status fill(Client& client, Request& request) const {
    if (user.empty() && workspace.empty())
      return fail(Code::kInvalidArgument, "name the owner: --user USER or --workspace WORKSPACE");
    request.set_scope(user.empty() ? "workspace" : "user");
    request.set_resource(resource);
    if (user.empty()) {
      TRY_ASSIGN(const v1::Workspace found, find_workspace(client, workspace));
      request.set_id(found.id());
    } else {
      TRY_ASSIGN(const v1::User found, find_user(client, user));
      request.set_id(found.id());
    }
    return {};
  }
  std::string owner() const { return user.empty() ? "workspace " + workspace : "user " + user; }
};

struct QuotaSetOptions : QuotaOptions {
  std::string limit;
  void declare(CLI::App& app) {
    QuotaOptions::declare(app);
    app.add_option("LIMIT", limit, "Limit: a number, or a size such as 500GiB for bytes.")->required();
  }
};

Result<std::int64_t> read_limit(const QuotaSetOptions& options) {
  const std::string& text = options.limit;
  if (is_bytes(options.resource)) return parse_bytes(text);
  const bool digits = !text.empty() && text.size() <= 18 && text.find_first_not_of("0123456789") == text.npos;
  if (digits) return std::stoll(text);
  return fail(Code::kInvalidArgument, "LIMIT: must be a whole number from 0, not \"" + text + "\"");
}

Status set_quota(Session& session, const QuotaSetOptions& options) {
  v1::SetQuotaRequest request;
  TRY_ASSIGN(const std::int64_t limit, read_limit(options));
  TRY_ASSIGN(Client * client, session.client());
  TRY(options.fill(*client, request));
  request.set_limit(limit);
  TRY(client->call(v1::QuotaService::SetQuota, request));
  std::cout << "Set the quota of " << options.owner() << " to " << amount_text(options.resource, limit)
            << " for " << options.resource << '\n';
  return {};
}

Status remove_quota(Client& client, const QuotaOptions& options) {
  v1::DeleteQuotaRequest request;
  TRY(options.fill(client, request));
  TRY(client.call(v1::QuotaService::DeleteQuota, request));
  std::cout << "Removed the quota of " << options.owner() << " for " << options.resource << '\n';
  return {};
}

}  // namespace

Command quota_command() {
  return {{"quota", "quotas"},
          "Manage limits of users and workspaces.",
          {},
          {{{"list", "ls"}, "List quotas and their use.", action(list_quotas)},
           {{"set"}, "Set a quota.", action(set_quota)},
           {{"remove", "rm"}, "Remove a quota.", action(remove_quota)}}};
}

}  // namespace det::cli
