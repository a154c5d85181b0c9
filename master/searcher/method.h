// Owns the border between a search and its method: the book of trials, what a method may do, what it must
// answer. Private to master/searcher.
#pragma once

#include <array>
#include <limits>

#include "master/searcher/sampler.h"

namespace det::searcher {

/// The worst score: NaN, an infinity the wrong way, a trial that failed. Finite, so that it can be stored.
inline constexpr double kWorst = std::numeric_limits<double>::max();

/// Replacements of invalid trials end here: a script that refuses every point must not run for ever (W9).
inline constexpr std::int64_t kFreeReplacements = 16, kReplacementsPerTrial = 4;

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
inline bool is_open(TrialState state) { return state <= TrialState::kHeld; }

/// What every method shares.
struct Book {
  std::vector<TrialState> states;  ///< by trial number
  std::array<std::int64_t, kTrialStates> counts{};
  std::int64_t max_trials = 0;
  std::int64_t max_time = 0;  ///< 0: a trial's length is its own
  bool gave_up = false;       ///< too many invalid trials: no more are made

  std::int64_t count(TrialState state) const { return counts[static_cast<std::size_t>(state)]; }
  std::int64_t created() const { return static_cast<std::int64_t>(states.size()); }
  std::int64_t valid() const { return created() - count(TrialState::kInvalidHp); }
  std::int64_t open() const;
  void set(TrialNumber trial, TrialState state);
};

/// What a search method may use while it decides: each call is an action, in order.
class MethodContext {
 public:
  MethodContext(const expconf::ExperimentConfig& config, Book& book, Sampler& sampler, Random& random,
                std::vector<Action>& actions)
      : config_(config), book_(book), sampler_(sampler), random_(random), actions_(actions) {}

  const Book& book() const { return book_; }
  TrialState state(TrialNumber trial) const { return book_.states[trial]; }
  /// The smaller the better, NaN the worst, never infinite.
  double score(double metric) const;

  TrialNumber create();  ///< at a point of the sampler
  TrialNumber create(Sample sample);
  void stop(TrialNumber trial);
  void hold(TrialNumber trial);
  void resume(TrialNumber trial);
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

/// One way to search. Total. It is never told of unknown trials, nor of reports by trials that it stopped;
/// the book is up to date when it is asked.
class SearchMethod {
 public:
  virtual ~SearchMethod() = default;
  virtual void start(MethodContext& context) = 0;
  virtual void validated(const Validated& event, MethodContext& context) = 0;
  /// `before`: what the trial was until now, one of the open states.
  virtual void exited(const Exited& event, TrialState before, MethodContext& context) = 0;
  /// The new totals are in the book; `before` are the old ones.
  virtual void extended(const Book& before, MethodContext& context) = 0;
  /// The trial errored and runs again from now on.
  virtual void retried(TrialNumber trial, MethodContext& context) = 0;
  /// Why this method cannot take more trials.
  virtual Status check_more_trials() const { return {}; }
  /// `running`: the sum of the open trials' own progress.
  virtual double progress(const Book& book, double running) const = 0;
  virtual std::vector<BracketState> brackets() const { return {}; }
  virtual nlohmann::json snapshot() const = 0;
  /// `book` is restored already.
  virtual Status restore(const nlohmann::json& snapshot, const Book& book) = 0;
};

Result<std::unique_ptr<SearchMethod>> make_single(const expconf::ExperimentConfig& config);
Result<std::unique_ptr<SearchMethod>> make_random(const expconf::ExperimentConfig& config);
Result<std::unique_ptr<SearchMethod>> make_grid(const expconf::ExperimentConfig& config);
/// async_halving and adaptive_asha.
Result<std::unique_ptr<SearchMethod>> make_halving(const expconf::ExperimentConfig& config, Fault fault);

/// max_time, or the count of max_length; 0 when neither is given.
std::int64_t longest_training(const expconf::SearcherConfig& config);

}  // namespace det::searcher
