// Owns what an experiment configuration means once it is valid: plain data, every default filled in. Field
// names are those of the YAML (determined-0.38 §1). Reading and checking live in parse.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace det::expconf {

/// A training length. Upstream's `max_steps` counts 100 batches each and arrives here as batches.
struct Length {
  enum class Unit { kBatches, kRecords, kEpochs };
  Unit unit = Unit::kBatches;
  std::int64_t count = 0;
  bool operator==(const Length&) const = default;
};

struct Hyperparameter;
using HyperparameterMap = std::map<std::string, Hyperparameter>;  ///< sorted: sampling order is the key order

struct Hyperparameter {
  enum class Type { kConst, kInt, kDouble, kLog, kCategorical, kNested };
  Type type = Type::kConst;
  nlohmann::json value;                   ///< kConst
  std::int64_t int_min = 0, int_max = 0;  ///< kInt, both inclusive
  double min = 0, max = 0;                ///< kDouble; exponents for kLog
  double base = 0;                        ///< kLog
  std::vector<nlohmann::json> values;     ///< kCategorical
  std::optional<std::int64_t> count;      ///< grid points
  HyperparameterMap children;             ///< kNested
};

struct SearcherConfig {
  std::string name;  ///< "single", "random", "grid", "async_halving" or "adaptive_asha"
  std::string metric;
  bool smaller_is_better = true;
  std::int64_t max_trials = 1;
  std::int64_t max_concurrent_trials = 16;  ///< 0: no limit
  double divisor = 4;                       ///< of the halving ones: one in so many passes a rung
  std::int64_t num_rungs = 1;               ///< async_halving
  std::string mode = "standard";            ///< adaptive_asha: "aggressive", "standard" or "conservative"
  std::int64_t max_rungs = 5;               ///< adaptive_asha
  std::vector<std::int64_t> bracket_rungs;  ///< adaptive_asha: rungs of each bracket; empty: by mode
  /// What happens at a rung to a trial that is not among the best: "stop", or "promote": every trial waits
  /// there, and goes on when it is.
  std::string rung_policy = "stop";
  std::string sampler = "random";  ///< where new trials come from: "random" or "tpe"
  std::optional<Length> max_length;
  std::string time_metric;
  std::optional<std::int64_t> max_time;
  std::optional<std::int64_t> source_trial_id;
  std::string source_checkpoint_uuid;

  /// The metric that says how far a trial has come: time_metric, else the unit of max_length.
  std::string time_name() const;
  /// Whether what a trial reports changes what the search does next; else metrics only tell which trial is
  /// best.
  bool decides_by_metric() const;
};

struct Resources {
  int slots_per_trial = 1;
  std::string resource_pool;  ///< "" is the cluster's default
  int priority = 42;
  std::optional<int> max_slots;
  double weight = 1;
  bool is_single_node = false;
};

struct CheckpointStorage {
  std::string type = "shared_fs";  ///< "shared_fs" or "directory"
  std::string host_path;           ///< shared_fs: absolute
  std::string storage_path;        ///< shared_fs: below host_path
  std::string container_path;      ///< directory
  int save_experiment_best = 0, save_trial_best = 1, save_trial_latest = 1;
  /// The directory checkpoints live in.
  std::string root() const;
};

struct ExperimentConfig {
  std::string name;
  std::string description;
  std::vector<std::string> labels;
  nlohmann::json data = nlohmann::json::object();
  std::string workspace, project;
  /// One command line for `sh -c`, or an argv. "module:Class" (no spaces) names a compiled trial class.
  std::vector<std::string> entrypoint;
  bool entrypoint_is_list = false;
  int max_restarts = 5;
  HyperparameterMap hyperparameters;
  SearcherConfig searcher;
  Resources resources;
  std::map<std::string, std::string> environment_variables;
  CheckpointStorage checkpoint_storage;
  std::string checkpoint_policy = "best";
  Length min_checkpoint_period, min_validation_period;  ///< 0: never periodic
  bool perform_initial_validation = false;
  std::int64_t records_per_epoch = 0;
  std::int64_t scheduling_unit = 100;  ///< batches between reports
  std::uint32_t experiment_seed = 0;
  std::int64_t preemption_timeout = 3600;  ///< seconds
  std::int64_t hang_timeout = 3600;        ///< seconds; 0: a trial never counts as hung
  bool debug = false;
  /// The whole configuration as JSON with every default filled in: what is stored, shown and given to the
  /// harness.
  nlohmann::ordered_json resolved;

  /// "module:Class" when the entrypoint is of that form.
  std::optional<std::pair<std::string, std::string>> trial_class() const;
};

/// The same with other totals of the search, in `searcher` and in `resolved`: what a search that was extended
/// gives to its trials. `max_time` 0: none. The argument itself when nothing changes.
std::shared_ptr<const ExperimentConfig> with_totals(std::shared_ptr<const ExperimentConfig> config,
                                                    std::int64_t max_trials, std::int64_t max_time);

}  // namespace det::expconf
