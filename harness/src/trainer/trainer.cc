// The training loop.
#include "det/trainer.h"

#include <cstdio>
#include <deque>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/base/clock.h"
#include "common/base/text.h"
#include "harness/src/base/heartbeat.h"
#include "harness/src/base/termination.h"
#include "harness/src/checkpoint/checkpoint.h"
#include "harness/src/checkpoint/checkpoint_saver.h"
#include "harness/src/client/setting.h"
#include "harness/src/distributed/rank_votes.h"
#include "harness/src/observability/system_metrics.h"
#include "harness/src/trainer/context_state.h"
#include "harness/src/trainer/plan.h"
#include "harness/src/trainer/profile_on_request.h"
#include "harness/src/trainer/sanity_check.h"
#include "harness/src/trainer/train_step.h"
#include "harness/src/trainer/validation.h"

namespace det {
namespace {

/// Maximum time between reports of progress, when a batch does not take longer.
constexpr Duration kProgressInterval = std::chrono::seconds(10);

/// The searcher's metric of the configuration; the name is "" when there is none.
struct SearcherMetric {
  std::string name;
  bool smaller_is_better;

  explicit SearcherMetric(const Json& config)
      : name(optional_setting<std::string>(config, "searcher.metric").value_or("")),
        smaller_is_better(setting<bool>(config, "searcher.smaller_is_better")) {}
  /// NaN is never better.
  bool better(double value, std::optional<double> best) const {
    if (value != value) return false;
    return !best || (smaller_is_better ? value < *best : value > *best);
  }
};

/// One call of fit(). Its methods are the steps of the loop in Trainer::fit() below. All ranks call them in
/// the same order, because most of them exchange data.
class Fit {
 public:
  Fit(Trial& trial, TrialContext& context, const FitOptions& options)
      : trial_(trial),
        context_(context),
        state_(context.state()),
        options_(options),
        metric_(context.get_experiment_config()),
        votes_(*state_.run.distributed, state_.run.communicator.get(), state_.run.device),
        saver_(state_.run, state_.wrapped) {
    if (options.test_mode && state_.run.info.on_cluster) {
      throw std::invalid_argument("fit: test_mode is for training without a cluster");
    }
    asking_for("the trial's model and optimizer");
    trial.build();
    if (state_.wrapped.models.empty())
      throw std::invalid_argument("the trial wraps no model; call context.wrap_model");
    if (state_.wrapped.optimizers.empty() && !state_.steps_itself) {
      throw std::invalid_argument("the trial wraps no optimizer; call context.wrap_optimizer");
    }
    asking_for("build_callbacks");
    state_.wrapped.callbacks = trial.build_callbacks();
    // The callbacks run before the data loaders are built; see Callback::on_trial_startup().
    const std::string checkpoint = starting_point();
    for_callbacks("on_trial_startup", [&](Callback& c) {
      c.on_trial_startup(checkpoint_steps(state_.run.info, checkpoint), checkpoint);
    });
    state_.initial_batch = checkpoint_steps(state_.run.info, checkpoint);
    asking_for("build_training_data_loader");
    train_.emplace(trial, context, trial.build_training_data_loader(), options.stop_on_bad_loss);
    asking_for("build_validation_data_loader");
    validation_.emplace(trial, context, trial.build_validation_data_loader());
    asking_for("fit");
    // Restoring comes last: it needs the wrapped models and optimizers, and
    // start() needs the restored weights.
    plan_ = make_plan(options, train_->batches_per_epoch(), context);
    const bool resumed = restore(checkpoint);
    train_->start(step(), resumed);
    for (const auto& model : state_.wrapped.models) model->train();
    if (state_.run.distributed->is_chief()) observe();
    for_callbacks("on_training_start", [](Callback& c) { c.on_training_start(); });
  }

  /// Starts the reports about the machine and the phases. Called on the chief alone.
  void observe() {
    if (state_.run.info.on_cluster || options_.profiling_enabled)
      machine_.emplace(*state_.run.client, SystemMetrics::Options());
    if (options_.profiling_enabled) {
      state_.instruments.phases = std::make_unique<PhaseClock>();
      timed_from_ = step();
    }
    profile_.emplace(*state_.run.client, state_.instruments);
  }

