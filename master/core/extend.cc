// Continuing a search: more trials or training time, or another try for failed trials. An ended experiment is
// loaded from its rows first.
#include <algorithm>
#include <limits>

#include "master/core/impl.h"
#include "master/core/transitions.h"

namespace det::core {

void Core::Impl::handle(const ContinueSearch& input) {
  const std::string name = "experiment " + std::to_string(input.experiment.value);
  if (!experiments.contains(input.experiment)) {
    if (!input.ended) return reply(input.reply, fail(Code::kNotFound, name + " has ended or does not exist"));
    if (auto taken = take_up(*input.ended); !taken)
      return reply(input.reply, tl::unexpected(std::move(taken).error()));
  }
  Experiment& experiment = experiments.at(input.experiment);
  Search& search = searches.at(experiment.id);
  // `experiments` may now have an ended experiment that is forgotten again below unless the input is
  // accepted.
  Status allowed;
  if (is_stopping(experiment.state)) {
    allowed = fail(Code::kFailedPrecondition,
                   name + " is ending (" + std::string(state_name(experiment.state)) + ")");
  } else if (experiment.unmanaged) {
    allowed = fail(Code::kFailedPrecondition, name + " runs outside the cluster: start its program again");
  }
  std::vector<searcher::Event> wishes;
  if (input.extend) {
    wishes.emplace_back(*input.extend);
    if (allowed) allowed = search.searcher.check(wishes.back());
  } else {
    // Retry each failed trial that the searcher can take back.
    for (searcher::TrialNumber number = 0; number < search.trials.size(); ++number) {
      const Trial* trial = trial_of(experiment.id, number);
      const searcher::Event wish = searcher::Retried{number};
      if (trial != nullptr && trial->state == State::kError && search.searcher.check(wish))
        wishes.push_back(wish);
    }
    if (allowed && wishes.empty()) {
      allowed = fail(Code::kFailedPrecondition, name + " has no trial that failed");
    }
  }
  if (!allowed || input.only_check) {
    if (is_terminal(experiment.state)) forget(experiment.id);
    if (allowed) return reply(input.reply, Done{});
    return reply(input.reply, tl::unexpected(std::move(allowed).error()));
  }
  if (is_terminal(experiment.state)) {
    // Trials that the searcher requested while the experiment was ending were never created. They are
    // reported as canceled, so that the searcher does not wait for them.
    for (searcher::TrialNumber number = 0; number < search.trials.size(); ++number) {
      if (trial_of(experiment.id, number) == nullptr && search.searcher.awaits(number))
        events.emplace_back(experiment.id, searcher::Exited{number, searcher::ExitReason::kCanceled});
    }
    take_back(experiment.state, State::kActive);
    ended_again[experiment.id] = 0;  // until it ends
    experiment.ended.reset();
    ended_requests.erase(std::remove(ended_requests.begin(), ended_requests.end(), experiment.request_id),
                         ended_requests.end());
  }
  touched_experiments.insert(experiment.id);
  for (const searcher::Event& wish : wishes) events.emplace_back(experiment.id, wish);
  reply(input.reply, Done{});
}

void Core::Impl::handle(const BarExperiment& input) {
  if (experiments.contains(input.experiment)) {
    return reply(input.reply,
                 fail(Code::kFailedPrecondition, "experiment " + std::to_string(input.experiment.value) +
                                                     " has not ended; cancel or kill it first"));
  }
  // Rows that a concurrent ContinueSearch has read are stale from here on: no event count reaches the
  // maximum.
  ended_again[input.experiment] = std::numeric_limits<std::int64_t>::max();
  reply(input.reply, Done{});
}

Status Core::Impl::take_up(const Recovered& rows) {
  if (rows.experiments.size() != 1) return fail(Code::kNotFound, "the experiment does not exist");
  const Experiment& experiment = rows.experiments.front();
  auto known = ended_again.find(experiment.id);
  // The caller read the rows outside of the core's thread. When the experiment was continued and has ended
  // again since, they have fewer events than the newest end.
  const bool stale = known != ended_again.end() && experiment.searcher_events < known->second;
  if (stale || !is_terminal(experiment.state)) {
    return fail(Code::kAborted,
                "experiment " + std::to_string(experiment.id.value) + " has just changed; try again");
  }
  auto stored = rows.searchers.find(experiment.id);
  TRY_ASSIGN(Search search, make_search(experiment, stored == rows.searchers.end() ? Recovered::SearcherLog{}
                                                                                   : stored->second));
  std::vector<Trial> of_one = rows.trials;
  // The last check has passed; from here on the state changes.
  TRY(number_trials(experiment, search, of_one));
  experiments.emplace(experiment.id, experiment);
  Experiment& taken = experiments.at(experiment.id);
  if (taken.queue.priority == 0) taken.queue = place_of(*taken.config, taken.submitted);
  tell_job(taken);
  searches.emplace(experiment.id, std::move(search));
  requests[experiment.request_id] = experiment.id;
  for (Trial& trial : of_one) {
    const TrialId id = trial.id;
    trials.emplace(id, std::move(trial));
  }
  return {};
}

// The next run begins at the newest checkpoint. Restarts are counted from zero again.
void Core::Impl::reopen(Trial& trial) {
  const Experiment& experiment = experiments.at(trial.experiment);
  take_back(trial.state, experiment.state == State::kPaused ? State::kPaused : State::kActive);
  trial.ended.reset();
  trial.exit_reason.clear();
  trial.restarts = 0;
  trial.held = false;
  ++searches.at(trial.experiment).open;
  touched_trials.insert(trial.id);
  log(trial, trial.run, "taken up again from step " + std::to_string(trial.latest_steps));
  if (trial.state == State::kActive) request_slots(trial);
}

}  // namespace det::core
