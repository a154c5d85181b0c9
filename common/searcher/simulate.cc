#include "common/searcher/simulate.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <queue>
#include <set>

#include "common/searcher/brackets.h"
#include "common/searcher/grid.h"
#include "common/searcher/method.h"
#include "common/searcher/rung.h"

namespace det::searcher {
namespace {

/// Future report of a trial on a worker. Ordered by time, then by start, so that runs are reproducible.
struct Report {
  double at;
  std::uint64_t order;  ///< tie-breaker: rising in the order of begin
  TrialNumber trial;
  std::int64_t length;
  bool operator>(const Report& other) const { return at != other.at ? at > other.at : order > other.order; }
};

/// Discrete-event simulation: a priority queue of reports drives the searcher and the workers.
class Simulator {
 public:
  Simulator(const expconf::ExperimentConfig& config, Searcher searcher, std::vector<std::int64_t> lengths,
            const Surface& surface, const SimulationOptions& options)
      : smaller_is_better_(config.searcher.smaller_is_better),
        searcher_(std::move(searcher)),
        lengths_(std::move(lengths)),
        surface_(surface),
        options_(options) {
    for (std::int64_t worker = options.workers; worker-- > 0;) idle_.push_back(worker);
  }

  /// Runs until no trial trains; consumes the simulator.
  Simulation run() {
    handle(Started{});
    for (start(); !reports_.empty(); start()) {
      const Report report = reports_.top();
      reports_.pop();
      now_ = report.at;
      heard(report);
    }
    result_.makespan = now_;
    result_.trials = static_cast<std::int64_t>(trials_.size());
    for (const Trial& trial : trials_) {
      result_.trained.push_back(trial.trained);
      ++result_.stopped_at[trial.trained];
    }
    return std::move(result_);
  }

 private:
  enum class State : std::uint8_t { kReady, kTraining, kHeld, kClosed };
  struct Trial {
    Sample sample;
    std::int64_t trained = 0;
    double since = 0;  ///< begin of the current span on its worker
    std::uint32_t worker = 0;
    State state = State::kReady;
  };

  void start() {
    while (!idle_.empty() && !ready_.empty()) {
      Trial& trial = trials_[ready_.front()];
      trial.worker = static_cast<std::uint32_t>(idle_.back());
      trial.since = now_;
      trial.state = State::kTraining;
      idle_.pop_back();
      train(ready_.front());
      ready_.pop_front();
    }
  }
  // Trains until the next length at which the trial reports.
  void train(TrialNumber number) {
    const std::int64_t trained = trials_[number].trained;
    const std::int64_t next = *std::upper_bound(lengths_.begin(), lengths_.end(), trained);
    reports_.push({now_ + static_cast<double>(next - trained), ++order_, number, next});
  }
  void heard(const Report& report) {
    Trial& trial = trials_[report.trial];
    result_.work += static_cast<double>(report.length - trial.trained);
    trial.trained = report.length;
    const double metric = surface_(report.trial, trial.sample, static_cast<double>(report.length));
    auto& best = result_.best_so_far;
    if (best.empty() || (smaller_is_better_ ? metric < best.back().second : metric > best.back().second)) {
      best.emplace_back(now_, metric);
      result_.best_trial = report.trial;
    }
    handle(Validated{report.trial, report.length, metric, static_cast<double>(report.length)});
    // The searcher may have stopped or held the trial, and act() may have moved trials_.
    Trial& after = trials_[report.trial];
    if (after.state != State::kTraining) return;
    if (report.length < lengths_.back()) return train(report.trial);
    leave(after, report.trial, State::kClosed);
    handle(Exited{report.trial, ExitReason::kCompleted});
  }
  void leave(Trial& trial, TrialNumber number, State state) {
    if (trial.state == State::kTraining) {
      idle_.push_back(trial.worker);
      if (options_.spans) result_.spans.push_back({number, trial.worker, trial.since, now_});
    }
    trial.state = state;
  }
  // An action can cause further events (a stop closes its trial); all are handled at the same virtual time.
  void handle(const Event& first) {
    events_.assign(1, first);
    for (std::size_t i = 0; i < events_.size(); ++i) {
      const Event event = events_[i];
      if (options_.on_event) options_.on_event(event);
      ++result_.events;
      for (Action& action : searcher_.handle(event)) act(action);
    }
  }
  void act(Action& action) {
    if (auto* create = std::get_if<Create>(&action)) {
      trials_.push_back({.sample = std::move(create->sample)});
      ready_.push_back(create->trial);
    } else if (auto* stop = std::get_if<Stop>(&action)) {
      leave(trials_[stop->trial], stop->trial, State::kClosed);
      events_.push_back(Exited{stop->trial, ExitReason::kCompleted});
    } else if (auto* hold = std::get_if<Hold>(&action)) {
      leave(trials_[hold->trial], hold->trial, State::kHeld);
    } else if (auto* resume = std::get_if<Resume>(&action)) {
      trials_[resume->trial].state = State::kReady;
      ready_.push_back(resume->trial);
    } else {
      result_.shutdown = std::get<Shutdown>(action);
    }
  }