  const Plan& plan() const { return plan_; }
  std::int64_t step() const { return progress_.steps_completed; }
  bool is_done() const { return step() >= plan_.length; }
  bool is_between_windows() const { return train_->is_between_windows(step()); }

  void train_one_batch() {
    if (profile_) profile_->begin_batch(step());
    const std::int64_t epoch = step() / train_->batches_per_epoch();
    if (step() % train_->batches_per_epoch() == 0) {
      for_callbacks("on_training_epoch_start", [&](Callback& c) { c.on_training_epoch_start(epoch); });
    }
    state_.report_step = step() + 1;
    train_->run(step());
    beat();
    ++progress_.steps_completed;
    if (step() % train_->batches_per_epoch() == 0) {
      for_callbacks("on_training_epoch_end", [&](Callback& c) { c.on_training_epoch_end(epoch); });
    }
    if (profile_) profile_->end_batch();
  }

  /// Reports the averages since the last report. Does nothing without batches.
  void report_training() {
    if (!train_->has_metrics()) return;
    const PhaseSpan span(state_.instruments.phases.get(), Phase::kReport);
    asking_for("the training metrics", step() - 1, Activity::Kind::kComputation);
    const Json metrics = train_->take_metrics();
    report("training", metrics);
    // A requested trace has a clock of its own, which reports nothing.
    if (options_.profiling_enabled && state_.instruments.phases && step() > timed_from_) {
      state_.run.client->report_metrics("timing", step(),
                                        state_.instruments.phases->take(step() - timed_from_));
      timed_from_ = step();
    }
    for_callbacks("on_training_workload_end", [&](Callback& c) { c.on_training_workload_end(metrics); });
  }

  /// Checks what training needs only later: the storage of checkpoints, evaluate_batch and the searcher's
  /// metric. Changes nothing and reports nothing.
  void check_sanity() {
    if (options_.sanity_batches < 1 || options_.test_mode) return;
    asking_for("the check before training: saving a checkpoint");
    probe_checkpoint(state_);
    // A validation before training tells the rest.
    if (options_.step_zero_validation || evaluates_full_dataset(trial_) || !validation_->is_repeatable())
      return;
    const ModelGuard guard(state_);
    state_.sanity_check = true;
    const Json metrics = validation_->probe(options_.sanity_batches);
    state_.sanity_check = false;
    asking_for("the check before training");
    (void)searcher_value(metrics);
  }

  /// True when a validation precedes training: one that the checkpoint lacks, or that of
  /// step_zero_validation.
  bool is_validation_due() const {
    return progress_.validation_due ||
           (options_.step_zero_validation && step() == 0 && progress_.last_validation != 0);
  }

  /// Runs validation, reports it, and requests a checkpoint when the policy demands one. When it fails, the
  /// state before it is saved first, so that no batch is lost; not with callbacks, because a hook that has
  /// run may have changed the state.
  void validate() {
    const PhaseSpan span(state_.instruments.phases.get(), Phase::kValidation);
    const GeneratorStates before(state_.run.device);
    validation_wanted_ = false;
    Json metrics;
    bool wants_checkpoint = false;
    bool together = state_.run.distributed->size() == 1;
    try {
      metrics = validation_->run(step(), options_.test_mode);
      together = true;  // the metrics are equal on all ranks
      wants_checkpoint = checkpoint_wanted_for(metrics);
    } catch (...) {
      together = together || validation_->failed_together();
      if (together && state_.wrapped.callbacks.empty()) save_failed(before);
      throw;
    }
    report("validation", metrics);
    progress_.last_validation = step();
    progress_.validation_due = false;
    result_.validation_metrics.clear();
    for (const auto& [name, value] : metrics.items()) {
      if (const auto number = read_double(value)) result_.validation_metrics[name] = *number;
    }
    if (wants_checkpoint) checkpoint_due_ = true;
  }

