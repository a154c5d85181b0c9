// Continuing a search: more trials or training time, or another try for failed trials. An ended experiment is
// loaded from its rows first.
#include "master/core/owners.h"
#include "master/core/transitions.h"

namespace det::core {

Result<ReplyValue> Experiments::handle(Step& step, const ContinueSearch& input) {
  if (!find(input.experiment)) {
    if (!input.ended) {
      return fail(Code::kNotFound, name_of(input.experiment) + " has ended or does not exist");
    }
    TRY(load_ended(*input.ended));
  }
  Experiment& experiment = experiments_.at(input.experiment);
  auto events = plan_continuation(input);
  const bool ended = is_terminal(experiment.state);
  if (const Status room = owners_.quotas.check_experiment(experiment.owner, experiment.workspace);
      events && ended && !room)
    events = tl::unexpected(room.error());
  if (!events || input.only_check) {
    if (ended) forget(experiment.id);
    TRY(events);
    return Done{};
  }
  if (ended) reopen(step, experiment);
  step.touch(experiment);
  for (const searcher::Event& event : *events) step.events.emplace_back(experiment.id, event);
  return Done{};
}

Result<std::vector<searcher::Event>> Experiments::plan_continuation(const ContinueSearch& input) {
  const Experiment& experiment = experiments_.at(input.experiment);
  const Search& search = searches_.at(input.experiment);
  const std::string name = name_of(experiment.id);
  if (is_stopping(experiment.state)) {
    return fail(Code::kFailedPrecondition,
                name + " is ending (" + std::string(state_name(experiment.state)) + ")");
  }
  if (experiment.detached) {
    return fail(Code::kFailedPrecondition, name + " runs outside the cluster: start its program again");
  }
  if (input.extend) TRY(search.searcher.check(*input.extend));
  std::vector<searcher::Event> events;
  // Retry each trial that the searcher can take back. An extension alone leaves them.
  const bool retries = !input.extend || input.canceled;
  for (searcher::TrialNumber number = 0; retries && number < search.trials.size(); ++number) {
    const Trial* trial = trial_of(experiment.id, number);
    if (trial == nullptr) continue;
    const bool canceled = trial->state == State::kCanceled;
    const searcher::Event retry = searcher::Retried{number, canceled};
    if ((trial->state == State::kError || (canceled && input.canceled)) && search.searcher.check(retry))
      events.push_back(retry);
  }
  if (input.extend) {
    searcher::Extended extended = *input.extend;
    // Their programs have the configuration with the old length.
    for (searcher::TrialNumber number = 0; extended.max_time && number < search.trials.size(); ++number) {
      const Trial* trial = trial_of(experiment.id, number);
      if (trial != nullptr && owners_.allocations.of(TaskKey(trial->id)) != nullptr)
        extended.behind.push_back(number);
    }
    events.emplace_back(std::move(extended));
  } else if (events.empty()) {
    return fail(Code::kFailedPrecondition,
                name + " has no trial that failed" + (input.canceled ? " or was killed" : ""));
  }
  return events;
}

void Experiments::reopen(Step& step, Experiment& experiment) {
  const Search& search = searches_.at(experiment.id);
  // Trials that the searcher requested while the experiment was ending were never created. They are reported
  // as canceled, so that the searcher does not wait for them.
  for (searcher::TrialNumber number = 0; number < search.trials.size(); ++number) {
    if (trial_of(experiment.id, number) == nullptr && search.searcher.awaits(number))
      step.events.emplace_back(experiment.id, searcher::Exited{number, searcher::ExitReason::kCanceled});
  }
  core::reopen(experiment.state, State::kActive);
  ended_again_[experiment.id] = 0;  // until it ends
  experiment.ended.reset();
  requests_[experiment.request_id] = experiment.id;
  std::erase(ended_requests_, experiment.request_id);
}

namespace {

/// Adds a bar of `id`, or lifts one.
template <typename Key>
void count_bar(std::map<Key, int>& bars, Key id, bool barred) {
  bars[id] += barred ? 1 : -1;
  if (bars[id] <= 0) bars.erase(id);
}

}  // namespace

Result<ReplyValue> Experiments::handle(Step&, const BarExperiment& input) {
  if (input.barred && find(input.experiment)) {
    return fail(Code::kFailedPrecondition,
                name_of(input.experiment) + " has not ended; cancel or kill it first");
  }
  count_bar(barred_experiments_, input.experiment, input.barred);
  return Done{};
}

Result<ReplyValue> Experiments::handle(Step&, const BarContainer& input) {
  for (const std::int64_t project : input.projects) count_bar(barred_projects_, project, input.barred);
  if (input.workspace != 0) count_bar(barred_workspaces_, input.workspace, input.barred);
  return Done{};
}

Status Experiments::check_barred(std::int64_t project, std::int64_t workspace) const {
  if (barred_projects_.contains(project))
    return fail(Code::kFailedPrecondition,
                "project " + std::to_string(project) + " is being deleted; choose another project");
  if (barred_workspaces_.contains(workspace))
    return fail(Code::kFailedPrecondition,
                "workspace " + std::to_string(workspace) + " is being deleted; choose another workspace");
  return {};
}

Result<ReplyValue> Experiments::handle(Step&, const ExperimentDeleted& input) {
  const auto known = requests_.find(input.request_id);
  if (known == requests_.end() || known->second != input.experiment) return Done{};
  requests_.erase(known);
  // A later experiment with this id must stay in requests_.
  std::erase(ended_requests_, input.request_id);
  return Done{};
}

Status Experiments::load_ended(const Recovered& rows) {
  if (rows.experiments.size() != 1) return fail(Code::kNotFound, "the experiment does not exist");
  const Experiment& experiment = rows.experiments.front();
  // The rows may be those of before the deletion.
  if (barred_experiments_.contains(experiment.id))
    return fail(Code::kFailedPrecondition, name_of(experiment.id) + " is being deleted");
  auto known = ended_again_.find(experiment.id);
  // The caller read the rows outside of the core's thread. When the experiment was continued and has ended
  // again since, they have fewer events than the newest end.
  const bool stale = known != ended_again_.end() && experiment.searcher_events < known->second;
  if (stale || !is_terminal(experiment.state)) {
    return fail(Code::kAborted, name_of(experiment.id) + " has just changed; try again");
  }
  const auto stored = rows.searchers.find(experiment.id);
  TRY_ASSIGN(Search search, make_search(experiment, stored == rows.searchers.end() ? Recovered::SearcherLog{}
                                                                                   : stored->second));
  std::vector<Trial> trials = rows.trials;
  // The last check has passed; from here on the state changes.
  TRY(number_trials(experiment, search, trials));
  Experiment& loaded = experiments_.emplace(experiment.id, experiment).first->second;
  if (loaded.queue.priority == 0) loaded.queue = queue_settings(*loaded.config, loaded.submitted);
  put_job(loaded);
  searches_.emplace(experiment.id, std::move(search));
  for (Trial& trial : trials) owners_.trials.insert(std::move(trial));
  return {};
}

}  // namespace det::core
