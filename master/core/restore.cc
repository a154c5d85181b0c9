// Start of the core: builds the live state from stored rows. Rows that contradict each other are an error
// (kDataLoss), never repaired by a guess.
#include <algorithm>

#include "common/base/json.h"
#include "master/core/owners.h"
#include "master/core/terminating.h"

namespace det::core {
namespace {

Result<nlohmann::json> read(const std::string& text, const std::string& what) {
  auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) return contradiction(what + " is no JSON");
  return json;
}

}  // namespace

tl::unexpected<Error> contradiction(const std::string& what) {
  return fail(Code::kDataLoss, "the store contradicts itself: " + what);
}

Status restore(Owners& owners, Step& step, Recovered recovered) {
  // The order matters: experiments and their searches, trials, commands, allocations, and last the requests
  // of everything that has no allocation.
  owners.experiments.restore_next(recovered.next_experiment);
  owners.trials.restore_next(recovered.next_trial);
  for (Experiment& experiment : recovered.experiments) {
    const Recovered::SearcherLog& log = recovered.searchers[experiment.id];
    TRY(owners.experiments.restore(std::move(experiment), log));
  }
  owners.agents.restore(std::move(recovered.agents));
  owners.quotas.restore(recovered.quotas);
  std::map<ExperimentId, std::vector<Trial>> trials;
  for (Trial& trial : recovered.trials) trials[trial.experiment].push_back(std::move(trial));
  for (auto& [id, rows] : trials) TRY(owners.experiments.restore_trials(id, std::move(rows)));
  TRY(owners.commands.restore(std::move(recovered.commands), recovered.next_command));
  TRY(owners.pilots.restore(std::move(recovered.pilots), recovered.next_pilot, step.now));
  for (Allocation& allocation : recovered.allocations) {
    TRY(owners.allocations.restore(step, std::move(allocation)));
  }
  TRY(owners.trials.restore_requests(step));
  return owners.commands.restore_requests();
}

Status Experiments::restore(Experiment row, const Recovered::SearcherLog& log) {
  const ExperimentId id = row.id;
  if (is_terminal(row.state)) return contradiction(name_of(id) + " has ended");
  requests_[row.request_id] = id;
  const auto [stored, fresh] = experiments_.emplace(id, std::move(row));
  if (!fresh) return contradiction(name_of(id) + " is there twice");
  Experiment& experiment = stored->second;
  // Rows written before queue settings were stored have priority 0.
  if (experiment.queue.priority == 0) {
    experiment.queue = queue_settings(*experiment.config, experiment.submitted);
  }
  put_job(experiment);
  TRY_ASSIGN(auto search, make_search(experiment, log));
  searches_.emplace(id, std::move(search));
  return {};
}

Status Experiments::restore_trials(ExperimentId id, std::vector<Trial> rows) {
  const Experiment* const experiment = find(id);
  if (!experiment) return contradiction(name_of(rows.front().id) + " has no experiment");
  TRY(number_trials(*experiment, searches_.at(id), rows));
  for (Trial& row : rows) {
    const TrialId trial = row.id;
    if (!owners_.trials.insert(std::move(row))) return contradiction(name_of(trial) + " is there twice");
  }
  return {};
}

Result<Search> Experiments::make_search(const Experiment& experiment,
                                        const Recovered::SearcherLog& stored) const {
  // The experiment row counts the events, so a truncated log is detected.
  const std::string name = "the search of " + name_of(experiment.id);
  const auto total = stored.snapshot_number + static_cast<std::int64_t>(stored.events.size());
  if (total != experiment.searcher_events) {
    return contradiction(name + " has " + std::to_string(total) + " events, its experiment counts " +
                         std::to_string(experiment.searcher_events));
  }
  const searcher::Fault fault = owners_.options.search_fault;
  auto made = searcher::Searcher::create(experiment.config, fault);
  if (!stored.snapshot.empty()) {
    TRY_ASSIGN(const auto snapshot, read(stored.snapshot, "the snapshot of " + name));
    made = searcher::Searcher::restore(experiment.config, snapshot, fault);
  }
  TRY_ASSIGN(Search search, std::move(made).map([](searcher::Searcher&& searcher) {
    return Search{.searcher = std::move(searcher), .config = nullptr};
  }));
  // The searcher is deterministic: the replayed actions are those of the past and have been carried out. Only
  // the end of the search is not stored elsewhere.
  for (const std::string& text : stored.events) {
    TRY_ASSIGN(const auto json, read(text, "an event of " + name));
    TRY_ASSIGN(const auto event, searcher::event_from_json(json));
    for (const searcher::Action& action : search.searcher.handle(event)) {
      if (auto* shutdown = std::get_if<searcher::Shutdown>(&action)) search.shutdown = *shutdown;
    }
  }
  search.set_config(experiment);
  search.trials.resize(search.searcher.created());
  return search;
}

