// Owns what a search is: events in, actions out, deterministic from (config, seed, events). The random
// generator is part of the state, so a search can be stored, replayed decision by decision, and resumed
// anywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/random.h"
#include "base/result.h"
#include "master/expconf/config.h"
#include "master/searcher/fault.h"
#include "master/searcher/sample.h"

namespace det::searcher {

/// A trial inside its search: 0 for the first one created, and so on without a gap.
using TrialNumber = std::uint32_t;

// ---- actions: what the search wants
// ------------------------------------------------------------------------------
/// Run a new trial. Its request id, seed and hyperparameters follow from the search's seed, `trial` and
/// `sample`: request_id(), trial_seed(), hparams().
struct Create {
  TrialNumber trial = 0;
  Sample sample;
};
/// This trial has shown enough: end it gracefully, it counts as completed. A held trial ends at once.
struct Stop {
  TrialNumber trial = 0;
};
/// This trial waits at a rung: it saves a checkpoint and gives its slots back until Resume or Stop.
struct Hold {
  TrialNumber trial = 0;
};
/// A held trial goes on from its checkpoint; so does one that has closed, after Extended or Retried.
struct Resume {
  TrialNumber trial = 0;
};
/// The search is over: every trial has closed. All failed → failure; all canceled → cancel; else completed.
struct Shutdown {
  bool cancel = false;
  bool failure = false;
  std::string reason;
};
using Action = std::variant<Create, Stop, Hold, Resume, Shutdown>;

// ---- events: what the search hears
// -------------------------------------------------------------------------------
enum class ExitReason { kCompleted, kErrored, kCanceled, kInvalidHp };
struct Started {};  ///< the first event of every search
/// Keyed by (trial, steps): the core delivers each once. NaN is the worst value whichever way is better.
/// `time`: how far the trial has come, in the unit of max_time (the value of time_metric, or batches).
struct Validated {
  TrialNumber trial = 0;
  std::int64_t steps_completed = 0;
  double metric = 0;
  double time = 0;
};
struct Exited {
  TrialNumber trial = 0;
  ExitReason reason = ExitReason::kCompleted;
};
/// A user allows more: new totals, not less than the old ones. The search may be over; then it goes on.
struct Extended {
  std::optional<std::int64_t> max_trials, max_time;
};
/// A user wants this closed trial, which errored, to run again from its checkpoint. Answered by Resume.
struct Retried {
  TrialNumber trial = 0;
};
using Event = std::variant<Started, Validated, Exited, Extended, Retried>;

nlohmann::json to_json(const Event& event);
Result<Event> event_from_json(const nlohmann::json& json);

RequestId request_id(std::uint32_t experiment_seed, TrialNumber trial);
std::uint32_t trial_seed(std::uint32_t experiment_seed, TrialNumber trial);

/// One run of halving inside a search, as it stands: the rungs rise, and an extended search has more of them.
struct BracketState {
  struct RungState {
    std::int64_t length = 0;   ///< of training, in the unit of max_time
    std::int64_t results = 0;  ///< trials that came so far
  };
  std::vector<RungState> rungs;
  std::int64_t max_trials = 0;
  std::vector<TrialNumber> trials;  ///< those it created, rising
};

/// What a search method may use while it decides.
class MethodContext;

/// One way to search (single, random, grid, …). Total: any sequence of events gives a decision, never an
/// exception.
class SearchMethod;

/// A running search: the method plus the bookkeeping every method shares (who was created, who closed and
/// how).
class Searcher {
 public:
  static Result<Searcher> create(std::shared_ptr<const expconf::ExperimentConfig> config,
                                 Fault fault = Fault::kNone);
  /// From a snapshot (of snapshot()); events after it are then given to handle(), whose actions equal the
  /// recorded past.
  static Result<Searcher> restore(std::shared_ptr<const expconf::ExperimentConfig> config,
                                  const nlohmann::json& snapshot, Fault fault = Fault::kNone);
  Searcher(Searcher&&) noexcept;
  Searcher& operator=(Searcher&&) noexcept;
  ~Searcher();

  /// What the search wants next. Total: an event of an unknown trial, a closed one (but for Retried), or a
  /// second Started changes nothing. Amortized O(log trials).
  std::vector<Action> handle(const Event& event);
  /// Why handle(Extended) or handle(Retried) would change nothing: kFailedPrecondition or kInvalidArgument
  /// for people.
  Status check(const Event& event) const;

  /// A trial's own progress, 0..1, for progress(); no part of the history. O(1).
  void set_progress(TrialNumber trial, double progress);
  /// 0..1; a trial that has closed counts as done whatever it reported. O(1).
  double progress() const;
  /// How many trials were created.
  TrialNumber created() const;
  /// It was created and has not closed.
  bool awaits(TrialNumber trial) const;
  /// The totals: the configuration's, or what Extended made of them. max_time 0: a trial's length is its own.
  std::int64_t max_trials() const;
  std::int64_t max_time() const;
  /// The one that stops most first; none of a search without halving. O(trials).
  std::vector<BracketState> brackets() const;
  nlohmann::json snapshot() const;

 private:
  struct State;
  explicit Searcher(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace det::searcher
