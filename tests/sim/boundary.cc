#include "tests/sim/boundary.h"

#include <algorithm>
#include <iterator>
#include <variant>

namespace det::sim {

core::Options Boundary::options(core::Options options) const {
  if (is(BoundaryMutant::kShortAgentWait)) {
    options.agent_margin = options.agent_lease / 8 - options.agent_lease - options.agent_kill_grace;
  }
  return options;
}

void Boundary::restart(core::Recovered& rows) {
  late_.clear();
  if (is(BoundaryMutant::kServiceForgotten)) rows.agents.clear();
  if (is(BoundaryMutant::kPilotsForgotten)) rows.pilots.clear();
  if (is(BoundaryMutant::kRetriesForgotten)) {
    for (core::Trial& trial : rows.trials) trial.retries_canceled = false;
  }
  if (is(BoundaryMutant::kExcludedForgotten)) {
    for (core::Trial& trial : rows.trials) trial.excluded.clear();
  }
  for (core::Allocation& allocation : rows.allocations) {
    if (is(BoundaryMutant::kPreemptAckForgotten)) allocation.preempt_acknowledged = false;
    if (is(BoundaryMutant::kGangKillForgotten)) allocation.exit.reset();
  }
}

void Boundary::change(core::Input& input, const core::Core& core) {
  if (is(BoundaryMutant::kNoRunFence)) {
    std::visit(
        [&](auto& report) {
          if constexpr (requires { report.run; }) {
            const auto trial = core.trials().find(report.trial);
            if (trial != core.trials().end()) report.run = trial->second.run;
          }
        },
        input);
  }
  if (auto* connected = std::get_if<core::AgentConnected>(&input)) {
    const auto known = core.agents().find(connected->agent);
    if (is(BoundaryMutant::kImpostorAccepted) && known != core.agents().end()) {
      connected->instance = known->second.instance;
    }
  } else if (auto* experiment = std::get_if<core::SubmitExperiment>(&input)) {
    const bool repeated = !requests_.insert(experiment->request_id).second;
    if (is(BoundaryMutant::kRequestIdIgnored) && repeated) experiment->request_id.value += "-again";
  } else if (auto* command = std::get_if<core::SubmitCommand>(&input)) {
    const bool repeated = !tasks_.insert(command->task).second;
    if (is(BoundaryMutant::kCommandTwice) && repeated) command->task.value += "-again";
  }
}

void Boundary::change(core::Effects& effects, const core::Input* input) {
  std::erase_if(effects.sends, [&](const core::Send& send) { return !is_sent(send, input); });
  std::erase_if(effects.writes, [&](const core::Write& write) { return !is_written(write, input); });
  if (!is(BoundaryMutant::kMetricAfterDecision) || effects.writes.empty()) return;
  const auto metrics = std::stable_partition(
      effects.writes.begin(), effects.writes.end(),
      [](const core::Write& write) { return !std::holds_alternative<core::InsertValidation>(write); });
  std::vector<core::Write> now = std::move(late_);
  late_.assign(std::make_move_iterator(metrics), std::make_move_iterator(effects.writes.end()));
  effects.writes.erase(metrics, effects.writes.end());
  std::move(now.begin(), now.end(), std::back_inserter(effects.writes));
}

bool Boundary::is_sent(const core::Send& send, const core::Input* input) {
  if (std::holds_alternative<core::AllocationForgotten>(send)) return !is(BoundaryMutant::kForgetsToForget);
  if (auto* start = std::get_if<core::StartAllocation>(&send)) {
    const bool repeated = input && std::holds_alternative<core::AgentConnected>(*input);
    return !(is(BoundaryMutant::kGangHalfStarted) && start->part > 0) &&
           !(is(BoundaryMutant::kStartNotRepeated) && repeated);
  }
  if (auto* kill = std::get_if<core::KillAllocation>(&send)) {
    const bool repeated = !kills_.emplace(kill->agent, kill->allocation).second;
    return !(is(BoundaryMutant::kKillNotRepeated) && repeated);
  }
  if (auto* cancel = std::get_if<core::CancelPilot>(&send)) {
    const bool repeated = !cancels_.insert(cancel->name).second;
    return !(is(BoundaryMutant::kCancelNotRepeated) && repeated);
  }
  return true;
}

bool Boundary::is_written(const core::Write& write, const core::Input* input) const {
  if (!std::holds_alternative<core::ArchiveMetrics>(write)) return true;
  const bool damage = input && std::holds_alternative<core::ReportDamage>(*input);
  return !is(damage ? BoundaryMutant::kDamageKeepsRows : BoundaryMutant::kArchiveForgotten);
}

}  // namespace det::sim
