#include "master/api/cluster/webhook.h"

#include <re2/re2.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "common/base/json.h"
#include "common/base/text.h"
#include "det/v1/webhook.methods.h"
#include "master/api/convert/convert.h"
#include "master/api/experiments/reporter.h"
#include "master/webhooks/message.h"
#include "master/webhooks/sender.h"

namespace det::api {
namespace {

constexpr int kMaxTriggers = 20;
constexpr std::size_t kMaxName = 128, kMaxPattern = 1024, kMaxAlert = 16 << 10;  // bytes
const std::set<std::string> kStates = {"ACTIVE", "PAUSED", "COMPLETED", "CANCELED", "ERROR"};

/// Collects the problems of a request.
struct Problems {
  std::vector<Problem> all;
  void add(const std::string& path, const std::string& message) {
    all.push_back({.code = "E-HOOK", .path = path, .message = message});
  }
};

std::string text_of(const Json& condition, const char* key) {
  const auto found = condition.find(key);
  return found != condition.end() && found->is_string() ? found->get<std::string>() : "";
}

/// Reads {"metric": NAME, "above" or "below": NUMBER}.
db::WebhookTrigger read_rule(const Json& condition, const std::string& path, Problems& problems) {
  const std::string metric = text_of(condition, "metric");
  if (metric.empty() || metric.size() > kMaxName || has_control_characters(metric))
    problems.add(path + ".metric", "must be a name of 1 to 128 bytes without control characters");
  Json rule = {{"metric", metric}};
  for (const char* side : {"above", "below"}) {
    const auto found = condition.find(side);
    if (found == condition.end()) continue;
    if (!found->is_number() || !std::isfinite(found->get<double>()))
      problems.add(path + "." + side, "must be a number");
    rule[side] = *found;
  }
  if (rule.size() != 2) problems.add(path, "must have either `above` or `below`");
  return {.kind = "METRIC_THRESHOLD_EXCEEDED", .condition = dump_json(rule)};
}

db::WebhookTrigger read_trigger(const v1::Trigger& trigger, const std::string& path, bool specific,
                                Problems& problems) {
  const auto given = from_struct(trigger.condition(), "condition");
  if (!given) problems.add(path, given.error().message);
  const Json condition = given.value_or(Json::object());
  switch (trigger.trigger_type()) {
    case v1::TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE: {
      const std::string state = text_of(condition, "state");
      if (!kStates.contains(state))
        problems.add(path + ".condition.state", "must be ACTIVE, PAUSED, COMPLETED, CANCELED or ERROR");
      return {.kind = "EXPERIMENT_STATE_CHANGE", .condition = state};
    }
    case v1::TRIGGER_TYPE_TASK_LOG: {
      const std::string regex = text_of(condition, "regex");
      const re2::RE2 pattern(regex, re2::RE2::Quiet);
      if (regex.empty() || regex.size() > kMaxPattern) {
        problems.add(path + ".condition.regex", "must be a regular expression of 1 to 1024 bytes");
      } else if (!pattern.ok()) {
        problems.add(path + ".condition.regex", "is no regular expression (RE2): " + pattern.error());
      }
      return {.kind = "TASK_LOG", .condition = regex};
    }
    case v1::TRIGGER_TYPE_METRIC_THRESHOLD_EXCEEDED:
      return read_rule(condition, path + ".condition", problems);
    case v1::TRIGGER_TYPE_CUSTOM:
      if (!specific) problems.add(path, "a custom trigger needs the mode WEBHOOK_MODE_SPECIFIC");
      return {.kind = "CUSTOM", .condition = ""};
    default:
      problems.add(path + ".trigger_type",
                   "must be EXPERIMENT_STATE_CHANGE, TASK_LOG, METRIC_THRESHOLD_EXCEEDED or CUSTOM");
      return {};
  }
}

/// Reads and checks the webhook of a request. All problems at once.
Result<db::Webhook> read_webhook(const v1::Webhook& in, const webhooks::Sender& sender) {
  Problems problems;
  db::Webhook webhook{.name = in.name(), .url = in.url()};
  if (in.name().size() > kMaxName || has_control_characters(in.name()) || find_bad_utf8(in.name()))
    problems.add("name", "must have at most 128 bytes and no control characters");
  if (const Status url = webhooks::check_url(in.url()); !url) {
    problems.add("url", url.error().message.substr(5));
  } else if (const std::string reason = sender.refusal(in.url()); !reason.empty()) {
    problems.add("url", reason);
  }
  const bool specific = in.mode() == v1::WEBHOOK_MODE_SPECIFIC;
  if (specific && in.name().empty()) problems.add("name", "is needed: experiments name the webhook by it");
  if (in.mode() == v1::WEBHOOK_MODE_UNSPECIFIED)
    problems.add("mode", "must be WEBHOOK_MODE_WORKSPACE or WEBHOOK_MODE_SPECIFIC");
  webhook.mode = specific ? "SPECIFIC" : "WORKSPACE";
  if (in.webhook_type() == v1::WEBHOOK_TYPE_UNSPECIFIED)
    problems.add("webhook_type", "must be WEBHOOK_TYPE_DEFAULT or WEBHOOK_TYPE_SLACK");
  webhook.format = in.webhook_type() == v1::WEBHOOK_TYPE_SLACK ? "SLACK" : "DEFAULT";
  if (in.workspace_id() != 0) webhook.workspace = in.workspace_id();
  if (in.triggers_size() == 0 || in.triggers_size() > kMaxTriggers)
    problems.add("triggers", "must have 1 to 20 entries");
  for (int i = 0; i < std::min(in.triggers_size(), kMaxTriggers); ++i)
    webhook.triggers.push_back(
        read_trigger(in.triggers(i), "triggers[" + std::to_string(i) + "]", specific, problems));
  if (!problems.all.empty()) return fail(std::move(problems.all));
  return webhook;
}

v1::TriggerType trigger_type(const std::string& kind) {
  if (kind == "TASK_LOG") return v1::TRIGGER_TYPE_TASK_LOG;
  if (kind == "METRIC_THRESHOLD_EXCEEDED") return v1::TRIGGER_TYPE_METRIC_THRESHOLD_EXCEEDED;
  if (kind == "CUSTOM") return v1::TRIGGER_TYPE_CUSTOM;
  return v1::TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE;
}

/// `whole`: with the path of the URL, which is a secret of many services.
void webhook_to_proto(const db::Webhook& webhook, bool whole, v1::Webhook* out) {
  out->set_id(static_cast<int>(webhook.id));
  out->set_name(webhook.name);
  out->set_url(whole ? webhook.url : webhooks::shown_url(webhook.url));
  out->set_webhook_type(webhook.format == "SLACK" ? v1::WEBHOOK_TYPE_SLACK : v1::WEBHOOK_TYPE_DEFAULT);
  out->set_mode(webhook.mode == "SPECIFIC" ? v1::WEBHOOK_MODE_SPECIFIC : v1::WEBHOOK_MODE_WORKSPACE);
  out->set_workspace_id(static_cast<int>(webhook.workspace.value_or(0)));
  out->set_outcome(webhook.outcome);
  if (webhook.attempted) to_proto(*webhook.attempted, out->mutable_attempted());
  for (const db::WebhookTrigger& trigger : webhook.triggers) {
    v1::Trigger* one = out->add_triggers();
    one->set_id(static_cast<int>(trigger.id));
    one->set_webhook_id(static_cast<int>(webhook.id));
    one->set_trigger_type(trigger_type(trigger.kind));
    Json condition = Json::object();
    if (trigger.kind == "TASK_LOG") condition["regex"] = trigger.condition;
    if (trigger.kind == "METRIC_THRESHOLD_EXCEEDED")
      condition = parse_json(trigger.condition).value_or(Json::object());
    if (trigger.kind == "EXPERIMENT_STATE_CHANGE") condition["state"] = trigger.condition;
    to_struct(condition, one->mutable_condition());
  }
}

/// Role of the caller where the webhook applies.
bool may_change(const Caller& caller, const db::Webhook& webhook) {
  if (!webhook.workspace) return caller.grants.everywhere() == db::Role::kClusterAdmin;
  return caller.grants.in(*webhook.workspace) >= db::Role::kEditorRestricted;
}

constexpr const char* kAdminsOnly = "only administrators change webhooks of the whole cluster";

}  // namespace

WebhookService::WebhookService(const Context& context) : Service(context, v1::WebhookService::full_name) {
  unary(v1::WebhookService::GetWebhooks, &WebhookService::GetWebhooks);
  unary(v1::WebhookService::PostWebhook, &WebhookService::PostWebhook);
  unary(v1::WebhookService::PatchWebhook, &WebhookService::PatchWebhook);
  unary(v1::WebhookService::DeleteWebhook, &WebhookService::DeleteWebhook);
  unary(v1::WebhookService::TestWebhook, &WebhookService::TestWebhook, context_.pools.outward);
  unary(v1::WebhookService::PostWebhookEventData, &WebhookService::PostWebhookEventData);
}

Result<db::Webhook> WebhookService::editable(const Caller& caller, std::int64_t id) const {
  auto webhook = db::get_webhook(context_.pool, id);
  if (webhook && may_change(caller, *webhook)) return webhook;
  if (!webhook && webhook.error().code != Code::kNotFound) return webhook;
  if (!webhook && !caller.grants.visible()) return webhook;
  if (webhook && !webhook->workspace) return fail(Code::kPermissionDenied, kAdminsOnly);
  if (webhook && caller.grants.in(*webhook->workspace) >= db::Role::kViewer)
    return fail(Code::kPermissionDenied, "only editors of its workspace change a webhook");
  // A hidden webhook is refused as one that does not exist.
  return fail(Code::kPermissionDenied, "access denied: webhook " + std::to_string(id) +
                                           " does not exist, or you have no role in its workspace");
}

Status WebhookService::GetWebhooks(const Caller& caller, const v1::GetWebhooksRequest&,
                                   v1::GetWebhooksResponse* response) {
  TRY_ASSIGN(const auto webhooks, db::list_webhooks(context_.pool, caller.grants.visible()));
  for (const db::Webhook& webhook : webhooks)
    webhook_to_proto(webhook, may_change(caller, webhook), response->add_webhooks());
  return {};
}

Status WebhookService::PostWebhook(const Caller& caller, const v1::PostWebhookRequest& request,
                                   v1::PostWebhookResponse* response) {
  const v1::Webhook& in = request.webhook();
  if (in.workspace_id() == 0 && caller.grants.everywhere() != db::Role::kClusterAdmin)
    return fail(Code::kPermissionDenied, std::string(kAdminsOnly) + "; name a workspace");
  if (in.workspace_id() != 0) TRY(authorize_storing(caller, in.workspace_id(), context_.pool));
  TRY_ASSIGN(const db::Webhook webhook, read_webhook(in, *context_.webhooks));
  TRY_ASSIGN(const std::int64_t id, db::create_webhook(context_.pool, webhook));
  context_.bulk.triggers_changed();
  TRY_ASSIGN(const db::Webhook stored, db::get_webhook(context_.pool, id));
  webhook_to_proto(stored, true, response->mutable_webhook());
  return {};
}

Status WebhookService::PatchWebhook(const Caller& caller, const v1::PatchWebhookRequest& request,
                                    v1::PatchWebhookResponse*) {
  TRY_ASSIGN(const db::Webhook webhook, editable(caller, request.id()));
  const std::string& url = request.webhook().url();
  TRY(webhooks::check_url(url));
  if (const std::string reason = context_.webhooks->refusal(url); !reason.empty())
    return fail(Code::kInvalidArgument, "url: " + reason);
  return db::set_webhook_url(context_.pool, webhook.id, url);
}

Status WebhookService::DeleteWebhook(const Caller& caller, const v1::DeleteWebhookRequest& request,
                                     v1::DeleteWebhookResponse*) {
  TRY_ASSIGN(const db::Webhook webhook, editable(caller, request.id()));
  TRY(db::delete_webhook(context_.pool, webhook.id));
  context_.bulk.triggers_changed();
  return {};
}

Status WebhookService::TestWebhook(const Caller& caller, const v1::TestWebhookRequest& request,
                                   v1::TestWebhookResponse* response) {
  TRY_ASSIGN(const db::Webhook webhook, editable(caller, request.id()));
  TRY(context_.webhooks->test(webhook));
  response->set_completed(true);
  return {};
}

Status WebhookService::PostWebhookEventData(const Caller& caller,
                                            const v1::PostWebhookEventDataRequest& request,
                                            v1::PostWebhookEventDataResponse*) {
  const ExperimentId id(request.experiment_id());
  Named named{.experiment = id};
  if (request.trial_id() != 0) named.trial = TrialId(request.trial_id());
  TRY(admit(context_, caller, named));
  const v1::CustomWebhookEventData& data = request.data();
  if (data.title().size() + data.description().size() > kMaxAlert)
    return fail(Code::kInvalidArgument, "title and description must have at most 16384 bytes together");
  std::string level = v1::LogLevel_Name(data.level()).substr(std::string_view("LOG_LEVEL_").size());
  if (level == "UNSPECIFIED") level = "INFO";
  TRY(db::queue_webhook_alert(context_.pool, {.experiment = id.value,
                                              .trial = request.trial_id(),
                                              .level = level,
                                              .title = make_utf8(data.title()),
                                              .description = make_utf8(data.description())}));
  return {};
}

}  // namespace det::api
