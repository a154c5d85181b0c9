// Conversions between core types and protobuf messages.
#include "master/api/convert/convert.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace det::api {
namespace {

TEST_CASE("a struct beyond the limits of a request is refused by its field, not replaced by an empty one") {
  google::protobuf::Struct value;
  (*value.mutable_fields())["a"].set_number_value(1.5);
  CHECK(dump_json(from_struct(value, "metadata").value()) == R"({"a":1.5})");
  (*value.mutable_fields())["a"].set_string_value(std::string(1 << 20, 'x'));
  const auto refused = from_struct(value, "metadata");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kInvalidArgument);
  CHECK(refused.error().message == "metadata: JSON: larger than 1048576 bytes");
}

TEST_CASE("times survive the round trip") {
  for (const std::int64_t micros :
       {0L, 1L, -1L, 1646187318299569L, -62135596800000000L, 253402300799999999L}) {
    google::protobuf::Timestamp time;
    to_proto(WallTime{micros}, &time);
    INFO(micros);
    CHECK(time.nanos() >= 0);
    CHECK(from_proto(time).micros == micros);
  }
}

TEST_CASE("times outside the calendar are clamped") {
  google::protobuf::Timestamp time;
  time.set_seconds(INT64_MAX);
  time.set_nanos(-5);
  CHECK(from_proto(time).micros == 253402300799000000L);
}

TEST_CASE("every state has a distinct name and survives the round trip") {
  std::set<v1::State> seen;
  for (int i = 0; i <= static_cast<int>(core::State::kError); ++i) {
    const auto state = static_cast<core::State>(i);
    const v1::State wire = to_proto(state);
    CHECK(wire != v1::STATE_UNSPECIFIED);
    CHECK(from_proto(wire) == state);
    CHECK(v1::State_Name(wire) == "STATE_" + std::string(core::state_name(state)));
    seen.insert(wire);
  }
  CHECK(seen.size() == 9);
  CHECK_FALSE(from_proto(v1::STATE_UNSPECIFIED));
  CHECK_FALSE(from_proto(v1::STATE_DELETING));
}

TEST_CASE("an active trial shows the state of its allocation") {
  using A = core::AllocationState;
  CHECK(to_proto(core::State::kActive, std::nullopt) == v1::STATE_QUEUED);
  CHECK(to_proto(core::State::kActive, A::kPulling) == v1::STATE_PULLING);
  CHECK(to_proto(core::State::kActive, A::kStarting) == v1::STATE_STARTING);
  CHECK(to_proto(core::State::kActive, A::kRunning) == v1::STATE_RUNNING);
  CHECK(to_proto(core::State::kPaused, A::kRunning) == v1::STATE_PAUSED);
  CHECK(to_proto(core::State::kCompleted, std::nullopt) == v1::STATE_COMPLETED);
}

TEST_CASE("held allocations of an agent survive the round trip") {
  using A = core::AllocationState;
  for (const A state : {A::kPulling, A::kStarting, A::kRunning}) {
    v1::AllocationUpdate wire;
    to_proto(core::HeldAllocation{.id = AllocationId("1.a.2"), .state = state}, &wire);
    const auto back = from_proto(wire);
    REQUIRE(back);
    CHECK(back->id == AllocationId("1.a.2"));
    CHECK(back->state == state);
    CHECK_FALSE(back->exit);
  }
  for (const auto kind :
       {core::ExitKind::kSucceeded, core::ExitKind::kFailed, core::ExitKind::kLost, core::ExitKind::kStopped,
        core::ExitKind::kOutOfMemory, core::ExitKind::kStorageFull, core::ExitKind::kHung}) {
    v1::AllocationUpdate wire;
    const core::Exit exit{kind, 137, "killed by signal 9"};
    to_proto(core::HeldAllocation{.id = AllocationId("x.1"), .state = A::kTerminated, .exit = exit}, &wire);
    const auto back = from_proto(wire);
    REQUIRE(back);
    CHECK(back->state == A::kTerminated);
    CHECK(back->exit == exit);
  }
}

