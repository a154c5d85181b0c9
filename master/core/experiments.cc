// Life of experiments: submission, user actions, events and actions of the searcher, the end.
#include <utility>

#include "master/core/impl.h"
#include "master/core/transitions.h"

namespace det::core {
namespace {

std::string name_of(const Experiment& experiment) {
  return "experiment " + std::to_string(experiment.id.value);
}

}  // namespace

void Core::Impl::handle(const SubmitExperiment& input) {
  if (auto known = requests.find(input.request_id);
      known != requests.end() && !is(Mutant::kRequestIdIgnored)) {
    return reply(input.reply, ExperimentCreated{known->second, true});
  }
  if (input.unmanaged && input.config->searcher.name != "single") {
    return reply(input.reply, fail(Code::kInvalidArgument,
                                   "an experiment outside the cluster has one trial: searcher.name must be "
                                   "single, not " +
                                       input.config->searcher.name));
  }
  auto created = searcher::Searcher::create(input.config, options.search_fault);
  if (!created) return reply(input.reply, tl::unexpected(std::move(created).error()));

  // Every check has passed. The job id comes from a generator seeded by the step, so a replay makes the same
  // one.
  const ExperimentId id{next_experiment.value++};
  Random names{static_cast<std::uint64_t>(now.wall.micros), static_cast<std::uint64_t>(id.value)};
  Experiment& experiment = experiments[id];
  experiment.id = id;
  experiment.request_id = input.request_id;
  experiment.job_id = names.uuid();
  experiment.owner = input.owner;
  experiment.project = input.project;
  experiment.state = input.activate || input.unmanaged ? State::kActive : State::kPaused;
  experiment.unmanaged = input.unmanaged;
  experiment.config = input.config;
  experiment.code_archive = input.code_archive;
  experiment.submitted = now.wall;
  experiment.parent = input.parent;
  experiment.queue = place_of(*input.config, now.wall);
  tell_job(experiment);
  searches.emplace(id, Search{.searcher = std::move(*created),
                              .config = input.config,
                              .shutdown = std::nullopt,
                              .trials = {},
                              .open = 0});
  requests[input.request_id] = id;
  touched_experiments.insert(id);
  fresh_experiments.emplace(id, input.original_config);
  // `settle` delivers Started in the same step, and its actions create the first trials.
  events.emplace_back(id, searcher::Started{});
  reply(input.reply, ExperimentCreated{id, false});
}

void Core::Impl::handle(const ActOnExperiment& input) {
  auto it = experiments.find(input.experiment);
  if (it == experiments.end()) {
    return reply(input.reply, fail(Code::kNotFound, "experiment " + std::to_string(input.experiment.value) +
                                                        " has ended or does not exist"));
  }
  Experiment& experiment = it->second;
  // An action that has been carried out already is a success, which makes repeats harmless.
  switch (input.action) {
    case ExperimentAction::kActivate:
    case ExperimentAction::kPause: {
      const bool pausing = input.action == ExperimentAction::kPause;
      if (is_stopping(experiment.state)) {
        return reply(input.reply,
                     fail(Code::kFailedPrecondition,
                          name_of(experiment) + " is ending (" + std::string(state_name(experiment.state)) +
                              ") and cannot be " + (pausing ? "paused" : "activated")));
      }
      if (pausing && experiment.unmanaged) {
        return reply(input.reply,
                     fail(Code::kFailedPrecondition,
                          name_of(experiment) + " runs outside the cluster and cannot be paused; cancel it"));
      }
      if (pausing && experiment.state == State::kActive) pause(experiment);
      if (!pausing && experiment.state == State::kPaused) activate(experiment);
      break;
    }
    // An experiment that is stopping may still be stopped more severely.
    case ExperimentAction::kCancel:
      stop(experiment, State::kStoppingCanceled);
      break;
    case ExperimentAction::kKill:
      stop(experiment, State::kStoppingKilled);
      break;
  }
  reply(input.reply, Done{});
}

void Core::Impl::pause(Experiment& experiment) {
  change(experiment.state, State::kPaused);
  touched_experiments.insert(experiment.id);
  for (TrialId id : searches.at(experiment.id).trials) {
    auto found = trials.find(id);
    if (found == trials.end() || found->second.state != State::kActive) continue;
    Trial& trial = found->second;
    change(trial.state, State::kPaused);
    touched_trials.insert(id);
    withdraw(trial);
    if (Allocation* allocation = live_allocation(id)) ask_to_leave(*allocation, "the experiment was paused");
  }
}

void Core::Impl::activate(Experiment& experiment) {
  change(experiment.state, State::kActive);
  touched_experiments.insert(experiment.id);
  for (TrialId id : searches.at(experiment.id).trials) {
    auto found = trials.find(id);
    if (found == trials.end() || found->second.state != State::kPaused) continue;
    Trial& trial = found->second;
    change(trial.state, State::kActive);
    touched_trials.insert(id);
    // A trial that is still terminating requests slots at its exit (`decide`).
    if (!live_allocation(id) && (!trial.held || is(Mutant::kHeldScheduled))) request_slots(trial);
  }
}

void Core::Impl::stop(Experiment& experiment, State stopping) {
  // The trials are stopped even when the experiment is stopping already: each decides by its own state.
  if (is_legal(experiment.state, stopping)) {
    change(experiment.state, stopping);
    touched_experiments.insert(experiment.id);
  }
  for (TrialId id : searches.at(experiment.id).trials) {
    if (auto found = trials.find(id); found != trials.end()) stop(found->second, stopping);
  }
}

void Core::Impl::take(ExperimentId id, const searcher::Event& event) {
  Experiment& experiment = experiments.at(id);
  Search& search = searches.at(id);
  const auto actions = search.searcher.handle(event);
  // A search that continues is no longer over, and its totals may have grown.
  if (std::holds_alternative<searcher::Extended>(event) || std::holds_alternative<searcher::Retried>(event)) {
    search.shutdown.reset();
    search.config =
        expconf::with_totals(experiment.config, search.searcher.max_trials(), search.searcher.max_time());
  }
  // Event sourcing: the log of events is the stored state of the searcher. Snapshots bound the time of a
  // replay.
  inserts.push_back(AppendSearcherEvent{
      id, experiment.searcher_events,
      searcher::to_json(event).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)});
  ++experiment.searcher_events;
  touched_experiments.insert(id);
  if (experiment.searcher_events % options.searcher_snapshot_every == 0) {
    inserts.push_back(PutSearcherSnapshot{id, experiment.searcher_events, search.searcher.snapshot().dump()});
  }
  for (const searcher::Action& action : actions) act(experiment, action);
  update_progress(experiment);
}

