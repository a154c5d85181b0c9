// Owns what a search is: events in, actions out, deterministic from (config, seed, events). The random generator is
// part of the state, so a search can be stored, replayed decision by decision, and resumed anywhere.
#pragma once

#include <cstdint>
#include <map>
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

namespace det::searcher {

// ---- actions: what the search wants ------------------------------------------------------------------------------
struct Create { RequestId request_id; std::uint32_t trial_seed = 0; nlohmann::json hparams; };
/// This trial has shown enough: end it gracefully, it counts as completed.
struct Stop { RequestId request_id; };
/// The search is over once every trial has closed. All failed → failure; all canceled → cancel; else completed.
struct Shutdown { bool cancel = false; bool failure = false; };
using Action = std::variant<Create, Stop, Shutdown>;

// ---- events: what the search hears -------------------------------------------------------------------------------
enum class ExitReason { kCompleted, kErrored, kCanceled, kInvalidHp };
struct Started {};  ///< the first event of every search
/// Keyed by (trial, steps): the core delivers each once. NaN is the worst value whichever way is better.
struct Validated { RequestId request_id; std::int64_t steps_completed = 0; double metric = 0; };
struct Exited { RequestId request_id; ExitReason reason = ExitReason::kCompleted; };
using Event = std::variant<Started, Validated, Exited>;

nlohmann::json to_json(const Event& event);
Result<Event> event_from_json(const nlohmann::json& json);

/// What a search method may use while it decides.
struct MethodContext {
  Random& random;
  const expconf::ExperimentConfig& config;
  /// Samples a full set of hyperparameters (keys in sorted order, at every depth).
  nlohmann::json sample();
  Create create();  ///< a new trial with fresh request id, seed and sample
};

/// One way to search (single, random, grid, …). Total: any sequence of events gives a decision, never an exception.
class SearchMethod {
 public:
  virtual ~SearchMethod() = default;
  virtual std::vector<Action> initial(MethodContext& context) = 0;
  virtual std::vector<Action> validated(const Validated& event, MethodContext& context) = 0;
  /// After `reason`; the caller has taken the trial off the live ones.
  virtual std::vector<Action> exited(const Exited& event, MethodContext& context) = 0;
  /// 0..1 from the trials' own progress.
  virtual double progress(const std::map<RequestId, double>& trial_progress) const = 0;
  virtual nlohmann::json snapshot() const = 0;
  virtual Status restore(const nlohmann::json& snapshot) = 0;
};
/// The method that the config names; kUnimplemented with the names there are.
Result<std::unique_ptr<SearchMethod>> make_search_method(const expconf::SearcherConfig& config);

/// A running search: the method plus the bookkeeping every method shares (who was created, who closed and how).
class Searcher {
 public:
  static Result<Searcher> create(std::shared_ptr<const expconf::ExperimentConfig> config);
  /// From a snapshot (of snapshot()); events after it are then given to handle(), whose actions equal the recorded past.
  static Result<Searcher> restore(std::shared_ptr<const expconf::ExperimentConfig> config,
                                  const nlohmann::json& snapshot);

  /// What the search wants next. Total: an event of an unknown or closed trial, or a second Started, changes nothing.
  std::vector<Action> handle(const Event& event);
  /// 0..1; a trial that has closed counts as done whatever it reported.
  double progress(const std::map<RequestId, double>& trial_progress) const;
  nlohmann::json snapshot() const;

 private:
  Searcher() = default;
  std::shared_ptr<const expconf::ExperimentConfig> config_;
  std::unique_ptr<SearchMethod> method_;
  Random random_;
  std::map<RequestId, std::optional<ExitReason>> trials_;  ///< created; with how they closed
  std::size_t open_ = 0;                                   ///< those of trials_ that have not closed
  bool shut_down_ = false;
};

}  // namespace det::searcher