  /// The validation after the last batch. The state is saved and reported first, so that no batch is trained
  /// again, whatever ends the process.
  void validate_last() {
    progress_.validation_due = true;
    if (progress_.last_checkpoint != step()) save();
    await_checkpoints();
    validate();
  }

  /// Requests a validation at the next batch without pending gradients, at which a checkpoint can be saved
  /// too.
  void want_validation() { validation_wanted_ = true; }
  bool is_validation_ready() const { return validation_wanted_ && (is_between_windows() || is_done()); }
  /// Requests a checkpoint at the next batch without pending gradients.
  void want_checkpoint() { checkpoint_due_ = true; }
  /// Saves a requested checkpoint as soon as no gradients wait for an optimizer step.
  void save_if_due() {
    if (!checkpoint_due_ || !is_between_windows()) return;
    checkpoint_due_ = false;
    if (progress_.last_checkpoint != step()) save();
  }

  /// True when the last report of progress is old, as with slow batches between two periods.
  bool is_progress_due() const { return mono_now() - progress_reported_ >= kProgressInterval; }
  void report_progress() {
    progress_reported_ = mono_now();
    state_.run.client->report_progress(static_cast<double>(step()) / static_cast<double>(plan_.length),
                                       step());
  }

  /// Agrees with all ranks on preemption and stop requests, and reports checkpoints that became durable.
  /// Called after every batch.
  void consult_ranks() {
    std::vector<CheckpointRecord> saved = saver_.finished();
    // Preemption is sticky; the exchange makes all ranks act on it after the same batch.
    const RankVotes::Outcome outcome =
        votes_.exchange({state_.run.client->should_preempt(), state_.stop_requested,
                         static_cast<std::int64_t>(saved.size())});
    preempted_ = preempted_ || outcome.preempt;
    if (preempted_) begin_termination();  // other ranks learn of the preemption only here
    state_.stop_requested = outcome.stop;
    hand_on(saved, outcome.checkpoints);
  }
  /// True when training ends before its length is reached.
  bool is_terminating() const { return (preempted_ || state_.stop_requested) && is_between_windows(); }

  /// Ends training: saves and acknowledges a preemption, or makes the final report, validation and
  /// checkpoint. Returns when all checkpoints are durable.
  FitResult finish() {
    if (profile_) profile_->finish();
    if (!is_done() && !state_.stop_requested) {
      // The open metric window goes into the checkpoint; the run that completes the window reports it.
      want_checkpoint();
      save_if_due();
      // The master may start another run as soon as it has the acknowledgment, so
      // the checkpoint must be durable.
      await_checkpoints();
      state_.run.client->acknowledge_preemption();
      result_.reason = FitResult::Reason::kPreempted;
    } else {
      report_training();
      if (progress_.last_validation != step()) validate_last();
      if (progress_.last_checkpoint != step()) save();
      report_progress();
      await_checkpoints();
      result_.reason =
          state_.stop_requested ? FitResult::Reason::kStopRequested : FitResult::Reason::kCompleted;
    }
    for_callbacks("on_trial_shutdown", [](Callback& c) { c.on_trial_shutdown(); });
    asking_for("the end of training");
    result_.batches_trained = step();
    return result_;
  }

 private:
  /// Records the current activity for error messages.
  void asking_for(const char* what, std::int64_t batch = -1, Activity::Kind kind = Activity::Kind::kOther) {
    state_.activity = {what, batch, kind};
  }
  template <typename Call>
  void for_callbacks(const char* hook, const Call& call) {
    for (const auto& [name, callback] : state_.wrapped.callbacks) {
      asking_for(hook, step());
      call(*callback);
    }
  }

  /// The directory of the checkpoint to start from; "" to start from scratch. The chief selects the
  /// checkpoint for all ranks; each rank has it in its own storage directory.
  std::string starting_point() const {
    const TrialInfo& info = state_.run.info;
    std::string name = options_.latest_checkpoint.value_or(info.latest_checkpoint);
    if (name == "latest" && state_.run.distributed->is_chief()) {
      name = checkpoint_directory(info, name);
      name.erase(0, name.rfind('/') + 1);
    }
    name = state_.run.distributed->broadcast(name).get<std::string>();
    return name.empty() ? "" : checkpoint_directory(info, name);
  }

