#include "tests/master/db/samples.h"

#include <catch2/catch.hpp>
#include <limits>
#include <sstream>

#include "common/base/json.h"
#include "common/expconf/parse.h"

namespace det::test {
namespace {

struct AnyValue {
  template <typename V>
  operator V() const;
};
/// Number of members of an aggregate: the most values that it can be made of.
template <typename T, typename... A>
constexpr std::size_t members() {
  if constexpr (requires { T{A{}..., AnyValue{}}; }) {
    return members<T, A..., AnyValue>();
  } else {
    return sizeof...(A);
  }
}
// A new member is drawn by Sampler and shown by show(), so that the store contract finds it missing in a
// table.
static_assert(members<core::Experiment>() == 16 && members<core::QueueSettings>() == 5);
static_assert(members<core::Trial>() == 25 && members<core::Command>() == 13 && members<core::Exit>() == 3);
static_assert(members<core::Allocation>() == 17 && members<core::AllocationPart>() == 8);
static_assert(members<core::AgentSettings>() == 4 && members<core::Pilot>() == 12);

}  // namespace

std::shared_ptr<const expconf::ExperimentConfig> sample_config() {
  static const auto config = [] {
    auto parsed = expconf::parse(R"(
name: mnist é
description: "a \"quoted\" one"
labels: [blue, "two words"]
entrypoint: model_def:MNistTrial
hyperparameters: {lr: 0.001, hidden: {type: int, minval: 8, maxval: 64}}
searcher: {name: single, metric: accuracy, smaller_is_better: false, max_length: {batches: 1000}}
resources: {slots_per_trial: 1, resource_pool: big}
checkpoint_storage: {type: shared_fs, host_path: /tmp}
)",
                                 "const.yaml", {});
    if (!parsed) FAIL(parsed.error().message);
    return std::make_shared<const expconf::ExperimentConfig>(std::move(parsed->config));
  }();
  return config;
}

std::int64_t Sampler::integer(std::int64_t below) {
  return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(below)));
}

std::string Sampler::text() {
  static const std::string pieces[] = {"a", "B", "9", "'", "\"", "\\",   "\n", "\t", "{",
                                       "}", ",", " ", "é", "日", "🙂", "%",  "$1", "NULL"};
  std::string text;
  for (std::int64_t count = integer(12); count > 0; --count) text += pieces[random_.below(std::size(pieces))];
  return text;
}

