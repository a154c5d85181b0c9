// Asynchronous successive halving (ASHA): state shared by the stopping and the promoting variant. Private to
// common/searcher.
//
// Li, Jamieson, Rostamizadeh, Gonina, Ben-tzur, Hardt, Recht, Talwalkar: "A System for Massively Parallel
// Hyperparameter Tuning", MLSys 2020, section 3.2. The promoting variant is Algorithm 2. The stopping variant
// never pauses a trial.
#pragma once

#include "common/searcher/brackets.h"
#include "common/searcher/method.h"
#include "common/searcher/rung.h"

namespace det::searcher {

/// Base of both variants. A trial belongs to the bracket that created it, enters the rungs of that bracket in
/// rising order, and has at most one result at each. A subclass decides in validated() what a new result
/// means.
class Halving : public SearchMethod {
 public:
  /// `plan`: one or more brackets. `least`: see Rung.
  Halving(const expconf::ExperimentConfig& config, const std::vector<Bracket>& plan, std::size_t least);

  void start(MethodContext& context) override;
  void exited(const Exited& event, TrialState before, MethodContext& context) override;
  void extended(const Book& before, MethodContext& context) override;
  void retried(TrialNumber trial, MethodContext& context) override;
  Status check_more_time(std::int64_t max_time) const override;
  double progress(const Book& book, double running) const override;
  std::vector<BracketState> brackets() const override;
  nlohmann::json snapshot() const override;
  Status restore(const nlohmann::json& snapshot, const Book& book) override;

 protected:
  static constexpr std::uint32_t kNone = ~0u;

  /// Score of a trial at a rung, linked to the trial's result at the rung below.
  struct Result {
    double score;
    std::uint32_t below;
  };
  /// Position of a trial in its bracket. The trial has results at rungs 0 … entries-1.
  struct Place {
    /// Index of the latest result in results_, or kNone.
    std::uint32_t result = kNone;
    std::uint8_t bracket = 0;
    std::uint8_t entries = 0;
    /// Number of rungs that the trial has trained long enough for.
    std::uint8_t reached = 0;
    /// The latest result stands for a failure.
    bool failed : 1 = false;
    /// May be promoted from the rung of its latest result.
    bool waits : 1 = false;
    /// Promoted while it was stopping: resume it when it has closed.
    bool again : 1 = false;
  };
  /// One rung of a bracket.
  struct Level {
    /// Training length, in the unit of max_time.
    std::int64_t length;
    Rung results;
    /// The subset of results that may be promoted.
    ForgettingHeap<true> waiting;
  };
  /// Progress of one bracket. `invalid` and `closed` are parts of `created`.
  struct Run {
    std::vector<Level> levels;
    std::int64_t max_trials = 0, concurrency = 0;
    std::int64_t created = 0, invalid = 0, closed = 0;
    /// Trials that hold a slot, or will when they have closed.
    std::int64_t live = 0;
    std::int64_t held = 0;  ///< trials paused at a rung
  };

  Run& run_of(TrialNumber trial) { return runs_[places_[trial].bracket]; }
  Entry latest(TrialNumber trial) const { return {results_[places_[trial].result].score, trial}; }
  void enter(TrialNumber trial, double score);  ///< adds a result at the next rung
  /// Removes the result at the latest rung.
  void leave(TrialNumber trial);
  /// Makes it a candidate for promotion.
  void wait(TrialNumber trial);
  void wait_no_more(TrialNumber trial);
  void end(TrialNumber trial, MethodContext& context);  ///< stops a running or held trial

  /// Fills each free slot of a bracket with a promotion, else with a new trial (Algorithm 2). Stops all held
  /// trials of the bracket when nothing runs and neither is possible.
  void fill(std::uint8_t bracket, MethodContext& context);
  /// Promotes the best candidate of the highest rung where it is among the best 1/divisor. Returns false if
  /// there is none.
  bool promote_one(Run& run, MethodContext& context);
  /// Promotes the best candidate of the highest rung from which no trial was promoted. Used when too few
  /// results came for floor(n / divisor) to be at least 1. Returns false if there is none.
  bool promote_a_pioneer(Run& run, MethodContext& context);
  /// Moves a candidate to the next rung: by its last report if that was long enough, else by resuming it.
  void promote(TrialNumber trial, MethodContext& context);
  /// Second half of restore(): positions and results of the trials. Errors: kDataLoss.
  Status restore_places(const nlohmann::json& snapshot, const Book& book);

  const expconf::SearcherConfig& config_;
  std::size_t least_;          ///< see Rung
  std::vector<Place> places_;  ///< indexed by trial number
  std::vector<Result> results_;
  std::vector<Run> runs_;
};

/// Stopping variant (stopping_asha.cc): a trial continues or ends as soon as it reports at a rung.
std::unique_ptr<SearchMethod> make_stopping_asha(const expconf::ExperimentConfig&,
                                                 const std::vector<Bracket>&);
/// Promoting variant (promoting_asha.cc): a trial is held at each rung until it is promoted or stopped.
std::unique_ptr<SearchMethod> make_promoting_asha(const expconf::ExperimentConfig&,
                                                  const std::vector<Bracket>&);

}  // namespace det::searcher
