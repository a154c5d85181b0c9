// Builds of trial classes. The code of an experiment is compiled in an allocation without slots before its
// first trial requests slots. One trial, the builder, has that allocation; the others wait.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "master/core/build_id.h"
#include "master/core/core.h"

namespace det::core {

struct Owners;
struct Step;

/// State of the builds. Recomputed after a restart: an experiment that has trained needs no build, and a
/// repeated build is taken from the cache of an agent.
class Builds {
 public:
  explicit Builds(Owners& owners) : owners_(owners) {}

  /// Purpose of the next request of a trial.
  enum class Turn {
    kTrain,
    kBuild,  ///< the trial is the builder
    kWait,   ///< another trial is the builder: no request
  };
  /// Returns the turn of a trial that is about to request slots. Appoints it as builder if there is none.
  Turn turn(const Trial& trial);
  /// Whether the scheduler has placed a build of the trial, as opposed to its training.
  bool is_for_build(const Trial& trial, const std::vector<scheduler::Part>& parts) const;
  /// Returns the builder of an experiment; 0 when there is none.
  TrialId builder(ExperimentId id) const;
  /// Whether an experiment has a trial class that no known build covers. Never in pools of pilots: a build
  /// would need a pilot of its own.
  bool is_needed(const Experiment& experiment) const;
  /// Returns the SHA-256 (hex) of the library that the code of an experiment was built to; "" if unknown.
  std::string library(const Experiment& experiment) const;

  /// Handles the end of a build, unless its trial is stopping. Returns false if the build was lost or
  /// stopped: the trial then runs again like after a lost run.
  bool end_build(Step& step, Trial& trial, const Allocation& allocation);
  /// Appoints another builder when `trial` is the builder and can no longer build.
  void leave(Step& step, const Trial& trial);
  /// Requests slots for the trials that waited, or for a new builder.
  void release_waiting(Step& step, const Experiment& experiment);
  /// Whether the run of the trial's next allocation has ended its build.
  bool has_begun(TrialId id) const { return begun_.contains(id); }
  /// Returns whether the run was begun by its build, and forgets it.
  bool take_begun(TrialId id) { return begun_.erase(id) > 0; }
  void forget(ExperimentId id);

  /// Restores the builder from its stored allocation.
  void restore(const Allocation& allocation, const Trial& trial);
  /// Marks the experiment of a stored trial that has trained.
  void restore(const Trial& trial);

 private:
  /// Key of `libraries_`: archive and entrypoint.
  static std::string key_of(const Experiment& experiment);
  void remember(const std::string& key, std::string library);
  /// Ends the experiment: its code does not compile.
  void fail_experiment(Step& step, Trial& trial, const Exit& exit);
  /// The trial is active and has neither an allocation nor a request nor a back-off.
  bool is_idle(const Trial& trial) const;

  Owners& owners_;
  std::map<ExperimentId, TrialId> builders_;
  std::set<ExperimentId> open_;  ///< experiments of which each trial builds on its own slots, if at all
  std::set<TrialId> begun_;      ///< trials with a run that has ended its build and not started training
  std::map<std::string, std::string> libraries_;
  std::deque<std::string> order_;  ///< keys of libraries_, the oldest first
};

}  // namespace det::core
