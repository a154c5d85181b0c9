#include "master/core/experiments.h"

#include <set>
#include <utility>

#include "master/core/owners.h"
#include "master/core/transitions.h"
#include "master/scheduler/position.h"

namespace det::core {
namespace {

/// Idempotency keys of ended experiments that are kept. They only bridge the time until the store returns
/// them.
constexpr std::size_t kMaxEndedRequests = 4096;

}  // namespace

Experiment* Experiments::find(ExperimentId id) {
  const auto it = experiments_.find(id);
  return it == experiments_.end() ? nullptr : &it->second;
}

const searcher::Searcher* Experiments::searcher(ExperimentId id) const {
  const auto it = searches_.find(id);
  return it == searches_.end() ? nullptr : &it->second.searcher;
}

Result<ReplyValue> Experiments::handle(Step& step, const SubmitExperiment& input) {
  if (auto known = requests_.find(input.request_id); known != requests_.end()) {
    return ExperimentCreated{known->second, true};
  }
  if (input.detached && input.config->searcher.name != "single") {
    return fail(Code::kInvalidArgument,
                "an experiment outside the cluster has one trial: searcher.name must be single, not " +
                    input.config->searcher.name);
  }
  TRY(check_barred(input.project, input.workspace));
  TRY(owners_.quotas.check_experiment(input.owner, input.workspace));
  TRY_ASSIGN(auto searcher, searcher::Searcher::create(input.config, owners_.options.search_fault));

  // Every check has passed. The job id comes from a generator seeded by the step, so a replay makes the same
  // one.
  const ExperimentId id{next_.value++};
  Random names{static_cast<std::uint64_t>(step.now.wall.micros), static_cast<std::uint64_t>(id.value)};
  Experiment& experiment = experiments_[id];
  experiment.id = id;
  experiment.request_id = input.request_id;
  experiment.job_id = names.uuid();
  experiment.owner = input.owner;
  experiment.project = input.project;
  experiment.workspace = input.workspace;
  experiment.state = input.activate || input.detached ? State::kActive : State::kPaused;
  experiment.detached = input.detached;
  experiment.config = input.config;
  experiment.code_archive = input.code_archive;
  experiment.submitted = step.now.wall;
  experiment.parent = input.parent;
  experiment.queue = queue_settings(*input.config, step.now.wall);
  put_job(experiment);
  searches_.emplace(id, Search{.searcher = std::move(searcher), .config = input.config});
  requests_[input.request_id] = id;
  step.touch(experiment);
  step.submitted.emplace(id, input.original_config);
  // `settle` delivers Started in the same step, and its actions create the first trials.
  step.events.emplace_back(id, searcher::Started{});
  return ExperimentCreated{id, false};
}

Result<ReplyValue> Experiments::handle(Step& step, const ActOnExperiment& input) {
  Experiment* const found = find(input.experiment);
  if (!found) return fail(Code::kNotFound, name_of(input.experiment) + " has ended or does not exist");
  Experiment& experiment = *found;
  // An action that has been carried out already is a success, which makes repeats harmless. An experiment
  // that is stopping may still be stopped more severely.
  if (input.action == ExperimentAction::kCancel || input.action == ExperimentAction::kKill) {
    const bool cancel = input.action == ExperimentAction::kCancel;
    stop(step, experiment, cancel ? State::kStoppingCanceled : State::kStoppingKilled);
    return Done{};
  }
  const bool pausing = input.action == ExperimentAction::kPause;
  if (is_stopping(experiment.state)) {
    return fail(Code::kFailedPrecondition, name_of(experiment.id) + " is ending (" +
                                               std::string(state_name(experiment.state)) +
                                               ") and cannot be " + (pausing ? "paused" : "activated"));
  }
  if (pausing && experiment.detached) {
    return fail(Code::kFailedPrecondition,
                name_of(experiment.id) + " runs outside the cluster and cannot be paused; cancel it");
  }
  if (pausing && experiment.state == State::kActive) pause(step, experiment);
  if (!pausing && experiment.state == State::kPaused) activate(step, experiment);
  return Done{};
}

template <typename Visit>
void Experiments::each_trial(ExperimentId id, const Visit& visit) {
  for (const TrialId trial : searches_.at(id).trials) {
    if (Trial* const found = owners_.trials.find(trial)) visit(*found);
  }
}

void Experiments::pause(Step& step, Experiment& experiment) {
  change(experiment.state, State::kPaused);
  step.touch(experiment);
  each_trial(experiment.id, [&](Trial& trial) { owners_.trials.pause(step, trial); });
}

void Experiments::activate(Step& step, Experiment& experiment) {
  change(experiment.state, State::kActive);
  step.touch(experiment);
  each_trial(experiment.id, [&](Trial& trial) { owners_.trials.activate(step, trial); });
}

void Experiments::stop(Step& step, Experiment& experiment, State stopping) {
  // The trials are stopped even when the experiment is stopping already: each decides by its own state.
  if (is_legal(experiment.state, stopping)) {
    change(experiment.state, stopping);
    step.touch(experiment);
  }
  each_trial(experiment.id, [&](Trial& trial) { owners_.trials.stop(step, trial, stopping); });
}

void Experiments::settle(Step& step) {
  // The actions of one event may end trials, which queues further events.
  while (!step.events.empty()) {
    const auto [experiment, event] = std::move(step.events.front());
    step.events.pop_front();
    deliver(step, experiment, event);
  }
  // Every event and every action of a user touches its experiment, so only touched experiments can be done.
  for (const Experiment* experiment : step.experiments.sorted()) end_if_done(step, *experiment);
}

void Search::set_config(const Experiment& experiment) {
  config = expconf::with_totals(experiment.config, searcher.max_trials(), searcher.max_time());
  if (config == experiment.config) return;
  std::set<std::int64_t> lengths;
  for (const searcher::BracketState& bracket : searcher.brackets())
    for (const auto& rung : bracket.rungs) lengths.insert(rung.length);
  if (lengths.empty()) return;
  auto extended = std::make_shared<expconf::ExperimentConfig>(*config);
  extended->resolved["searcher"]["rungs"] = lengths;
  config = std::move(extended);
}

void Experiments::deliver(Step& step, ExperimentId id, const searcher::Event& event) {
  Experiment& experiment = experiments_.at(id);
  Search& search = searches_.at(id);
  const auto actions = search.searcher.handle(event);
  // A search that continues is no longer over, and its totals may have grown.
  if (std::holds_alternative<searcher::Extended>(event) || std::holds_alternative<searcher::Retried>(event)) {
    search.shutdown.reset();
    search.set_config(experiment);
  }
  // Event sourcing: the log of events is the stored state of the searcher. Snapshots bound the time of a
  // replay.
  step.insert(AppendSearcherEvent{
      id, experiment.searcher_events,
      searcher::to_json(event).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)});
  ++experiment.searcher_events;
  step.touch(experiment);
  if (experiment.searcher_events % owners_.options.searcher_snapshot_every == 0) {
    step.insert(PutSearcherSnapshot{id, experiment.searcher_events, search.searcher.snapshot().dump()});
  }
  for (const searcher::Action& action : actions) apply(step, experiment, action);
  update_progress(step, experiment);
}