  /// Loads the checkpoint. A checkpoint of another trial provides weights only, not counters or metrics.
  /// Returns whether this trial continues.
  bool restore(const std::string& directory) {
    if (directory.empty()) return false;
    asking_for("the checkpoint to start from");
    const TrialState state =
        load_checkpoint(state_.run, state_.wrapped, directory, state_.gradients.exact.has_value());
    result_.checkpoint = directory;
    if (state_.run.distributed->is_chief()) {
      std::printf("starting from checkpoint %s, %s\n", directory.c_str(),
                  state.same_trial ? ("batch " + std::to_string(state.progress.steps_completed)).c_str()
                                   : "without its counters: it is another trial's");
    }
    if (!state.same_trial) return false;
    progress_ = state.progress;
    if (progress_.stop_length == plan_.length) state_.stop_requested = true;
    train_->restore_metrics(state.window);
    return true;
  }

  /// The searcher's metric of a validation; nullopt when the configuration names none. Throws
  /// std::invalid_argument when the validation lacks it.
  std::optional<double> searcher_value(const Json& metrics) const {
    if (metric_.name.empty()) return std::nullopt;
    const Json* value = metrics.contains(metric_.name) ? &metrics.at(metric_.name) : nullptr;
    const std::optional<double> number = value == nullptr ? std::nullopt : read_double(*value);
    if (number) return number;
    std::vector<std::string> names;
    for (const auto& [name, other] : metrics.items()) names.push_back(name);
    throw std::invalid_argument("searcher.metric is \"" + metric_.name +
                                "\", but the numbers of validation are: " + join(names, ", ") +
                                did_you_mean(metric_.name, names));
  }

  /// Applies the checkpoint policy to a validation. Updates the best value of the searcher's metric.
  bool checkpoint_wanted_for(const Json& metrics) {
    const std::optional<double> number = searcher_value(metrics);
    if (!number) return options_.checkpoint_policy != CheckpointPolicy::kNone;
    if (*number != *number && state_.run.distributed->is_chief()) {
      std::fprintf(stderr,
                   "warning: the searcher's metric %s is NaN after batch %lld; it is never the best\n",
                   metric_.name.c_str(), static_cast<long long>(step()));
    }
    const bool best = metric_.better(*number, progress_.best_validation);
    if (best) progress_.best_validation = number;
    return options_.checkpoint_policy == CheckpointPolicy::kAll ||
           (options_.checkpoint_policy == CheckpointPolicy::kBest && best);
  }

  /// The open metric window, for a checkpoint. It is reported and ends here when it cannot be saved: the data
  /// of a reducer, and more than kMaxWindowBytes. A resumed run then loses none of it. Collective.
  Json window_to_save() {
    if (state_.metric_reducers.has(MetricReducers::Kind::kTraining)) report_training();
    Json window = train_->save_metrics();
    // The window is equal on all ranks, so that all of them report or none does.
    if (dump_json(window).size() <= kMaxWindowBytes) return window;
    report_training();
    return train_->save_metrics();
  }

  void save() {
    asking_for("saving a checkpoint", step());
    Json window = window_to_save();
    const PhaseSpan span(state_.instruments.phases.get(), Phase::kCheckpoint);
    asking_for("saving a checkpoint", step());
    progress_.last_checkpoint = step();
    // A request that the ranks have not exchanged yet counts: this batch is not saved again.
    const bool stops = votes_.exchange({false, state_.stop_requested, 0}).stop;
    progress_.stop_length = stops ? plan_.length : -1;
    const std::string uuid = saver_.save({progress_, std::move(window)});
    under_way_.push_back(uuid);
    result_.checkpoint = state_.run.info.checkpoint_dir + "/" + uuid;
  }