Trial* Core::Impl::trial_of(ExperimentId experiment, searcher::TrialNumber number) {
  const std::vector<TrialId>& ids = searches.at(experiment).trials;
  auto found = number < ids.size() ? trials.find(ids[number]) : trials.end();
  return found == trials.end() ? nullptr : &found->second;
}

void Core::Impl::act(Experiment& experiment, const searcher::Action& action) {
  if (auto* create = std::get_if<searcher::Create>(&action)) {
    // An ending experiment gets no new trials. Replaying the log yields the same action, so the searcher
    // counts the trial as created.
    if (!is_stopping(experiment.state)) create_trial(experiment, *create);
  } else if (auto* stopped = std::get_if<searcher::Stop>(&action)) {
    if (Trial* trial = trial_of(experiment.id, stopped->trial)) stop(*trial, State::kStoppingCompleted);
  } else if (auto* held = std::get_if<searcher::Hold>(&action)) {
    if (Trial* trial = trial_of(experiment.id, held->trial)) hold(*trial);
  } else if (auto* resumed = std::get_if<searcher::Resume>(&action)) {
    // Not in an ending experiment: the searcher may resume a trial before it has received the exit of that
    // trial.
    Trial* trial = trial_of(experiment.id, resumed->trial);
    if (trial && !is_stopping(experiment.state)) go_on(*trial);
  } else {
    searches.at(experiment.id).shutdown = std::get<searcher::Shutdown>(action);
  }
}

void Core::Impl::end_if_done(ExperimentId id) {
  Experiment& experiment = experiments.at(id);
  const Search& search = searches.at(id);
  // All trials have ended, and the search is over or the experiment is being stopped.
  if (search.open != 0 || !(search.shutdown || is_stopping(experiment.state))) return;
  State end = State::kCompleted;
  if (is_stopping(experiment.state)) {
    end = end_of(experiment.state);
  } else if (search.shutdown->failure) {
    end = State::kError;
  } else if (search.shutdown->cancel) {
    end = State::kCanceled;
  }
  change(experiment.state, end);
  experiment.ended = now.wall;
  ended_experiments.insert(id);
}

void Core::Impl::report_progress(const Trial& trial) {
  searches.at(trial.experiment).searcher.set_progress(trial.number, trial.progress);
  update_progress(experiments.at(trial.experiment));
}

void Core::Impl::update_progress(Experiment& experiment) {
  // Not every report changes the progress of the experiment; a row is written only when it does.
  const double value = searches.at(experiment.id).searcher.progress();
  if (value == experiment.progress) return;
  experiment.progress = value;
  touched_experiments.insert(experiment.id);
}

}  // namespace det::core
