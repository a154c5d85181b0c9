#include "common/searcher/halving.h"

namespace det::searcher {

Halving::Halving(const expconf::ExperimentConfig& config, const std::vector<Bracket>& plan, std::size_t least)
    : config_(config.searcher), least_(least) {
  const Divisor divisor(config_.divisor);
  for (const Bracket& bracket : plan) {
    Run& run = runs_.emplace_back();
    run.max_trials = bracket.max_trials;
    run.concurrency = bracket.concurrency;
    for (std::int64_t length : bracket.rungs) run.levels.push_back({length, Rung(divisor, least), {}});
  }
}

void Halving::start(MethodContext& context) {
  for (std::size_t i = 0; i < runs_.size(); ++i) fill(static_cast<std::uint8_t>(i), context);
}

void Halving::enter(TrialNumber trial, double score) {
  Place& place = places_[trial];
  results_.push_back({score, place.result});
  place.result = static_cast<std::uint32_t>(results_.size() - 1);
  runs_[place.bracket].levels[place.entries++].results.insert({score, trial});
}

void Halving::leave(TrialNumber trial) {
  Place& place = places_[trial];
  runs_[place.bracket].levels[--place.entries].results.erase(latest(trial));
  place.result = results_[place.result].below;
}

void Halving::wait(TrialNumber trial) {
  Place& place = places_[trial];
  place.waits = true;
  runs_[place.bracket].levels[place.entries - 1u].waiting.push(latest(trial));
}

void Halving::wait_no_more(TrialNumber trial) {
  Place& place = places_[trial];
  if (!place.waits) return;
  place.waits = false;
  runs_[place.bracket].levels[place.entries - 1u].waiting.erase(latest(trial));
}

void Halving::end(TrialNumber trial, MethodContext& context) {
  Run& run = run_of(trial);
  if (context.state(trial) == TrialState::kHeld)
    --run.held;
  else
    --run.live;
  context.stop(trial);
}

void Halving::exited(const Exited& event, TrialState before, MethodContext& context) {
  Place& place = places_[event.trial];
  Run& run = run_of(event.trial);
  const bool completed = event.reason == ExitReason::kCompleted;
  const bool again = place.again;
  place.again = false;
  // The trial was promoted while its stop was under way: it keeps its slot and resumes from its checkpoint.
  if (again && completed) {
    context.resume(event.trial);
    return;
  }
  ++run.closed;
  if (before == TrialState::kHeld) --run.held;
  if (before == TrialState::kRunning || again) --run.live;
  // A trial that completed by a stop stays a candidate: it may still be promoted.
  if (!completed || before == TrialState::kHeld) wait_no_more(event.trial);
  if (event.reason == ExitReason::kInvalidHp) {
    // Invalid hyperparameters leave no trace: the results go, and fill() creates a replacement.
    ++run.invalid;
    while (place.entries > 0) leave(event.trial);
  } else if (!completed && place.entries < run.levels.size() && (before == TrialState::kRunning || again)) {
    // A failure counts as the worst result of the rung that the trial was training for.
    enter(event.trial, kWorst);
    place.failed = true;
  }
  fill(place.bracket, context);
}

void Halving::retried(TrialNumber trial, MethodContext& context) {
  Place& place = places_[trial];
  Run& run = run_of(trial);
  if (place.failed) leave(trial);
  place.failed = false;
  --run.closed;
  ++run.live;
  context.resume(trial);
}

void Halving::fill(std::uint8_t bracket, MethodContext& context) {
  Run& run = runs_[bracket];
  for (;;) {
    while (run.live < run.concurrency) {
      if (promote_one(run, context)) continue;
      if (context.book().too_many_invalid || run.created - run.invalid >= run.max_trials) break;
      const TrialNumber trial = context.create();
      places_.resize(trial + 1);
      places_[trial].bracket = bracket;
      ++run.created;
      ++run.live;
    }
    if (run.live > 0 || !promote_a_pioneer(run, context)) break;
  }
  if (run.live > 0 || run.held == 0) return;
  // No held trial of this bracket can be promoted any more: stop them, so that the search can end.
  for (TrialNumber trial = 0; trial < places_.size(); ++trial) {
    if (places_[trial].bracket == bracket && context.state(trial) == TrialState::kHeld) end(trial, context);
  }
}

bool Halving::promote_one(Run& run, MethodContext& context) {
  for (std::size_t i = run.levels.size() - 1; i-- > 0;) {
    Level& level = run.levels[i];
    if (level.waiting.empty()) continue;
    const Entry best = level.waiting.top();
    if (best.score == kWorst || !level.results.among_best(best)) continue;
    promote(best.trial, context);
    return true;
  }
  return false;
}

/// With fewer results than `divisor`, no entry is among the best. Promoting the best of an untouched rung
/// lets a small search still train one trial to its end.
bool Halving::promote_a_pioneer(Run& run, MethodContext& context) {
  for (std::size_t i = run.levels.size() - 1; i-- > 0;) {
    const auto& waiting = run.levels[i].waiting;
    if (run.levels[i + 1].results.size() > 0 || waiting.empty() || waiting.top().score == kWorst) continue;
    promote(waiting.top().trial, context);
    return true;
  }
  return false;
}

void Halving::promote(TrialNumber trial, MethodContext& context) {
  Place& place = places_[trial];
  Run& run = run_of(trial);
  wait_no_more(trial);
  // The last report was already long enough for the next rung: reuse its score, no training is needed.
  if (place.reached > place.entries) {
    enter(trial, latest(trial).score);
    context.observe(trial, run.levels[place.entries - 1u].length, latest(trial).score);
    if (place.entries < run.levels.size())
      wait(trial);
    else if (context.state(trial) == TrialState::kHeld)
      end(trial, context);
    return;
  }
  ++run.live;
  if (context.state(trial) == TrialState::kHeld) --run.held;
  if (context.state(trial) == TrialState::kStopping) {
    place.again = true;
  } else {
    if (!is_open(context.state(trial))) --run.closed;
    context.resume(trial);
  }
}

double Halving::progress(const Book&, double) const {
  double sum = 0;
  for (const Run& run : runs_) {
    const auto all = static_cast<double>(run.max_trials),
               came = static_cast<double>(run.levels[0].results.size());
    // Results at the lowest rung count up to 1/1.2 of the bracket; the rest follows when trials close.
    double share = came / (1.2 * all);
    if (came >= all) share = std::max(share, static_cast<double>(run.closed - run.invalid) / all);
    sum += share;
  }
  return sum / static_cast<double>(runs_.size());
}

std::vector<BracketState> Halving::brackets() const {
  std::vector<BracketState> all;
  for (const Run& run : runs_) {
    BracketState& one = all.emplace_back();
    one.max_trials = run.max_trials;
    for (const Level& level : run.levels)
      one.rungs.push_back({level.length, static_cast<std::int64_t>(level.results.size())});
  }
  for (TrialNumber trial = 0; trial < places_.size(); ++trial)
    all[places_[trial].bracket].trials.push_back(trial);
  return all;
}

}  // namespace det::searcher
