// Reports of harnesses. Every report is fenced by (trial, run) before anything else is checked.
#include <algorithm>
#include <cmath>

#include "master/core/impl.h"
#include "master/core/transitions.h"

namespace det::core {
namespace {

/// Time for a process that reported invalid hyperparameters to exit by itself.
constexpr Duration kInvalidHpPatience = std::chrono::seconds(10);

std::string number(std::int64_t value) { return std::to_string(value); }

}  // namespace

Result<Trial*> Core::Impl::fence(TrialId id, RunNumber run) {
  auto it = trials.find(id);
  if (it == trials.end() || is_terminal(it->second.state)) {
    return fail(Code::kAborted, "trial " + number(id.value) + " has ended or does not exist");
  }
  // The run number is a fencing token. A process of an older run, on a machine that was cut off, may still
  // report.
  Trial& trial = it->second;
  if (run != trial.run && !is(Mutant::kNoRunFence)) {
    return fail(Code::kAborted, "run " + number(run) + " of trial " + number(id.value) + " is not current (" +
                                    number(trial.run) + " is)");
  }
  if (unmanaged(trial)) {
    heard(trial);
    return &trial;
  }
  // The current run may have ended while the report was under way.
  if (!live.contains(id)) {
    return fail(Code::kAborted, "run " + number(run) + " of trial " + number(id.value) + " has ended");
  }
  return &trial;
}

void Core::Impl::handle(const HarnessAttached& input) {
  auto trial = fence(input.trial, input.run);
  if (!trial) return reply(input.reply, tl::unexpected(std::move(trial).error()));
  if (unmanaged(**trial)) return reply(input.reply, Attached{});
  Allocation& allocation = *live_allocation(input.trial);
  if (!allocation.attached || allocation.state < AllocationState::kRunning) {
    allocation.attached = true;
    advance(allocation, AllocationState::kRunning);
  }
  reply(input.reply, Attached{allocation.preempt_requested});
}

void Core::Impl::handle(const ReportValidation& input) {
  auto fenced = fence(input.trial, input.run);
  if (!fenced) return reply(input.reply, tl::unexpected(std::move(fenced).error()));
  Trial& trial = **fenced;
  reply(input.reply, Done{});
  // A repeat after a lost reply.
  if (input.steps_completed <= trial.last_validation) return;

  touched_trials.insert(trial.id);
  trial.last_validation = input.steps_completed;
  if (input.steps_completed <= trial.latest_steps) trial.checkpoint_validation = input.steps_completed;
  trial.steps_completed = std::max(trial.steps_completed, input.steps_completed);
  auto& rows = is(Mutant::kMetricAfterDecision) ? late : inserts;
  rows.push_back(InsertValidation{trial.id, input.run, input.steps_completed, input.metrics,
                                  input.searcher_metric, input.reported});
  // NaN compares as false both ways, but would become the first best metric.
  if (input.searcher_metric) {
    const double metric = *input.searcher_metric;
    const bool smaller = config_of(trial).searcher.smaller_is_better;
    const bool beats =
        !trial.best_metric || (smaller ? metric < *trial.best_metric : metric > *trial.best_metric);
    if (is(Mutant::kNanBest) ? beats || std::isnan(metric) : beats && !std::isnan(metric))
      trial.best_metric = metric;
  }
  // The searcher gets each validation once. A run that repeats steps after a restart adds nothing new, nor
  // does a trial that its search has stopped already.
  const bool news = input.steps_completed > trial.searcher_steps || is(Mutant::kValidationTwice);
  const bool stopped = is_stopping(trial.state) && options.search_fault != searcher::Fault::kHearsStopped;
  if (news && !stopped) tell_search(trial, input);
}

void Core::Impl::tell_search(Trial& trial, const ReportValidation& report) {
  const expconf::SearcherConfig& config = config_of(trial).searcher;
  std::optional<double> time = report.searcher_time;
  if (!time && config.time_name() == "batches") time = static_cast<double>(report.steps_completed);
  // A search that compares metrics cannot go on with this trial: the trial fails, the search continues. Other
  // searches only lose the best metric, which is logged once.
  if (!report.searcher_metric || (!time && config.decides_by_metric())) {
    const std::string& missing = report.searcher_metric ? config.time_name() : config.metric;
    const std::string what = "the validation metrics at step " + number(report.steps_completed) + " lack \"" +
                             missing + "\", by which the search decides";
    if (!config.decides_by_metric()) {
      if (trial.searcher_steps < 0)
        log(trial, trial.run, what + "; no best of this trial is known", "WARNING");
      trial.searcher_steps = report.steps_completed;
      return;
    }
    if (is(Mutant::kMissingMetricFatal)) return stop(experiments.at(trial.experiment), State::kStoppingError);
    log(trial, trial.run, what, "ERROR");
    trial.exit_reason = what;
    return stop(trial, State::kStoppingError);
  }
  trial.searcher_steps = report.steps_completed;
  events.emplace_back(trial.experiment, searcher::Validated{trial.number, report.steps_completed,
                                                            *report.searcher_metric, time.value_or(0)});
}

void Core::Impl::handle(const ReportCheckpoint& input) {
  auto fenced = fence(input.trial, input.run);
  if (!fenced) return reply(input.reply, tl::unexpected(std::move(fenced).error()));
  Trial& trial = **fenced;
  reply(input.reply, Done{});
  // The row is inserted in any case; only a checkpoint that is not older than the newest one moves the trial.
  const AllocationId allocation(trial.task.value + "." + std::to_string(trial.run));
  inserts.push_back(InsertCheckpoint{input.uuid, trial.id, input.run, trial.task, allocation,
                                     input.steps_completed, input.resources, input.metadata, input.reported});
  if (input.steps_completed < trial.latest_steps && !is(Mutant::kCheckpointMovesBack)) return;
  if (input.uuid.value == trial.latest_checkpoint) return;
  touched_trials.insert(trial.id);
  failed_starts.erase(trial.id);  // progress ends a series of storage-full exits
  trial.latest_checkpoint = input.uuid.value;
  trial.latest_steps = input.steps_completed;
  trial.steps_completed = std::max(trial.steps_completed, input.steps_completed);
  trial.checkpoint_validation = std::min(trial.last_validation, trial.latest_steps);
}

void Core::Impl::handle(const ReportDamage& input) {
  auto fenced = fence(input.trial, input.run);
  if (!fenced) return reply(input.reply, tl::unexpected(std::move(fenced).error()));
  Trial& trial = **fenced;
  // A repeat, or another checkpoint has been saved since: reply with the present one.
  if (input.uuid.value != trial.latest_checkpoint)
    return reply(input.reply, ResumeFrom{trial.latest_checkpoint, trial.latest_steps});
  // Too late once the run has trained: its metrics lie beyond the older checkpoint and would be archived.
  if (trial.steps_completed > trial.latest_steps || trial.last_validation > trial.latest_steps) {
    return reply(input.reply, fail(Code::kFailedPrecondition,
                                   "run " + number(input.run) + " of trial " + number(trial.id.value) +
                                       " has trained already; leave, and start again"));
  }
  const ReportDamage::Older older = input.older.value_or(ReportDamage::Older{});
  log(trial, trial.run,
      "checkpoint " + input.uuid.value + " (step " + number(trial.latest_steps) +
          ") cannot be used: " + input.reason +
          (input.older ? "; going on from checkpoint " + older.uuid.value + " (step " +
                             number(older.steps_completed) + ")"
                       : "; there is none before it, starting from the beginning"),
      "WARNING");
  if (!is(Mutant::kDamageForgotten)) trial.latest_checkpoint = older.uuid.value;
  trial.latest_steps = trial.steps_completed = older.steps_completed;
  trial.last_validation = trial.checkpoint_validation = older.validation;
  touched_trials.insert(trial.id);
  inserts.push_back(MarkDamaged{input.uuid, trial.id});
  if (!is(Mutant::kDamageKeepsRows)) inserts.push_back(ArchiveMetrics{trial.id, older.steps_completed});
  reply(input.reply, ResumeFrom{trial.latest_checkpoint, trial.latest_steps});
}

void Core::Impl::handle(const ReportProgress& input) {
  auto fenced = fence(input.trial, input.run);
  if (!fenced) return reply(input.reply, tl::unexpected(std::move(fenced).error()));
  Trial& trial = **fenced;
  reply(input.reply, Done{});
  // (steps, progress) only grows, so reports that arrive late or twice have no effect.
  const double progress = std::isnan(input.progress) ? 0 : std::clamp(input.progress, 0.0, 1.0);
  if (input.steps_completed < trial.steps_completed) return;
  if (input.steps_completed == trial.steps_completed && progress <= trial.progress) return;
  trial.steps_completed = input.steps_completed;
  trial.progress = progress;
  touched_trials.insert(trial.id);
  report_progress(trial);
}

void Core::Impl::handle(const ReportInvalidHp& input) {
  auto fenced = fence(input.trial, input.run);
  if (!fenced) return reply(input.reply, tl::unexpected(std::move(fenced).error()));
  Trial& trial = **fenced;
  reply(input.reply, Done{});
  if (trial.early_exit_invalid_hp) return;
  trial.early_exit_invalid_hp = true;
  touched_trials.insert(trial.id);
  if (unmanaged(trial)) {
    log(trial, trial.run, "the trial says its hyperparameters are invalid; it ends here");
    return end(trial, State::kCompleted);
  }
  // The process is expected to exit by itself. The deadline of a preemption, without a request to the
  // harness, turns into a kill when it does not.
  if (is_legal(trial.state, State::kStoppingCompleted)) change(trial.state, State::kStoppingCompleted);
  Allocation& allocation = *live_allocation(trial.id);
  log(trial, allocation.run, "the trial says its hyperparameters are invalid; it ends here");
  if (allocation.kill_requested || allocation.exit) return;
  const MonoTime deadline = now.mono + kInvalidHpPatience;
  allocation.preempt_deadline = std::min(allocation.preempt_deadline.value_or(deadline), deadline);
  set_timer(allocation);
}

void Core::Impl::handle(const AcknowledgePreemption& input) {
  auto fenced = fence(input.trial, input.run);
  if (!fenced) return reply(input.reply, tl::unexpected(std::move(fenced).error()));
  Allocation* const asked = live_allocation(input.trial);
  if (!asked || !asked->preempt_requested) {
    return reply(input.reply,
                 fail(Code::kFailedPrecondition, "run " + number(input.run) + " of trial " +
                                                     number(input.trial.value) + " was not asked to leave"));
  }
  reply(input.reply, Done{});
  Allocation& allocation = *asked;
  if (allocation.preempt_acknowledged) return;
  allocation.preempt_acknowledged = true;
  touched_allocations.insert(&allocation);
}

void Core::Impl::handle(const HarnessAlive& input) {
  // For an unmanaged trial `fence` has restarted the deadline.
  auto fenced = fence(input.trial, input.run);
  if (!fenced) return reply(input.reply, tl::unexpected(std::move(fenced).error()));
  reply(input.reply, Done{});
}

void Core::Impl::handle(const AskToLeave& input) {
  auto fenced = fence(input.trial, input.run);
  if (!fenced) return reply(input.reply, tl::unexpected(std::move(fenced).error()));
  Allocation* const allocation = live_allocation(input.trial);
  if (!allocation)
    return reply(input.reply, fail(Code::kFailedPrecondition, "the cluster does not run this trial"));
  reply(input.reply, Done{});
  ask_to_leave(*allocation, "its process says that its machine is about to go");
}

void Core::Impl::handle(const MarkDaemon& input) {
  auto fenced = fence(input.trial, input.run);
  if (!fenced) return reply(input.reply, tl::unexpected(std::move(fenced).error()));
  Allocation* const allocation = live_allocation(input.trial);
  if (!allocation || input.part >= allocation->parts.size())
    return reply(input.reply, fail(Code::kInvalidArgument, "the allocation has no such part"));
  // At least one part must remain that decides how the allocation ends.
  const auto others = std::count_if(
      allocation->parts.begin(), allocation->parts.end(),
      [&](const AllocationPart& part) { return !part.daemon && &part != &allocation->parts[input.part]; });
  if (others == 0)
    return reply(input.reply, fail(Code::kInvalidArgument,
                                   "one part of an allocation must do its work: not all are helpers"));
  reply(input.reply, Done{});
  if (allocation->parts[input.part].daemon) return;
  allocation->parts[input.part].daemon = true;
  touched_allocations.insert(allocation);
}

}  // namespace det::core
