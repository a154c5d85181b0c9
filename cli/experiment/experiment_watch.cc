// `det experiment watch`: shows an experiment on the terminal, and redraws it when something has changed.
#include <algorithm>
#include <iostream>
#include <map>
#include <optional>

#include "cli/experiment/experiment_verbs.h"
#include "cli/output/download.h"
#include "cli/output/event_stream.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "cli/output/progress.h"
#include "cli/output/sparkline.h"
#include "cli/output/terminal.h"
#include "cli/submit/follow.h"
#include "common/base/wait.h"

namespace det::cli {
namespace {

/// Minimum interval between two redraws.
constexpr Duration kMinInterval = std::chrono::milliseconds(250);
/// Polling interval while the event stream is not available.
constexpr Duration kWithoutEvents = std::chrono::seconds(2);
/// Maximum interval between two redraws: bounds the effect of a lost event.
constexpr Duration kMaxInterval = std::chrono::seconds(30);
constexpr Duration kWatchPatience = std::chrono::minutes(10);
/// Data points per metric series.
constexpr int kPoints = 60;

struct WatchOptions : ExperimentOptions {
  int trials = 10;
  std::string metric;
  void declare(CLI::App& app) {
    ExperimentOptions::declare(app);
    app.add_option("--trials", trials, "Number of trials, the best first.")
        ->check(kPositive)
        ->capture_default_str();
    app.add_option("--metric", metric,
                   "Metric to plot (default: the searcher's metric, and the first training metric).");
  }
};

/// Everything that one redraw shows.
struct Seen {
  v1::Experiment experiment;
  std::vector<v1::Trial> trials;
  std::vector<v1::MetricSeries> series;
};

/// Queries the experiment, its best trials and their metric series: three calls.
Result<Seen> look(Client& client, const WatchOptions& options) {
  Seen seen;
  TRY_ASSIGN(seen.experiment, get_experiment(client, options.id));
  v1::GetExperimentTrialsRequest request;
  request.set_experiment_id(options.id);
  request.set_sort_by(v1::GetExperimentTrialsRequest::SORT_BY_BEST_VALIDATION_METRIC);
  request.set_order_by(smaller_is_better(seen.experiment.config()) ? v1::ORDER_BY_ASC : v1::ORDER_BY_DESC);
  request.set_limit(options.trials);
  TRY_ASSIGN(auto response, client.call(v1::ExperimentService::GetExperimentTrials, request));
  seen.trials.assign(response.trials().begin(), response.trials().end());
  if (seen.trials.empty()) return seen;
  v1::GetMetricSeriesRequest metrics;
  for (const v1::Trial& trial : seen.trials) metrics.add_trial_ids(trial.id());
  metrics.set_max_datapoints(kPoints);
  TRY_ASSIGN(auto series, client.call(v1::TrialService::GetMetricSeries, metrics));
  seen.series.assign(series.series().begin(), series.series().end());
  return seen;
}

/// Returns the series to draw for `trial` in `group`: the one named `metric`, else the first by name. Null
/// when the trial has none.
const v1::MetricSeries* choose_series(const Seen& seen, int trial, const char* group,
                                      const std::string& metric) {
  const v1::MetricSeries* chosen = nullptr;
  for (const v1::MetricSeries& each : seen.series) {
    if (each.trial_id() != trial || each.group() != group || each.values().empty()) continue;
    if (each.name() == metric) return &each;
    if (chosen == nullptr || each.name() < chosen->name()) chosen = &each;
  }
  return chosen;
}

/// "loss 0.12 ▆▅▃▂": name, last value, sparkline.
std::string series_text(const v1::MetricSeries* series, std::size_t width) {
  if (series == nullptr) return "";
  const std::vector<double> values(series->values().begin(), series->values().end());
  return series->name() + " " + number_text(values.back()) + " " + sparkline(values, width);
}

std::string headline(const v1::Experiment& experiment) {
  std::string text = "Experiment " + std::to_string(experiment.id()) + " " + printable(experiment.name()) +
                     ": " + state_text(experiment.state()) + ", " + std::to_string(experiment.num_trials()) +
                     (experiment.num_trials() == 1 ? " trial" : " trials");
  if (experiment.has_best_trial_searcher_metric()) {
    text += ", best " + experiment.searcher_metric() + " " +
            number_text(experiment.best_trial_searcher_metric().value()) + " (trial " +
            std::to_string(experiment.best_trial_id().value()) + ")";
  }
  return text;
}

/// Returns the whole picture. The progress bar is at most `width` columns.
std::string picture(const Seen& seen, const WatchOptions& options, int width) {
  std::string text = headline(seen.experiment) + "\n";
  if (seen.experiment.has_progress())
    text += bar_text("progress", seen.experiment.progress().value(), width) + "\n";
  Table table{{"Trial ID", "State", "# of Batches", "Restarts", "Validation", "Training"}, {}};
  const std::size_t room = static_cast<std::size_t>(std::clamp((width - 80) / 2, 8, 40));
  for (const v1::Trial& trial : seen.trials) {
    const std::string metric = options.metric.empty() ? seen.experiment.searcher_metric() : options.metric;
    table.rows.push_back({std::to_string(trial.id()), state_text(trial, wall_now()),
                          std::to_string(trial.total_batches_processed()), std::to_string(trial.restarts()),
                          series_text(choose_series(seen, trial.id(), "validation", metric), room),
                          series_text(choose_series(seen, trial.id(), "training", options.metric), room)});
  }
  if (!table.rows.empty()) text += "\n" + shown(table);
  const int hidden = seen.experiment.num_trials() - static_cast<int>(seen.trials.size());
  if (hidden > 0)
    text += "and " + std::to_string(hidden) + " more: det experiment list-trials " +
            std::to_string(options.id) + "\n";
  return text;
}

/// On a terminal each picture replaces the one before. Elsewhere prints a line per change.
class Screen {
 public:
  void show(const Seen& seen, const WatchOptions& options) {
    if (is_terminal(1)) {
      const std::string text = picture(seen, options, terminal_width(1));
      // Moves the cursor to the first line of the last picture and clears everything below.
      if (lines_ > 0) std::cout << "\033[" << lines_ << "F\033[J";
      lines_ = std::count(text.begin(), text.end(), '\n');
      std::cout << text << std::flush;
      return;
    }
    std::string text = headline(seen.experiment);
    if (seen.experiment.has_progress())
      text += ", " + number_text(seen.experiment.progress().value() * 100) + "%";
    if (text != last_) std::cout << text << std::endl;
    last_ = std::move(text);
  }