TEST_CASE("an update without id or state is refused, and an unspecified exit counts as lost") {
  v1::AllocationUpdate wire;
  wire.set_state(v1::AllocationUpdate::STATE_RUNNING);
  CHECK_FALSE(from_proto(wire));
  wire.set_allocation_id("a.1");
  wire.clear_state();
  CHECK_FALSE(from_proto(wire));
  wire.set_state(v1::AllocationUpdate::STATE_TERMINATED);
  const auto back = from_proto(wire);
  REQUIRE(back);
  CHECK(back->exit->kind == core::ExitKind::kLost);
}

TEST_CASE("log lines print as the command line shows them") {
  db::LogRow row{.time = *parse_rfc3339("2022-03-02T02:15:18.299569Z"), .level = "INFO", .text = "text"};
  CHECK(log_message(row) == "[2022-03-02T02:15:18.299569Z]          || INFO: text");
  row.rank = 1;
  CHECK(log_message(row) == "[2022-03-02T02:15:18.299569Z]          [rank=1] || INFO: text");
  row.level.clear();
  row.text = "bad \xff byte";
  CHECK(log_message(row) == "[2022-03-02T02:15:18.299569Z]          [rank=1] || bad \xEF\xBF\xBD byte");
  row.text = std::string("a\0b", 3);
  CHECK(log_message(row).ends_with(std::string("|| a\0b", 6)));
}

