// Life of trials: creation, requests for slots, restarts after the exit of an allocation, the end.
#include <algorithm>

#include "master/core/impl.h"
#include "master/core/transitions.h"

namespace det::core {
namespace {

/// Consecutive storage-full exits, without a new checkpoint between them, that do not consume a restart. With
/// the back-off (1 s, doubled 12 times) they span more than an hour, and each further one, which counts, as
/// long again: time to make room, yet a bounded number of attempts.
constexpr int kFreeStorageFull = 13;

}  // namespace

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

void Core::Impl::create_trial(Experiment& experiment, const searcher::Create& create) {
  // Request id, seed and hyperparameters follow from (experiment seed, trial number, sample) alone: a replay
  // of the searcher after a restart matches its trials with the stored ones by request id.
  const TrialId id{next_trial.value++};
  const expconf::ExperimentConfig& config = *experiment.config;
  Trial& trial = trials[id];
  trial.id = id;
  trial.experiment = experiment.id;
  trial.request_id = searcher::request_id(config.experiment_seed, create.trial);
  trial.number = create.trial;
  trial.task = TaskId(std::to_string(experiment.id.value) + "." + trial.request_id.value);
  trial.seed = searcher::trial_seed(config.experiment_seed, create.trial);
  trial.hparams = searcher::hparams(config.hyperparameters, create.sample)
                      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  trial.state = experiment.state;
  trial.started = now.wall;
  Search& search = searches.at(experiment.id);
  search.trials.resize(std::max<std::size_t>(search.trials.size(), create.trial + 1));
  search.trials[create.trial] = id;
  ++search.open;
  touched_trials.insert(id);
  // No allocation precedes the reports of an unmanaged trial, so its first run begins at once.
  if (experiment.unmanaged) {
    trial.run = 1;
    heard(trial);
    log(trial, 1,
        "trial " + std::to_string(id.value) + " (experiment " + std::to_string(experiment.id.value) +
            ") runs outside the cluster");
  }
  const bool managed = !experiment.unmanaged || is(Mutant::kUnmanagedScheduled);
  if (managed && trial.state == State::kActive) request_slots(trial);
}

void Core::Impl::hold(Trial& trial) {
  // A trial that its search has stopped needs no second reason to terminate.
  if (trial.held || trial.state == State::kStoppingCompleted || is_terminal(trial.state)) return;
  trial.held = true;
  touched_trials.insert(trial.id);
  withdraw(trial);
  if (Allocation* allocation = live_allocation(trial.id))
    ask_to_leave(*allocation, "it waits at a rung of the search");
}

void Core::Impl::go_on(Trial& trial) {
  if (is_terminal(trial.state)) return reopen(trial);
  if (!trial.held) return;
  trial.held = false;
  touched_trials.insert(trial.id);
  // While the old allocation still terminates, `decide` requests slots at its exit.
  if (trial.state == State::kActive && !live_allocation(trial.id)) request_slots(trial);
}

void Core::Impl::heard(const Trial& trial) {
  timers.set({TimerKind::kTrial, std::to_string(trial.id.value)}, now.mono + options.unmanaged_limit);
}

void Core::Impl::give_up(Trial& trial) {
  trial.exit_reason = "nothing was heard of it for " +
                      std::to_string(options.unmanaged_limit / std::chrono::seconds(1)) + " s";
  log(trial, trial.run, trial.exit_reason, "ERROR");
  end(trial, State::kError);
}

void Core::Impl::handle(const EndTrial& input) {
  auto fenced = fence(input.trial, input.run);
  if (!fenced) return reply(input.reply, tl::unexpected(std::move(fenced).error()));
  Trial& trial = **fenced;
  if (!is_terminal(input.end)) {
    return reply(input.reply,
                 fail(Code::kInvalidArgument, std::string(state_name(input.end)) + " is no end"));
  }
  if (!unmanaged(trial)) {
    return reply(input.reply, fail(Code::kFailedPrecondition,
                                   "trial " + std::to_string(trial.id.value) +
                                       " runs on the cluster: the exit of its process says how it ended"));
  }
  reply(input.reply, Done{});
  if (input.end == State::kError) trial.exit_reason = input.message;
  log(trial, trial.run,
      "ended: " + std::string(state_name(input.end)) + (input.message.empty() ? "" : ": " + input.message),
      input.end == State::kError ? "ERROR" : "INFO");
  end(trial, input.end);
}

void Core::Impl::handle(const TakeUpTrial& input) {
  auto it = trials.find(input.trial);
  const std::string name = "trial " + std::to_string(input.trial.value);
  if (it == trials.end() || is_terminal(it->second.state))
    return reply(input.reply, fail(Code::kAborted, name + " has ended or does not exist"));
  Trial& trial = it->second;
  if (!unmanaged(trial))
    return reply(input.reply,
                 fail(Code::kFailedPrecondition, name + " is the cluster's: it starts it by itself"));
  reply(input.reply, Done{});
  touched_trials.insert(trial.id);
  heard(trial);
  if (input.hparams) trial.hparams = *input.hparams;
  // The new run number fences off processes of earlier runs.
  if (!input.new_run) return;
  ++trial.run;
  begin_from_checkpoint(trial);
  log(trial, trial.run,
      name + " is taken up outside the cluster, at step " + std::to_string(trial.steps_completed));
}

// Steps beyond the checkpoint are lost; the new run repeats them.
void Core::Impl::begin_from_checkpoint(Trial& trial) {
  if (!is(Mutant::kArchiveForgotten)) inserts.push_back(ArchiveMetrics{trial.id, trial.latest_steps});
  trial.steps_completed = trial.latest_steps;
  trial.last_validation = trial.checkpoint_validation;
}

void Core::Impl::request_slots(Trial& trial) {
  waiting.insert(trial.id);
  tell_request(trial);
  log(trial, trial.run + 1,
      "scheduling trial " + std::to_string(trial.id.value) + " (experiment " +
          std::to_string(trial.experiment.value) + ", run " + std::to_string(trial.run + 1) + ")");
}

void Core::Impl::request_slots_later(Trial& trial, const std::string& why, int most_doublings) {
  // Without back-off a trial that fails everywhere would keep the cluster busy with starts.
  const int before = failed_starts[trial.id]++;
  if (before == 0) return request_slots(trial);
  const Duration delay = std::chrono::seconds(1 << std::min(before - 1, most_doublings));
  timers.set({TimerKind::kRetry, std::to_string(trial.id.value)}, now.mono + delay);
  log(trial, trial.run,
      why + "; trying once more in " + std::to_string(delay / std::chrono::seconds(1)) + " s", "WARNING");
}

void Core::Impl::retry(TrialId id) {
  timers.set({TimerKind::kRetry, std::to_string(id.value)}, std::nullopt);
  // The trial may have been paused, held or started since the back-off began.
  Trial& trial = trials.at(id);
  const bool wants = trial.state == State::kActive && !trial.held && !live_allocation(id);
  if (wants && !waiting.contains(id)) request_slots(trial);
}

void Core::Impl::withdraw(const Trial& trial) {
  if (waiting.erase(trial.id) == 0) return;
  const std::string& name = pool_of(experiments.at(trial.experiment));
  pool(name).withdraw(trial.id);
  dirty.insert(name);
}

void Core::Impl::stop(Trial& trial, State stopping) {
  if (!is_legal(trial.state, stopping)) return;
  change(trial.state, stopping);
  touched_trials.insert(trial.id);
  withdraw(trial);
  Allocation* allocation = live_allocation(trial.id);
  if (!allocation) return end(trial, end_of(stopping));
  set_timer(*allocation);  // a terminating allocation may now be abandoned earlier (abandoned_at)
  switch (stopping) {
    case State::kStoppingCompleted:
      if (is(Mutant::kStopKeepsSlots)) return;
      return ask_to_leave(*allocation, "the searcher has seen enough of this trial");
    case State::kStoppingCanceled:
      return ask_to_leave(*allocation, "it was canceled");
    case State::kStoppingError:
      return kill(*allocation, trial.exit_reason);
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
  timers.set({TimerKind::kTrial, std::to_string(trial.id.value)}, std::nullopt);
  timers.set({TimerKind::kRetry, std::to_string(trial.id.value)}, std::nullopt);
  // The searcher gets every end exactly once, through `settle`.
  failed_starts.erase(trial.id);
  --searches.at(trial.experiment).open;
  auto reason = searcher::ExitReason::kCompleted;
  if (end == State::kError) reason = searcher::ExitReason::kErrored;
  if (end == State::kCanceled) reason = searcher::ExitReason::kCanceled;
  if (end == State::kCompleted && trial.early_exit_invalid_hp) reason = searcher::ExitReason::kInvalidHp;
  events.emplace_back(trial.experiment, searcher::Exited{trial.number, reason});
}

void Core::Impl::decide(Trial& trial, const Allocation& allocation) {
  // A failure while the allocation was terminating on request does not count.
  const Exit& exit = *allocation.exit;
  const bool asked = allocation.preempt_requested || allocation.kill_requested;
  touched_trials.insert(trial.id);
  if (is_stopping(trial.state)) {
    // A trial that its search has stopped counts as completed, and a killed one as canceled, however they
    // exit.
    const bool bad = is_failure(exit.kind) || exit.kind == ExitKind::kStorageFull;
    const bool failed = bad && !allocation.kill_requested && trial.state != State::kStoppingKilled &&
                        trial.state != State::kStoppingCompleted;
    if (failed) trial.exit_reason = exit.message;
    if (trial.early_exit_invalid_hp)
      trial.exit_reason = "the trial says that its hyperparameters are invalid";
    return end(trial, failed ? State::kError : end_of(trial.state));
  }
  // Exit code 0 without an acknowledged preemption: training is complete. A program's failure consumes a
  // restart; infrastructure and full storage do not, or not for more than an hour.
  if (exit.kind == ExitKind::kSucceeded) return end(trial, State::kCompleted);
  const bool infrastructure = exit.kind == ExitKind::kLost || exit.kind == ExitKind::kStorageFull;
  const bool full = exit.kind == ExitKind::kStorageFull;
  const auto before = failed_starts.find(trial.id);
  const bool full_for_long = full && before != failed_starts.end() && before->second >= kFreeStorageFull;
  const bool counted = ((is_failure(exit.kind) || full_for_long) && !asked) ||
                       (exit.kind == ExitKind::kLost && is(Mutant::kLostCounted));
  if (counted) {
    trial.exit_reason = exit.message;
    const int most = config_of(trial).max_restarts;
    if (trial.restarts >= most) return end(trial, State::kError);
    if (!is(Mutant::kRestartNotCounted)) ++trial.restarts;
    log(trial, allocation.run,
        "restarting (" + std::to_string(trial.restarts) + " of " + std::to_string(most) + ")");
  } else if (infrastructure) {
    trial.exit_reason = exit.message;
    log(trial, allocation.run, "will run again; this does not count as a restart");
  }
  // A run that attached breaks the series of failed starts, unless the storage was full: that series needs a
  // checkpoint.
  if (allocation.attached && !full) failed_starts.erase(trial.id);
  if (trial.state == State::kActive && !trial.held && infrastructure && (full || !allocation.attached)) {
    if (!full) return request_slots_later(trial, "it was lost again before it began", 6);
    return request_slots_later(trial, "the storage was full again (pause and activate it to try at once)",
                               kFreeStorageFull - 1);
  }
  if (trial.state == State::kActive && !trial.held) request_slots(trial);
}

}  // namespace det::core
