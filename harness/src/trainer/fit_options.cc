// Options of a fit() from the experiment configuration, and their conversion to batches.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/base/json.h"
#include "harness/src/client/setting.h"
#include "harness/src/trainer/plan.h"

namespace det {
namespace {

/// Reads `{batches: n}`, `{records: n}`, `{epochs: n}` or n (batches). nullopt when absent or 0.
std::optional<Length> read_length(const Json& config, const std::string& path) {
  const Json* value = find_setting(config, path);
  if (value == nullptr) return std::nullopt;
  const auto refuse = [&]() {
    throw std::invalid_argument(path + ": expected {batches: n}, {records: n} or {epochs: n}, got " +
                                dump_json(*value));
  };
  Length length;
  if (value->is_number_integer()) {
    length.count = value->get<std::int64_t>();
  } else {
    if (!value->is_object() || value->size() != 1 || !value->begin()->is_number_integer()) refuse();
    const std::string& unit = value->begin().key();
    if (unit != "batches" && unit != "epochs" && unit != "records") refuse();
    length.unit = unit == "batches"  ? Length::Unit::kBatches
                  : unit == "epochs" ? Length::Unit::kEpochs
                                     : Length::Unit::kRecords;
    length.count = value->begin()->get<std::int64_t>();
  }
  if (length.count < 1) return std::nullopt;
  return length;
}

/// The training length of the searcher's configuration: max_length, max_steps or max_time.
std::optional<Length> read_max_length(const Json& config, std::int64_t scheduling_unit) {
  if (auto length = read_length(config, "searcher.max_length")) return length;
  const auto steps = optional_setting<std::int64_t>(config, "searcher.max_steps");
  if (steps && *steps > 0) return Batches(*steps * scheduling_unit);
  const auto time = optional_setting<std::int64_t>(config, "searcher.max_time");
  const auto metric = optional_setting<std::string>(config, "searcher.time_metric");
  if (!time || *time < 1) return std::nullopt;
  if (metric == "batches") return Batches(*time);
  if (metric == "epochs") return Epochs(*time);
  return std::nullopt;
}

/// Lengths at which a rung-based search compares its trials. The search needs a validation at each of them,
/// even when periodic validation is not configured. The rungs of all brackets are included, because a trial
/// does not have the number of its bracket. The master names the rungs of an extended search.
std::optional<Length> rungs_of(const Json& config, const std::optional<Length>& longest) {
  const auto name = optional_setting<std::string>(config, "searcher.name");
  if (!longest || (name != "async_halving" && name != "adaptive_asha")) return std::nullopt;
  if (const Json* told = find_setting(config, "searcher.rungs")) {
    Length rungs{longest->unit};
    rungs.at = told->get<std::vector<std::int64_t>>();
    return rungs;
  }
  const auto divisor = setting<double>(config, "searcher.divisor");
  if (!(divisor > 1)) return std::nullopt;
  const bool adaptive = name == "adaptive_asha";
  const auto count = [&](const char* path) {
    return optional_setting<std::int64_t>(config, path).value_or(1);
  };
  std::int64_t most = count(adaptive ? "searcher.max_rungs" : "searcher.num_rungs");
  bool limited = adaptive;
  if (adaptive) {
    for (const Json& rungs : *find_setting(config, "searcher.bracket_rungs")) {
      if (limited) most = 1;
      limited = false;
      if (rungs.is_number_integer()) most = std::max(most, rungs.get<std::int64_t>());
    }
  }
  // Unless bracket_rungs is set, a bracket has at most as many rungs as its trials can fill.
  const auto trials = static_cast<double>(count("searcher.max_trials"));
  Length rungs{longest->unit};
  double share = 1;
  for (std::int64_t rung = 0; rung < most; ++rung, share *= divisor) {
    if (limited && (share > trials || share > static_cast<double>(longest->count))) break;
    rungs.at.push_back(
        std::max<std::int64_t>(static_cast<std::int64_t>(static_cast<double>(longest->count) / share), 1));
  }
  std::sort(rungs.at.begin(), rungs.at.end());
  rungs.at.erase(std::unique(rungs.at.begin(), rungs.at.end()), rungs.at.end());
  return rungs;
}

}  // namespace

FitOptions fit_options(const Json& config) {
  FitOptions options;
  const std::int64_t unit = setting<std::int64_t>(config, "scheduling_unit");
  options.reporting_period = Batches(unit);
  options.max_length = read_max_length(config, unit);
  options.validation_period = read_length(config, "min_validation_period");
  if (!options.validation_period) options.validation_period = rungs_of(config, options.max_length);
  options.checkpoint_period = read_length(config, "min_checkpoint_period");
  options.step_zero_validation = setting<bool>(config, "perform_initial_validation");
  if (!setting<bool>(config, "sanity_validation")) options.sanity_batches = 0;
  options.profiling_enabled = setting<bool>(config, "profiling.enabled");
  const auto policy = setting<std::string>(config, "checkpoint_policy");
  if (policy == "best") {
    options.checkpoint_policy = CheckpointPolicy::kBest;
  } else if (policy == "all") {
    options.checkpoint_policy = CheckpointPolicy::kAll;
  } else if (policy == "none") {
    options.checkpoint_policy = CheckpointPolicy::kNone;
  } else {
    throw std::invalid_argument("checkpoint_policy: expected best, all or none, got \"" + policy + "\"");
  }
  return options;
}

namespace {

std::int64_t in_batches(Length::Unit unit, std::int64_t count, const std::string& option,
                        std::int64_t batches_per_epoch, const TrialContext& context) {
  if (count < 1) throw std::invalid_argument("fit: " + option + " must be at least 1");
  switch (unit) {
    case Length::Unit::kBatches:
      return count;
    case Length::Unit::kEpochs:
      if (batches_per_epoch == kEndless) {
        throw std::invalid_argument("fit: " + option +
                                    ": the training data has no size, so it has no epochs; use batches");
      }
      return count * batches_per_epoch;
    case Length::Unit::kRecords:
      break;
  }
  // Records are the only unit that needs the hyperparameter global_batch_size.
  return std::max<std::int64_t>(count / context.get_global_batch_size(), 1);
}

}  // namespace

Plan make_plan(const FitOptions& options, std::int64_t batches_per_epoch, const TrialContext& context) {
  // One batch, reported at once; validation and checkpoint follow at the end of training.
  if (options.test_mode) return {.length = 1, .reporting = {.every = 1}};
  const auto period = [&](const std::optional<Length>& length, const char* option) {
    Period found;
    if (!length) return found;
    for (const std::int64_t moment : length->at) {
      found.at.push_back(in_batches(length->unit, moment, option, batches_per_epoch, context));
    }
    std::sort(found.at.begin(), found.at.end());
    if (length->at.empty())
      found.every = in_batches(length->unit, length->count, option, batches_per_epoch, context);
    return found;
  };
  const std::optional<Length> length =
      options.max_length ? options.max_length : fit_options(context.get_experiment_config()).max_length;
  if (!length) {
    throw std::invalid_argument(
        "fit: how long to train is unknown; give max_length, e.g. {.max_length = det::Epochs(1)}, or "
        "searcher.max_length in the configuration");
  }
  // Whole aggregation windows: batches of a window without its last one would never reach an optimizer.
  const std::int64_t window = context.aggregation().frequency;
  const std::int64_t batches =
      in_batches(length->unit, length->count, "max_length", batches_per_epoch, context);
  return {.length = (batches + window - 1) / window * window,
          .reporting = period(options.reporting_period, "reporting_period"),
          .validation = period(options.validation_period, "validation_period"),
          .checkpoint = period(options.checkpoint_period, "checkpoint_period")};
}

}  // namespace det
