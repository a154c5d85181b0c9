// Start of the core: builds the live state from stored rows. Rows that contradict each other are an error
// (kDataLoss), never repaired by a guess.
#include <algorithm>

#include "common/base/json.h"
#include "master/core/impl.h"
#include "master/core/leaving.h"

namespace det::core {
namespace {

tl::unexpected<Error> contradiction(const std::string& what) {
  return fail(Code::kDataLoss, "the store contradicts itself: " + what);
}

Result<nlohmann::json> read(const std::string& text, const std::string& what) {
  auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) return contradiction(what + " is no JSON");
  return json;
}

}  // namespace

Status Core::Impl::restore(Recovered recovered) {
  // The order matters: experiments and their searches, trials, commands, allocations, and last the requests
  // of everything that has no allocation.
  next_experiment = recovered.next_experiment;
  next_trial = recovered.next_trial;
  next_command = recovered.next_command;
  for (Experiment& experiment : recovered.experiments) {
    const ExperimentId id = experiment.id;
    if (is_terminal(experiment.state))
      return contradiction("experiment " + std::to_string(id.value) + " has ended");
    requests[experiment.request_id] = id;
    if (!experiments.emplace(id, std::move(experiment)).second) {
      return contradiction("experiment " + std::to_string(id.value) + " is there twice");
    }
    Experiment& stored = experiments.at(id);
    // Rows written before queue settings were stored have priority 0.
    if (stored.queue.priority == 0) stored.queue = place_of(*stored.config, stored.submitted);
    tell_job(stored);
    TRY_ASSIGN(auto search, make_search(experiments.at(id), recovered.searchers[id]));
    searches.emplace(id, std::move(search));
  }
  for (AgentSettings& settings : recovered.agents) {
    const AgentId agent = settings.agent;
    if (!is(Mutant::kServiceForgotten)) agent_settings[agent] = std::move(settings);
  }
  std::map<ExperimentId, std::vector<Trial>> rows;
  for (Trial& trial : recovered.trials) {
    if (!searches.contains(trial.experiment)) {
      return contradiction("trial " + std::to_string(trial.id.value) + " has no experiment");
    }
    rows[trial.experiment].push_back(std::move(trial));
  }
  std::vector<TrialId> in_order;
  for (auto& [id, of_one] : rows) {
    TRY(number_trials(experiments.at(id), searches.at(id), of_one));
    for (Trial& trial : of_one) {
      const TrialId name = trial.id;
      if (!trials.emplace(name, std::move(trial)).second) {
        return contradiction("trial " + std::to_string(name.value) + " is there twice");
      }
      in_order.push_back(name);
    }
  }
  // By id, so that requests enter the schedulers in the same order at every start.
  std::sort(in_order.begin(), in_order.end());
  TRY(restore_commands(std::move(recovered.commands)));
  for (Allocation& allocation : recovered.allocations) TRY(restore_allocation(std::move(allocation)));
  for (TrialId id : in_order) {
    Trial& trial = trials.at(id);
    if (live.contains(id) || is_terminal(trial.state)) continue;
    // A stopping trial without an allocation would have ended in the step that stopped it.
    if (is_stopping(trial.state)) {
      return contradiction("trial " + std::to_string(id.value) + " is ending but nothing of it runs");
    }
    if (unmanaged(trial)) {
      if (!is(Mutant::kUnmanagedForever)) heard(trial);
      if (!is(Mutant::kUnmanagedScheduled)) continue;
    }
    // Not request_slots, which would log the request a second time.
    if (trial.state != State::kActive || trial.held) continue;
    waiting.insert(id);
    tell_request(trial);
  }
  for (const auto& [id, command] : commands) {
    if (live.contains(as_trial(id))) continue;
    if (is_stopping(command.state))
      return contradiction("command " + command.task.value + " is ending but nothing of it runs");
    if (is(Mutant::kCommandForgotten)) continue;
    waiting.insert(as_trial(id));
    tell_request(command);
  }
  return {};
}

Result<Core::Impl::Search> Core::Impl::make_search(const Experiment& experiment,
                                                   const Recovered::SearcherLog& stored) const {
  // The experiment row counts the events, so a truncated log is detected.
  const std::string name = "the search of experiment " + std::to_string(experiment.id.value);
  const auto total = stored.snapshot_number + static_cast<std::int64_t>(stored.events.size());
  if (total != experiment.searcher_events) {
    return contradiction(name + " has " + std::to_string(total) + " events, its experiment counts " +
                         std::to_string(experiment.searcher_events));
  }
  auto made = searcher::Searcher::create(experiment.config, options.search_fault);
  if (!stored.snapshot.empty()) {
    TRY_ASSIGN(const auto snapshot, read(stored.snapshot, "the snapshot of " + name));
    made = searcher::Searcher::restore(experiment.config, snapshot, options.search_fault);
  }
  if (!made) return tl::unexpected(std::move(made).error());
  Search search{
      .searcher = std::move(*made), .config = nullptr, .shutdown = std::nullopt, .trials = {}, .open = 0};
  // The searcher is deterministic: the replayed actions are those of the past and have been carried out. Only
  // the end of the search is not stored elsewhere.
  for (const std::string& text : stored.events) {
    TRY_ASSIGN(const auto json, read(text, "an event of " + name));
    TRY_ASSIGN(const auto event, searcher::event_from_json(json));
    for (const searcher::Action& action : search.searcher.handle(event)) {
      if (auto* shutdown = std::get_if<searcher::Shutdown>(&action)) search.shutdown = *shutdown;
    }
  }
  search.config =
      expconf::with_totals(experiment.config, search.searcher.max_trials(), search.searcher.max_time());
  search.trials.resize(search.searcher.created());
  return search;
}

