// A hyperparameter search as a state machine: events in, actions out, deterministic from (config, seed,
// events). The random generator is part of the state, so a search can be stored, replayed and resumed.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/ids.h"
#include "common/base/random.h"
#include "common/base/result.h"
#include "common/expconf/config.h"
#include "common/searcher/fault.h"
#include "common/searcher/sample.h"

namespace det::searcher {

/// Number of a trial inside its search: 0, 1, 2, … in order of creation.
using TrialNumber = std::uint32_t;

// Actions: requests of the search to the core.

/// Run a new trial. Request id, seed and hyperparameters follow from the experiment's seed, `trial` and
/// `sample`: request_id(), trial_seed(), hparams().
struct Create {
  TrialNumber trial = 0;
  Sample sample;
};
/// End a trial gracefully; it counts as completed. A held trial ends without running again.
struct Stop {
  TrialNumber trial = 0;
};
/// Pause a trial at a rung: it saves a checkpoint and releases its slots until Resume or Stop.
struct Hold {
  TrialNumber trial = 0;
};
/// Continue a held trial from its checkpoint, or a closed one after Extended, Retried or a late promotion.
struct Resume {
  TrialNumber trial = 0;
};
/// Every trial has closed and the search is over. `failure`: all valid trials errored, or too many were
/// invalid. `cancel`: all valid trials were canceled. `reason` is text for users, set for invalid trials.
struct Shutdown {
  bool cancel = false;
  bool failure = false;
  std::string reason;
};
using Action = std::variant<Create, Stop, Hold, Resume, Shutdown>;

// Events: reports of the core to the search.

/// How a trial closed.
enum class ExitReason { kCompleted, kErrored, kCanceled, kInvalidHp };
struct Started {};  ///< first event of every search
/// A validation of a trial, delivered once for each (trial, steps). NaN is the worst metric in either
/// direction. `time`: training so far, in the unit of max_time (the value of time_metric, or batches).
struct Validated {
  TrialNumber trial = 0;
  std::int64_t steps_completed = 0;
  double metric = 0;
  double time = 0;
};
/// A trial closed.
struct Exited {
  TrialNumber trial = 0;
  ExitReason reason = ExitReason::kCompleted;
};
/// A user raised the totals; unset ones keep their value. A search that is over resumes.
struct Extended {
  std::optional<std::int64_t> max_trials, max_time;
  /// Trials that run with the old max_time. They are resumed when they have completed it. Empty in histories
  /// of earlier releases, where they were left at the old length.
  std::vector<TrialNumber> behind = {};
};
/// A user retries a closed trial that errored. The search answers with Resume.
struct Retried {
  TrialNumber trial = 0;
  bool canceled = false;  ///< the trial may have been canceled, too
};
using Event = std::variant<Started, Validated, Exited, Extended, Retried>;

/// JSON form of an event, as stored in the history. event_from_json errors: kDataLoss.
nlohmann::json to_json(const Event& event);
Result<Event> event_from_json(const nlohmann::json& json);

/// Request id of a trial, a UUID. Deterministic.
RequestId request_id(std::uint32_t experiment_seed, TrialNumber trial);
/// Random seed of a trial, 31 bits. Deterministic.
std::uint32_t trial_seed(std::uint32_t experiment_seed, TrialNumber trial);

/// Progress of one ASHA bracket. Rungs are in rising order; extending max_time appends rungs.
struct BracketState {
  struct RungState {
    /// Training length, in the unit of max_time.
    std::int64_t length = 0;
    std::int64_t results = 0;  ///< results so far
  };
  std::vector<RungState> rungs;
  std::int64_t max_trials = 0;
  /// Trials that the bracket created, rising.
  std::vector<TrialNumber> trials;
};

class MethodContext;

class SearchMethod;

/// A running search: a method (single, random, grid, …) plus the bookkeeping that all methods share. Not
/// thread-safe. Total: any sequence of events gives a decision, never an exception.
class Searcher {
 public:
  /// Creates a search before its Started event. Errors: kUnimplemented (searcher name), problems of the grid,
  /// kInvalidArgument (halving without a training length or with a bad divisor).
  static Result<Searcher> create(std::shared_ptr<const expconf::ExperimentConfig> config,
                                 Fault fault = Fault::kNone);
  /// Restores a search from snapshot(). Events after the snapshot must be passed to handle() again; it
  /// returns the recorded actions. Errors: as create(), and kDataLoss for a damaged snapshot.
  static Result<Searcher> restore(std::shared_ptr<const expconf::ExperimentConfig> config,
                                  const nlohmann::json& snapshot, Fault fault = Fault::kNone);
  Searcher(Searcher&&) noexcept;
  Searcher& operator=(Searcher&&) noexcept;
  ~Searcher();

  /// Returns the actions that follow from an event. Events of an unknown trial or a closed one (except
  /// Retried), and a second Started, change nothing. Amortized O(log trials).
  std::vector<Action> handle(const Event& event);
  /// Returns why handle(Extended) or handle(Retried) would change nothing, as text for users. Errors:
  /// kFailedPrecondition, kInvalidArgument.
  Status check(const Event& event) const;

  /// Sets a trial's own progress, 0..1. Used by progress() only, not part of the history. O(1).
  void set_progress(TrialNumber trial, double progress);
  /// Progress of the search, 0..1. A closed trial counts as done. O(brackets).
  double progress() const;
  /// Number of trials created so far.
  TrialNumber created() const;
  /// Returns whether the trial was created and has not closed.
  bool awaits(TrialNumber trial) const;
  /// Totals from the configuration or the last Extended. max_time 0: unset, a trial decides when it ends.
  std::int64_t max_trials() const;
  std::int64_t max_time() const;
  /// Brackets, most rungs first; empty for searches without halving. O(trials).
  std::vector<BracketState> brackets() const;
  /// State for restore(), as JSON.
  nlohmann::json snapshot() const;

 private:
  struct State;
  explicit Searcher(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace det::searcher
