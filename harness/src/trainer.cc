// Owns the training loop.
#include "det/trainer.h"

#include <ATen/core/grad_mode.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/text.h"
#include "batch_stream.h"
#include "checkpoint.h"
#include "context_state.h"
#include "fit_options.h"
#include "window.h"

namespace det {
namespace {

/// The searcher's metric of the configuration; name "" without one.
struct SearcherMetric {
  std::string name;
  bool smaller_is_better = true;

  explicit SearcherMetric(const Json& config) {
    const Json* metric = find_path(config, "searcher.metric");
    if (metric != nullptr && metric->is_string()) name = metric->get<std::string>();
    const Json* smaller = find_path(config, "searcher.smaller_is_better");
    if (smaller != nullptr && smaller->is_boolean()) smaller_is_better = smaller->get<bool>();
  }
  /// NaN is never better.
  bool better(double value, std::optional<double> best) const {
    if (value != value) return false;
    return !best || (smaller_is_better ? value < *best : value > *best);
  }
};

SamplerSpec sampler_spec(const DataLoader& loader, const TrialContext& context, bool training) {
  return {.seed = static_cast<std::uint64_t>(context.get_trial_seed()),
          .records = loader.dataset()->size(),
          .batch_size = loader.options().batch_size,
          .shuffle = loader.options().shuffle,
          .drop_last = loader.options().drop_last,
          .rank = context.distributed().rank,
          .world = context.distributed().size,
          .equal_steps = training};
}

/// One call of fit: the steps of which the loop at the end of this file is made.
class Fit {
 public:
  Fit(Trial& trial, TrialContext& context, const FitOptions& options)
      : trial_(trial), context_(context), state_(context.state()), options_(options),
        metric_(context.get_experiment_config()) {
    if (state_.models.empty()) throw std::invalid_argument("the trial wraps no model; call context.wrap_model");
    if (state_.optimizers.empty()) {
      throw std::invalid_argument("the trial wraps no optimizer; call context.wrap_optimizer");
    }
    if (options.test_mode && state_.info.on_cluster) {
      throw std::invalid_argument("fit: test_mode is for training without a cluster");
    }
    asking_for("build_training_data_loader");
    const DataLoader training = trial.build_training_data_loader();
    asking_for("build_validation_data_loader");
    validation_.emplace(trial.build_validation_data_loader());
    asking_for("fit");
    const SamplerSpec spec = sampler_spec(training, context, true);
    batches_per_epoch_ = Sampler(spec).steps();
    plan_ = make_plan(options, batches_per_epoch_, context);
    restore();
    training_.emplace(training.dataset(), spec, progress_.steps_completed);
    set_training(true);
  }

  const Plan& plan() const { return plan_; }
  std::int64_t step() const { return progress_.steps_completed; }
  bool preempted() const { return state_.client->should_preempt(); }
  bool stopped() const { return state_.stop_requested; }

  void train_one_batch() {
    asking_for("the training data", step());
    Batch batch = context_.to_device(training_->next());
    const std::int64_t records = batch.size();
    asking_for("train_batch", step());
    window_.add(trial_.train_batch(batch, step() / batches_per_epoch_, step()), records);
    ++progress_.steps_completed;
  }

  void report_training() {
    if (window_.empty()) return;
    report("training", window_.averages());
    window_.clear();
  }

  void validate() {
    set_training(false);
    const Json metrics = evaluate();
    set_training(true);
    report("validation", metrics);
    progress_.last_validation = step();
    result_.validation_metrics.clear();
    for (const auto& [name, value] : metrics.items()) result_.validation_metrics[name] = read_double(value).value();
    if (checkpoint_wanted_for(metrics)) save();
  }

  void save_if_stale() {
    if (progress_.last_checkpoint != step()) save();
  }

  void report_progress() {
    state_.client->report_progress(static_cast<double>(step()) / static_cast<double>(plan_.length), step());
  }

  FitResult finish() {
    if (step() < plan_.length && !stopped()) {
      save_if_stale();  // with the window as it is: its report is made by the run that completes it
      state_.client->acknowledge_preemption();
      result_.reason = FitResult::Reason::kPreempted;
    } else {
      report_training();
      if (progress_.last_validation != step()) validate();
      save_if_stale();
      report_progress();
      result_.reason = stopped() ? FitResult::Reason::kStopRequested : FitResult::Reason::kCompleted;
    }
    asking_for("the end of training");
    result_.batches_trained = step();
    return result_;
  }