  bool smaller_is_better_;
  Searcher searcher_;
  std::vector<std::int64_t> lengths_;  ///< report times of a trial, rising; the last is its end
  const Surface& surface_;
  const SimulationOptions& options_;
  double now_ = 0;
  std::uint64_t order_ = 0;
  std::vector<Trial> trials_;
  std::vector<Event> events_;  ///< events still to be handled at the current virtual time
  std::deque<TrialNumber> ready_;
  std::vector<std::int64_t> idle_;
  std::priority_queue<Report, std::vector<Report>, std::greater<>> reports_;
  Simulation result_;
};

bool halves(const expconf::SearcherConfig& config) {
  return config.name == "async_halving" || config.name == "adaptive_asha";
}

}  // namespace

Result<Simulation> simulate(const std::shared_ptr<const expconf::ExperimentConfig>& config,
                            const Surface& surface, const SimulationOptions& options) {
  constexpr std::int64_t kMaxWorkers = 1'000'000, kMaxReports = 1'000'000;
  const std::int64_t max_time = longest_training(config->searcher);
  if (options.workers < 1 || options.workers > kMaxWorkers)
    return fail(Code::kInvalidArgument, "workers must be 1 to " + std::to_string(kMaxWorkers));
  if (max_time < 1)
    return fail(Code::kInvalidArgument,
                "searcher.max_time: is required to simulate: how long a trial trains");
  // Trials report at the rungs of all brackets, so that halving can decide.
  // The set merges and orders the report times.
  std::set<std::int64_t> lengths{max_time};
  if (halves(config->searcher)) {
    TRY_ASSIGN(const auto brackets, plan_brackets(config->searcher));
    for (const Bracket& bracket : brackets) lengths.insert(bracket.rungs.begin(), bracket.rungs.end());
  }
  const std::int64_t every = options.validate_every;
  if (every > 0 && max_time / every > kMaxReports)
    return fail(Code::kInvalidArgument,
                "a trial would validate more than 1000000 times; validate less often");
  for (std::int64_t length = every; every > 0 && length < max_time; length += every) lengths.insert(length);
  TRY_ASSIGN(auto searcher, Searcher::create(config));
  return Simulator(*config, std::move(searcher), {lengths.begin(), lengths.end()}, surface, options).run();
}

Result<std::vector<PreviewLine>> preview(const expconf::ExperimentConfig& config) {
  const expconf::SearcherConfig& searcher = config.searcher;
  if (searcher.name == "grid") {
    TRY_ASSIGN(const auto axes, grid_axes(config.hyperparameters));
    return std::vector<PreviewLine>{{grid_size(axes), 0}};
  }
  if (!halves(searcher))
    return std::vector<PreviewLine>{{searcher.name == "single" ? 1 : searcher.max_trials, 0}};
  TRY_ASSIGN(const auto brackets, plan_brackets(searcher));
  // Sums the trials of all brackets that end at the same length.
  std::map<std::int64_t, std::int64_t> ending;
  const Divisor divisor(searcher.divisor);
  for (const Bracket& bracket : brackets) {
    // `here` trials reach rung i, `on` of them pass it.
    std::int64_t here = bracket.max_trials;
    for (std::size_t i = 0; i < bracket.rungs.size(); ++i) {
      const std::int64_t on =
          i + 1 < bracket.rungs.size() ? std::min(here, std::max<std::int64_t>(divisor.divide(here), 1)) : 0;
      if (here > on) ending[bracket.rungs[i]] += here - on;
      here = on;
    }
  }
  std::vector<PreviewLine> lines;
  for (const auto& [length, trials] : ending) lines.push_back({trials, length});
  return lines;
}

}  // namespace det::searcher
