#include "master/core/reports.h"

#include <algorithm>
#include <cmath>

#include "master/core/owners.h"
#include "master/core/transitions.h"

namespace det::core {
namespace {

/// Time for a process that reported invalid hyperparameters to exit by itself.
constexpr Duration kInvalidHpPatience = std::chrono::seconds(10);

std::string number(std::int64_t value) { return std::to_string(value); }

}  // namespace

Result<ReplyValue> Reports::handle(Step& step, const HarnessAttached& input) {
  TRY_ASSIGN(const Trial& trial, owners_.trials.fence(step, input.trial, input.run));
  if (owners_.trials.is_detached(trial)) return Attached{};
  Allocation& allocation = *owners_.allocations.of(trial.id);
  owners_.allocations.attach(step, allocation);
  return Attached{allocation.preempt_requested};
}

Result<ReplyValue> Reports::handle(Step& step, const ReportValidation& input) {
  TRY_ASSIGN(Trial & trial, owners_.trials.fence(step, input.trial, input.run));
  // A repeat after a lost reply.
  if (input.steps_completed <= trial.last_validation) return Done{};

  step.touch(trial);
  trial.last_validation = input.steps_completed;
  if (input.steps_completed <= trial.latest_steps) trial.checkpoint_validation = input.steps_completed;
  trial.steps_completed = std::max(trial.steps_completed, input.steps_completed);
  step.insert(InsertValidation{trial.id, input.run, input.steps_completed, input.metrics,
                               input.searcher_metric, input.reported});
  if (input.searcher_metric) update_best(trial, *input.searcher_metric);
  // The searcher gets each validation once. A run that repeats steps after a restart adds nothing new, nor
  // does a trial that its search has stopped already.
  const bool news = input.steps_completed > trial.searcher_steps || owners_.is(Mutant::kValidationTwice);
  const bool stopped =
      is_stopping(trial.state) && owners_.options.search_fault != searcher::Fault::kHearsStopped;
  if (news && !stopped) report_to_search(step, trial, input);
  return Done{};
}

void Reports::update_best(Trial& trial, double metric) const {
  const bool smaller = owners_.trials.config_of(trial).searcher.smaller_is_better;
  const bool beats =
      !trial.best_metric || (smaller ? metric < *trial.best_metric : metric > *trial.best_metric);
  // NaN compares as false both ways, but would become the first best metric.
  if (beats && (!std::isnan(metric) || owners_.is(Mutant::kNanBest))) trial.best_metric = metric;
}

void Reports::report_to_search(Step& step, Trial& trial, const ReportValidation& report) {
  const expconf::SearcherConfig& config = owners_.trials.config_of(trial).searcher;
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
        step.log(trial, trial.run, what + "; no best of this trial is known", "WARNING");
      trial.searcher_steps = report.steps_completed;
      return;
    }
    if (owners_.is(Mutant::kMissingMetricFatal)) {
      Experiments& experiments = owners_.experiments;
      return experiments.stop(step, experiments.at(trial.experiment), State::kStoppingError);
    }
    step.log(trial, trial.run, what, "ERROR");
    trial.exit_reason = what;
    return owners_.trials.stop(step, trial, State::kStoppingError);
  }
  trial.searcher_steps = report.steps_completed;
  step.events.emplace_back(trial.experiment, searcher::Validated{trial.number, report.steps_completed,
                                                                 *report.searcher_metric, time.value_or(0)});
}

Result<ReplyValue> Reports::handle(Step& step, const ReportCheckpoint& input) {
  TRY_ASSIGN(Trial & trial, owners_.trials.fence(step, input.trial, input.run));
  // The row is inserted in any case; only a checkpoint that is not older than the newest one moves the trial.
  step.insert(InsertCheckpoint{input.uuid, trial.id, input.run, trial.task,
                               allocation_id(trial.task, trial.run), input.steps_completed, input.resources,
                               input.metadata, input.reported});
  if (input.steps_completed < trial.latest_steps && !owners_.is(Mutant::kCheckpointMovesBack)) return Done{};
  if (input.uuid.value == trial.latest_checkpoint) return Done{};
  step.touch(trial);
  owners_.trials.reset_failed_starts(trial.id);
  trial.latest_checkpoint = input.uuid.value;
  trial.latest_steps = input.steps_completed;
  trial.steps_completed = std::max(trial.steps_completed, input.steps_completed);
  trial.checkpoint_validation = std::min(trial.last_validation, trial.latest_steps);
  return Done{};
}