  /// Saves the state before a validation that failed on all ranks alike. Between aggregation windows only;
  /// an error is printed, because that of the validation matters more. Collective.
  void save_failed(const GeneratorStates& before) {
    if (!is_between_windows() || progress_.last_checkpoint == step() || options_.test_mode) return;
    const Activity failed = state_.activity;
    before.restore();
    progress_.validation_due = true;
    try {
      save();
      await_checkpoints();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "warning: the state before the failed validation is lost: %s\n", error.what());
    }
    state_.activity = failed;
  }

  /// Waits until the saves under way are durable. Collective.
  void await_checkpoints() {
    const PhaseSpan span(state_.instruments.phases.get(), Phase::kCheckpoint);
    asking_for("writing a checkpoint", step());
    saver_.wait();
    const std::vector<CheckpointRecord> saved = saver_.finished();
    hand_on(saved, votes_.exchange({false, false, static_cast<std::int64_t>(saved.size())}).checkpoints);
  }

  /// Reports durable checkpoints and runs their callbacks. `records` is empty except on the chief;
  /// `count` is the same on all ranks.
  void hand_on(const std::vector<CheckpointRecord>& records, std::int64_t count) {
    for (const CheckpointRecord& record : records) state_.run.client->report_checkpoint(record);
    for (; count > 0; --count) {
      const std::string uuid = under_way_.front();
      under_way_.pop_front();
      // The batch at which a checkpoint becomes durable depends on the speed of the storage.
      const GeneratorGuard unchanged(state_.run.device);
      for_callbacks("on_checkpoint_upload_end", [&](Callback& c) { c.on_checkpoint_upload_end(uuid); });
    }
  }

  /// Reports metrics to the client and to TensorBoard. Adds "batches" and "epochs" unless the trial
  /// returned metrics of these names.
  void report(const char* group, Json metrics) {
    const bool is_validation = group == std::string("validation");
    if (state_.instruments.tensorboard_logging && state_.run.distributed->is_chief()) {
      TensorBoard& board = context_.get_tensorboard_writer();
      for (const auto& [name, value] : metrics.items()) {
        if (const auto number = read_double(value)) {
          board.add_scalar((is_validation ? "Determined/val_" : "Determined/") + name, *number, step());
        }
      }
    }
    if (state_.instruments.tensorboard != nullptr) state_.instruments.tensorboard->flush();
    if (!metrics.contains("batches")) metrics["batches"] = step();
    if (!metrics.contains("epochs")) metrics["epochs"] = step() / train_->batches_per_epoch();
    state_.run.client->report_metrics(group, step(), metrics);
  }

  Trial& trial_;
  TrialContext& context_;
  ContextState& state_;
  const FitOptions& options_;
  SearcherMetric metric_;
  RankVotes votes_;
  CheckpointSaver saver_;
  std::optional<SystemMetrics> machine_;
  std::optional<ProfileOnRequest> profile_;  ///< chief only
  std::optional<TrainStep> train_;
  std::optional<Validation> validation_;
  Plan plan_;
  Progress progress_;
  MonoTime progress_reported_ = mono_now();
  std::int64_t timed_from_ = 0;  ///< batch of the last report of phase times
  bool preempted_ = false, checkpoint_due_ = false, validation_wanted_ = false;
  std::deque<std::string> under_way_;  // uuids being written, oldest first; the same on all ranks
  FitResult result_;
};

}  // namespace

FitResult Trainer::fit(const FitOptions& options) {
  Fit run(trial_, context_, options);
  if (run.step() == 0) run.check_sanity();
  if (run.is_validation_due()) {
    run.validate();
    run.save_if_due();
  }

  while (!run.is_done() && !run.is_terminating()) {
    run.train_one_batch();
    // Validation precedes the checkpoint because its result may request one; not so after the last batch.
    const Boundary due = boundary_after(run.plan(), run.step());
    if (due.validate) run.want_validation();
    const bool validates = run.is_validation_ready();
    if (due.report || due.checkpoint || validates) run.report_training();
    if (validates) run.is_done() ? run.validate_last() : run.validate();
    if (due.checkpoint) run.want_checkpoint();
    run.save_if_due();
    if (due.report || run.is_progress_due()) run.report_progress();
    run.consult_ranks();
  }
  return run.finish();
}

}  // namespace det
