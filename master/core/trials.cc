// Owns the life of trials: creation, waiting for slots, what follows from the exit of an allocation, the end.
#include "master/core/impl.h"
#include "master/core/transitions.h"

namespace det::core {

void Core::Impl::handle(const KillTrial& input) {
  auto it = trials.find(input.trial);
  if (it == trials.end()) {
    return reply(input.reply, fail(Code::kNotFound, "trial " + std::to_string(input.trial.value) +
                                                        " has ended or does not exist"));
  }
  stop(it->second, State::kStoppingKilled);
  reply(input.reply, Done{});
}

const expconf::ExperimentConfig& Core::Impl::config_of(const Trial& trial) const {
  return *experiments.at(trial.experiment).config;
}

const std::string& Core::Impl::pool_of(const Trial& trial) const {
  const std::string& pool = config_of(trial).resources.resource_pool;
  return pool.empty() ? options.default_pool : pool;
}

void Core::Impl::create_trial(Experiment& experiment, searcher::Create create) {
  const TrialId id{next_trial.value++};
  Trial& trial = trials[id];
  trial.id = id;
  trial.experiment = experiment.id;
  trial.request_id = create.request_id;
  trial.task = TaskId(std::to_string(experiment.id.value) + "." + create.request_id.value);
  trial.seed = create.trial_seed;
  trial.hparams = create.hparams.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  trial.state = experiment.state;
  trial.started = now.wall;
  Search& search = searches.at(experiment.id);
  search.trials.emplace(create.request_id, id);
  ++search.open;
  touched_trials.insert(id);
  if (trial.state == State::kActive) request_slots(trial);
}

void Core::Impl::request_slots(Trial& trial) {
  const std::string& pool = pool_of(trial);
  waiting[pool].insert(trial.id);
  dirty.insert(pool);
  log(trial, trial.run + 1,
      "scheduling trial " + std::to_string(trial.id.value) + " (experiment " +
          std::to_string(trial.experiment.value) + ", run " + std::to_string(trial.run + 1) + ")");
}

void Core::Impl::withdraw(const Trial& trial) {
  auto it = waiting.find(pool_of(trial));
  if (it == waiting.end() || it->second.erase(trial.id) == 0) return;
  dirty.insert(it->first);
  if (it->second.empty()) waiting.erase(it);
}

void Core::Impl::stop(Trial& trial, State stopping) {
  if (!is_legal(trial.state, stopping)) return;
  change(trial.state, stopping);
  touched_trials.insert(trial.id);
  withdraw(trial);
  Allocation* allocation = live_allocation(trial.id);
  if (!allocation) return end(trial, end_of(stopping));
  switch (stopping) {
    case State::kStoppingCompleted:
      return ask_to_leave(*allocation, "the searcher has seen enough of this trial");
    case State::kStoppingCanceled:
      return ask_to_leave(*allocation, "it was canceled");
    default:
      return kill(*allocation, "it was killed by a user");
  }
}

void Core::Impl::end(Trial& trial, State end) {
  change(trial.state, end);
  trial.ended = now.wall;
  if (end == State::kCompleted) trial.progress = 1;
  touched_trials.insert(trial.id);
  withdraw(trial);
  --searches.at(trial.experiment).open;
  auto reason = searcher::ExitReason::kCompleted;
  if (end == State::kError) reason = searcher::ExitReason::kErrored;
  if (end == State::kCanceled) reason = searcher::ExitReason::kCanceled;
  if (end == State::kCompleted && trial.early_exit_invalid_hp) reason = searcher::ExitReason::kInvalidHp;
  events.emplace_back(trial.experiment, searcher::Exited{trial.request_id, reason});
}

void Core::Impl::decide(Trial& trial, const Allocation& allocation) {
  const Exit& exit = *allocation.exit;
  const bool asked = allocation.preempt_requested || allocation.kill_requested;
  touched_trials.insert(trial.id);
  if (is_stopping(trial.state)) {
    const bool failed = exit.kind == ExitKind::kFailed && !allocation.kill_requested &&
                        !trial.early_exit_invalid_hp && trial.state != State::kStoppingKilled;
    if (failed) trial.exit_reason = exit.message;
    return end(trial, failed ? State::kError : end_of(trial.state));
  }
  if (exit.kind == ExitKind::kSucceeded && !allocation.preempt_acknowledged)
    return end(trial, State::kCompleted);
  const bool counted = (exit.kind == ExitKind::kFailed && !asked) ||
                       (exit.kind == ExitKind::kLost && is(Mutant::kLostCounted));
  if (counted) {
    trial.exit_reason = exit.message;
    const int most = config_of(trial).max_restarts;
    if (trial.restarts >= most) return end(trial, State::kError);
    if (!is(Mutant::kRestartNotCounted)) ++trial.restarts;
    log(trial, allocation.run,
        "restarting (" + std::to_string(trial.restarts) + " of " + std::to_string(most) + ")");
  } else if (exit.kind == ExitKind::kLost) {
    log(trial, allocation.run, "will run again; this does not count as a restart");
  }
  if (trial.state == State::kActive) request_slots(trial);
}

}  // namespace det::core