 private:
  void asking_for(const char* what, std::int64_t batch = -1) {
    state_.doing = what;
    state_.doing_batch = batch;
  }

  void restore() {
    std::string name = options_.latest_checkpoint.value_or(state_.info.latest_checkpoint);
    const std::string directory = name.empty() ? "" : checkpoint_directory(state_.info, name);
    if (directory.empty()) return;
    asking_for("the checkpoint to start from");
    const TrialState state = load_checkpoint(state_, directory);
    result_.checkpoint = directory;
    std::printf("starting from checkpoint %s, %s\n", directory.c_str(),
                state.same_trial ? ("batch " + std::to_string(state.progress.steps_completed)).c_str()
                                 : "with its weights only: it is another trial's");
    if (!state.same_trial) return;
    progress_ = state.progress;
    if (state.window.is_object()) window_.restore(state.window);
    state_.initial_batch = step();
  }

  Json evaluate() {
    at::NoGradGuard no_grad;
    BatchStream batches(validation_->dataset(), sampler_spec(*validation_, context_, false), 0);
    MetricWindow window("evaluate_batch", true);
    const std::int64_t count = options_.test_mode ? 1 : batches.steps_per_epoch();
    for (std::int64_t i = 0; i < count; ++i) {
      asking_for("the validation data", i);
      Batch batch = context_.to_device(batches.next());
      const std::int64_t records = batch.size();
      asking_for("evaluate_batch", i);
      window.add(trial_.evaluate_batch(batch), records);
    }
    return window.averages();
  }

  /// Also keeps the best value of the searcher's metric.
  bool checkpoint_wanted_for(const Json& metrics) {
    if (metric_.name.empty()) return options_.checkpoint_policy != CheckpointPolicy::kNone;
    const Json* value = metrics.contains(metric_.name) ? &metrics.at(metric_.name) : nullptr;
    if (value == nullptr) {
      std::vector<std::string> names;
      for (const auto& [name, number] : metrics.items()) names.push_back(name);
      throw std::invalid_argument("searcher.metric is \"" + metric_.name + "\", but evaluate_batch gives: " +
                                  join(names, ", ") + did_you_mean(metric_.name, names));
    }
    const double number = read_double(*value).value();
    const bool best = metric_.better(number, progress_.best_validation);
    if (best) progress_.best_validation = number;
    return options_.checkpoint_policy == CheckpointPolicy::kAll ||
           (options_.checkpoint_policy == CheckpointPolicy::kBest && best);
  }

  void save() {
    asking_for("saving a checkpoint", step());
    progress_.last_checkpoint = step();
    const CheckpointRecord record = save_checkpoint(state_, {progress_, window_.save()});
    result_.checkpoint = state_.info.checkpoint_dir + "/" + record.uuid;
    state_.client->report_checkpoint(record);
  }

  /// Adds "batches" and "epochs", unless the trial gives metrics of these names.
  void report(const char* group, Json metrics) {
    if (!metrics.contains("batches")) metrics["batches"] = step();
    if (!metrics.contains("epochs")) metrics["epochs"] = step() / batches_per_epoch_;
    state_.client->report_metrics(group, step(), metrics);
  }

  void set_training(bool training) {
    for (const auto& model : state_.models) model->train(training);
  }

  Trial& trial_;
  TrialContext& context_;
  ContextState& state_;
  const FitOptions& options_;
  SearcherMetric metric_;
  Plan plan_;
  std::int64_t batches_per_epoch_ = 1;
  Progress progress_;
  MetricWindow window_{"train_batch", false};
  std::optional<BatchStream> training_;
  std::optional<DataLoader> validation_;
  FitResult result_;
};

}  // namespace

FitResult Trainer::fit(const FitOptions& options) {
  Fit run(trial_, context_, options);
  if (options.step_zero_validation && run.step() == 0) run.validate();

  while (run.step() < run.plan().length && !run.stopped() && !run.preempted()) {
    run.train_one_batch();
    const Boundary due = boundary_after(run.plan(), run.step());
    if (due.any()) run.report_training();
    if (due.validate) run.validate();
    if (due.checkpoint) run.save_if_stale();
    if (due.report) run.report_progress();
  }
  return run.finish();
}

}  // namespace det
