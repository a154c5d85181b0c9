// Trainer: the training loop of a trial, with its periods of reporting, validation and checkpoints; and the
// entry points det::run and det::init.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "det/context.h"
#include "det/trial.h"

namespace det {

/// A length of training, or a period. Records are converted to batches by the global batch size (rounded
/// down, at least 1), epochs by the length of the training loader.
struct Length {
  enum class Unit { kBatches, kEpochs, kRecords };
  Unit unit = Unit::kBatches;
  int64_t count = 0;
  std::vector<int64_t> at = {};  ///< for periods: due after exactly these, not every `count`
};
/// Lengths in batches, epochs and records: `Epochs(5)`, `Batches({100, 1000})`.
struct Batches : Length {
  explicit Batches(int64_t batches) : Length{Unit::kBatches, batches} {}
  explicit Batches(std::vector<int64_t> points) : Length{Unit::kBatches, 0, std::move(points)} {}
};
struct Epochs : Length {
  explicit Epochs(int64_t epochs) : Length{Unit::kEpochs, epochs} {}
  explicit Epochs(std::vector<int64_t> points) : Length{Unit::kEpochs, 0, std::move(points)} {}
};
struct Records : Length {
  explicit Records(int64_t records) : Length{Unit::kRecords, records} {}
  explicit Records(std::vector<int64_t> points) : Length{Unit::kRecords, 0, std::move(points)} {}
};

/// Whether a validation leads to a checkpoint. Checkpoints of checkpoint_period, of a preemption and of the
/// end of training are saved regardless.
enum class CheckpointPolicy {
  /// Save when the searcher's metric is the best of this trial so far. Without a searcher metric: as kAll.
  kBest,
  kAll,
  kNone,
};

/// Options of Trainer::fit. A period that is absent is never due. With `entrypoint: model_def:Class` all
/// options come from the experiment configuration.
struct FitOptions {
  std::optional<Length> max_length;  ///< absent: searcher.max_length of the configuration
  /// Periods of checkpoints and validations.
  std::optional<Length> checkpoint_period;
  std::optional<Length> validation_period;
  Length reporting_period = Batches(100);  ///< training metrics and progress
  CheckpointPolicy checkpoint_policy = CheckpointPolicy::kBest;
  /// Checkpoint to start from: a directory, a uuid in the checkpoint storage, or "latest" for the newest
  /// complete one there. Absent: on a cluster the checkpoint that the master selects, else none.
  std::optional<std::string> latest_checkpoint;
  bool step_zero_validation = false;  ///< validate before the first batch of a trial
  /// Validation batches that evaluate_batch gets before the first batch of a trial, so that its errors and a
  /// wrong searcher.metric end the trial before it has trained; 0: none. No report, no callback; models,
  /// buffers and generators are put back. Skipped for trials with evaluate_full_dataset and for a
  /// BatchSource. The storage of checkpoints is tried, too.
  int64_t sanity_batches = 2;
  /// Train one batch, validate one batch, save a checkpoint, and return. Not allowed on a cluster.
  bool test_mode = false;
  /// Report in the group "timing" the seconds per batch of each phase: data, forward, backward, exchange,
  /// optimizer, validation, checkpoint, report, other. Without a cluster also the utilization of the machine
  /// (CPU, memory, disk, network, GPU), which is reported on a cluster in any case; see ProfilerContext.
  bool profiling_enabled = false;
  /// Fail with an error that names the batch when the training loss is infinite or NaN.
  bool stop_on_bad_loss = true;
};

/// Result of Trainer::fit.
struct FitResult {
  /// Why training ended: its length is reached, set_stop_requested(), or preemption.
  enum class Reason { kCompleted, kStopRequested, kPreempted };
  Reason reason = Reason::kCompleted;
  /// Batches of the trial, including those before a resume.
  int64_t batches_trained = 0;
  std::map<std::string, double> validation_metrics;  ///< of the last validation of this call; may be empty
  /// Directory of the newest checkpoint, or of the one training started from; "" without any.
  std::string checkpoint;
};

/// Trains a trial, in a script or on a cluster. On a cluster it reports to the master. When the cluster
/// preempts the trial, fit() saves a checkpoint and returns kPreempted; the program should then exit.
class Trainer {
 public:
  /// `trial` and `context` must outlive the trainer.
  Trainer(Trial& trial, TrialContext& context) : trial_(trial), context_(context) {}

  /// Trains until the length is reached, a stop is requested, or the trial is preempted. Blocks; must be
  /// called at most once per Trainer, by all ranks. When several actions are due after a batch, their order
  /// is: training metrics, validation, checkpoint, progress. Validations and checkpoints that are due within
  /// an aggregation window follow its last batch. At the end it saves and validates what has not been saved
  /// or validated yet. The state before a validation that fails is in a checkpoint, and a run that starts
  /// from that checkpoint validates first. With callbacks this holds for the last
  /// validation only, because hooks may have changed the state.
  ///
  /// Throws std::invalid_argument for invalid options, std::runtime_error for a checkpoint that cannot be
  /// read or written, and exceptions of the trial.
  FitResult fit(const FitOptions& options = {});

 private:
  Trial& trial_;
  TrialContext& context_;
};

/// Returns the options that an experiment configuration specifies: searcher.max_length (or max_time,
/// max_steps), min_validation_period, min_checkpoint_period, scheduling_unit, checkpoint_policy,
/// perform_initial_validation, sanity_validation and profiling.enabled. For a search with rungs and no
/// validation period, validations are due at the rungs. Throws std::invalid_argument naming an invalid field.
FitOptions fit_options(const Json& experiment_config);

/// Options of run() and init().
struct InitOptions {
  std::string config_file;       ///< experiment configuration in YAML; ignored on a cluster
  std::optional<Json> exp_conf;  ///< the configuration itself, in place of config_file
  std::optional<Json> hparams;   ///< in place of those of the configuration
  std::string model_dir;         ///< directory copied into checkpoints as code/; "" for none
  /// Directory of checkpoints without a cluster; "" selects the configuration's storage, else ./checkpoints.
  std::string checkpoint_dir;
  /// Batches per optimizer step, in place of optimizations.aggregation_frequency.
  std::optional<int64_t> aggregation_frequency;
  /// Write reported metrics to TensorBoard event files.
  bool enable_tensorboard_logging = true;
};

/// Main function of a training program: creates the context, calls `body`, flushes reports, and returns the
/// exit code for main. The identity comes from the environment of the cluster and of the launcher, if
/// present. The code is 0, also after det::InvalidHP. After any other exception it tells whether a restart
/// can help (guides/core_api.md, "Exit codes"), and the exception is printed with the phase, the batch and
/// the line of the trial's code. So are crashes, exceptions that leave a thread, and calls of exit() in
/// `body`. Sets the number of threads (OMP_NUM_THREADS) and memory allocation options for training.
int run(const std::function<void(TrialContext&)>& body, const InitOptions& options = {});

/// Creates the context for a program with its own main: `det::TrialContext context = det::init();`. Installs
/// a terminate handler, so that an exception that leaves main is handled as by run(). At most one context at
/// a time.
TrialContext init(const InitOptions& options = {});

}  // namespace det
