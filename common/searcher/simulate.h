// Simulation of whole searches in virtual time: a searcher, a number of workers and a surface of learning
// curves. Pure, single-threaded.
#pragma once

#include <functional>
#include <map>
#include <string_view>

#include "common/searcher/searcher.h"

namespace det::searcher {

/// Returns the metric of a trial after training for `time`, in units of max_time.
using Surface = std::function<double(TrialNumber trial, const Sample& sample, double time)>;

/// Returns a built-in surface, smaller is better. Learning curves fall by a power law towards a floor that
/// depends on the point. "bowl": one smooth basin. "valley": a narrow bent one (Rosenbrock). "waves": many
/// local minima (Rastrigin). Errors: kInvalidArgument for another name, with the list of names.
Result<Surface> make_surface(std::string_view name, const expconf::HyperparameterMap& space,
                             std::int64_t max_time);

/// Returns a surface of recorded curves. Trial i follows curve i modulo their number, interpolated linearly.
/// JSON: a list of curves, each a list of [time, metric]. CSV: a header, then `trial,time,metric` lines.
/// Errors: kInvalidArgument.
Result<Surface> recorded_surface(std::string_view text);

/// Settings of one simulation.
struct SimulationOptions {
  std::int64_t workers = 16;
  /// Validation period in units of max_time; 0: only at rungs and at the end of a trial.
  std::int64_t validate_every = 0;
  /// Record the schedule of the workers.
  bool spans = true;
  /// Called with each event before the searcher.
  std::function<void(const Event&)> on_event = {};
};

/// One uninterrupted run of a trial on a worker, in virtual time.
struct Span {
  TrialNumber trial = 0;
  std::int64_t worker = 0;
  double start = 0, end = 0;
};

/// Result of a simulation.
struct Simulation {
  /// Virtual time at the end, in units of max_time.
  double makespan = 0;
  /// Units trained, all trials together.
  double work = 0;
  std::int64_t trials = 0, events = 0;
  std::vector<Span> spans;  ///< in order of end
  /// (virtual time, metric) of each improvement.
  std::vector<std::pair<double, double>> best_so_far;
  TrialNumber best_trial = 0;
  std::vector<std::int64_t> trained;  ///< training length by trial number
  /// Training length → number of trials that ended there.
  std::map<std::int64_t, std::int64_t> stopped_at;
  Shutdown shutdown;
};

/// Runs a search to its end. Errors: those of Searcher::create; kInvalidArgument for a bad number of workers,
/// no max_time, or more than 1,000,000 validations a trial.
Result<Simulation> simulate(const std::shared_ptr<const expconf::ExperimentConfig>& config,
                            const Surface& surface, const SimulationOptions& options);

/// One line of `det preview-search`: how many trials train how long. Length 0: to completion.
struct PreviewLine {
  std::int64_t trials = 0;
  std::int64_t length = 0;
  bool operator==(const PreviewLine&) const = default;
};
/// Predicts a search in which every rung keeps max(floor(n / divisor), 1) trials. Lines are in order of
/// length.
Result<std::vector<PreviewLine>> preview(const expconf::ExperimentConfig& config);

}  // namespace det::searcher
