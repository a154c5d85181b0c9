// A valid experiment configuration as plain data, every default filled in. Fields are named as in the YAML.
// parse.h reads and checks it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace det::expconf {

/// A training length. Determined AI's `max_steps` (100 batches each) is converted to batches.
struct Length {
  enum class Unit { kBatches, kRecords, kEpochs };
  Unit unit = Unit::kBatches;
  std::int64_t count = 0;
  bool operator==(const Length&) const = default;
};

struct Hyperparameter;
/// Ordered by name. The samplers draw hyperparameters in this order.
using HyperparameterMap = std::map<std::string, Hyperparameter>;

/// One entry of `hyperparameters`: a constant, a range, a choice, or a nested map. The members in use depend
/// on `type`.
struct Hyperparameter {
  enum class Type { kConst, kInt, kDouble, kLog, kCategorical, kNested };
  Type type = Type::kConst;
  /// kConst: the value.
  nlohmann::json value;
  /// kInt: inclusive bounds.
  std::int64_t int_min = 0, int_max = 0;
  /// kDouble: bounds. kLog: bounds of the exponent.
  double min = 0, max = 0;
  /// kLog: base of the power.
  double base = 0;
  /// kCategorical: the choices.
  std::vector<nlohmann::json> values;
  /// Number of values along this axis of a grid search.
  std::optional<std::int64_t> count;
  /// kNested: the inner map.
  HyperparameterMap children;
};

/// Section `searcher`. Members that the search `name` does not use keep their defaults.
struct SearcherConfig {
  /// "single", "random", "grid", "async_halving" or "adaptive_asha".
  std::string name;
  /// Validation metric that the search compares.
  std::string metric;
  bool smaller_is_better = true;
  std::int64_t max_trials = 1;
  std::int64_t max_concurrent_trials = 16;  ///< 0: unlimited
  /// Halving searches: 1 / divisor of the trials pass a rung.
  double divisor = 4;
  std::int64_t num_rungs = 1;  ///< async_halving only
  /// adaptive_asha: "aggressive", "standard" or "conservative".
  std::string mode = "standard";
  std::int64_t max_rungs = 5;  ///< adaptive_asha only
  /// adaptive_asha: rungs of each bracket; empty: derived from mode.
  std::vector<std::int64_t> bracket_rungs;
  /// Halving searches: fate of a trial at a rung. "stop": it ends unless it is among the best. "promote": it
  /// is held, and continues once it is among the best.
  std::string rung_policy = "stop";
  /// Source of new trials: "random" or "tpe".
  std::string sampler = "random";
  std::optional<Length> max_length;
  std::string time_metric;
  /// Longest training of a trial, in units of time_name().
  std::optional<std::int64_t> max_time;
  /// Warm start: checkpoints that every trial starts from. At most one of the two is set.
  std::optional<std::int64_t> source_trial_id;
  std::string source_checkpoint_uuid;

  /// Returns the metric that counts training time: time_metric, else the unit of max_length, else "batches".
  std::string time_name() const;
  /// Returns whether reported metrics influence the next decisions of the search. If false, metrics only
  /// select the best trial.
  bool decides_by_metric() const;
};

/// Section `resources`.
struct Resources {
  int slots_per_trial = 1;
  std::string resource_pool;  ///< "": the default pool
  /// Smaller runs first, 1 to 99.
  int priority = 42;
  /// Limit of the slots that all trials of the experiment hold together.
  std::optional<int> max_slots;
  /// Share of the resource pool under fair sharing.
  double weight = 1;
  /// Whether all slots of a trial must be on one agent.
  bool is_single_node = false;
};

/// Section `checkpoint_storage`: location, and how many checkpoints garbage collection keeps.
struct CheckpointStorage {
  std::string type = "shared_fs";  ///< "shared_fs", "directory" or "s3"
  std::string host_path;           ///< shared_fs: absolute path
  std::string storage_path;        ///< shared_fs: path below host_path
  /// directory: absolute path; s3: name of the bucket location.
  std::string container_path;
  int save_experiment_best = 0, save_trial_best = 1, save_trial_latest = 1;
  /// Returns the directory, or the bucket location, that holds the checkpoints.
  std::string root() const;
};

/// A valid experiment configuration. Immutable once the experiment exists.
struct ExperimentConfig {
  std::string name;
  std::string description;
  std::vector<std::string> labels;
  nlohmann::json data = nlohmann::json::object();
  std::string workspace, project;
  /// One command line for `sh -c`, or an argument vector. "module:Class" (no spaces) selects a compiled trial
  /// class.
  std::vector<std::string> entrypoint;
  /// Whether the YAML had a list.
  bool entrypoint_is_list = false;
  /// Restarts of a failed trial before it counts as errored.
  int max_restarts = 5;
  HyperparameterMap hyperparameters;
  SearcherConfig searcher;
  Resources resources;
  std::map<std::string, std::string> environment_variables;
  CheckpointStorage checkpoint_storage;
  /// "best", "all" or "none": which validations write a checkpoint.
  std::string checkpoint_policy = "best";
  Length min_checkpoint_period, min_validation_period;  ///< 0: never periodic
  bool perform_initial_validation = false;
  std::int64_t records_per_epoch = 0;
  std::int64_t scheduling_unit = 100;  ///< batches between reports
  std::uint32_t experiment_seed = 0;
  std::int64_t preemption_timeout = 3600;  ///< seconds
  /// Seconds; 0: hangs are not detected.
  std::int64_t hang_timeout = 3600;
  bool debug = false;
  /// The whole configuration as JSON with every default filled in; this is stored, displayed and passed to
  /// the harness.
  nlohmann::ordered_json resolved;

  /// Path of the package in the model directory if the entrypoint is a compiled step ("step.pt2"), else "".
  std::string compiled_step() const;
  /// Returns (module, class) if the entrypoint has the form "module:Class".
  std::optional<std::pair<std::string, std::string>> trial_class() const;
};

/// Returns a copy with other totals of the search, in `searcher` and in `resolved`; used for the trials of an
/// extended search. `max_time` 0: unchanged. Returns `config` itself if nothing changes.
std::shared_ptr<const ExperimentConfig> with_totals(std::shared_ptr<const ExperimentConfig> config,
                                                    std::int64_t max_trials, std::int64_t max_time);

}  // namespace det::expconf
