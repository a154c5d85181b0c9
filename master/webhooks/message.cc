#include "master/webhooks/message.h"

#include <sodium.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "common/base/json.h"
#include "common/base/text.h"

namespace det::webhooks {
namespace {

using db::WebhookEvent;

std::string hex(const unsigned char* bytes, std::size_t size) {
  std::string text(size * 2 + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), bytes, size);
  text.pop_back();
  return text;
}

/// Name-based UUID (RFC 4122, layout of version 5, SHA-256 instead of SHA-1) of an event.
std::string event_id(const WebhookEvent& event, const std::string& cluster_id) {
  const std::string name = cluster_id + "/" + std::to_string(event.id);
  unsigned char digest[crypto_hash_sha256_BYTES];
  crypto_hash_sha256(digest, reinterpret_cast<const unsigned char*>(name.data()), name.size());
  digest[6] = static_cast<unsigned char>((digest[6] & 0x0f) | 0x50);
  digest[8] = static_cast<unsigned char>((digest[8] & 0x3f) | 0x80);
  std::string text = hex(digest, 16);
  for (const std::size_t at : {20u, 16u, 12u, 8u}) text.insert(at, "-");
  return text;
}

/// Facts of the event that the database keeps as JSON.
Json facts_of(const WebhookEvent& event) {
  auto facts = parse_json(event.event);
  return facts && facts->is_object() ? std::move(*facts) : Json::object();
}

Json experiment_json(const WebhookEvent& event, const Json& facts) {
  Json experiment = {{"id", event.experiment},
                     {"state", facts.value("state", event.state)},
                     {"name", event.name},
                     {"duration", static_cast<std::int64_t>(event.duration_s)},
                     {"resource_pool", event.resource_pool},
                     {"slots_per_trial", event.slots_per_trial},
                     {"workspace", event.workspace},
                     {"project", event.project}};
  if (const auto trial = facts.value("trial_id", std::int64_t{0}); trial > 0) experiment["trial_id"] = trial;
  return experiment;
}

std::string plain(const WebhookEvent& event, const std::string& cluster_id) {
  const Json facts = facts_of(event);
  Json condition = Json::object(), data = Json::object();
  if (event.kind == "TASK_LOG") {
    condition["regex"] = facts.value("regex", "");
    data["task_log"] = {{"task_id", facts.value("task_id", "")},
                        {"node_name", facts.value("node_name", "")},
                        {"triggering_log", facts.value("triggering_log", "")}};
  } else if (event.kind == "TEST") {
    data["data"] = "test";
  } else if (event.kind == "METRIC_THRESHOLD_EXCEEDED") {
    condition = facts.value("rule", Json::object());
    data["experiment"] = experiment_json(event, facts);
    data["metric"] = {{"name", condition.value("metric", "")},
                      {"group", facts.value("group", "")},
                      {"value", facts.value("value", Json())},
                      {"total_batches", facts.value("total_batches", std::int64_t{0})}};
  } else {
    condition["state"] = facts.value("state", event.state);
    data["experiment"] = experiment_json(event, facts);
  }
  if (event.kind == "CUSTOM")
    data["custom_data"] = {{"level", facts.value("level", "")},
                           {"title", facts.value("title", "")},
                           {"description", facts.value("description", "")}};
  const Json body = {{"event_id", event_id(event, cluster_id)},
                     {"event_type", event.kind},
                     {"timestamp", event.created.micros / 1'000'000},
                     {"condition", condition},
                     {"event_data", data}};
  return dump_json(body);
}

/// Escapes the three characters that have a meaning in Slack's mrkdwn.
std::string slack_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += c;
    }
  }
  return out;
}

/// Text in a code block; a fence inside would end the block.
std::string slack_code(const std::string& text) {
  std::string safe = slack_text(text);
  for (std::size_t at = 0; (at = safe.find("```", at)) != safe.npos;) safe.replace(at, 3, "'''");
  return "```" + safe + "```\n";
}

std::string slack_link(const std::string& base_url, const std::string& path, const std::string& text) {
  return base_url.empty() ? text : "<" + base_url + path + " | " + text + ">";
}

Json field(const std::string& name, const std::string& value) {
  return {{"type", "mrkdwn"}, {"text", "*" + name + "*: " + slack_text(value)}};
}

Json section(const char* type, const std::string& text) {
  return {{"type", "section"}, {"text", {{"type", type}, {"text", text}}}};
}

Json slack_log(const WebhookEvent& event, const Json& facts, const std::string& base_url) {
  const auto trial = facts.value("trial_id", std::int64_t{0});
  const std::string node = slack_text(facts.value("node_name", ""));
  std::string text = event.experiment > 0 ? "Experiment ID `" + std::to_string(event.experiment) +
                                                "`, Trial ID `" + std::to_string(trial) + "`"
                                          : "Task ID `" + slack_text(facts.value("task_id", "")) + "`";
  text += ", running on node `" + node + "`, reported a log\n" +
          slack_code(facts.value("triggering_log", "")) + "This log matched the regex\n" +
          slack_code(facts.value("regex", ""));
  const std::string path =
      "/det/experiments/" + std::to_string(event.experiment) + "/trials/" + std::to_string(trial) + "/logs";
  if (event.experiment > 0)
    text +=
        base_url.empty() ? "View full logs at " + path : slack_link(base_url, path, "View full logs here");
  return {{"blocks", Json::array({section("mrkdwn", text)})}};
}