Trial* Experiments::trial_of(ExperimentId id, searcher::TrialNumber number) {
  const std::vector<TrialId>& ids = searches_.at(id).trials;
  return number < ids.size() ? owners_.trials.find(ids[number]) : nullptr;
}

void Experiments::apply(Step& step, Experiment& experiment, const searcher::Action& action) {
  Trials& trials = owners_.trials;
  // An ending experiment gets no new trials. Replaying the log yields the same action, so the searcher counts
  // the trial as created. Nor does it resume trials: the searcher may do so before it has received their
  // exits.
  const bool ending = is_stopping(experiment.state);
  if (auto* create = std::get_if<searcher::Create>(&action)) {
    if (!ending) trials.create(step, experiment, *create);
  } else if (auto* stopped = std::get_if<searcher::Stop>(&action)) {
    if (Trial* trial = trial_of(experiment.id, stopped->trial)) {
      trials.stop(step, *trial, State::kStoppingCompleted);
    }
  } else if (auto* held = std::get_if<searcher::Hold>(&action)) {
    if (Trial* trial = trial_of(experiment.id, held->trial)) trials.hold(step, *trial);
  } else if (auto* resumed = std::get_if<searcher::Resume>(&action)) {
    Trial* trial = trial_of(experiment.id, resumed->trial);
    if (trial && !ending) trials.resume(step, *trial);
  } else {
    searches_.at(experiment.id).shutdown = std::get<searcher::Shutdown>(action);
  }
}

