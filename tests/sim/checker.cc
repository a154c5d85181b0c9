#include "tests/sim/checker.h"

#include <algorithm>
#include <cmath>

#include "common/base/exit_codes.h"
#include "master/core/build_id.h"
#include "master/core/invariants.h"

namespace det::sim {
namespace {

/// Slots of all allocations, by their user and by their workspace.
std::map<scheduler::QuotaKey, int> held_by_owner(const core::Core& core) {
  using Scope = scheduler::QuotaKey::Scope;
  std::map<scheduler::QuotaKey, int> held;
  const auto add = [&](UserId user, std::int64_t workspace, int slots) {
    held[{Scope::kUser, user.value}] += slots;
    held[{Scope::kWorkspace, workspace}] += slots;
  };
  for (const auto& [id, allocation] : core.allocations()) {
    if (const core::Command* command = core.command(allocation.task)) {
      add(command->owner, command->workspace, allocation.slot_count());
    } else if (const core::Trial* trial = core.trial(allocation.task)) {
      const auto experiment = core.experiments().find(trial->experiment);
      if (experiment != core.experiments().end())
        add(experiment->second.owner, experiment->second.workspace, allocation.slot_count());
    }
  }
  return held;
}

}  // namespace

void Checker::fail(const std::string& what) {
  if (!failure_.empty()) return;
  failure_ = what;
  engine_.trace("BROKEN: " + what);
}

void Checker::process_started(const ProcessTruth& process) {
  const std::string who = name_of(process.task) + " run " + std::to_string(process.run);
  for (const auto& [key, other] : running_) {
    if (other.task == process.task && (other.run != process.run || other.part == process.part)) {
      fail(who + " starts on " + process.machine + " while run " + std::to_string(other.run) + " runs on " +
           other.machine);
    }
    if (other.machine != process.machine) continue;
    for (int slot : process.slots) {
      if (std::find(other.slots.begin(), other.slots.end(), slot) != other.slots.end()) {
        fail(who + " starts on slot " + std::to_string(slot) + " of " + process.machine + " while " +
             name_of(other.task) + " runs there");
      }
    }
  }
  RunNumber& newest = newest_run_[process.task];
  const bool first = parts_.lower_bound({process.task, process.run, 0}) ==
                     parts_.upper_bound({process.task, process.run, process.parts});
  if (process.run < newest || (process.run == newest && first))
    fail(who + " starts after run " + std::to_string(newest));
  newest = process.run;
  const PartKey key{process.task, process.run, process.part};
  if (parts_.contains(key)) fail(who + " starts part " + std::to_string(process.part) + " again");
  running_[key] = process;
  parts_[key] = PartState::kRuns;
}

void Checker::process_ended(const ProcessTruth& process, bool well) {
  const PartKey key{process.task, process.run, process.part};
  running_.erase(key);
  parts_[key] = well ? PartState::kWell : PartState::kBroken;
}

Checker::Gang Checker::gang(const ProcessTruth& process) const {
  auto state = Gang::kWhole;
  for (int part = 0; part < process.parts; ++part) {
    auto it = parts_.find({process.task, process.run, part});
    if (it == parts_.end()) {
      state = Gang::kGathers;
    } else if (it->second == PartState::kBroken) {
      return Gang::kBroken;
    }
  }
  return state;
}

bool Checker::chief_ended_well(const ProcessTruth& process) const {
  auto chief = parts_.find({process.task, process.run, 0});
  return chief != parts_.end() && chief->second == PartState::kWell;
}

int Checker::failures(TaskKey task) const {
  auto it = failures_.find(task);
  return it == failures_.end() ? 0 : it->second;
}

void Checker::master_started(const core::Core& core, const MemoryDisk& disk) {
  events_.clear();
  heard_.clear();
  appended_run_.clear();
  rejected_.clear();
  for (const auto& [id, trial] : disk.trials) {
    appended_run_[id] = trial.run;
    experiment_of_[id] = trial.experiment;
  }
  exit_codes_.clear();
  for (const auto& [id, row] : disk.allocations) {
    check_builds(row);
    check_exit(row);
  }
  // An allocation that was not durable has ended with the old master.
  std::erase_if(had_, [&](const auto& one) { return !disk.allocations.contains(one.second); });
  for (const auto& [id, log] : disk.searcher_events) {
    for (const auto& [number, event] : log) {
      events_[id].push_back(event);
      check_heard(id, event);
    }
  }
  connections_.clear();
  refused_.clear();
  worked_.clear();
  known_pilots_.clear();
  // Whether these have had work is not known in this life.
  for (const auto& [name, pilot] : core.pilots()) known_pilots_.emplace(name, false);
  held_ = held_by_owner(core);  // the end of an allocation may have been lost with the old master
  after_step(core);
  check_service(core, disk);
  check_used_pilots(core, disk);
  if (core.quotas() != disk.quotas) fail("a quota was set or removed, and the master has forgotten it");
  check_search(core);
}

void Checker::master_crashes(const core::Core& core) {
  check_search(core);
  unused_.clear();
  ephemeral_.clear();
}

void Checker::after_step(const core::Core& core) {
  for (const std::string& broken : core::broken_invariants(core)) fail(broken);
  check_max_slots(core);
  check_quotas(core);
  check_command_kills(core);
  check_agents(core);
  check_pilots(core);
}

void Checker::check_max_slots(const core::Core& core) {
  std::map<ExperimentId, int> held;
  for (const auto& [id, allocation] : core.allocations()) {
    if (const core::Trial* trial = core.trial(allocation.task))
      held[trial->experiment] += allocation.slot_count();
  }
  for (const auto& [id, slots] : held) {
    auto experiment = core.experiments().find(id);
    if (experiment == core.experiments().end()) continue;
    const auto& most = experiment->second.queue.max_slots;
    if (most && slots > *most) {
      fail(name_of(id) + " holds " + std::to_string(slots) + " slots, more than its max_slots " +
           std::to_string(*most));
    }
  }
}

void Checker::check_quotas(const core::Core& core) {
  std::map<scheduler::QuotaKey, int> held = held_by_owner(core);
  for (const auto& [key, limit] : core.quotas()) {
    const auto& [of, resource] = key;
    if (resource != core::QuotaResource::kSlots || held[of] <= limit || held[of] <= held_[of]) continue;
    fail(std::string(core::scope_name(of.scope)) + " " + std::to_string(of.id) + " has got " +
         std::to_string(held[of]) + " slots, more than the quota of " + std::to_string(limit));
  }
  held_ = std::move(held);
}

void Checker::check_run(const char* what, TrialId trial, RunNumber run) {
  if (run == appended_run_[trial]) return;
  fail(std::string(what) + " of run " + std::to_string(run) + " of " + name_of(trial) +
       " is taken while run " + std::to_string(appended_run_[trial]) + " is current");
}

void Checker::appended(const core::Write& write) {
  if (auto* experiment = std::get_if<core::PutExperiment>(&write)) {
    // At most two trials more by an extension. Up to four replacements for each valid trial, and sixteen
    // more.
    const expconf::SearcherConfig& search = experiment->row.config->searcher;
    most_trials_[experiment->row.id] = search.name == "grid" ? 1000 : 16 + 5 * (search.max_trials + 2);
  }
  if (auto* trial = std::get_if<core::PutTrial>(&write)) {
    if (trial->row.number > most_trials_[trial->row.experiment])
      fail(name_of(trial->row.experiment) + " has a trial number " + std::to_string(trial->row.number));
    RunNumber& newest = appended_run_[trial->row.id];
    if (trial->row.run < newest)
      fail(name_of(trial->row.id) + " falls back to run " + std::to_string(trial->row.run));
    newest = trial->row.run;
    experiment_of_[trial->row.id] = trial->row.experiment;
  }
  if (auto* allocation = std::get_if<core::PutAllocation>(&write)) {
    check_builds(allocation->row);
    check_exit(allocation->row);
  }
  if (auto* row = std::get_if<core::InsertValidation>(&write))
    check_run("a validation", row->trial, row->run);
  if (auto* row = std::get_if<core::InsertCheckpoint>(&write))
    check_run("a checkpoint", row->trial, row->run);
  auto* event = std::get_if<core::AppendSearcherEvent>(&write);
  if (!event) return;
  auto& log = events_[event->experiment];
  if (event->number != static_cast<std::int64_t>(log.size())) {
    fail(name_of(event->experiment) + ": searcher event " + std::to_string(event->number) + " follows " +
         std::to_string(log.size()) + " events");
  }
  check_heard(event->experiment, event->event);
  log.push_back(event->event);
}

/// A rejected build ends its experiment: no trial of it gets an allocation after that.
void Checker::check_builds(const core::Allocation& row) {
  const auto trial = row.task.as<TrialId>();
  if (!trial) return;
  const ExperimentId experiment = experiment_of_[*trial];
  if (row.state == core::AllocationState::kAssigned && rejected_.contains(experiment) &&
      !continued_.contains(experiment)) {
    fail(row.id.value + " was assigned after the build of " + name_of(experiment) + " was rejected");
  }
  if (core::is_build(row.id) && row.exit && row.exit->code == kExitFinal && !row.kill_requested)
    rejected_.insert(experiment);
}

/// The first failure of a gang is its exit. Its kind may be refined, its code stays.
void Checker::check_exit(const core::Allocation& row) {
  if (!row.exit) return;
  const int code = exit_codes_.emplace(row.id, row.exit->code).first->second;
  if (row.exit->code != code)
    fail(row.id.value + " has failed with code " + std::to_string(code) + " and ends with code " +
         std::to_string(row.exit->code));
}

/// The searcher gets each report once. Exits and retries may repeat: a retried trial can exit a second time.
void Checker::check_heard(ExperimentId experiment, const std::string& text) {
  auto event = searcher::event_from_json(nlohmann::json::parse(text));
  if (!event) return fail("a stored event cannot be read: " + text);
  std::set<std::string>& heard = heard_[experiment];
  const bool once =
      !std::holds_alternative<searcher::Exited>(*event) && !std::holds_alternative<searcher::Retried>(*event);
  if (!heard.insert(text).second && once) fail(name_of(experiment) + ": the searcher hears twice " + text);
}

/// A decision of the searcher is stored together with the trials that it creates.
void Checker::check_stored_events(const MemoryDisk& disk) {
  for (const auto& [id, log] : disk.searcher_events) {
    std::size_t& seen = stored_events_[id];
    if (seen == log.size()) continue;
    std::map<searcher::TrialNumber, TrialId> trials;
    for (const auto& [trial, row] : disk.trials) {
      if (row.experiment == id) trials[row.number] = trial;
    }
    for (auto it = std::next(log.begin(), static_cast<std::ptrdiff_t>(seen)); it != log.end(); ++it) {
      const auto event = searcher::event_from_json(nlohmann::json::parse(it->second));
      auto* validated = event ? std::get_if<searcher::Validated>(&*event) : nullptr;
      if (validated == nullptr) continue;
      const TrialId trial = trials[validated->trial];
      const bool there =
          std::any_of(disk.validations.begin(), disk.validations.end(), [&](const auto& entry) {
            return entry.second.row.trial == trial &&
                   entry.second.row.steps_completed == validated->steps_completed;
          });
      if (!there)
        fail(name_of(id) + ": the search decided on a validation that is not stored: " + it->second);
    }
    seen = log.size();
  }
}

void Checker::check_search(const core::Core& core) {
  for (const auto& [id, experiment] : core.experiments()) {
    auto replayed = searcher::Searcher::create(experiment.config);
    std::map<RequestId, nlohmann::json> points;
    if (!replayed) return fail("a searcher cannot be made again: " + replayed.error().message);
    for (const std::string& text : events_[id]) {
      auto event = searcher::event_from_json(nlohmann::json::parse(text));
      if (!event) return fail("a stored event cannot be read: " + text);
      for (const searcher::Action& action : replayed->handle(*event)) {
        if (auto* create = std::get_if<searcher::Create>(&action))
          points[searcher::request_id(experiment.config->experiment_seed, create->trial)] =
              searcher::hparams(experiment.config->hyperparameters, create->sample);
      }
    }
    for (const auto& [trial, row] : core.trials()) {
      if (row.experiment == id && nlohmann::json::parse(row.hparams) != points[row.request_id])
        fail(name_of(trial) + " has other hyperparameters than its search drew: " + row.hparams);
    }
    if (replayed->snapshot() != core.searcher(id)->snapshot()) {
      fail(name_of(id) + ": its event log replays to another searcher");
    }
  }
}

void Checker::disk_changed(const MemoryDisk& disk) {
  check_stored_events(disk);
  check_stored_pilots(disk);
  for (const auto& [id, experiment] : disk.experiments) {
    if (auto it = ended_experiments_.find(id);
        it != ended_experiments_.end() && it->second != experiment.state && !continued_.contains(id)) {
      fail(name_of(id) + " was " + std::string(core::state_name(it->second)) + " and is " +
           std::string(core::state_name(experiment.state)));
    }
    if (core::is_terminal(experiment.state)) ended_experiments_[id] = experiment.state;
  }
  for (const auto& [id, trial] : disk.trials) {
    if (auto it = ended_trials_.find(id);
        it != ended_trials_.end() && it->second != trial.state && !continued_.contains(trial.experiment)) {
      fail(name_of(id) + " was " + std::string(core::state_name(it->second)) + " and is " +
           std::string(core::state_name(trial.state)));
    }
    if (core::is_terminal(trial.state)) ended_trials_[id] = trial.state;
    check_resume(trial, disk);
    check_retries(trial);
    check_excluded(trial, disk);
  }
}

void Checker::sent(const core::Send& send, const MemoryDisk& disk) {
  sent_to_engine(send, disk);
  if (auto* start = std::get_if<core::StartAllocation>(&send)) {
    auto row = disk.allocations.find(start->allocation.id);
    if (start->command) {
      if (row == disk.allocations.end() || !disk.commands.contains(start->command->id))
        fail(start->allocation.id.value + " is started before that is durable");
      return;
    }
    auto trial = disk.trials.find(start->trial.id);
    if (row == disk.allocations.end() || trial == disk.trials.end() ||
        trial->second.run < start->allocation.run) {
      fail(start->allocation.id.value + " is started before that is durable");
    }
  } else if (auto* forgotten = std::get_if<core::AllocationForgotten>(&send)) {
    auto row = disk.allocations.find(forgotten->allocation);
    const auto* part = row == disk.allocations.end() ? nullptr : row->second.part_on(forgotten->agent);
    if (part && part->state != core::AllocationState::kTerminated) {
      fail(forgotten->allocation.value + " may be forgotten before its exit is durable");
    }
  }
}

void Checker::acked_submission(const RequestId& request, ExperimentId id, const MemoryDisk& disk) {
  auto it = disk.experiments.find(id);
  if (it == disk.experiments.end() || it->second.request_id != request) {
    fail("submission " + request.value + " was acknowledged and is not there");
  }
}

void Checker::acked_stop(ExperimentId id, const MemoryDisk& disk) {
  auto it = disk.experiments.find(id);
  const bool ending = it != disk.experiments.end() &&
                      (core::is_stopping(it->second.state) || core::is_terminal(it->second.state));
  if (!ending) fail(name_of(id) + " was acknowledged to end and goes on");
}

void Checker::acked_validation(TrialId trial, RunNumber run, std::int64_t steps, const MemoryDisk& disk) {
  for (RunNumber r = 1; r <= run; ++r) {
    auto it = disk.validations.find({trial, r, steps});
    if (it != disk.validations.end() && (r == run || !it->second.archived)) return;
  }
  fail("the validation of " + name_of(trial) + " at " + std::to_string(steps) +
       " was acknowledged and is not there");
}

void Checker::acked_checkpoint(const CheckpointId& uuid, const MemoryDisk& disk) {
  if (!disk.checkpoints.contains(uuid))
    fail("checkpoint " + uuid.value + " was acknowledged and is not there");
}

void Checker::at_end(const MemoryDisk& disk) {
  check_commands(disk);
  for (const Job& job : plan_.jobs) {
    const core::Experiment* found = nullptr;
    for (const auto& [id, experiment] : disk.experiments) {
      if (experiment.request_id != job.id) continue;
      if (found) return fail(job.id.value + " was submitted once and is there twice");
      found = &experiment;
    }
    if (!found) return fail(job.id.value + " was never taken");
    check_outcome(job, *found, disk);
  }
}

void Checker::check_outcome(const Job& job, const core::Experiment& experiment, const MemoryDisk& disk) {
  if (!core::is_terminal(experiment.state)) return fail(name_of(experiment.id) + " never ends");
  const Search search = replay(experiment);
  // A killed experiment leaves trials at the length before its extension; so does a halving search, except
  // the best.
  const std::string& name = job.config->searcher.name;
  const bool reaches_all =
      experiment.state == core::State::kCompleted && (name == "random" || name == "grid");
  const Lengths lengths{.least = reaches_all ? std::max(job.total, search.max_time) : job.total,
                        .extended = search.max_time > job.total};
  bool all_failed = true;
  int trials = 0;
  for (const auto& [id, trial] : disk.trials) {
    if (trial.experiment != experiment.id) continue;
    ++trials;
    if (!core::is_terminal(trial.state)) return fail(name_of(id) + " never ends");
    const std::string is =
        name_of(id) + " (" + job.id.value + ") is " + std::string(core::state_name(trial.state));
    const int failed = failures(id);
    if (job.detached) check_outside(trial, disk);
    const int restarts = job.detached ? 0 : job.config->max_restarts;
    const auto found = for_good_.find(id);
    const int for_good = found == for_good_.end() ? 0 : found->second;
    // The first 20 losses are free. Losses of machines come on top of those of the program.
    const bool loses_itself = lost_.contains(id);
    if (loses_itself && trial.run <= 20 && trial.restarts > failed)
      fail(is + " with a restart for one of its first 20 losses");
    if (!loses_itself && trial.restarts > failed - for_good + restarts_for_good(job, trial, for_good, disk))
      fail(is + " with more restarts than failures that allow one");
    all_failed = all_failed && trial.state == core::State::kError;
    if (trial.state == core::State::kCompleted && !job.has_invalid_hp(trial.seed) &&
        !search.stopped.contains(trial.number)) {
      if (!finished_.contains(id)) fail(is + " but its program never came to its end");
      check_rows(job, trial, lengths, disk);
    }
    if (job.build == Job::Build::kRejected && finished_.contains(id))
      fail(is + " and its program ran although its code does not compile");
    if (!job.left_alone() || job.continued() || job.build == Job::Build::kRejected) continue;
    if (trial.state != experiment.state && !job.searches()) fail(is + " unlike its experiment");
    if (trial.state == core::State::kCanceled) fail(is + " and nobody asked for it");
    const bool no_metric = job.has_no_metric(trial.seed) && job.config->searcher.decides_by_metric();
    const bool proven =
        loses_itself || trial.retries_canceled || for_good >= (job.failure == Job::Failure::kFinal ? 1 : 2);
    if (trial.state == core::State::kError && failed <= restarts && !proven && !no_metric) {
      fail(is + " after " + std::to_string(failed) + " failures of " + std::to_string(restarts + 1));
    }
  }
  if (job.build == Job::Build::kRejected) {
    if (experiment.state == core::State::kCompleted)
      fail(name_of(experiment.id) + " has completed although its code does not compile");
    return;
  }
  if (job.left_alone() && job.always_invalid && trials > 1 && experiment.state == core::State::kCompleted)
    fail(name_of(experiment.id) + " has completed although each of its trials refused its hyperparameters");
  if (!job.left_alone() || job.invalid_hp) return;
  if ((experiment.state == core::State::kError) != all_failed) {
    fail(name_of(experiment.id) + " is " + std::string(core::state_name(experiment.state)) +
         (all_failed ? " and all its trials failed" : " and not all its trials failed"));
  }
}

Checker::Search Checker::replay(const core::Experiment& experiment) {
  Search found;
  auto search = searcher::Searcher::create(experiment.config);
  if (!search) return found;
  for (const std::string& text : events_[experiment.id]) {
    auto event = searcher::event_from_json(nlohmann::json::parse(text));
    if (!event) continue;
    for (const searcher::Action& action : search->handle(*event)) {
      if (auto* stop = std::get_if<searcher::Stop>(&action)) found.stopped.insert(stop->trial);
    }
  }
  found.max_time = search->max_time();
  return found;
}

}  // namespace det::sim
