// Messages of webhooks: layout, signature, and the URLs that are accepted.
#include "master/webhooks/message.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "common/base/json.h"

namespace det::webhooks {
namespace {

db::WebhookEvent event_of(const std::string& kind, const std::string& facts, const std::string& format) {
  db::WebhookEvent event;
  event.id = 5;
  event.kind = kind;
  event.event = facts;
  event.format = format;
  event.created = {1'700'000'000'000'000};
  event.experiment = 7;
  event.name = "a <b> & c";
  event.state = "COMPLETED";
  event.resource_pool = "default";
  event.workspace = "lab";
  event.project = "vision";
  event.slots_per_trial = 2;
  event.duration_s = 3725.9;
  return event;
}

Json json_of(const db::WebhookEvent& event, const std::string& base_url = "") {
  const auto json = parse_json(message(event, "cluster", base_url));
  REQUIRE(json);
  return *json;
}

}  // namespace

TEST_CASE("a state change has the layout of Determined AI") {
  const Json json = json_of(event_of("EXPERIMENT_STATE_CHANGE", R"({"state":"ERROR"})", "DEFAULT"));
  CHECK(json["event_type"] == "EXPERIMENT_STATE_CHANGE");
  CHECK(json["timestamp"] == 1'700'000'000);
  CHECK(json["condition"] == Json{{"state", "ERROR"}});
  const Json& experiment = json["event_data"]["experiment"];
  CHECK(experiment["id"] == 7);
  CHECK(experiment["state"] == "ERROR");
  CHECK(experiment["duration"] == 3725);
  CHECK(experiment["slots_per_trial"] == 2);
  CHECK(experiment["workspace"] == "lab");
  CHECK(experiment["project"] == "vision");
  CHECK(json["event_id"].get<std::string>().size() == 36);
}

TEST_CASE("repeated deliveries of an event have one id, different events have different ids") {
  auto event = event_of("CUSTOM", "{}", "DEFAULT");
  const Json first = json_of(event), again = json_of(event);
  event.id = 6;
  CHECK(first["event_id"] == again["event_id"]);
  CHECK(first["event_id"] != json_of(event)["event_id"]);
}

TEST_CASE("a log line is delivered with its task, node and pattern") {
  const Json json = json_of(
      event_of("TASK_LOG",
               R"({"regex":"out of .*","task_id":"7.t","node_name":"a1","triggering_log":"out of memory"})",
               "DEFAULT"));
  CHECK(json["condition"] == Json{{"regex", "out of .*"}});
  CHECK(json["event_data"]["task_log"] ==
        Json{{"task_id", "7.t"}, {"node_name", "a1"}, {"triggering_log", "out of memory"}});
}

TEST_CASE("a metric beyond a threshold is delivered with its rule, value and experiment") {
  const std::string facts =
      R"({"rule":{"metric":"loss","above":2.5},"trial_id":9,"group":"validation","total_batches":100,"value":"NaN"})";
  const Json json = json_of(event_of("METRIC_THRESHOLD_EXCEEDED", facts, "DEFAULT"));
  CHECK(json["condition"] == Json{{"metric", "loss"}, {"above", 2.5}});
  CHECK(json["event_data"]["metric"] ==
        Json{{"name", "loss"}, {"group", "validation"}, {"value", "NaN"}, {"total_batches", 100}});
  CHECK(json["event_data"]["experiment"]["trial_id"] == 9);
  const Json slack = json_of(event_of("METRIC_THRESHOLD_EXCEEDED", facts, "SLACK"));
  CHECK(slack["blocks"][0]["text"]["text"] == "validation loss is NaN after 100 batches, above 2.5");
}

TEST_CASE("Slack messages escape markup, close code blocks and link when the address is known") {
  auto event = event_of("EXPERIMENT_STATE_CHANGE", R"({"state":"COMPLETED"})", "SLACK");
  const Json json = json_of(event);
  CHECK(json["blocks"][0]["text"]["text"] == "Your experiment completed successfully 🎉");
  const Json& attachment = json["attachments"][0];
  CHECK(attachment["color"] == "#13B670");
  CHECK(attachment["blocks"][0]["text"]["text"] == "✅ a &lt;b&gt; &amp; c (#7)");
  CHECK(attachment["blocks"][0]["fields"][0]["text"] == "*Status*: Completed");
  CHECK(attachment["blocks"][0]["fields"][1]["text"] == "*Duration*: 1h 2min");
  CHECK(json_of(event, "https://det.example")["attachments"][0]["blocks"][0]["text"]["text"] ==
        "✅ <https://det.example/det/experiments/7/overview | a &lt;b&gt; &amp; c (#7)>");
  event.kind = "TASK_LOG";
  event.event =
      R"({"regex":"x","task_id":"7.t","trial_id":9,"node_name":"a1","triggering_log":"```<!channel>"})";
  const std::string text = json_of(event)["blocks"][0]["text"]["text"];
  CHECK(text ==
        "Experiment ID `7`, Trial ID `9`, running on node `a1`, reported a log\n```'''&lt;!channel&gt;```\n"
        "This log matched the regex\n```x```\nView full logs at /det/experiments/7/trials/9/logs");
}

TEST_CASE("the signature is HMAC-SHA256 of timestamp, comma and body") {
  // printf '1700000000,{"a":1}' | openssl dgst -sha256 -hmac key
  CHECK(signature("key", 1'700'000'000, R"({"a":1})") ==
        "391e907ce725cfe3adad699916aaa7e9d6299c62a45b74b68dd659b415146634");
}

TEST_CASE("URLs that libcurl and the egress policy could read differently are refused") {
  for (const char* const url : {"https://hooks.example.org/services/T0/B0/x?y=1#z",
                                "http://10.0.0.1:8065/hook", "https://[2001:db8::1]/a", "HTTPS-less"}) {
    const bool good = std::string_view(url).starts_with("http");
    INFO(url);
    CHECK(check_url(url).has_value() == good);
  }
  for (const char* const url :
       {"", "https://", "ftp://example.org", "file:///etc/passwd", "https://user@example.org/",
        "https://a b/", "https://example.org\\@169.254.169.254/", "https://example.org/\r\nX: y",
        "https://ex%61mple.org/", "https:///path"}) {
    INFO(url);
    CHECK_FALSE(check_url(url));
  }
  CHECK(shown_url("https://hooks.example.org/services/secret") == "https://hooks.example.org");
}

}  // namespace det::webhooks
