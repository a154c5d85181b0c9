#include "bench.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <utility>

#include "master/core/invariants.h"

namespace det::core {

Bench::Bench(Options options) : options_(std::move(options)) { restart(); }

void Bench::restart() {
  mono_ = MonoTime{mono_.micros / 2};
  options_.token_key += 'x';  // another one at each start
  auto core = Core::restore(options_, disk_.recover(), now());
  REQUIRE(core);
  core_.emplace(std::move(*core));
  CHECK(broken_invariants(*core_) == std::vector<std::string>{});
}

std::optional<Result<ReplyValue>> Bench::step(Input input) {
  std::visit(
      [](auto& value) {
        if constexpr (requires { value.reply; }) value.reply = 1;
      },
      input);
  effects_ = {};
  wall_.micros += 1000;
  core_->step(input, now(), effects_);
  core_->schedule(now(), effects_);
  for (const Write& write : effects_.writes) disk_.apply(write);
  CHECK(broken_invariants(*core_) == std::vector<std::string>{});
  if (effects_.replies.empty()) return std::nullopt;
  REQUIRE(effects_.replies.size() == 1);
  return effects_.replies.front().value;
}

void Bench::pass(Duration duration) {
  const MonoTime end = mono_ + duration;
  while (core_->next_deadline() && *core_->next_deadline() <= end) {
    const MonoTime before = std::exchange(mono_, std::max(mono_, *core_->next_deadline()));
    wall_.micros += (mono_ - before).count();
    step(Tick{});
  }
  wall_.micros += (end - mono_).count();
  mono_ = end;
}

std::shared_ptr<expconf::ExperimentConfig> Bench::config(int slots, int max_restarts, int priority) const {
  auto config = std::make_shared<expconf::ExperimentConfig>();
  config->searcher.name = "single";
  config->searcher.metric = "loss";
  config->max_restarts = max_restarts;
  config->resources.slots_per_trial = slots;
  config->resources.priority = priority;
  config->preemption_timeout = 60;
  return config;
}

ExperimentId Bench::submit(std::shared_ptr<const expconf::ExperimentConfig> config,
                           const std::string& request) {
  SubmitExperiment input;
  input.request_id = RequestId(request.empty() ? "request" + std::to_string(next_request_++) : request);
  input.config = std::move(config);
  auto reply = step(std::move(input));
  REQUIRE((reply && *reply));
  return std::get<ExperimentCreated>(**reply).experiment;
}

std::optional<Result<ReplyValue>> Bench::act(ExperimentId id, ExperimentAction action) {
  return step(ActOnExperiment{0, id, action});
}

std::optional<Result<ReplyValue>> Bench::connect(const std::string& agent, int slots,
                                                 std::vector<HeldAllocation> held,
                                                 const std::string& instance, bool ephemeral) {
  AgentConnected input;
  input.agent = AgentId(agent);
  input.instance = instance.empty() ? "machine of " + agent : instance;
  input.slots.assign(static_cast<std::size_t>(slots), Device{});
  input.ephemeral = ephemeral;
  input.session = next_session_++;
  input.held = std::move(held);
  const std::uint64_t session = input.session;
  auto reply = step(std::move(input));
  if (reply && *reply) sessions_[agent] = session;
  return reply;
}

void Bench::disconnect(const std::string& agent) {
  step(AgentDisconnected{AgentId(agent), sessions_[agent]});
}

void Bench::leave(const std::string& agent) { step(AgentLeft{AgentId(agent), sessions_[agent]}); }

void Bench::announce_stop(const std::string& agent, bool older) {
  step(AgentStopping{AgentId(agent), sessions_[agent] - (older ? 1 : 0)});
}

void Bench::report_problem(const std::string& agent, const std::string& problem) {
  step(AgentProblem{AgentId(agent), sessions_[agent], problem});
}

const Allocation* Bench::live(TaskKey task) const {
  for (const auto& [name, allocation] : core_->allocations()) {
    if (allocation.task == task) return &allocation;
  }
  return nullptr;
}

void Bench::update(TaskKey task, AllocationState state, std::optional<Exit> exit, std::size_t part) {
  const Allocation* allocation = live(task);
  REQUIRE(allocation);
  const AgentId agent = allocation->parts.at(part).agent;
  step(AllocationUpdated{agent, sessions_[agent.value], {allocation->id, state, std::move(exit)}});
}

void Bench::exit(TaskKey task, ExitKind kind, std::size_t part) {
  update(task, AllocationState::kTerminated, Exit{kind, kind == ExitKind::kFailed ? 7 : 0, "exit code 7"},
         part);
}

Code code_of(const std::optional<Result<ReplyValue>>& reply) {
  REQUIRE((reply && !*reply));
  return reply->error().code;
}

Result<ReplyValue> Bench::attach(TrialId trial, RunNumber run) {
  return *step(HarnessAttached{0, trial, run});
}

Result<ReplyValue> Bench::validate(TrialId trial, RunNumber run, std::int64_t steps,
                                   std::optional<double> metric) {
  return *step(ReportValidation{0, trial, run, steps, "{}", metric, std::nullopt, wall_});
}

Result<ReplyValue> Bench::checkpoint(TrialId trial, RunNumber run, std::int64_t steps,
                                     const std::string& uuid) {
  return *step(ReportCheckpoint{0, trial, run, CheckpointId(uuid), steps, "{}", "{}", wall_});
}

}  // namespace det::core