WallTime Sampler::time() { return {integer(4'000'000'000'000'000) - 500'000'000'000'000}; }
std::optional<WallTime> Sampler::maybe_time() { return coin() ? std::optional(time()) : std::nullopt; }
core::State Sampler::live_state() { return static_cast<core::State>(integer(6)); }

core::Experiment Sampler::experiment(ExperimentId id) {
  core::Experiment row;
  row.id = id;
  row.request_id = RequestId(random_.uuid());
  row.job_id = random_.uuid();
  row.owner = UserId(1);
  row.project = 1;
  row.state = live_state();
  row.config = sample_config();
  row.code_archive = text();
  row.progress = random_.uniform();
  row.submitted = time();
  row.ended = maybe_time();
  if (coin()) row.parent = ExperimentId(integer());
  row.searcher_events = integer();
  row.detached = coin();
  row.queue = {.pool = text(),
               .priority = 1 + static_cast<int>(integer(99)),
               .weight = random_.uniform(),
               .max_slots = std::nullopt,
               .position = integer(1 << 30)};
  if (coin()) row.queue.max_slots = static_cast<int>(integer(64));
  return row;
}

core::Trial Sampler::trial(TrialId id, ExperimentId experiment) {
  core::Trial row;
  row.id = id;
  row.experiment = experiment;
  row.request_id = RequestId(random_.uuid());
  row.task = TaskId(text());
  row.seed = static_cast<std::uint32_t>(random_.next());
  row.hparams = dump_json({{"lr", real()}, {text() + "k", text()}});
  row.state = static_cast<core::State>(integer(9));
  row.run = static_cast<RunNumber>(integer(100));
  row.restarts = static_cast<std::int32_t>(integer(9));
  row.latest_checkpoint = text();
  row.latest_steps = integer(1LL << 60);
  row.steps_completed = integer();
  row.last_validation = integer() - 1;
  row.checkpoint_validation = integer() - 1;
  row.searcher_steps = integer() - 1;
  if (coin()) row.best_metric = coin() ? real() : std::numeric_limits<double>::infinity();
  row.early_exit_invalid_hp = coin();
  row.held = coin();
  row.retries_canceled = coin();
  for (std::int64_t count = integer(3); count > 0; --count) row.excluded.push_back(AgentId(text()));
  row.progress = random_.uniform();
  row.exit_reason = text();
  row.started = time();
  row.ended = maybe_time();
  return row;
}

core::Command Sampler::command(CommandId id) {
  core::Command row;
  // Immutable fields are functions of the id.
  row.id = id;
  row.task = TaskId("command-" + std::to_string(id.value));
  row.job_id = "job of " + row.task.value;
  row.owner = UserId(1);
  row.config = std::make_shared<const expconf::CommandConfig>(*expconf::command_from_resolved(
      Json::parse(R"({"entrypoint": ["echo", "a b"], "resources": {"slots": 3}})")));
  row.code_archive = "archive of " + row.task.value;
  row.submitted = WallTime{1'700'000'000'000'000 + id.value};
  row.state = coin() ? core::State::kActive : core::State::kStoppingKilled;
  if (integer(4) == 0) {
    row.state = core::State::kError;
    row.ended = time();
  }
  row.run = 1 + static_cast<RunNumber>(integer(9));
  row.queue = {.pool = text(),
               .priority = 1 + static_cast<int>(integer(99)),
               .weight = random_.uniform(),
               .max_slots = std::nullopt,
               .position = integer(1 << 30)};
  if (coin())
    row.exit = core::Exit{static_cast<core::ExitKind>(integer(4)), static_cast<int>(integer(256)), text()};
  return row;
}

core::Pilot Sampler::pilot(std::int64_t id) {
  return {.id = id,
          .name = "det-samples-" + std::to_string(id),
          .pool = "pool " + std::to_string(id),
          .nodes = static_cast<int>(id),
          .phase = static_cast<core::PilotPhase>(integer(4)),
          .job = text(),
          .reason = text(),
          .until = maybe_time(),
          .submitted = WallTime{id * 1'000'003},
          .ended = std::nullopt,
          .slots = id % 2 == 0 ? std::optional(static_cast<int>(id)) : std::nullopt,
          .used = coin()};
}

core::Allocation Sampler::allocation(const std::string& id, TaskKey task) {
  core::Allocation row;
  row.id = AllocationId(id);
  row.task = task;
  row.run = static_cast<RunNumber>(integer(100));
  row.state = static_cast<core::AllocationState>(integer(5));
  row.pool = text();
  row.workspace = integer(1000);
  for (std::int64_t parts = 1 + integer(2); parts > 0; --parts) {
    core::AllocationPart& part = row.parts.emplace_back();
    part.agent = AgentId(text());
    part.agent_instance = text();
    part.address = text();
    part.token_hash = text();
    part.daemon = coin();
    part.state = static_cast<core::AllocationState>(integer(5));
    for (std::int64_t count = integer(4); count > 0; --count)
      part.slots.push_back(static_cast<int>(integer(64)));
    if (coin())
      part.exit = core::Exit{static_cast<core::ExitKind>(integer(4)), static_cast<int>(integer(256)), text()};
  }
  row.port = static_cast<int>(integer(65536));
  row.attached = coin();
  row.preempt_requested = coin();
  row.preempt_acknowledged = coin();
  row.kill_requested = coin();
  row.started = time();
  row.ended = maybe_time();
  if (coin())
    row.exit = core::Exit{static_cast<core::ExitKind>(integer(4)), static_cast<int>(integer(256)), text()};
  return row;
}

namespace {

std::string show(const std::optional<WallTime>& time) { return time ? std::to_string(time->micros) : "-"; }

void show(std::ostream& out, const core::Experiment& e) {
  out << "experiment " << e.id << '|' << e.request_id << '|' << e.job_id << '|' << e.owner << '|' << e.project
      << '|' << core::state_name(e.state) << '|' << dump_json(e.config->resolved) << '|' << e.code_archive
      << '|' << e.progress << '|' << e.submitted.micros << '|' << show(e.ended) << '|'
      << (e.parent ? e.parent->value : -1) << '|' << e.searcher_events << '|' << e.detached << '|'
      << e.queue.pool << '/' << e.queue.priority << '/' << e.queue.weight << '/'
      << e.queue.max_slots.value_or(-1) << '/' << e.queue.position << '\n';
}
void show(std::ostream& out, const core::Trial& t) {
  out << "trial " << t.id << '|' << t.experiment << '|' << t.request_id << '|' << t.task << '|' << t.seed
      << '|' << t.hparams << '|' << core::state_name(t.state) << '|' << t.run << '|' << t.restarts << '|'
      << t.latest_checkpoint << '|' << t.latest_steps << '|' << t.steps_completed << '|' << t.last_validation
      << '|' << t.checkpoint_validation << '|' << t.searcher_steps << '|'
      << (t.best_metric ? std::to_string(*t.best_metric) : "-") << '|' << t.early_exit_invalid_hp << t.held
      << t.retries_canceled << '|' << t.progress << '|' << t.exit_reason << '|' << t.started.micros << '|'
      << show(t.ended);
  for (const AgentId& agent : t.excluded) out << '|' << agent;
  out << '\n';
}
void show(std::ostream& out, const core::Command& c) {
  out << "command " << c.id << '|' << c.task << '|' << c.job_id << '|' << c.owner << '|' << c.workspace << '|'
      << core::state_name(c.state) << '|' << c.run << '|' << dump_json(c.config->resolved) << '|'
      << c.code_archive << '|' << c.submitted.micros << '|' << show(c.ended) << '|' << c.queue.pool << '/'
      << c.queue.priority << '/' << c.queue.weight << '/' << c.queue.position << '|';
  if (c.exit) out << static_cast<int>(c.exit->kind) << '/' << c.exit->code << '/' << c.exit->message;
  out << '\n';
}
void show(std::ostream& out, const core::Allocation& a) {
  out << "allocation " << a.id << '|' << a.task << '|' << a.run << '|' << core::allocation_state_name(a.state)
      << '|' << a.pool << '|' << a.workspace << '|' << a.port << '|';
  for (const core::AllocationPart& part : a.parts) {
    out << part.agent << '/' << part.agent_instance << '/' << part.address << '/' << part.token_hash << '/'
        << core::allocation_state_name(part.state) << '/' << part.daemon << '/';
    for (int slot : part.slots) out << slot << ' ';
    if (part.exit)
      out << static_cast<int>(part.exit->kind) << '/' << part.exit->code << '/' << part.exit->message;
    out << '|';
  }
  out << a.attached << a.preempt_requested << a.preempt_acknowledged << a.kill_requested << '|'
      << a.started.micros << '|' << show(a.ended) << '|';
  if (a.exit) out << static_cast<int>(a.exit->kind) << '/' << a.exit->code << '/' << a.exit->message;
  out << '\n';
}

}  // namespace

std::string describe(const core::Recovered& recovered) {
  std::ostringstream out;
  out.precision(17);
  for (const auto& row : recovered.experiments) show(out, row);
  for (const auto& row : recovered.trials) show(out, row);
  for (const auto& row : recovered.commands) show(out, row);
  std::map<AllocationId, std::string> allocations;
  for (const auto& row : recovered.allocations) {
    std::ostringstream text;
    show(text, row);
    allocations[row.id] = text.str();
  }
  for (const auto& [id, text] : allocations) out << text;
  for (const auto& [id, log] : recovered.searchers) {
    out << "searcher " << id << '|' << log.snapshot_number << '|' << log.snapshot;
    for (const std::string& event : log.events) out << '|' << event;
    out << '\n';
  }
  for (const core::AgentSettings& agent : recovered.agents) {
    out << "agent " << agent.agent << '|' << agent.enabled << agent.draining << '|';
    for (int slot : agent.disabled_slots) out << slot << ' ';
    out << '\n';
  }
  for (const core::Pilot& pilot : recovered.pilots) {
    out << "pilot " << pilot.id << '|' << pilot.name << '|' << pilot.pool << '|' << pilot.nodes << '|'
        << core::pilot_phase_name(pilot.phase) << '|' << pilot.job << '|' << pilot.reason << '|'
        << (pilot.until ? pilot.until->micros : 0) << '|' << pilot.submitted.micros << '|'
        << pilot.slots.value_or(-1) << '|' << pilot.used << '\n';
  }
  core::QuotaTable quotas;
  for (const core::Quota& quota : recovered.quotas) quotas[{quota.of, quota.resource}] = quota.limit;
  for (const auto& [key, limit] : quotas) {
    out << "quota " << core::scope_name(key.first.scope) << '|' << key.first.id << '|'
        << core::resource_name(key.second) << '|' << limit << '\n';
  }
  out << "next pilot " << recovered.next_pilot << '\n';
  out << "next " << recovered.next_experiment << ' ' << recovered.next_trial << ' ' << recovered.next_command
      << '\n';
  return out.str();
}

core::Experiment plain_experiment(std::int64_t id) {
  core::Experiment row;
  row.id = ExperimentId(id);
  row.request_id = RequestId("request-" + std::to_string(id));
  row.job_id = "job";
  row.owner = UserId(1);
  row.config = sample_config();
  row.queue.pool = row.config->resources.resource_pool;
  row.submitted = WallTime{1'700'000'000'000'000};
  return row;
}

core::Trial plain_trial(std::int64_t id, std::int64_t experiment, RunNumber run) {
  core::Trial row;
  row.id = TrialId(id);
  row.experiment = ExperimentId(experiment);
  row.request_id = RequestId("trial-" + std::to_string(id));
  row.task = TaskId(std::to_string(experiment) + ".task-" + std::to_string(id));
  row.hparams = R"({"lr":0.1})";
  row.run = run;
  row.started = WallTime{1'700'000'000'000'000};
  return row;
}

}  // namespace det::test