void Experiments::end_if_done(Step& step, const Experiment& touched) {
  const Search& search = searches_.at(touched.id);
  // All trials have ended, and the search is over or the experiment is being stopped.
  if (search.open != 0 || !(search.shutdown || is_stopping(touched.state))) return;
  Experiment& experiment = experiments_.at(touched.id);
  State end = State::kCompleted;
  if (is_stopping(experiment.state)) {
    end = end_of(experiment.state);
  } else if (search.shutdown->failure) {
    end = State::kError;
  } else if (search.shutdown->cancel) {
    end = State::kCanceled;
  }
  change(experiment.state, end);
  experiment.ended = step.now.wall;
  step.ended_experiments.insert(experiment);
}

void Experiments::forget_ended(Step& step) {
  for (const Experiment* experiment : step.ended_experiments.sorted()) {
    if (auto known = ended_again_.find(experiment->id); known != ended_again_.end())
      known->second = experiment->searcher_events;
    ended_requests_.push_back(experiment->request_id);
    forget(experiment->id);
  }
  step.ended_experiments.clear();
  for (; ended_requests_.size() > kMaxEndedRequests; ended_requests_.pop_front())
    requests_.erase(ended_requests_.front());
}

void Experiments::forget(ExperimentId id) {
  owners_.queues.remove_job(owners_.queues.pool_of(experiments_.at(id).queue), id);
  owners_.builds.forget(id);
  for (const TrialId trial : searches_.at(id).trials) owners_.trials.forget(trial);
  searches_.erase(id);
  experiments_.erase(id);
}

void Experiments::report_progress(Step& step, const Trial& trial) {
  searches_.at(trial.experiment).searcher.set_progress(trial.number, trial.progress);
  update_progress(step, experiments_.at(trial.experiment));
}

void Experiments::update_progress(Step& step, Experiment& experiment) {
  // Not every report changes the progress of the experiment; a row is written only when it does.
  const double value = searches_.at(experiment.id).searcher.progress();
  if (value == experiment.progress) return;
  experiment.progress = value;
  step.touch(experiment);
}

scheduler::Job Experiments::job_of(const Experiment& experiment) const {
  const QueueSettings& queue = experiment.queue;
  scheduler::Job job{.id = experiment.id,
                     .user = experiment.owner,
                     .workspace = experiment.workspace,
                     .priority = queue.priority,
                     .position = queue.position,
                     .weight = queue.weight,
                     .max_slots = queue.max_slots};
  if (owners_.is(Mutant::kMaxSlotsIgnored)) job.max_slots.reset();
  return job;
}

void Experiments::put_job(const Experiment& experiment) {
  if (experiment.detached && !owners_.is(Mutant::kDetachedScheduled)) return;
  owners_.queues.put_job(owners_.queues.pool_of(experiment.queue), job_of(experiment));
}

void Experiments::place(Experiment& experiment, std::int64_t workspace) {
  experiment.workspace = workspace;
  put_job(experiment);
  owners_.queues.mark_waiting();
}

void Experiments::move_to(Step& step, Experiment& experiment, const std::string& pool) {
  const std::string before = owners_.queues.pool_of(experiment.queue);
  experiment.queue.pool = pool;
  step.touch(experiment);
  put_job(experiment);
  each_trial(experiment.id, [&](const Trial& trial) { owners_.trials.move_request(step, trial, pool); });
  // Its allocations keep the job in the old pool's scheduler until they have ended.
  owners_.queues.remove_job(before, experiment.id);
  // A pool of pilots has no builds to wait for.
  owners_.builds.release_waiting(step, experiment);
}

}  // namespace det::core
