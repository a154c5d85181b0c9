#include "master/core/trials.h"

#include <algorithm>

#include "common/base/exit_codes.h"
#include "master/core/owners.h"
#include "master/core/transitions.h"

namespace det::core {
namespace {

/// Consecutive storage-full exits, without a new checkpoint between them, that do not consume a restart. With
/// the back-off (1 s, doubled 12 times) they span more than an hour, and each further one, which counts, as
/// long again: time to make room, yet a bounded number of attempts.
constexpr int kFreeStorageFull = 13;
/// Consecutive lost runs, without a new checkpoint between them, that do not consume a restart. Machines fail
/// now and then; a trial that ends its own supervisor is lost each time.
constexpr int kFreeLost = 20;
/// Agents that log policies exclude from one trial; further ones are ignored.
constexpr std::size_t kMaxExcluded = 256;

/// The first line "error: …" of a failure's last output, without a rank in front; "" when there is none.
std::string_view error_line(std::string_view message) {
  for (std::size_t end = message.find('\n'); end != message.npos; end = message.find('\n')) {
    message.remove_prefix(end + 1);
    std::string_view line = message.substr(0, message.find('\n'));
    const std::size_t rank = line.starts_with("[rank=") ? line.find("] ") : line.npos;
    if (rank != line.npos) line.remove_prefix(rank + 2);
    if (line.starts_with("error: ")) return line;
  }
  return "";
}

}  // namespace

std::string_view Trials::why_final(const Trial& trial, const Exit& exit) const {
  // Clients of Determined AI look for these words.
  if (trial.retries_canceled && !owners_.is(Mutant::kCanceledRunAgain))
    return "not restarted: trial failed and matched logs to a don't retry policy";
  if (exit.kind != ExitKind::kFailed) return "";
  if (exit.code == kExitFinal && !owners_.is(Mutant::kFinalRunAgain))
    return "not restarted: another run would fail in the same way";
  // Resumed training repeats its state exactly, so an error that depends on nothing else is proven by its
  // repetition: the line names the batch.
  const std::string_view error = error_line(exit.message);
  if (exit.code == kExitRepeatable && !error.empty() && error == error_line(trial.exit_reason) &&
      !owners_.is(Mutant::kRepeatRunAgain))
    return "not restarted: the previous run failed at the same batch with the same error";
  return "";
}

Trial* Trials::find(TrialId id) {
  const auto it = trials_.find(id);
  return it == trials_.end() ? nullptr : &it->second;
}

Trial* Trials::find(TaskKey task) {
  const auto id = task.as<TrialId>();
  return id ? find(*id) : nullptr;
}

const expconf::ExperimentConfig& Trials::config_of(const Trial& trial) const {
  return *owners_.experiments.at(trial.experiment).config;
}

bool Trials::is_detached(const Trial& trial) const {
  return owners_.experiments.at(trial.experiment).detached;
}

Result<std::reference_wrapper<Trial>> Trials::fence(Step& step, TrialId id, RunNumber run) {
  Trial* const trial = find(id);
  if (!trial || is_terminal(trial->state)) {
    return fail(Code::kAborted, name_of(id) + " has ended or does not exist");
  }
  // The run number is a fencing token. A process of an older run, on a machine that was cut off, may still
  // report.
  auto name = [&] { return "run " + std::to_string(run) + " of " + name_of(id); };
  if (run != trial->run) {
    return fail(Code::kAborted, name() + " is not current (" + std::to_string(trial->run) + " is)");
  }
  if (is_detached(*trial)) {
    restart_deadline(step, *trial);
  } else if (!owners_.allocations.of(id)) {
    // The current run may have ended while the report was under way.
    return fail(Code::kAborted, name() + " has ended");
  }
  return std::ref(*trial);
}

Result<ReplyValue> Trials::handle(Step& step, const KillTrial& input) {
  Trial* const trial = find(input.trial);
  if (!trial) return fail(Code::kNotFound, name_of(input.trial) + " has ended or does not exist");
  stop(step, *trial, State::kStoppingKilled);
  return Done{};
}

void Trials::handle(Step& step, const CancelRetries& input) {
  Trial* const trial = find(input.trial);
  if (!trial || is_terminal(trial->state) || trial->retries_canceled) return;
  trial->retries_canceled = true;
  step.touch(*trial);
}

void Trials::handle(Step& step, const ExcludeAgent& input) {
  Trial* const trial = find(input.trial);
  if (!trial || is_terminal(trial->state) || trial->excluded.size() >= kMaxExcluded) return;
  const auto place = std::lower_bound(trial->excluded.begin(), trial->excluded.end(), input.agent);
  if (place != trial->excluded.end() && *place == input.agent) return;
  trial->excluded.insert(place, input.agent);
  step.touch(*trial);
  // Clients of Determined AI look for these words.
  step.log(
      *trial, trial->run,
      "the log matched a policy with exclude_node, therefore will not schedule on agent " + input.agent.value,
      "WARNING");
  if (owners_.queues.has_request(trial->id)) put_request(*trial);
}

Result<ReplyValue> Trials::handle(Step& step, const EndTrial& input) {
  TRY_ASSIGN(Trial & trial, fence(step, input.trial, input.run));
  if (!is_terminal(input.end)) {
    return fail(Code::kInvalidArgument, std::string(state_name(input.end)) + " is no end");
  }
  if (!is_detached(trial)) {
    return fail(Code::kFailedPrecondition,
                name_of(trial.id) + " runs on the cluster: the exit of its process says how it ended");
  }
  if (input.end == State::kError) trial.exit_reason = input.message;
  step.log(
      trial, trial.run,
      "ended: " + std::string(state_name(input.end)) + (input.message.empty() ? "" : ": " + input.message),
      input.end == State::kError ? "ERROR" : "INFO");
  end(step, trial, input.end);
  return Done{};
}

Result<ReplyValue> Trials::handle(Step& step, const TakeUpTrial& input) {
  Trial* const found = find(input.trial);
  const std::string name = name_of(input.trial);
  if (!found || is_terminal(found->state)) {
    return fail(Code::kAborted, name + " has ended or does not exist");
  }
  Trial& trial = *found;
  if (!is_detached(trial)) {
    return fail(Code::kFailedPrecondition, name + " runs on the cluster, which starts it");
  }
  step.touch(trial);
  restart_deadline(step, trial);
  if (input.hparams) trial.hparams = *input.hparams;
  // The new run number fences off processes of earlier runs.
  if (!input.new_run) return Done{};
  ++trial.run;
  begin_from_checkpoint(step, trial);
  step.log(trial, trial.run,
           name + " continues outside the cluster from step " + std::to_string(trial.steps_completed));
  return Done{};
}

void Trials::create(Step& step, const Experiment& experiment, const searcher::Create& create) {
  // Request id, seed and hyperparameters follow from (experiment seed, trial number, sample) alone: a replay
  // of the searcher after a restart matches its trials with the stored ones by request id.
  const TrialId id{next_.value++};
  const expconf::ExperimentConfig& config = *experiment.config;
  Trial& trial = trials_[id];
  trial.id = id;
  trial.experiment = experiment.id;
  trial.request_id = searcher::request_id(config.experiment_seed, create.trial);
  trial.number = create.trial;
  trial.task = TaskId(std::to_string(experiment.id.value) + "." + trial.request_id.value);
  trial.seed = searcher::trial_seed(config.experiment_seed, create.trial);
  trial.hparams = searcher::hparams(config.hyperparameters, create.sample)
                      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  trial.state = experiment.state;
  trial.started = step.now.wall;
  Search& search = owners_.experiments.search(experiment.id);
  search.trials.resize(std::max<std::size_t>(search.trials.size(), create.trial + 1));
  search.trials[create.trial] = id;
  ++search.open;
  step.touch(trial);
  // No allocation precedes the reports of a detached trial, so its first run begins at once.
  if (experiment.detached) {
    trial.run = 1;
    restart_deadline(step, trial);
    step.log(trial, 1, name_of(id) + " (" + name_of(experiment.id) + ") runs outside the cluster");
  }
  const bool managed = !experiment.detached || owners_.is(Mutant::kDetachedScheduled);
  if (managed && trial.state == State::kActive) request_slots(step, trial);
}

void Trials::pause(Step& step, Trial& trial) {
  if (trial.state != State::kActive) return;
  change(trial.state, State::kPaused);
  step.touch(trial);
  owners_.queues.withdraw(trial.id);
  owners_.builds.leave(step, trial);
  if (Allocation* allocation = owners_.allocations.of(trial.id)) {
    owners_.allocations.preempt(step, *allocation, "the experiment was paused");
  }
}

void Trials::activate(Step& step, Trial& trial) {
  if (trial.state != State::kPaused) return;
  change(trial.state, State::kActive);
  step.touch(trial);
  // A trial that is still terminating requests slots at its exit (`end_run`).
  if (!owners_.allocations.of(trial.id) && (!trial.held || owners_.is(Mutant::kHeldScheduled))) {
    request_slots(step, trial);
  }
}

void Trials::hold(Step& step, Trial& trial) {
  // A trial that its search has stopped needs no second reason to terminate.
  if (trial.held || trial.state == State::kStoppingCompleted || is_terminal(trial.state)) return;
  trial.held = true;
  step.touch(trial);
  owners_.queues.withdraw(trial.id);
  owners_.builds.leave(step, trial);
  if (Allocation* allocation = owners_.allocations.of(trial.id)) {
    owners_.allocations.preempt(step, *allocation, "it waits at a rung of the search");
  }
}

void Trials::resume(Step& step, Trial& trial) {
  if (is_terminal(trial.state)) return reopen(step, trial);
  if (!trial.held) return;
  trial.held = false;
  step.touch(trial);
  // While the old allocation still terminates, `end_run` requests slots at its exit.
  if (trial.state == State::kActive && !owners_.allocations.of(trial.id)) request_slots(step, trial);
}

// The next run begins at the newest checkpoint. Restarts are counted from zero again.
void Trials::reopen(Step& step, Trial& trial) {
  const bool paused = owners_.experiments.at(trial.experiment).state == State::kPaused;
  core::reopen(trial.state, paused ? State::kPaused : State::kActive);
  trial.ended.reset();
  trial.exit_reason.clear();
  trial.restarts = 0;
  // A killed trial may have rejected its hyperparameters; its next run has to say so itself.
  trial.early_exit_invalid_hp = false;
  trial.retries_canceled = false;
  trial.excluded.clear();
  trial.held = false;
  ++owners_.experiments.search(trial.experiment).open;
  step.touch(trial);
  step.log(trial, trial.run, "continues from step " + std::to_string(trial.latest_steps));
  if (trial.state == State::kActive) request_slots(step, trial);
}

void Trials::restart_deadline(const Step& step, const Trial& trial) {
  owners_.timers.set({TimerKind::kTrial, std::to_string(trial.id.value)},
                     step.now.mono + owners_.options.detached_limit);
}

void Trials::expire(Step& step, TrialId id) {
  Trial& trial = trials_.at(id);
  trial.exit_reason =
      "no report for " + std::to_string(owners_.options.detached_limit / std::chrono::seconds(1)) + " s";
  step.log(trial, trial.run, trial.exit_reason, "ERROR");
  end(step, trial, State::kError);
}

void Trials::start(Step& step, TrialId id, const std::vector<scheduler::Part>& parts) {
  Trial& trial = trials_.at(id);
  const bool build = owners_.builds.is_for_build(trial, parts);
  // A run that began with its build goes on with the training.
  const bool begun = owners_.builds.take_begun(id);
  if (!begun) ++trial.run;
  if (trial.run > 1 && !begun) begin_from_checkpoint(step, trial);
  step.touch(trial);
  owners_.allocations.start(step, id, trial.task, trial.run, parts, build);
}

// Steps beyond the checkpoint are lost; the new run repeats them.
void Trials::begin_from_checkpoint(Step& step, Trial& trial) {
  step.insert(ArchiveMetrics{trial.id, trial.latest_steps});
  trial.steps_completed = trial.latest_steps;
  trial.last_validation = trial.checkpoint_validation;
}

Builds::Turn Trials::put_request(const Trial& trial) {
  const Builds::Turn turn = owners_.builds.turn(trial);
  if (turn == Builds::Turn::kWait) return turn;
  const Experiment& experiment = owners_.experiments.at(trial.experiment);
  const expconf::Resources& resources = experiment.config->resources;
  const bool build = turn == Builds::Turn::kBuild && !owners_.is(Mutant::kBuildTakesSlots);
  owners_.queues.request(
      owners_.queues.pool_of(experiment.queue),
      {.task = trial.id,
       .job = trial.experiment,
       .slots = build ? 0 : resources.slots_per_trial,
       .single_node = build || resources.is_single_node,
       .excluded = owners_.is(Mutant::kExcludedScheduled) ? std::vector<AgentId>() : trial.excluded});
  return turn;
}

Builds::Turn Trials::put_request_and_release(Step& step, const Trial& trial) {
  const bool was_builder = owners_.builds.builder(trial.experiment) == trial.id;
  const Builds::Turn turn = put_request(trial);
  if (was_builder && turn == Builds::Turn::kTrain)
    owners_.builds.release_waiting(step, owners_.experiments.at(trial.experiment));
  return turn;
}

void Trials::request_slots(Step& step, const Trial& trial) {
  const Builds::Turn turn = put_request_and_release(step, trial);
  if (turn == Builds::Turn::kWait) {
    step.log(trial, trial.run + 1,
             "waiting for the build by " + name_of(owners_.builds.builder(trial.experiment)));
    return;
  }
  const RunNumber run = trial.run + (owners_.builds.has_begun(trial.id) ? 0 : 1);
  step.log(trial, run,
           (turn == Builds::Turn::kBuild ? "scheduling the build of " : "scheduling ") + name_of(trial.id) +
               " (" + name_of(trial.experiment) + ", run " + std::to_string(run) + ")");
}

void Trials::request_slots_later(Step& step, const Trial& trial, const std::string& why, int max_doublings) {
  // Without back-off a trial that fails everywhere would keep the cluster busy with starts.
  const int before = failed_starts_[trial.id]++;
  if (before == 0) return request_slots(step, trial);
  const Duration delay = std::chrono::seconds(1 << std::min(before - 1, max_doublings));
  owners_.timers.set({TimerKind::kRetry, std::to_string(trial.id.value)}, step.now.mono + delay);
  step.log(trial, trial.run,
           why + "; trying once more in " + std::to_string(delay / std::chrono::seconds(1)) + " s",
           "WARNING");
}

void Trials::retry(Step& step, TrialId id) {
  owners_.timers.set({TimerKind::kRetry, std::to_string(id.value)}, std::nullopt);
  // The trial may have been paused, held or started since the back-off began.
  const Trial& trial = trials_.at(id);
  const bool idle = !owners_.allocations.of(id) && !owners_.queues.has_request(id);
  if (trial.state == State::kActive && !trial.held && idle) request_slots(step, trial);
}

void Trials::move_request(Step& step, const Trial& trial, const std::string& pool) {
  if (owners_.queues.has_request(trial.id)) put_request_and_release(step, trial);
  if (Allocation* allocation = owners_.allocations.of(trial.id)) {
    owners_.allocations.preempt(step, *allocation, "its experiment was moved to pool " + pool);
  }
}

void Trials::stop(Step& step, Trial& trial, State stopping) {
  if (!is_legal(trial.state, stopping)) return;
  change(trial.state, stopping);
  step.touch(trial);
  owners_.queues.withdraw(trial.id);
  Allocations& allocations = owners_.allocations;
  Allocation* const allocation = allocations.of(trial.id);
  if (!allocation) return end(step, trial, end_of(stopping));
  allocations.set_timer(*allocation);  // a terminating allocation may now be abandoned earlier
  switch (stopping) {
    case State::kStoppingCompleted:
      if (owners_.is(Mutant::kStopKeepsSlots)) return;
      return allocations.preempt(step, *allocation, "the searcher stopped this trial");
    case State::kStoppingCanceled:
      return allocations.preempt(step, *allocation, "it was canceled");
    case State::kStoppingError:
      return allocations.kill(step, *allocation, trial.exit_reason);
    default:
      return allocations.kill(step, *allocation, "it was killed by a user");
  }
}

void Trials::end(Step& step, Trial& trial, State end) {
  change(trial.state, end);
  trial.ended = step.now.wall;
  if (end == State::kCompleted) trial.progress = 1;
  step.touch(trial);
  owners_.queues.withdraw(trial.id);
  owners_.timers.set({TimerKind::kTrial, std::to_string(trial.id.value)}, std::nullopt);
  owners_.timers.set({TimerKind::kRetry, std::to_string(trial.id.value)}, std::nullopt);
  reset_failed_starts(trial.id);
  owners_.builds.leave(step, trial);
  // The searcher gets every end exactly once, through `settle`.
  --owners_.experiments.search(trial.experiment).open;
  auto reason = searcher::ExitReason::kCompleted;
  if (end == State::kError) reason = searcher::ExitReason::kErrored;
  if (end == State::kCanceled) reason = searcher::ExitReason::kCanceled;
  if (end == State::kCompleted && trial.early_exit_invalid_hp) reason = searcher::ExitReason::kInvalidHp;
  step.events.emplace_back(trial.experiment, searcher::Exited{trial.number, reason});
}

void Trials::end_stopping(Step& step, Trial& trial, const Allocation& allocation) {
  // A trial that its search has stopped counts as completed, and a killed one as canceled, however they exit.
  const Exit& exit = *allocation.exit;
  const bool bad = is_failure(exit.kind) || exit.kind == ExitKind::kStorageFull;
  const bool failed = bad && !allocation.kill_requested && trial.state != State::kStoppingKilled &&
                      trial.state != State::kStoppingCompleted;
  if (failed) trial.exit_reason = exit.message;
  if (trial.early_exit_invalid_hp) trial.exit_reason = "the trial rejected its hyperparameters";
  end(step, trial, failed ? State::kError : end_of(trial.state));
}

void Trials::end_run(Step& step, const Allocation& allocation) {
  Trial& trial = of(allocation);
  step.touch(trial);
  if (is_stopping(trial.state)) return end_stopping(step, trial, allocation);
  if (is_build(allocation.id) && owners_.builds.end_build(step, trial, allocation)) return;
  // Exit code 0 without an acknowledged preemption: training is complete. A program's failure consumes a
  // restart, unless the allocation was terminating on request; infrastructure and full storage do not, or not
  // without end.
  const Exit& exit = *allocation.exit;
  if (exit.kind == ExitKind::kSucceeded) return end(step, trial, State::kCompleted);
  const bool requested = allocation.preempt_requested || allocation.kill_requested;
  const bool full = exit.kind == ExitKind::kStorageFull;
  const bool infrastructure = exit.kind == ExitKind::kLost || full;
  const auto before = failed_starts_.find(trial.id);
  const bool full_for_long = full && before != failed_starts_.end() && before->second >= kFreeStorageFull;
  const bool lost_for_long = exit.kind == ExitKind::kLost && !requested &&
                             ++lost_runs_[trial.id] > kFreeLost && !owners_.is(Mutant::kLostForever);
  const bool counted = ((is_failure(exit.kind) || full_for_long || lost_for_long) && !requested) ||
                       (exit.kind == ExitKind::kLost && owners_.is(Mutant::kLostCounted));
  if (counted) {
    const std::string_view final_because = why_final(trial, exit);
    trial.exit_reason = exit.message;
    if (!final_because.empty()) {
      trial.exit_reason.insert(std::min(trial.exit_reason.find('\n'), trial.exit_reason.size()),
                               " (" + std::string(final_because) + ")");
      step.log(trial, allocation.run, std::string(final_because));
      return end(step, trial, State::kError);
    }
    const int max_restarts = config_of(trial).max_restarts;
    if (trial.restarts >= max_restarts) return end(step, trial, State::kError);
    if (!owners_.is(Mutant::kRestartNotCounted)) ++trial.restarts;
    step.log(trial, allocation.run,
             "restarting (" + std::to_string(trial.restarts) + " of " + std::to_string(max_restarts) + ")");
  } else if (infrastructure) {
    trial.exit_reason = exit.message;
    step.log(trial, allocation.run, "will run again; this does not count as a restart");
  }
  // A run that attached breaks the series of failed starts, unless the storage was full: that series needs a
  // checkpoint.
  if (allocation.attached && !full) failed_starts_.erase(trial.id);
  if (trial.state != State::kActive || trial.held) return owners_.builds.leave(step, trial);
  if (full) {
    return request_slots_later(step, trial,
                               "the storage was full again (pause and activate it to try at once)",
                               kFreeStorageFull - 1);
  }
  if (infrastructure && !allocation.attached) {
    return request_slots_later(step, trial, "it was lost again before it started", 6);
  }
  request_slots(step, trial);
}

bool Trials::insert(Trial row) {
  const TrialId id = row.id;
  owners_.builds.restore(row);
  return trials_.emplace(id, std::move(row)).second;
}

Status Trials::restore_requests(Step& step) {
  // By id, so that requests enter the schedulers in the same order at every start.
  std::vector<const Trial*> in_order;
  for (const auto& [id, trial] : trials_) in_order.push_back(&trial);
  std::sort(in_order.begin(), in_order.end(), [](const Trial* a, const Trial* b) { return a->id < b->id; });
  for (const Trial* trial : in_order) {
    if (owners_.allocations.of(trial->id) || is_terminal(trial->state)) continue;
    // A stopping trial without an allocation would have ended in the step that stopped it.
    if (is_stopping(trial->state)) {
      return contradiction(name_of(trial->id) + " is stopping and has no allocation");
    }
    if (is_detached(*trial)) {
      if (!owners_.is(Mutant::kDetachedForever)) restart_deadline(step, *trial);
      if (!owners_.is(Mutant::kDetachedScheduled)) continue;
    }
    // Not request_slots, which would log the request a second time.
    if (trial->state == State::kActive && !trial->held) put_request(*trial);
  }
  return {};
}

}  // namespace det::core
