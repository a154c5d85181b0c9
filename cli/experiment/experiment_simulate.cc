// `det experiment simulate`: runs a whole search in virtual time; prints a table and plots of its course.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>

#include "cli/experiment/experiment_verbs.h"
#include "cli/output/print.h"
#include "cli/submit/search_config.h"
#include "common/base/files.h"
#include "common/searcher/simulate.h"

namespace det::cli {
namespace {

using searcher::Simulation;
/// Size of the plots in characters.
constexpr std::size_t kPlotWidth = 72, kPlotHeight = 10;

struct SimulateOptions {
  std::string config, surface = "bowl";
  std::vector<std::string> overrides;
  int workers = 16, trials_shown = 24;
  std::optional<std::uint32_t> seed;
  void declare(CLI::App& app) {
    app.add_option("CONFIG", config, "Experiment configuration (YAML).")->required();
    app.add_option("--config", overrides, "Override path.to.key=value; repeatable.")->allow_extra_args(false);
    app.add_option("--workers", workers, "Number of trials that run at a time.")
        ->check(kPositive)
        ->capture_default_str();
    app.add_option("--surface", surface,
                   "Source of metrics: bowl, valley, waves, or a file with recorded curves (JSON or CSV).")
        ->capture_default_str();
    app.add_option("--seed", seed, "Seed (default: experiment_seed of the configuration).");
    app.add_option("--trials-shown,--trials_shown", trials_shown, "Number of trials in the plot; 0: no plot.")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
  }
};

/// Maps a virtual time to a column of the plot.
std::size_t column(double time, double makespan) {
  if (!(makespan > 0)) return 0;
  return std::min(kPlotWidth - 1,
                  static_cast<std::size_t>(time / makespan * static_cast<double>(kPlotWidth)));
}

/// Draws a line for each of the `shown` trials that trained longest; '#' marks the times at which it ran.
std::string trials_plot(const Simulation& simulation, int shown) {
  std::vector<std::size_t> order(simulation.trained.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return simulation.trained[a] > simulation.trained[b];
  });
  order.resize(std::min(order.size(), static_cast<std::size_t>(shown)));
  std::sort(order.begin(), order.end());
  std::map<std::size_t, std::string> lines;
  for (std::size_t trial : order) lines[trial] = std::string(kPlotWidth, '.');
  for (const searcher::Span& span : simulation.spans) {
    const auto line = lines.find(span.trial);
    if (line == lines.end()) continue;
    for (std::size_t at = column(span.start, simulation.makespan);
         at <= column(span.end, simulation.makespan); ++at)
      line->second[at] = '#';
  }
  std::string text;
  for (const auto& [trial, line] : lines) {
    const std::string number = std::to_string(trial);
    text += std::string(8 - std::min<std::size_t>(number.size(), 8), ' ') + number + " |" + line + "| " +
            std::to_string(simulation.trained[trial]) + '\n';
  }
  return text;
}

/// Draws the best metric over time as a step curve.
std::string best_plot(const Simulation& simulation) {
  std::vector<double> best(kPlotWidth, std::nan(""));
  for (const auto& [time, metric] : simulation.best_so_far) {
    if (std::isfinite(metric))
      std::fill(best.begin() + static_cast<std::ptrdiff_t>(column(time, simulation.makespan)), best.end(),
                metric);
  }
  // All-NaN input (no finite metric) leaves low above high.
  double low = 1e300, high = -1e300;
  for (double metric : best) {
    if (std::isnan(metric)) continue;
    low = std::min(low, metric);
    high = std::max(high, metric);
  }
  if (low > high) return "";
  std::vector<std::string> rows(kPlotHeight, std::string(kPlotWidth, ' '));
  for (std::size_t at = 0; at < kPlotWidth; ++at) {
    if (std::isnan(best[at])) continue;
    const double share = high > low ? (high - best[at]) / (high - low) : 0;
    rows[static_cast<std::size_t>(std::lround(share * (kPlotHeight - 1)))][at] = '*';
  }
  std::string text;
  for (std::size_t row = 0; row < kPlotHeight; ++row) {
    const bool labeled = row == 0 || row + 1 == kPlotHeight;
    std::string label = labeled ? number_text(row == 0 ? high : low) : "";
    text += std::string(8 - std::min<std::size_t>(label.size(), 8), ' ') + label + " |" + rows[row] + "|\n";
  }
  return text;
}

/// Returns the function that yields a trial's metric: a built-in surface, or curves recorded in a file.
Result<searcher::Surface> read_surface(const std::string& name, const expconf::ExperimentConfig& config) {
  const std::int64_t max_time = config.searcher.max_time     ? *config.searcher.max_time
                                : config.searcher.max_length ? config.searcher.max_length->count
                                                             : 1;
  auto built_in = searcher::make_surface(name, config.hyperparameters, max_time);
  if (built_in) {
    // The built-in surfaces are losses. A metric to be maximised is 1 - loss.
    if (config.searcher.smaller_is_better) return built_in;
    return [surface = std::move(*built_in)](searcher::TrialNumber trial, const searcher::Sample& sample,
                                            double time) { return 1 - surface(trial, sample, time); };
  }
  const auto text = read_file(name, 64 << 20);
  // `name` is neither a surface nor a file: report it as an unknown surface.
  if (!text && text.error().code == Code::kNotFound) return tl::unexpected(built_in.error());
  if (!text) return tl::unexpected(text.error());
  auto recorded = searcher::recorded_surface(*text);
  if (!recorded) recorded.error().message = name + ": " + recorded.error().message;
  return recorded;
}

Status simulate(Session&, const SimulateOptions& options) {
  TRY_ASSIGN(const auto config, read_search_config(options.config, options.overrides));
  if (options.seed) config->experiment_seed = *options.seed;
  TRY_ASSIGN(const auto surface, read_surface(options.surface, *config));
  TRY_ASSIGN(const Simulation simulation, searcher::simulate(config, surface, {.workers = options.workers}));
  Table table{{"Trained", "Trials"}, {}};
  for (const auto& [length, trials] : simulation.stopped_at)
    table.rows.push_back({std::to_string(length), std::to_string(trials)});
  std::cout << shown(table) << '\n';
  // Share of the workers' time that was spent on training.
  const double busy = simulation.makespan > 0 ? simulation.work / (simulation.makespan * options.workers) : 0;
  std::cout << simulation.trials << " trials, " << number_text(simulation.work) << " units of training on "
            << options.workers << " workers in " << number_text(simulation.makespan) << " units of time ("
            << number_text(std::round(busy * 1000) / 10) << " % busy)\n";
  if (!simulation.best_so_far.empty())
    std::cout << "best " << printable(config->searcher.metric) << ' '
              << number_text(simulation.best_so_far.back().second) << " by trial " << simulation.best_trial
              << " at " << number_text(simulation.best_so_far.back().first) << '\n';
  if (options.trials_shown > 0) {
    std::cout << "\ntrials with the longest training: run times and training length\n"
              << trials_plot(simulation, options.trials_shown);
  }
  std::cout << "\nbest " << printable(config->searcher.metric) << " over time, 0 to "
            << number_text(simulation.makespan) << '\n'
            << best_plot(simulation);
  return {};
}

}  // namespace

Command simulate_verb() {
  return {{"simulate"}, "Simulate a search in virtual time and plot its course.", action(simulate)};
}

}  // namespace det::cli
