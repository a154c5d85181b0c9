// Owns Trainer::fit: how long to train, and when to report, validate and save.
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

/// A length of training, or a list of moments. Records are made batches by the global batch size, epochs by
/// the training loader.
struct Length {
  enum class Unit { kBatches, kEpochs, kRecords };
  Unit unit = Unit::kBatches;
  int64_t count = 0;
  std::vector<int64_t> at = {};  ///< for periods: exactly after these many, instead of every `count`
};
struct Batches : Length {
  explicit Batches(int64_t count) : Length{Unit::kBatches, count} {}
  explicit Batches(std::vector<int64_t> at) : Length{Unit::kBatches, 0, std::move(at)} {}
};
struct Epochs : Length {
  explicit Epochs(int64_t count) : Length{Unit::kEpochs, count} {}
  explicit Epochs(std::vector<int64_t> at) : Length{Unit::kEpochs, 0, std::move(at)} {}
};
struct Records : Length {
  explicit Records(int64_t count) : Length{Unit::kRecords, count} {}
  explicit Records(std::vector<int64_t> at) : Length{Unit::kRecords, 0, std::move(at)} {}
};

/// What a validation does about checkpoints. Those of checkpoint_period, of a pause and of the end are made
/// anyway.
enum class CheckpointPolicy {
  kBest,  ///< save when the searcher's metric is the best of this trial so far; without a searcher as kAll
  kAll,
  kNone,
};

/// Absent periods mean never. With `entrypoint: model_def:Class` all of it comes from the experiment
/// configuration.
struct FitOptions {
  std::optional<Length> max_length;  ///< absent: searcher.max_length of the configuration
  std::optional<Length> checkpoint_period;
  std::optional<Length> validation_period;
  Length reporting_period = Batches(100);  ///< training metrics and progress
  CheckpointPolicy checkpoint_policy = CheckpointPolicy::kBest;
  /// Where to start: a checkpoint's directory, its uuid in the checkpoint storage, or "latest" for the newest
  /// complete one there. Absent: on a cluster what the cluster says, else from the beginning.
  std::optional<std::string> latest_checkpoint;
  bool step_zero_validation = false;  ///< validate once before the first batch
  bool test_mode = false;             ///< train, validate and save one batch, then leave
  /// Report what the machine does (CPU, memory, disk, network, GPU) as metrics, and in the group "timing" the
  /// seconds a batch of each phase: data, forward, backward, exchange, optimizer, validation, checkpoint,
  /// report, other.
  bool profiling_enabled = false;
  /// A training loss that is infinite or NaN ends the trial with an error that names the batch.
  bool stop_on_bad_loss = true;
};

struct FitResult {
  enum class Reason { kCompleted, kStopRequested, kPreempted };
  Reason reason = Reason::kCompleted;
  int64_t batches_trained = 0;
  std::map<std::string, double> validation_metrics;  ///< of the last validation of this call; may be empty
  std::string checkpoint;  ///< directory of the newest checkpoint; "" when none was made
};

/// Trains a trial. The same call works in a script and on a cluster; there it reports to the master, and
/// leaves early with kPreempted and a checkpoint when the cluster wants the slots back: the script should
/// then return.
class Trainer {
 public:
  Trainer(Trial& trial, TrialContext& context) : trial_(trial), context_(context) {}

  /// At a batch where several things are due the order is: training metrics, validation, checkpoint,
  /// progress. At the end validates and saves what has not been validated or saved. Once per Trainer. Throws
  /// std::invalid_argument for options that cannot work, std::runtime_error for a checkpoint that cannot be
  /// read or written, and whatever the trial throws.
  FitResult fit(const FitOptions& options = {});

 private:
  Trial& trial_;
  TrialContext& context_;
};

/// The options an experiment configuration asks for: searcher.max_length / max_time / max_steps,
/// min_validation_period, min_checkpoint_period, scheduling_unit, checkpoint_policy,
/// perform_initial_validation.
FitOptions fit_options(const Json& experiment_config);

struct InitOptions {
  std::string config_file;       ///< an experiment configuration in YAML; not read on a cluster
  std::optional<Json> exp_conf;  ///< the configuration itself, instead of config_file
  std::optional<Json> hparams;   ///< instead of those of the configuration
  std::string model_dir;         ///< copied into checkpoints as code/; "" for none
  std::string checkpoint_dir;    ///< without a cluster; "" is the configuration's storage, else ./checkpoints
  std::optional<int64_t> aggregation_frequency;  ///< instead of optimizations.aggregation_frequency
  bool enable_tensorboard_logging = true;
};

/// The top of a training program: makes the context (from the cluster's environment when there is one; one of
/// several processes when a launcher says so), calls `body`, and turns how it ended into main's exit code. An
/// exception is printed, named, and is 1. Sets up threads (OMP_NUM_THREADS) and memory for training.
int run(const std::function<void(TrialContext&)>& body, const InitOptions& options = {});

/// The same context for a program with a main of its own: `det::TrialContext context = det::init();`. An
/// exception that leaves main ends as under run(). One at a time.
TrialContext init(const InitOptions& options = {});

}  // namespace det
