// Owns whole searches in virtual time: a searcher, a number of workers and a surface that says how trials
// learn. Pure.
#pragma once

#include <functional>
#include <map>
#include <string_view>

#include "master/searcher/searcher.h"

namespace det::searcher {

/// The searcher's metric of a trial after training for `time`, in units of max_time.
using Surface = std::function<double(TrialNumber trial, const Sample& sample, double time)>;

/// The built-in ones, the smaller the better (larger where the search maximizes is the caller's sign):
/// learning curves that fall by a power law towards a floor that depends on the point. "bowl": one smooth
/// basin. "valley": a narrow bent one (Rosenbrock). "waves": many local ones (Rastrigin). kInvalidArgument,
/// with the names, for another name.
Result<Surface> make_surface(std::string_view name, const expconf::HyperparameterMap& space,
                             std::int64_t max_time);

/// Recorded curves: trial i follows curve i modulo their number, read between its points by straight lines.
/// JSON: a list of curves, each a list of [time, metric]. CSV: a header, then `trial,time,metric` lines.
Result<Surface> recorded_surface(std::string_view text);

struct SimulationOptions {
  std::int64_t workers = 16;
  /// How often a trial validates, in units of max_time; 0: only at rungs and at its end.
  std::int64_t validate_every = 0;
  bool spans = true;                                ///< keep who ran when
  std::function<void(const Event&)> on_event = {};  ///< told of each before the searcher
};

/// A trial on a worker, without a break.
struct Span {
  TrialNumber trial = 0;
  std::int64_t worker = 0;
  double start = 0, end = 0;
};

struct Simulation {
  double makespan = 0;  ///< virtual time to the end, in units of max_time
  double work = 0;      ///< units trained, over all trials
  std::int64_t trials = 0, events = 0;
  std::vector<Span> spans;                             ///< in order of their ends
  std::vector<std::pair<double, double>> best_so_far;  ///< (virtual time, metric), at each improvement
  TrialNumber best_trial = 0;
  std::vector<std::int64_t> trained;                ///< by trial: how long it trained
  std::map<std::int64_t, std::int64_t> stopped_at;  ///< length of training → how many trials ended there
  Shutdown shutdown;
};

/// Runs the search to its end. Fails like Searcher::create, for no workers, and for no length of training.
Result<Simulation> simulate(std::shared_ptr<const expconf::ExperimentConfig> config, const Surface& surface,
                            const SimulationOptions& options);

/// How many trials would train how long when every rung keeps max(floor(n / divisor), 1), longest last;
/// length 0: to completion. What `det preview-search` prints.
struct PreviewLine {
  std::int64_t trials = 0;
  std::int64_t length = 0;
  bool operator==(const PreviewLine&) const = default;
};
Result<std::vector<PreviewLine>> preview(const expconf::ExperimentConfig& config);

}  // namespace det::searcher
