#include "master/core/builds.h"

#include <algorithm>

#include "common/base/exit_codes.h"
#include "master/core/owners.h"

namespace det::core {
namespace {

/// Libraries that are remembered. A forgotten one costs an agent a look into its cache.
constexpr std::size_t kMaxLibraries = 4096;

std::string first_line_of(const Exit& exit) { return exit.message.substr(0, exit.message.find('\n')); }

}  // namespace

std::string Builds::key_of(const Experiment& experiment) {
  return experiment.code_archive + " " + experiment.config->entrypoint.front();
}

bool Builds::is_needed(const Experiment& experiment) const {
  // A trial without slots takes none for its build either.
  const bool has_class = !experiment.code_archive.empty() && experiment.config->trial_class();
  if (!has_class || experiment.detached || experiment.config->resources.slots_per_trial == 0) return false;
  if (owners_.options.providers.contains(owners_.queues.pool_of(experiment.queue))) return false;
  return !open_.contains(experiment.id) && !libraries_.contains(key_of(experiment));
}

Builds::Turn Builds::turn(const Trial& trial) {
  if (!is_needed(owners_.experiments.at(trial.experiment))) {
    // Its library became known, or its experiment was moved, before the build began.
    if (builder(trial.experiment) == trial.id) builders_.erase(trial.experiment);
    return Turn::kTrain;
  }
  const TrialId builder = builders_.try_emplace(trial.experiment, trial.id).first->second;
  return builder == trial.id ? Turn::kBuild : Turn::kWait;
}

bool Builds::is_for_build(const Trial& trial, const std::vector<scheduler::Part>& parts) const {
  if (builder(trial.experiment) != trial.id) return false;
  if (owners_.is(Mutant::kBuildTakesSlots)) return is_needed(owners_.experiments.at(trial.experiment));
  return std::all_of(parts.begin(), parts.end(),
                     [](const scheduler::Part& part) { return part.slots.empty(); });
}

TrialId Builds::builder(ExperimentId id) const {
  const auto known = builders_.find(id);
  return known == builders_.end() ? TrialId() : known->second;
}

std::string Builds::library(const Experiment& experiment) const {
  if (libraries_.empty() || experiment.config->entrypoint.empty()) return "";
  const auto known = libraries_.find(key_of(experiment));
  return known == libraries_.end() ? "" : known->second;
}

void Builds::remember(const std::string& key, std::string library) {
  if (!libraries_.insert_or_assign(key, std::move(library)).second) return;
  order_.push_back(key);
  for (; order_.size() > kMaxLibraries; order_.pop_front()) libraries_.erase(order_.front());
}

bool Builds::end_build(Step& step, Trial& trial, const Allocation& allocation) {
  const Exit& exit = *allocation.exit;
  const bool built = exit.kind == ExitKind::kSucceeded;
  if (!built && (!is_failure(exit.kind) || allocation.preempt_requested || allocation.kill_requested))
    return false;
  const Experiment& experiment = owners_.experiments.at(trial.experiment);
  if (!built && exit.code == kExitFinal) {
    fail_experiment(step, trial, exit);
    return true;
  }
  builders_.erase(experiment.id);
  begun_.insert(trial.id);
  open_.insert(experiment.id);
  if (built) {
    remember(key_of(experiment), exit.message);
  } else {
    // Lack of memory, a timeout, a missing training library: the next agent may do better, and restarts are
    // counted there.
    step.log(trial, allocation.run,
             "the build without slots failed (" + first_line_of(exit) +
                 "); each trial builds on its own slots instead",
             "WARNING");
  }
  if (is_idle(trial)) owners_.trials.request_slots(step, trial);
  release_waiting(step, experiment);
  return true;
}

void Builds::fail_experiment(Step& step, Trial& trial, const Exit& exit) {
  Experiment& experiment = owners_.experiments.at(trial.experiment);
  trial.exit_reason = exit.message;
  step.log(trial, trial.run, name_of(experiment.id) + " ends: its code does not compile", "ERROR");
  if (owners_.is(Mutant::kBuildErrorRepeated)) return owners_.trials.end(step, trial, State::kError);
  const std::string reason = "the build by " + name_of(trial.id) + " failed: " + first_line_of(exit);
  for (const TrialId id : owners_.experiments.search(experiment.id).trials) {
    Trial* const other = owners_.trials.find(id);
    if (other && other != &trial && !is_terminal(other->state)) other->exit_reason = reason;
  }
  // A stopping experiment appoints no builder and creates no trials.
  owners_.experiments.stop(step, experiment, State::kStoppingError);
}

bool Builds::is_idle(const Trial& trial) const {
  return trial.state == State::kActive && !trial.held && !owners_.allocations.of(trial.id) &&
         !owners_.queues.has_request(trial.id) &&
         !owners_.timers.has({TimerKind::kRetry, std::to_string(trial.id.value)});
}

void Builds::leave(Step& step, const Trial& trial) {
  begun_.erase(trial.id);
  const auto known = builders_.find(trial.experiment);
  if (known == builders_.end() || known->second != trial.id) return;
  // The exit of its allocation comes here again.
  if (owners_.allocations.of(trial.id)) return;
  builders_.erase(known);
  if (!owners_.is(Mutant::kBuildNotHandedOver))
    release_waiting(step, owners_.experiments.at(trial.experiment));
}

void Builds::release_waiting(Step& step, const Experiment& experiment) {
  if (experiment.state != State::kActive) return;
  for (const TrialId id : owners_.experiments.search(experiment.id).trials) {
    // One builder at a time; the other trials wait for it.
    if (builders_.contains(experiment.id) && is_needed(experiment)) return;
    const Trial* const trial = owners_.trials.find(id);
    if (trial && is_idle(*trial)) owners_.trials.request_slots(step, *trial);
  }
}

void Builds::forget(ExperimentId id) {
  builders_.erase(id);
  open_.erase(id);
}

void Builds::restore(const Allocation& allocation, const Trial& trial) {
  if (is_build(allocation.id)) {
    builders_.emplace(trial.experiment, trial.id);
  } else {
    open_.insert(trial.experiment);
  }
}

void Builds::restore(const Trial& trial) {
  if (trial.steps_completed > 0 || !trial.latest_checkpoint.empty()) open_.insert(trial.experiment);
}

}  // namespace det::core