 private:
  std::ptrdiff_t lines_ = 0;
  std::string last_;
};

/// Waits until the experiment may have changed: for its next event, or for a fixed time without a stream.
class Waiter {
 public:
  /// Opens the stream before the first query, so that no later change is missed.
  Waiter(const Client& client, int experiment) : client_(client), experiment_(experiment) { open(); }

  void wait() {
    if (!stream_) {
      wait_until([] { return false; }, kWithoutEvents);
      return open();
    }
    const MonoTime end = mono_now() + kMaxInterval;
    bool resumed = false;
    while (mono_now() < end) {
      const auto events = stream_->wait(end - mono_now());
      if (!events) {
        open();
        // A resumed stream delivers the missed events first. Return when it breaks a second time, so that the
        // caller queries instead.
        if (!stream_ || std::exchange(resumed, true)) return;
        continue;
      }
      const bool ours = std::any_of(events->begin(), events->end(), [&](const ChangeEvent& event) {
        return event.experiment == experiment_ || event.kind == "reset";
      });
      if (ours) return gather();
    }
  }

 private:
  /// Reconnects behind the last event that was received.
  void open() {
    if (stream_) last_id_ = stream_->last_id().empty() ? last_id_ : stream_->last_id();
    stream_.reset();
    auto opened = EventStream::open(client_, last_id_);
    if (opened) stream_.emplace(std::move(*opened));
  }

  /// Collects a burst of events into one redraw.
  void gather() {
    const MonoTime end = mono_now() + kMinInterval;
    while (mono_now() < end) {
      if (!stream_->wait(end - mono_now())) return open();
    }
  }

  const Client& client_;
  const int experiment_;
  std::string last_id_;
  std::optional<EventStream> stream_;
};

Result<int> watch(Client& client, const WatchOptions& options) {
  Screen screen;
  Waiter waiter(client, options.id);
  for (;;) {
    TRY_ASSIGN(const Seen seen, look(client, options));
    // Set after the first query: a wrong address fails at once, a restart of the master does not end the
    // command.
    client.set_patience(kWatchPatience);
    screen.show(seen, options);
    if (is_terminal_state(seen.experiment.state())) return exit_code(seen.experiment);
    waiter.wait();
  }
}

}  // namespace

Command watch_verb() {
  return {{"watch"}, "Show an experiment live, with plots of its metrics.", action(watch)};
}

}  // namespace det::cli