Status Core::Impl::number_trials(const Experiment& experiment, Search& search, std::vector<Trial>& rows) {
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
      return contradiction("trial " + std::to_string(trial.id.value) +
                           " was never asked for by its search, or is there twice");
    }
    trial.number = number->second;
    numbers.erase(number);
    search.trials[trial.number] = trial.id;
    search.searcher.set_progress(trial.number, trial.progress);
    if (!is_terminal(trial.state)) ++search.open;
  }
  return {};
}

Status Core::Impl::check_allocation(const Allocation& allocation) const {
  if (is_command(allocation.trial)) {
    auto command = commands.find(command_of(allocation.trial));
    if (command == commands.end())
      return contradiction("allocation " + allocation.id.value + " has no command");
    return check_allocation(command->second, allocation);
  }
  auto trial = trials.find(allocation.trial);
  if (trial == trials.end()) return contradiction("allocation " + allocation.id.value + " has no trial");
  if (is_terminal(trial->second.state) || trial->second.run != allocation.run) {
    return contradiction("allocation " + allocation.id.value + " is not of its trial's current run");
  }
  return {};
}

Status Core::Impl::restore_allocation(Allocation stored) {
  TRY(check_allocation(stored));
  const AllocationId id = stored.id;
  Allocation& allocation = allocations.emplace(id, std::move(stored)).first->second;
  if (!live.emplace(allocation.trial, &allocation).second) {
    return contradiction("trial " + std::to_string(allocation.trial.value) + " runs twice");
  }
  const Trial* const trial = is_command(allocation.trial) ? nullptr : &trials.at(allocation.trial);
  const bool over =
      std::all_of(allocation.parts.begin(), allocation.parts.end(),
                  [](const AllocationPart& part) { return part.state == AllocationState::kTerminated; });
  if (over) return contradiction("allocation " + allocation.id.value + " runs but has no part that does");
  for (const AllocationPart& part : allocation.parts) {
    if (part.state != AllocationState::kTerminated) TRY(restore_part(allocation, part));
  }
  // A part may have failed because a peer's agent was lost while the master was down. All agents are
  // disconnected now, which makes `excuse` assume it.
  excuse(allocation);
  if (is(Mutant::kGangKillForgotten)) allocation.exit.reset();

  // Deadlines are times of the monotonic clock and are not stored: they begin afresh.
  allocation.preempt_deadline.reset();
  allocation.kill_again.reset();
  if (is_killed(allocation)) {
    allocation.kill_again = now.mono + options.kill_repeat;
  } else if (allocation.preempt_requested) {
    allocation.preempt_deadline =
        now.mono + std::chrono::seconds(trial ? config_of(*trial).preemption_timeout : 0);
  }
  // A process that rejected its hyperparameters has had its time to exit.
  if (trial && trial->early_exit_invalid_hp && !allocation.kill_again) allocation.preempt_deadline = now.mono;
  if (is(Mutant::kPreemptAckForgotten)) allocation.preempt_acknowledged = false;
  set_timer(allocation);
  tell_running(allocation);
  if (allocation.port != 0) ports.insert(allocation.port);
  return {};
}

Status Core::Impl::restore_part(const Allocation& allocation, const AllocationPart& part) {
  // No slot may be in use twice.
  auto& held = on_agent[part.agent];
  for (const AllocationId& other : held) {
    for (int slot : allocations.at(other).part_on(part.agent)->slots) {
      if (std::find(part.slots.begin(), part.slots.end(), slot) != part.slots.end()) {
        return contradiction("two allocations have slot " + std::to_string(slot) + " of agent " +
                             part.agent.value);
      }
    }
  }
  held.insert(allocation.id);

  // The agent has no session yet. Its deadline makes sure that an agent that never reconnects is lost, and
  // that its slots and trials do not wait for it forever.
  Agent& agent = add_agent(part.agent);
  agent.id = part.agent;
  agent.instance = part.agent_instance;
  agent.pool = allocation.pool;
  if (!is(Mutant::kNoReconnectDeadline)) {
    agent.lost_at = now.mono + agent_wait();
    timers.set({TimerKind::kAgent, agent.id.value}, agent.lost_at);
  }
  return {};
}

}  // namespace det::core