TEST_CASE("log levels accept their usual names") {
  for (const char* name : {"TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}) {
    CHECK(log_level_name(log_level(name)) == name);
  }
  CHECK(log_level("warn") == v1::LOG_LEVEL_WARNING);
  CHECK(log_level("") == v1::LOG_LEVEL_UNSPECIFIED);
  CHECK(log_level_name(v1::LOG_LEVEL_UNSPECIFIED) == "");
}

TEST_CASE("metrics keep their values, and NaN becomes a string") {
  v1::MetricsWorkload out;
  to_proto(
      db::MetricPoint{.group = "training", .steps_completed = 7, .metrics = R"({"loss":0.1,"bad":"NaN"})"},
      &out);
  const auto& fields = out.metrics().avg_metrics().fields();
  CHECK(fields.at("loss").number_value() == 0.1);
  CHECK(fields.at("bad").string_value() == "NaN");
  CHECK(out.total_batches() == 7);
}

TEST_CASE("series are joined by their steps") {
  v1::DownsampledMetrics out;
  to_proto(
      {{.trial = TrialId(1), .group = "training", .name = "loss", .points = {{1, 0.5, {}}, {3, 0.25, {}}}},
       {.trial = TrialId(1), .group = "training", .name = "acc", .points = {{3, 0.9, {}}}}},
      &out);
  REQUIRE(out.data_size() == 2);
  CHECK(out.data(0).values().fields_size() == 1);
  CHECK(out.data(1).batches() == 3);
  CHECK(out.data(1).values().fields().at("acc").number_value() == 0.9);
}

TEST_CASE("a page carries its start, end and total") {
  const db::Window window = to_window(10, 0, v1::ORDER_BY_DESC, 100);
  CHECK(window.limit == 100);
  CHECK(window.descending);
  CHECK(to_window(0, -7, v1::ORDER_BY_ASC, 100).limit == -2);
  v1::Pagination out;
  to_pagination(db::Page<int>{.rows = {1, 2}, .total = 12, .start = 10}, window, &out);
  CHECK(out.start_index() == 10);
  CHECK(out.end_index() == 12);
  CHECK(out.total() == 12);
}

TEST_CASE("a long list has at most 10,000 rows a page") {
  const auto limit = [](int asked) { return to_bounded_window(0, asked, v1::ORDER_BY_ASC).limit; };
  CHECK(limit(0) == 10'000);
  CHECK(limit(-1) == 10'000);
  CHECK(limit(20'000) == 10'000);
  CHECK(limit(7) == 7);
  CHECK(limit(-2) == -2);  // only the total
}

TEST_CASE("an agent shows its slots and the allocations that hold them") {
  core::Agent agent{.id = AgentId("a1"),
                    .address = "127.0.0.1",
                    .pool = "default",
                    .slots = {{"CUDA", "H", "u0"}, {"CPU", "X", "u1"}},
                    .session = 3};
  const RunningPart running{AllocationId("4.req.2"), TrialId(9), core::AllocationState::kRunning, {1}};
  v1::Agent out;
  to_proto(agent, {.agent = agent.id, .disabled_slots = {0}}, {running}, &out);
  CHECK(out.connected());
  CHECK(out.slots().at("0").device().type() == v1::Device::TYPE_CUDA);
  CHECK_FALSE(out.slots().at("0").enabled());
  CHECK(out.slots().at("1").enabled());
  CHECK_FALSE(out.slots().at("0").has_container());
  CHECK(out.slots().at("1").container().trial_id() == 9);
  CHECK(out.containers().at("4.req.2").task_id() == "4.req");
}

TEST_CASE("slots of a disabled agent are disabled, and those of a draining agent drain without work, too") {
  const core::Agent agent{.id = AgentId("a1"), .slots = {{"CPU", "X", "u0"}, {"CPU", "X", "u1"}}};
  const RunningPart running{AllocationId("4.req.2"), TrialId(9), core::AllocationState::kRunning, {1}};
  for (const bool draining : {false, true}) {
    v1::Agent out;
    to_proto(agent, {.agent = agent.id, .enabled = false, .draining = draining}, {running}, &out);
    for (const auto& [id, slot] : out.slots()) {
      CHECK_FALSE(slot.enabled());
      CHECK(slot.draining() == draining);
    }
    const v1::DeviceStats& stats = out.slot_stats().brand_stats().at("X");
    CHECK(stats.disabled() == 2);
    CHECK(stats.draining() == (draining ? 2 : 0));
  }
}

TEST_CASE("a disabled slot of an enabled agent drains while it has work") {
  const core::Agent agent{.id = AgentId("a1"), .slots = {{"CPU", "X", "u0"}, {"CPU", "X", "u1"}}};
  const RunningPart running{AllocationId("4.req.2"), TrialId(9), core::AllocationState::kRunning, {1}};
  v1::Agent out;
  to_proto(agent, {.agent = agent.id, .disabled_slots = {0, 1}}, {running}, &out);
  CHECK_FALSE(out.slots().at("0").draining());
  CHECK(out.slots().at("1").draining());
}

TEST_CASE("a start command carries everything that the agent needs") {
  auto config = std::make_shared<expconf::ExperimentConfig>();
  config->entrypoint = {"model_def:Net"};
  config->environment_variables = {{"A", "1"}};
  config->resolved = {{"name", "n"}};
  core::StartAllocation start{.agent = AgentId("a"),
                              .session = 1,
                              .experiment = ExperimentId(4),
                              .config = config,
                              .code_archive = "digest"};
  start.allocation = {
      .id = AllocationId("4.r.2"), .run = 2, .parts = {{.agent = AgentId("a"), .slots = {0, 3}}}};
  start.trial = {.id = TrialId(9),
                 .task = TaskId("4.r"),
                 .seed = 5,
                 .hparams = R"({"lr":1})",
                 .latest_checkpoint = "uuid",
                 .latest_steps = 70};
  v1::StartAllocation out;
  start.token = "token";
  to_proto(start, &out);
  CHECK(out.allocation_id() == "4.r.2");
  CHECK(out.trial_id() == 9);
  CHECK(out.run() == 2);
  CHECK(out.slots_size() == 2);
  CHECK(out.gang_size() == 0);
  CHECK(out.experiment_config() == R"({"name":"n"})");
  CHECK(out.steps_completed() == 70);
  CHECK(out.latest_checkpoint() == "uuid");
  CHECK(out.environment().at("A") == "1");
  CHECK(out.token() == "token");
  CHECK(out.code_archive() == "digest");
}

TEST_CASE("a start command of a gang carries its peers and the rendezvous address") {
  core::StartAllocation start{.agent = AgentId("b"),
                              .session = 1,
                              .part = 1,
                              .config = std::make_shared<expconf::ExperimentConfig>()};
  start.allocation.parts = {{.agent = AgentId("a"), .address = "10.0.0.1", .slots = {0, 1}},
                            {.agent = AgentId("b"), .address = "10.0.0.2", .slots = {5}}};
  start.allocation.port = 29407;
  v1::StartAllocation out;
  start.token = "token";
  to_proto(start, &out);
  CHECK(out.part() == 1);
  CHECK(out.gang_port() == 29407);
  REQUIRE(out.slots_size() == 1);
  CHECK(out.slots(0) == 5);
  REQUIRE(out.gang_size() == 2);
  CHECK(out.gang(0).address() == "10.0.0.1");
  CHECK(out.gang(0).slots() == 2);
}

}  // namespace
}  // namespace det::api
