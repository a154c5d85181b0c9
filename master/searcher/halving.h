// Owns the state of asynchronous halving: brackets, their rungs, where each trial stands. Private to
// master/searcher.
//
// Li, Jamieson, Rostamizadeh, Gonina, Ben-tzur, Hardt, Recht, Talwalkar: "A System for Massively Parallel
// Hyperparameter Tuning", MLSys 2020. Section 3.2, Algorithm 2 is the promoting form; the stopping form never
// pauses.
#pragma once

#include "master/searcher/brackets.h"
#include "master/searcher/method.h"
#include "master/searcher/rung.h"

namespace det::searcher {

class Halving : public SearchMethod {
 public:
  Halving(const expconf::ExperimentConfig& config, const std::vector<Bracket>& plan, std::size_t least);

  void start(MethodContext& context) override;
  void exited(const Exited& event, TrialState before, MethodContext& context) override;
  void extended(const Book& before, MethodContext& context) override;
  void retried(TrialNumber trial, MethodContext& context) override;
  double progress(const Book& book, double running) const override;
  std::vector<BracketState> brackets() const override;
  nlohmann::json snapshot() const override;
  Status restore(const nlohmann::json& snapshot, const Book& book) override;

 protected:
  static constexpr std::uint32_t kNone = ~0u;

  /// A trial's score at a rung, and the one it had at the rung below.
  struct Result {
    double score;
    std::uint32_t below;
  };
  /// Where a trial stands. It has been at the rungs 0 … entries-1 of its bracket.
  struct Place {
    std::uint32_t result = kNone;  ///< its latest
    std::uint8_t bracket = 0;
    std::uint8_t entries = 0;
    std::uint8_t reached = 0;  ///< how many rungs it has trained long enough for
    bool failed : 1 = false;   ///< its latest result is that it failed
    bool waits : 1 = false;    ///< it may be promoted from the rung of its latest result
    bool again : 1 = false;    ///< promoted while it was stopping: resumed as soon as it has closed
  };
  struct Level {
    std::int64_t length;
    Rung results;
    ForgettingHeap<true> waiting;  ///< those of the results that may be promoted
  };
  struct Run {
    std::vector<Level> levels;
    std::int64_t max_trials = 0, concurrency = 0;
    std::int64_t created = 0, invalid = 0, closed = 0;
    std::int64_t live = 0;  ///< trials that hold a slot, or will as soon as they have closed
    std::int64_t held = 0;
  };

  Run& run_of(TrialNumber trial) { return runs_[places_[trial].bracket]; }
  Entry latest(TrialNumber trial) const { return {results_[places_[trial].result].score, trial}; }
  void enter(TrialNumber trial, double score);  ///< the next rung
  void leave(TrialNumber trial);                ///< the latest rung
  void wait(TrialNumber trial);                 ///< for promotion from the latest rung
  void wait_no_more(TrialNumber trial);
  void end(TrialNumber trial, MethodContext& context);  ///< stops one that runs or is held

  /// Gives every free slot of a bracket to a promotion, else to a new trial (Algorithm 2); ends the bracket
  /// when neither is left and nothing runs.
  void fill(std::uint8_t bracket, MethodContext& context);
  bool promote_one(Run& run, MethodContext& context);
  bool promote_a_pioneer(Run& run, MethodContext& context);
  void promote(TrialNumber trial, MethodContext& context);
  Status restore_places(const nlohmann::json& snapshot, const Book& book);

  const expconf::SearcherConfig& config_;
  std::size_t least_;          ///< see Rung
  std::vector<Place> places_;  ///< by trial number
  std::vector<Result> results_;
  std::vector<Run> runs_;
};

std::unique_ptr<SearchMethod> make_stopping_asha(const expconf::ExperimentConfig&,
                                                 const std::vector<Bracket>&);
std::unique_ptr<SearchMethod> make_promoting_asha(const expconf::ExperimentConfig&,
                                                  const std::vector<Bracket>&);

}  // namespace det::searcher