Result<ReplyValue> Reports::handle(Step& step, const ReportDamage& input) {
  TRY_ASSIGN(Trial & trial, owners_.trials.fence(step, input.trial, input.run));
  // A repeat, or another checkpoint has been saved since: reply with the present one.
  if (input.uuid.value != trial.latest_checkpoint)
    return ResumeFrom{trial.latest_checkpoint, trial.latest_steps};
  // Too late once the run has trained: its metrics lie beyond the older checkpoint and would be archived.
  if (trial.steps_completed > trial.latest_steps || trial.last_validation > trial.latest_steps) {
    return fail(Code::kFailedPrecondition, "run " + number(input.run) + " of " + name_of(trial.id) +
                                               " has trained already; exit and start again");
  }
  const ReportDamage::Older older = input.older.value_or(ReportDamage::Older{});
  step.log(trial, trial.run,
           "checkpoint " + input.uuid.value + " (step " + number(trial.latest_steps) +
               ") cannot be used: " + input.reason +
               (input.older ? "; going on from checkpoint " + older.uuid.value + " (step " +
                                  number(older.steps_completed) + ")"
                            : "; there is none before it, starting from the beginning"),
           "WARNING");
  if (!owners_.is(Mutant::kDamageForgotten)) trial.latest_checkpoint = older.uuid.value;
  trial.latest_steps = trial.steps_completed = older.steps_completed;
  trial.last_validation = trial.checkpoint_validation = older.validation;
  step.touch(trial);
  step.insert(MarkDamaged{input.uuid, trial.id});
  step.insert(ArchiveMetrics{trial.id, older.steps_completed});
  return ResumeFrom{trial.latest_checkpoint, trial.latest_steps};
}

Result<ReplyValue> Reports::handle(Step& step, const ReportProgress& input) {
  TRY_ASSIGN(Trial & trial, owners_.trials.fence(step, input.trial, input.run));
  // (steps, progress) only grows, so reports that arrive late or twice have no effect.
  const double progress = std::isnan(input.progress) ? 0 : std::clamp(input.progress, 0.0, 1.0);
  if (input.steps_completed < trial.steps_completed) return Done{};
  if (input.steps_completed == trial.steps_completed && progress <= trial.progress) return Done{};
  trial.steps_completed = input.steps_completed;
  trial.progress = progress;
  step.touch(trial);
  owners_.experiments.report_progress(step, trial);
  return Done{};
}

Result<ReplyValue> Reports::handle(Step& step, const ReportInvalidHp& input) {
  TRY_ASSIGN(Trial & trial, owners_.trials.fence(step, input.trial, input.run));
  if (trial.early_exit_invalid_hp) return Done{};
  trial.early_exit_invalid_hp = true;
  step.touch(trial);
  step.log(trial, trial.run, "the trial rejected its hyperparameters; it ends");
  if (owners_.trials.is_detached(trial)) {
    owners_.trials.end(step, trial, State::kCompleted);
    return Done{};
  }
  // The process is expected to exit by itself. The deadline of a preemption, without a request to the
  // harness, turns into a kill when it does not.
  if (is_legal(trial.state, State::kStoppingCompleted)) change(trial.state, State::kStoppingCompleted);
  owners_.allocations.limit(*owners_.allocations.of(trial.id), step.now.mono + kInvalidHpPatience);
  return Done{};
}

Result<ReplyValue> Reports::handle(Step& step, const AcknowledgePreemption& input) {
  TRY(owners_.trials.fence(step, input.trial, input.run));
  Allocation* const allocation = owners_.allocations.of(input.trial);
  if (!allocation || !allocation->preempt_requested) {
    return fail(Code::kFailedPrecondition,
                "run " + number(input.run) + " of " + name_of(input.trial) + " was not preempted");
  }
  if (allocation->preempt_acknowledged) return Done{};
  allocation->preempt_acknowledged = true;
  step.touch(*allocation);
  return Done{};
}

Result<ReplyValue> Reports::handle(Step& step, const HarnessAlive& input) {
  // For a detached trial `fence` has restarted the deadline.
  TRY(owners_.trials.fence(step, input.trial, input.run));
  return Done{};
}

Result<ReplyValue> Reports::handle(Step& step, const AskToLeave& input) {
  TRY(owners_.trials.fence(step, input.trial, input.run));
  Allocation* const allocation = owners_.allocations.of(input.trial);
  if (!allocation) return fail(Code::kFailedPrecondition, "the trial runs outside the cluster");
  owners_.allocations.preempt(step, *allocation,
                              "its process reported that its machine is about to shut down");
  return Done{};
}

Result<ReplyValue> Reports::handle(Step& step, const MarkDaemon& input) {
  TRY(owners_.trials.fence(step, input.trial, input.run));
  Allocation* const allocation = owners_.allocations.of(input.trial);
  if (!allocation || input.part >= allocation->parts.size())
    return fail(Code::kInvalidArgument, "the allocation has no such part");
  AllocationPart& part = allocation->parts[input.part];
  // At least one part must remain that decides how the allocation ends.
  const bool others =
      std::any_of(allocation->parts.begin(), allocation->parts.end(),
                  [&](const AllocationPart& other) { return !other.daemon && &other != &part; });
  if (!others) {
    return fail(Code::kInvalidArgument, "at least one part of an allocation must not be a daemon");
  }
  if (part.daemon) return Done{};
  part.daemon = true;
  step.touch(*allocation);
  return Done{};
}

}  // namespace det::core
