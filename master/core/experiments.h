// Owner of experiments and their searches: submission, user actions, searcher events, the end.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "master/core/core.h"

namespace det::core {

struct Owners;
struct Step;

/// The search of an experiment.
struct Search {
  searcher::Searcher searcher;
  /// The submitted configuration with the current totals (extended searches), see set_config(). Harnesses get
  /// this one.
  std::shared_ptr<const expconf::ExperimentConfig> config;
  /// Set once the search has ended.
  std::optional<searcher::Shutdown> shutdown = {};
  /// Trials by number. 0 for a trial that was never created, because the experiment was ending.
  std::vector<TrialId> trials = {};
  std::size_t open = 0;  ///< number of trials that have not ended

  /// Sets `config` after the totals may have changed. The trials of an extended search also get its rungs
  /// (searcher.rungs), which do not follow from the new totals.
  void set_config(const Experiment& experiment);
};

/// Experiments and searches stay in memory until the end of the experiment.
class Experiments {
 public:
  explicit Experiments(Owners& owners) : owners_(owners) {}

  // Inputs; see input.h for their contracts.
  Result<ReplyValue> handle(Step& step, const SubmitExperiment& input);
  Result<ReplyValue> handle(Step& step, const ActOnExperiment& input);
  Result<ReplyValue> handle(Step& step, const ContinueSearch& input);
  Result<ReplyValue> handle(Step& step, const BarExperiment& input);
  Result<ReplyValue> handle(Step& step, const BarContainer& input);
  Result<ReplyValue> handle(Step& step, const ExperimentDeleted& input);

  /// Errors: kFailedPrecondition when the project or the workspace is barred. Project 0: only the workspace.
  Status check_barred(std::int64_t project, std::int64_t workspace) const;

  /// Delivers searcher events, and those that follow from them, until there are none; then ends experiments
  /// that are done.
  void settle(Step& step);
  /// Removes the experiments that ended in the step. Runs after their rows have been built.
  void forget_ended(Step& step);
  /// Brings an experiment and its trials into a stopping state.
  void stop(Step& step, Experiment& experiment, State stopping);
  /// Delivers the progress of a trial to its searcher.
  void report_progress(Step& step, const Trial& trial);
  /// Follows the move of an experiment to another workspace.
  void place(Experiment& experiment, std::int64_t workspace);
  /// Moves an experiment to another pool; its allocations are preempted.
  void move_to(Step& step, Experiment& experiment, const std::string& pool);

  const std::unordered_map<ExperimentId, Experiment>& all() const { return experiments_; }
  /// Returns the experiment, or null.
  Experiment* find(ExperimentId id);
  Experiment& at(ExperimentId id) { return experiments_.at(id); }
  const Experiment& at(ExperimentId id) const { return experiments_.at(id); }
  Search& search(ExperimentId id) { return searches_.at(id); }
  const searcher::Searcher* searcher(ExperimentId id) const;
  scheduler::Job job_of(const Experiment& experiment) const;
  /// Updates the scheduler with the queue settings of an experiment.
  void put_job(const Experiment& experiment);

  /// Adds a stored experiment with its search. Errors: kDataLoss.
  Status restore(Experiment row, const Recovered::SearcherLog& log);
  /// Adds the stored trials of an experiment, which must exist. Errors: kDataLoss.
  Status restore_trials(ExperimentId id, std::vector<Trial> rows);
  void restore_next(ExperimentId next) { next_ = next; }

 private:
  void pause(Step& step, Experiment& experiment);
  void activate(Step& step, Experiment& experiment);
  /// Returns a trial by number; null when it was never created, because the experiment was ending.
  Trial* trial_of(ExperimentId id, searcher::TrialNumber number);
  /// Calls `visit` for each trial that was created.
  template <typename Visit>
  void each_trial(ExperimentId id, const Visit& visit);
  /// Delivers an event to the searcher, stores it and applies the resulting actions.
  void deliver(Step& step, ExperimentId id, const searcher::Event& event);
  void apply(Step& step, Experiment& experiment, const searcher::Action& action);
  void update_progress(Step& step, Experiment& experiment);
  /// Ends an experiment when all its trials have ended and its search is over or it is stopping.
  void end_if_done(Step& step, const Experiment& experiment);
  /// Removes an ended experiment and its trials from memory.
  void forget(ExperimentId id);

  // extend.cc

  /// Returns the events that carry a continuation out. Errors: see ContinueSearch.
  Result<std::vector<searcher::Event>> plan_continuation(const ContinueSearch& input);
  /// Loads an ended experiment back into memory, still in its terminal state.
  Status load_ended(const Recovered& rows);
  /// Brings a loaded experiment back into the state ACTIVE.
  void reopen(Step& step, Experiment& experiment);

  // restore.cc

  /// Rebuilds a searcher from its snapshot and the events after it.
  Result<Search> make_search(const Experiment& experiment, const Recovered::SearcherLog& log) const;
  /// Assigns their numbers to the stored trials of an experiment.
  static Status number_trials(const Experiment& experiment, Search& search, std::vector<Trial>& rows);

  Owners& owners_;
  std::unordered_map<ExperimentId, Experiment> experiments_;
  std::unordered_map<ExperimentId, Search> searches_;
  /// Idempotency keys of live experiments and of those in `ended_requests_`.
  std::map<RequestId, ExperimentId> requests_;
  /// Keys of the newest experiments to end (bounded). A repeated submission may have passed the API's check
  /// of the store just before its experiment ended.
  std::deque<RequestId> ended_requests_;
  /// For experiments that were continued after their end: the number of searcher events at the newest end.
  /// Rows with fewer events are stale and cannot be continued.
  std::map<ExperimentId, std::int64_t> ended_again_;
  /// See BarExperiment: bars by id. Deleted ones stay: a continuation may have read the rows before.
  std::map<ExperimentId, int> barred_experiments_;
  /// See BarContainer: bars by id. Deleted ones stay: a submission may be under way that was checked before
  /// the deletion.
  std::map<std::int64_t, int> barred_projects_, barred_workspaces_;
  ExperimentId next_{1};  ///< the smallest id that has never been used
};

}  // namespace det::core