/// Headline, name and color of a state.
struct Headline {
  std::string text, mark, state, color;
};
Headline headline_of(const std::string& state) {
  if (state == "COMPLETED") return {"Your experiment completed successfully 🎉", "✅ ", "Completed", "#13B670"};
  if (state == "ERROR") return {"Your experiment has stopped with errors", "❌ ", "Errored", "#DD5040"};
  return {"The status of your experiment is " + state, "", state, "#009BDE"};
}

/// "validation loss is 3.2 after 100 batches, above 2.5".
std::string broken_rule(const Json& facts) {
  const Json rule = facts.value("rule", Json::object());
  const char* side = rule.contains("above") ? "above" : "below";
  const Json value = facts.value("value", Json());
  return facts.value("group", "") + " " + rule.value("metric", "") + " is " +
         (value.is_string() ? value.get<std::string>() : dump_json(value)) + " after " +
         std::to_string(facts.value("total_batches", std::int64_t{0})) + " batches, " + side + " " +
         dump_json(rule.value(side, Json()));
}

Json slack_experiment(const WebhookEvent& event, const Json& facts, const std::string& base_url) {
  const Headline headline = headline_of(facts.value("state", event.state));
  const auto minutes = static_cast<std::int64_t>(event.duration_s / 60);
  Json fields = Json::array(
      {field("Status", headline.state),
       field("Duration", std::to_string(minutes / 60) + "h " + std::to_string(minutes % 60) + "min"),
       field("Workspace", event.workspace), field("Project", event.project)});
  if (const auto trial = facts.value("trial_id", std::int64_t{0}); trial > 0)
    fields.push_back(field("Trial ID", std::to_string(trial)));
  const std::string id = std::to_string(event.experiment);
  Json about = section("mrkdwn", headline.mark + slack_link(base_url, "/det/experiments/" + id + "/overview",
                                                            slack_text(event.name) + " (#" + id + ")"));
  about["fields"] = std::move(fields);
  Json top =
      section("plain_text", event.kind == "METRIC_THRESHOLD_EXCEEDED" ? broken_rule(facts) : headline.text);
  if (event.kind == "CUSTOM")
    top["fields"] =
        Json::array({field("Level", facts.value("level", "")), field("Title", facts.value("title", "")),
                     field("Description", facts.value("description", ""))});
  const Json attachment = {{"color", headline.color}, {"blocks", Json::array({about})}};
  return {{"blocks", Json::array({top})}, {"attachments", Json::array({attachment})}};
}

std::string slack(const WebhookEvent& event, const std::string& base_url) {
  const Json facts = facts_of(event);
  if (event.kind == "TEST") return dump_json({{"blocks", Json::array({section("plain_text", "test")})}});
  if (event.kind == "TASK_LOG") return dump_json(slack_log(event, facts, base_url));
  return dump_json(slack_experiment(event, facts, base_url));
}

}  // namespace

std::string message(const WebhookEvent& event, const std::string& cluster_id, const std::string& base_url) {
  return event.format == "SLACK" ? slack(event, base_url) : plain(event, cluster_id);
}

std::string signature(std::string_view key, std::int64_t timestamp, std::string_view body) {
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
  };
  const std::string start = std::to_string(timestamp) + ",";
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, bytes(key), key.size());
  crypto_auth_hmacsha256_update(&state, bytes(start), start.size());
  crypto_auth_hmacsha256_update(&state, bytes(body), body.size());
  unsigned char code[crypto_auth_hmacsha256_BYTES];
  crypto_auth_hmacsha256_final(&state, code);
  return hex(code, sizeof code);
}

Status check_url(const std::string& url) {
  const auto wrong = [](const std::string& reason) {
    return fail(Code::kInvalidArgument, "url: " + reason + ", as in https://example.org/hook");
  };
  if (url.size() > 2048) return wrong("must have at most 2048 bytes");
  const bool secure = url.starts_with("https://");
  if (!secure && !url.starts_with("http://")) return wrong("must begin with http:// or https://");
  const std::size_t begin = secure ? 8 : 7;
  const std::string authority = url.substr(begin, url.find_first_of("/?#", begin) - begin);
  // libcurl and the egress policy must see the same host, hence no user name and no unusual characters.
  static constexpr std::string_view kHost =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]_";
  if (authority.empty() || authority.find_first_not_of(kHost) != authority.npos)
    return wrong("must name a host, without a user name");
  if (std::ranges::any_of(url, [](unsigned char c) { return c <= 0x20 || c >= 0x7f || c == '\\'; }))
    return wrong("must not contain blanks, control characters, backslashes or characters beyond ASCII");
  return {};
}

std::string shown_url(const std::string& url) {
  const std::size_t scheme = url.find("://");
  const std::size_t begin = scheme == url.npos ? 0 : scheme + 3;
  return url.substr(0, url.find_first_of("/?#", begin));
}

}  // namespace det::webhooks
