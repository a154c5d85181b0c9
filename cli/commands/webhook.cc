// `det webhook`: endpoints that are notified about experiments.
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/commands/accounts.h"
#include "cli/output/print.h"
#include "common/base/json.h"
#include "common/base/text.h"
#include "det/v1/webhook.methods.h"

namespace det::cli {
namespace {

std::string trigger_text(const v1::Trigger& trigger) {
  const auto& fields = trigger.condition().fields();
  const auto text = [&](const char* key) {
    const auto found = fields.find(key);
    return found == fields.end() ? std::string() : found->second.string_value();
  };
  if (trigger.trigger_type() == v1::TRIGGER_TYPE_TASK_LOG) return "log: " + text("regex");
  if (trigger.trigger_type() == v1::TRIGGER_TYPE_CUSTOM) return "alert";
  if (trigger.trigger_type() == v1::TRIGGER_TYPE_METRIC_THRESHOLD_EXCEEDED) {
    const auto above = fields.find("above"), below = fields.find("below");
    const auto& limit = above != fields.end() ? above : below;
    return "metric: " + text("metric") + (limit == above ? " > " : " < ") +
           (limit == fields.end() ? "" : number_text(limit->second.number_value()));
  }
  return "state: " + text("state");
}

/// Lists webhooks. The master shortens URLs to the host for users without the right to change them.
Status list_webhooks(Client& client, const Output& output) {
  TRY_ASSIGN(const auto response, client.call(v1::WebhookService::GetWebhooks, v1::GetWebhooksRequest()));
  Table table{{"ID", "Name", "URL", "Format", "Workspace ID", "Mode", "Triggers", "Last Delivery"}, {}};
  for (const v1::Webhook& each : response.webhooks()) {
    std::vector<std::string> triggers;
    for (const v1::Trigger& trigger : each.triggers()) triggers.push_back(trigger_text(trigger));
    const bool specific = each.mode() == v1::WEBHOOK_MODE_SPECIFIC;
    table.rows.push_back({std::to_string(each.id()), each.name(), each.url(),
                          each.webhook_type() == v1::WEBHOOK_TYPE_SLACK ? "Slack" : "JSON",
                          each.workspace_id() == 0 ? "all" : std::to_string(each.workspace_id()),
                          specific ? "named in experiments" : "all experiments", join(triggers, ", "),
                          each.outcome().empty() ? "none yet" : each.outcome()});
  }
  return output.print(table, [&] { return list_to_json(response.webhooks()); });
}

struct WebhookCreateOptions {
  std::string url, name, workspace;
  std::vector<std::string> states, patterns, rules;
  bool slack = false, alert = false, specific = false;
  void declare(CLI::App& app) {
    app.add_option("URL", url, "Address of the endpoint.")->required();
    app.add_option("--name", name, "Name; needed with --specific.");
    app.add_option("-w,--workspace", workspace,
                   "Workspace (default: the whole cluster, administrators only).");
    app.add_option("--state", states,
                   "Notify when an experiment reaches this state: COMPLETED, ERROR, CANCELED, ...");
    app.add_option("--log", patterns,
                   "Notify when a log line matches this regular expression, once per task.");
    app.add_option("--metric", rules,
                   "Notify when a metric crosses a number, once per trial: 'loss > 2.5', 'accuracy < 0.1'.");
    app.add_flag("--alert", alert, "Notify when a task raises an alert. Needs --specific.");
    app.add_flag("--slack", slack, "Send messages for Slack instead of plain JSON.");
    app.add_flag("--specific", specific,
                 "Only for experiments that name the webhook in integrations.webhooks.");
    app.footer(
        "Example:\n  det webhook create https://hooks.slack.com/services/... --slack -w research --state "
        "ERROR");
  }
};

void add_trigger(v1::Webhook& webhook, v1::TriggerType type, const char* key, const std::string& value) {
  v1::Trigger* trigger = webhook.add_triggers();
  trigger->set_trigger_type(type);
  if (*key != '\0') (*trigger->mutable_condition()->mutable_fields())[key].set_string_value(value);
}

/// Adds the trigger of a rule such as "loss > 2.5".
Status add_rule(v1::Webhook& webhook, const std::string& rule) {
  const std::size_t at = rule.find_last_of("<>");
  const std::string metric(at == rule.npos ? "" : trim(std::string_view(rule).substr(0, at)));
  const auto limit = parse_json(at == rule.npos ? "" : trim(std::string_view(rule).substr(at + 1)));
  if (metric.empty() || !limit || !limit->is_number())
    return fail(Code::kInvalidArgument,
                "--metric: expected METRIC > NUMBER or METRIC < NUMBER, as in 'loss > 2.5', got: " + rule);
  add_trigger(webhook, v1::TRIGGER_TYPE_METRIC_THRESHOLD_EXCEEDED, "metric", metric);
  auto& fields =
      *webhook.mutable_triggers(webhook.triggers_size() - 1)->mutable_condition()->mutable_fields();
  fields[rule[at] == '>' ? "above" : "below"].set_number_value(limit->get<double>());
  return {};
}

/// Creates a webhook and prints its id.
Status create_webhook(Client& client, const WebhookCreateOptions& options) {
  v1::PostWebhookRequest request;
  v1::Webhook& webhook = *request.mutable_webhook();
  webhook.set_url(options.url);
  webhook.set_name(options.name);
  webhook.set_webhook_type(options.slack ? v1::WEBHOOK_TYPE_SLACK : v1::WEBHOOK_TYPE_DEFAULT);
  webhook.set_mode(options.specific ? v1::WEBHOOK_MODE_SPECIFIC : v1::WEBHOOK_MODE_WORKSPACE);
  if (!options.workspace.empty()) {
    TRY_ASSIGN(const v1::Workspace workspace, find_workspace(client, options.workspace));
    webhook.set_workspace_id(workspace.id());
  }
  for (const std::string& state : options.states)
    add_trigger(webhook, v1::TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE, "state", to_upper(state));
  for (const std::string& pattern : options.patterns)
    add_trigger(webhook, v1::TRIGGER_TYPE_TASK_LOG, "regex", pattern);
  for (const std::string& rule : options.rules) TRY(add_rule(webhook, rule));
  if (options.alert) add_trigger(webhook, v1::TRIGGER_TYPE_CUSTOM, "", "");
  TRY_ASSIGN(const auto response, client.call(v1::WebhookService::PostWebhook, request));
  std::cout << "Created webhook " << response.webhook().id() << '\n';
  return {};
}

struct WebhookIdOptions {
  int id = 0;
  void declare(CLI::App& app) { app.add_option("ID", id, "Webhook id.")->required(); }
};

struct WebhookEditOptions {
  int id = 0;
  std::string url;
  void declare(CLI::App& app) {
    app.add_option("ID", id, "Webhook id.")->required();
    app.add_option("URL", url, "New address of the endpoint.")->required();
  }
};

Status edit_webhook(Client& client, const WebhookEditOptions& options) {
  v1::PatchWebhookRequest request;
  request.set_id(options.id);
  request.mutable_webhook()->set_url(options.url);
  TRY(client.call(v1::WebhookService::PatchWebhook, request));
  std::cout << "Changed webhook " << options.id << '\n';
  return {};
}

Status test_webhook(Client& client, const WebhookIdOptions& options) {
  v1::TestWebhookRequest request;
  request.set_id(options.id);
  TRY(client.call(v1::WebhookService::TestWebhook, request));
  std::cout << "Delivered a test message to webhook " << options.id << '\n';
  return {};
}

Status delete_webhook(Client& client, const WebhookIdOptions& options) {
  v1::DeleteWebhookRequest request;
  request.set_id(options.id);
  TRY(client.call(v1::WebhookService::DeleteWebhook, request));
  std::cout << "Deleted webhook " << options.id << '\n';
  return {};
}

}  // namespace

Command webhook_command() {
  return {{"webhook", "webhooks"},
          "Manage webhooks: endpoints that are notified about experiments.",
          {},
          {{{"list", "ls"}, "List webhooks.", action(list_webhooks)},
           {{"create"}, "Create a webhook.", action(create_webhook)},
           {{"edit"}, "Change the URL of a webhook.", action(edit_webhook)},
           {{"test"}, "Send a test message to a webhook.", action(test_webhook)},
           {{"delete", "rm"}, "Delete a webhook and its undelivered messages.", action(delete_webhook)}}};
}

}  // namespace det::cli
