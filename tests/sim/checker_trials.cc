// Checks of single trials: checkpoints that they resume from, restarts, rows.
#include <algorithm>
#include <cmath>

#include "tests/sim/checker.h"

namespace det::sim {

/// A trial falls back only from a damaged checkpoint, and then to the newest sound one.
void Checker::check_resume(const core::Trial& trial, const MemoryDisk& disk) {
  Newest& before = newest_[trial.id];
  const CheckpointId latest(trial.latest_checkpoint);
  if (trial.latest_steps < before.steps) {
    const std::string back = name_of(trial.id) + " falls back from checkpoint " +
                             std::to_string(before.steps) + " to " + std::to_string(trial.latest_steps);
    if (!is_damaged(CheckpointId(before.checkpoint))) fail(back);
    for (const auto& [uuid, row] : disk.checkpoints) {
      if (row.trial == trial.id && row.steps_completed > trial.latest_steps && !disk.damaged.contains(uuid))
        fail(back + " over one at " + std::to_string(row.steps_completed));
    }
  }
  before = {trial.latest_checkpoint, trial.latest_steps};
  if (!latest.value.empty() && !disk.checkpoints.contains(latest))
    fail(name_of(trial.id) + " resumes from a checkpoint that has no row");
  if (disk.damaged.contains(latest)) fail(name_of(trial.id) + " resumes from a damaged checkpoint");
}

/// Once a log policy has canceled the retries of a trial, no failure restarts it. Only a user allows them
/// again.
void Checker::check_retries(const core::Trial& trial) {
  const auto [place, is_new] = retries_.try_emplace(trial.id, trial.retries_canceled, trial.restarts);
  const auto [canceled, restarts] = std::exchange(place->second, {trial.retries_canceled, trial.restarts});
  if (is_new || !canceled || continued_.contains(trial.experiment)) return;
  if (!trial.retries_canceled) fail(name_of(trial.id) + " forgets that its retries are canceled");
  if (trial.restarts > restarts) fail(name_of(trial.id) + " restarts although its retries are canceled");
}

/// No run starts on an agent that was excluded before it. Only a user allows the agent again.
void Checker::check_excluded(const core::Trial& trial, const MemoryDisk& disk) {
  auto& [run, agents] = excluded_[trial.id];
  const bool continued = continued_.contains(trial.experiment);
  const bool kept = std::includes(trial.excluded.begin(), trial.excluded.end(), agents.begin(), agents.end());
  if (!kept && !continued) fail(name_of(trial.id) + " forgets the agents that are excluded");
  const auto allocation = disk.allocations.find(core::allocation_id(trial.task, trial.run));
  if (trial.run > run && allocation != disk.allocations.end() && !continued) {
    for (const core::AllocationPart& part : allocation->second.parts)
      if (std::binary_search(agents.begin(), agents.end(), part.agent))
        fail(name_of(trial.id) + " runs on the excluded agent " + part.agent.value);
  }
  run = trial.run;
  agents = trial.excluded;
}

int Checker::restarts_for_good(const Job& job, const core::Trial& trial, int for_good,
                               const MemoryDisk& disk) {
  // The exit of a gang may be that of a peer, which only misses the process that failed.
  if (job.config->resources.slots_per_trial > 1) return for_good;
  if (job.failure == Job::Failure::kFinal) return 0;
  // A repetition counts as one only directly after the failure that it repeats; each other run may stand
  // between two of them. So may a run that failed on an agent that was lost: the master has its loss only.
  const auto lost = std::count_if(disk.allocations.begin(), disk.allocations.end(), [&](const auto& one) {
    const core::Allocation& row = one.second;
    return row.task == TaskKey(trial.id) && row.exit && row.exit->kind == core::ExitKind::kLost;
  });
  return std::min(for_good, trial.run - for_good + 1 + static_cast<int>(lost));
}

void Checker::check_outside(const core::Trial& trial, const MemoryDisk& disk) {
  if (trial.run != 1 || trial.restarts != 0)
    fail(name_of(trial.id) + " runs outside the cluster and ran again");
  for (const auto& [id, allocation] : disk.allocations) {
    if (allocation.task == trial.id)
      fail(name_of(trial.id) + " runs outside the cluster and was given " + id.value);
  }
}

void Checker::check_rows(const Job& job, const core::Trial& trial, const Lengths& lengths,
                         const MemoryDisk& disk) {
  std::map<std::int64_t, int> visible;
  std::optional<double> best;
  for (const auto& [key, validation] : disk.validations) {
    const auto& row = validation.row;
    if (row.trial != trial.id) continue;
    if (job.has_no_metric(trial.seed)) {
      if (row.searcher_metric) fail(name_of(trial.id) + " has a metric that it did not report");
      if (!validation.archived) ++visible[row.steps_completed];
      continue;
    }
    const double metric = metric_of(job, trial.seed, row.steps_completed);
    const bool same = std::isnan(metric) ? std::isnan(*row.searcher_metric) : metric == *row.searcher_metric;
    if (!same) fail(name_of(trial.id) + " has a strange metric at " + std::to_string(row.steps_completed));
    const bool smaller = job.config->searcher.smaller_is_better;
    if (!std::isnan(metric) && (!best || (smaller ? metric < *best : metric > *best))) best = metric;
    if (!validation.archived) ++visible[row.steps_completed];
  }
  if (trial.best_metric != best) fail(name_of(trial.id) + " has the wrong best metric");
  for (std::int64_t steps = job.chunk; steps <= lengths.least; steps += job.chunk) {
    const int wanted = steps % job.validate_every == 0 || steps == lengths.least ? 1 : 0;
    // A run that ended before an extension has validated there; one that began after it has not.
    const bool either = lengths.extended && steps == job.total && visible[steps] <= 1;
    if (visible[steps] != wanted && !either) {
      fail(name_of(trial.id) + " has " + std::to_string(visible[steps]) + " visible validations at " +
           std::to_string(steps) + ", not " + std::to_string(wanted));
    }
  }
}

}  // namespace det::sim