Status Experiments::number_trials(const Experiment& experiment, Search& search, std::vector<Trial>& rows) {
  // Request ids are a function of (seed, number), so they give each row its number. Numbers without a row are
  // trials that were requested while the experiment was ending.
  const std::uint32_t seed = experiment.config->experiment_seed;
  std::map<RequestId, searcher::TrialNumber> numbers;
  for (searcher::TrialNumber number = 0; number < search.searcher.created(); ++number) {
    numbers.emplace(searcher::request_id(seed, number), number);
  }
  for (Trial& trial : rows) {
    auto number = numbers.find(trial.request_id);
    if (number == numbers.end()) {
      return contradiction(name_of(trial.id) + " was never asked for by its search, or is there twice");
    }
    trial.number = number->second;
    numbers.erase(number);
    search.trials[trial.number] = trial.id;
    search.searcher.set_progress(trial.number, trial.progress);
    if (!is_terminal(trial.state)) ++search.open;
  }
  return {};
}

Status Allocations::check_stored(const Allocation& allocation) const {
  const std::string name = "allocation " + allocation.id.value;
  if (allocation.task.as<CommandId>()) {
    const Command* const command = owners_.commands.find(allocation.task);
    if (!command) return contradiction(name + " has no command");
    if (allocation.run != command->run) return contradiction(name + " is not the one of its command");
    return {};
  }
  const Trial* const trial = owners_.trials.find(allocation.task);
  if (!trial) return contradiction(name + " has no trial");
  if (is_terminal(trial->state) || trial->run != allocation.run) {
    return contradiction(name + " is not of its trial's current run");
  }
  return {};
}

Status Allocations::restore(Step& step, Allocation row) {
  TRY(check_stored(row));
  const AllocationId id = row.id;
  Allocation& allocation = allocations_.emplace(id, std::move(row)).first->second;
  if (!by_task_.emplace(allocation.task, &allocation).second) {
    return contradiction(name_of(allocation.task) + " runs twice");
  }
  const Trial* const trial = owners_.trials.find(allocation.task);
  const bool over =
      std::all_of(allocation.parts.begin(), allocation.parts.end(),
                  [](const AllocationPart& part) { return part.state == AllocationState::kTerminated; });
  if (over) return contradiction("allocation " + id.value + " runs but has no part that does");
  for (const AllocationPart& part : allocation.parts) {
    if (!part.token_hash.empty()) by_token_.emplace(part.token_hash, &allocation);
    if (part.state != AllocationState::kTerminated) {
      TRY(owners_.agents.restore_part(allocation, part, step.now));
    }
  }
  // A part may have failed because a peer's agent was lost while the master was down. All agents are
  // disconnected now, which makes `excuse` assume it.
  excuse(step, allocation);

  // Deadlines are times of the monotonic clock and are not stored: they begin afresh.
  allocation.preempt_deadline.reset();
  allocation.kill_again.reset();
  if (is_killed(allocation)) {
    allocation.kill_again = step.now.mono + owners_.options.kill_repeat;
  } else if (allocation.preempt_requested) {
    allocation.preempt_deadline =
        step.now.mono + std::chrono::seconds(trial ? owners_.trials.config_of(*trial).preemption_timeout : 0);
  }
  // A process that rejected its hyperparameters has had its time to exit.
  if (trial && trial->early_exit_invalid_hp && !allocation.kill_again) {
    allocation.preempt_deadline = step.now.mono;
  }
  if (trial) owners_.builds.restore(allocation, *trial);
  set_timer(allocation);
  restore_running(allocation);
  if (allocation.port != 0) ports_.insert(allocation.port);
  return {};
}

void Allocations::restore_running(const Allocation& allocation) {
  scheduler::Running running{.task = allocation.task, .job = {}, .parts = {}};
  for (const AllocationPart& part : allocation.parts) running.parts.push_back({part.agent, part.slots});
  if (const auto command = allocation.task.as<CommandId>()) {
    running.job = *command;
    running.preemptible = owners_.is(Mutant::kCommandPreempted);
    running.terminating = allocation.kill_requested || allocation.exit;
    return owners_.queues.restore(allocation.pool, running, nullptr);
  }
  const Experiment& experiment = owners_.experiments.at(owners_.trials.of(allocation).experiment);
  running.job = experiment.id;
  running.terminating = is_terminating(allocation);
  // An experiment may have moved to another pool while its allocation was terminating.
  const bool moved = allocation.pool != owners_.queues.pool_of(experiment.queue);
  const scheduler::Job job = owners_.experiments.job_of(experiment);
  owners_.queues.restore(allocation.pool, running, moved ? &job : nullptr);
}

}  // namespace det::core
