// Interface between a search and its method: the trial states, the actions of a method, the callbacks it
// implements. Private to common/searcher.
#pragma once

#include <array>
#include <limits>
#include <set>

#include "common/searcher/sampler.h"

namespace det::searcher {

/// Worst score: NaN, an infinity in the wrong direction, a failed trial. Finite, so that JSON can store it.
inline constexpr double kWorst = std::numeric_limits<double>::max();

/// A search creates no more trials once more than kFreeReplacements + kReplacementsPerTrial * (valid trials)
/// were rejected as invalid. Otherwise a script that rejects every point would be replaced without end.
inline constexpr std::int64_t kFreeReplacements = 16, kReplacementsPerTrial = 4;

/// State of a trial inside its search. The first three are the open ones; the rest mirror ExitReason in
/// order.
enum class TrialState : std::uint8_t {
  kRunning,
  kStopping,
  kHeld,
  kCompleted,
  kErrored,
  kCanceled,
  kInvalidHp
};
inline constexpr std::size_t kTrialStates = 7;
/// Whether the trial has not closed.
inline bool is_open(TrialState state) { return state <= TrialState::kHeld; }

/// Bookkeeping shared by all methods: trial states and the totals of the search.
struct Book {
  std::vector<TrialState> states;  ///< indexed by trial number
  /// Number of trials by state.
  std::array<std::int64_t, kTrialStates> counts{};
  std::int64_t max_trials = 0;
  /// 0: unset, the trial decides when it ends.
  std::int64_t max_time = 0;
  /// Running trials that end at an earlier max_time than the present one.
  std::set<TrialNumber> behind;
  /// Too many invalid trials: no more are created.
  bool too_many_invalid = false;

  /// Counts: trials in one state, ever created, not invalid, not closed.
  std::int64_t count(TrialState state) const { return counts[static_cast<std::size_t>(state)]; }
  std::int64_t created() const { return static_cast<std::int64_t>(states.size()); }
  std::int64_t valid() const { return created() - count(TrialState::kInvalidHp); }
  std::int64_t open() const;
  /// Changes the state of an existing trial and the counts.
  void set(TrialNumber trial, TrialState state);
};

/// Operations of a search method during one event. Each of create, stop, hold and resume appends an action
/// and updates the book. Valid only during the callback.
class MethodContext {
 public:
  MethodContext(const expconf::ExperimentConfig& config, Book& book, Sampler& sampler, Random& random,
                std::vector<Action>& actions)
      : config_(config), book_(book), sampler_(sampler), random_(random), actions_(actions) {}

  const Book& book() const { return book_; }
  TrialState state(TrialNumber trial) const { return book_.states[trial]; }
  /// Converts a metric to a score: smaller is better, never NaN or infinite.
  double score(double metric) const;

  TrialNumber create();  ///< at the sampler's next point
  TrialNumber create(Sample sample);
  void stop(TrialNumber trial);
  void hold(TrialNumber trial);
  /// Resumes a held or closed trial.
  void resume(TrialNumber trial);
  /// Reports a score after training for `length` to the sampler.
  void observe(TrialNumber trial, std::int64_t length, double score) {
    sampler_.observe(trial, length, score);
  }

 private:
  const expconf::ExperimentConfig& config_;
  Book& book_;
  Sampler& sampler_;
  Random& random_;
  std::vector<Action>& actions_;
};

/// One search method. Total: no sequence of events is an error. Events of unknown trials and reports of
/// stopped trials are filtered out before the callbacks; the book is already updated when a callback runs.
class SearchMethod {
 public:
  virtual ~SearchMethod() = default;
  /// The search begins: create the first trials.
  virtual void start(MethodContext& context) = 0;
  /// A running or held trial reported a validation.
  virtual void validated(const Validated& event, MethodContext& context) = 0;
  /// A trial closed. `before`: its previous state, one of the open ones. An error after Stop arrives as
  /// kCompleted.
  virtual void exited(const Exited& event, TrialState before, MethodContext& context) = 0;
  /// The totals grew. `before` holds the old max_trials and max_time only; the book holds the new ones.
  virtual void extended(const Book& before, MethodContext& context) = 0;
  /// A trial that errored runs again.
  virtual void retried(TrialNumber trial, MethodContext& context) = 0;
  /// Returns kFailedPrecondition with a reason if the method cannot take more trials.
  virtual Status check_more_trials() const { return {}; }
  /// Returns kInvalidArgument with a reason if the method cannot grow to `max_time`.
  virtual Status check_more_time(std::int64_t /*max_time*/) const { return {}; }
  /// Returns 0..1. `running`: sum of the own progress of the open trials.
  virtual double progress(const Book& book, double running) const = 0;
  virtual std::vector<BracketState> brackets() const { return {}; }
  /// Returns the state of the method for restore(); the book is stored separately.
  virtual nlohmann::json snapshot() const = 0;
  /// Restores the state. `book` is already restored. Errors: kDataLoss.
  virtual Status restore(const nlohmann::json& snapshot, const Book& book) = 0;
};

Result<std::unique_ptr<SearchMethod>> make_single(const expconf::ExperimentConfig& config);
Result<std::unique_ptr<SearchMethod>> make_random(const expconf::ExperimentConfig& config);
Result<std::unique_ptr<SearchMethod>> make_grid(const expconf::ExperimentConfig& config);
/// Serves async_halving and adaptive_asha.
Result<std::unique_ptr<SearchMethod>> make_halving(const expconf::ExperimentConfig& config, Fault fault);

/// Returns max_time, else the count of max_length, else 0.
std::int64_t longest_training(const expconf::SearcherConfig& config);

}  // namespace det::searcher
