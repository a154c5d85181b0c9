#include "wire_targets.h"

#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <google/protobuf/util/time_util.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "common/base/json.h"
#include "common/base/text.h"
#include "det/v1/agent.pb.h"
#include "det/v1/harness.pb.h"
#include "master/api/auth/access.h"
#include "master/api/convert/convert.h"
#include "master/api/experiments/report_check.h"
#include "master/http/transcode.h"

namespace det::fuzz {
namespace {

constexpr int kJsonDepth = 32;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz target: %s\n", what);
  std::abort();
}

/// Silences protobuf, which logs a line for every bad byte.
void quiet() {
  static const auto once = google::protobuf::SetLogHandler(nullptr);
  (void)once;
}

/// A refusal must blame the caller and be printable.
void check_refusal(const Error& error) {
  require(error.code == Code::kInvalidArgument, "a refusal that is not the caller's fault");
  require(!error.message.empty() && !find_bad_utf8(error.message), "a refusal that cannot be printed");
}

void check_held(const v1::AllocationUpdate& update) {
  const auto held = api::from_proto(update);
  if (!held) return check_refusal(held.error());
  require(!held->id.value.empty(), "an allocation without an id was let through");
  require(held->exit.has_value() == (held->state == core::AllocationState::kTerminated),
          "an end that is none");
  require(!held->exit || !find_bad_utf8(held->exit->message), "an exit's message that cannot be stored");
  v1::AllocationUpdate said;
  api::to_proto(*held, &said);
  const auto again = api::from_proto(said);
  require(again.has_value() && again->state == held->state && again->id == held->id,
          "an allocation changed by being said");
}

void check_report(const v1::Report& report) {
  if (report.has_metrics()) {
    const auto good = api::check_metrics(report.metrics());
    if (!good) return check_refusal(good.error());
  }
  if (report.has_checkpoint()) {
    const auto read =
        api::read_checkpoint_report(report.checkpoint(), TrialId(1), 1, api::from_proto(report.time()), "");
    if (!read) return check_refusal(read.error());
  }
}

void check_lines(const v1::ShipLogsRequest& batch) {
  for (const v1::LogLine& line : batch.lines()) {
    const db::LogLine read = api::from_proto(line);
    for (const std::string& text : {read.level, read.stdtype, read.source})
      require(!find_bad_utf8(text), "a field of a log line that cannot be stored");
    // The displayed line must be valid text, whatever bytes the trial wrote.
    db::LogRow row;
    row.text = read.text;
    row.level = read.level;
    row.time = read.time;
    v1::LogEntry shown;
    api::to_proto(row, TrialId(1), &shown);
    require(!find_bad_utf8(shown.message()) && !find_bad_utf8(shown.log()),
            "a log line that cannot be shown");
  }
}

template <typename Message>
bool parse(std::string_view bytes, Message& message) {
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace

void gateway(std::string_view bytes) {
  quiet();
  static const http::Routes routes(api::services());
  const std::size_t line = std::min(bytes.find('\n'), bytes.size());
  const std::string_view head = bytes.substr(0, line);
  const std::size_t space = std::min(head.find(' '), head.size());
  const std::string_view target = head.substr(std::min(space + 1, head.size()));
  const std::size_t question = std::min(target.find('?'), target.size());
  http::Request request{.method = std::string(head.substr(0, space)),
                        .path = std::string(target.substr(0, question))};
  request.query = target.substr(std::min(question + 1, target.size()));
  request.body = bytes.substr(std::min(line + 1, bytes.size()));
  if (!request.path.starts_with('/')) return;  // The connection refuses such a target.
  const http::Match match = routes.find(request.method, request.path);
  if (!match.route) return;
  const auto message = http::to_message(match, request, kJsonDepth);
  if (!message) return check_refusal(message.error());
  std::string sent;
  require((*message)->SerializeToString(&sent), "a message that cannot be sent");
  auto arrived = http::new_message((*message)->GetDescriptor());
  require(arrived->ParseFromString(sent), "a message that does not arrive");
  const auto text = http::to_json_text(**message, false);
  require(parse_json(text, {.bytes = 64 << 20, .depth = 512}).has_value(), "an answer that is no JSON");
  auto again = http::new_message((*message)->GetDescriptor());
  require(google::protobuf::util::JsonStringToMessage(text, again.get()).ok(),
          "JSON that is not understood again");
}

void wire(std::string_view bytes) {
  quiet();
  if (bytes.empty()) return;
  const auto kind = static_cast<unsigned char>(bytes[0]) % 3;
  bytes.remove_prefix(1);
  if (kind == 0) {
    v1::AgentMessage message;
    if (!parse(bytes, message)) return;
    if (message.has_update()) check_held(message.update());
    for (const v1::AllocationUpdate& held : message.hello().held()) check_held(held);
  } else if (kind == 1) {
    v1::HarnessMessage message;
    if (parse(bytes, message) && message.has_report()) check_report(message.report());
  } else {
    v1::ShipLogsRequest message;
    if (parse(bytes, message)) check_lines(message);
  }
}

std::vector<std::pair<std::string, std::string>> wire_seeds() {
  std::vector<std::pair<std::string, std::string>> seeds;
  const auto add = [&](const char* name, char kind, const google::protobuf::Message& message) {
    seeds.emplace_back(name, kind + message.SerializeAsString());
  };
  v1::AgentMessage hello;
  hello.mutable_hello()->set_agent_id("a1");
  hello.mutable_hello()->set_instance("i");
  hello.mutable_hello()->add_devices()->set_type("CUDA");
  v1::AllocationUpdate* held = hello.mutable_hello()->add_held();
  held->set_allocation_id("1.t.1");
  held->set_state(v1::AllocationUpdate::STATE_TERMINATED);
  held->mutable_exit()->set_kind(v1::AllocationExit::KIND_FAILED);
  held->mutable_exit()->set_message("out of memory");
  add("hello", 0, hello);
  v1::AgentMessage update;
  *update.mutable_update() = *held;
  add("update", 0, update);
  update.mutable_update()->set_state(static_cast<v1::AllocationUpdate::State>(99));
  add("unknown state", 0, update);
  v1::HarnessMessage metrics;
  v1::MetricsReport* report = metrics.mutable_report()->mutable_metrics();
  report->set_group("validation");
  report->set_steps_completed(100);
  report->set_metrics(R"({"loss":0.5,"nested":{"a":1e-300},"list":["x",null],"nan":"NaN"})");
  add("metrics", 1, metrics);
  v1::HarnessMessage checkpoint;
  checkpoint.mutable_report()->mutable_checkpoint()->set_uuid("9d0b6a3e-3c6b-4f1c-a5ce-3b1f3bd3b1a1");
  checkpoint.mutable_report()->mutable_checkpoint()->set_steps_completed(7);
  add("checkpoint", 1, checkpoint);
  v1::HarnessMessage attach;
  attach.mutable_attach()->set_trial_id(1);
  add("attach", 1, attach);
  v1::ShipLogsRequest logs;
  logs.set_allocation_id("1.t.1");
  logs.set_first_line(1);
  v1::LogLine* line = logs.add_lines();
  *line->mutable_time() = google::protobuf::util::TimeUtil::SecondsToTimestamp(1'700'000'000);
  line->set_text("loss \xff\xfe is \xe2\x82\xac 5");
  line->set_level("INFO");
  line->set_rank(3);
  add("logs", 2, logs);
  add("no logs", 2, v1::ShipLogsRequest());
  return seeds;
}

}  // namespace det::fuzz
