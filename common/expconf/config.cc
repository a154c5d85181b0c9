#include "common/expconf/config.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "common/base/text.h"

namespace det::expconf {
namespace {

/// Whether `text` is a dotted name: "model_def", "pkg.module", "Outer.Nested".
bool is_dotted_name(std::string_view text) {
  bool start = true;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    const bool digit = c >= '0' && c <= '9';
    if (c == '.' ? start : !letter && (start || !digit)) return false;
    start = c == '.';
  }
  return !start;
}

}  // namespace

std::string SearcherConfig::time_name() const {
  if (!time_metric.empty()) return time_metric;
  if (!max_length || max_length->unit == Length::Unit::kBatches) return "batches";
  return max_length->unit == Length::Unit::kRecords ? "records" : "epochs";
}

bool SearcherConfig::decides_by_metric() const {
  return name == "async_halving" || name == "adaptive_asha" || sampler == "tpe";
}

std::string CheckpointStorage::root() const {
  if (type == "directory" || type == "s3") return container_path;
  if (storage_path.empty()) return host_path;
  // An absolute storage_path replaces host_path; validation has ensured that it lies below host_path.
  return (std::filesystem::path(host_path) / storage_path).lexically_normal().string();
}

std::optional<std::pair<std::string, std::string>> ExperimentConfig::trial_class() const {
  // A list is always a command line.
  if (entrypoint_is_list || entrypoint.size() != 1) return std::nullopt;
  const std::string& text = entrypoint.front();
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  std::pair trial(text.substr(0, colon), text.substr(colon + 1));
  if (!is_dotted_name(trial.first) || !is_dotted_name(trial.second)) return std::nullopt;
  return trial;
}

std::string ExperimentConfig::compiled_step() const {
  return !entrypoint_is_list && entrypoint.size() == 1 && is_compiled_step(entrypoint.front())
             ? entrypoint.front()
             : "";
}

std::shared_ptr<const ExperimentConfig> with_totals(std::shared_ptr<const ExperimentConfig> config,
                                                    std::int64_t max_trials, std::int64_t max_time) {
  const SearcherConfig& now = config->searcher;
  const std::int64_t time = now.max_time ? *now.max_time : now.max_length ? now.max_length->count : 0;
  if (max_trials == now.max_trials && (max_time == 0 || max_time == time)) return config;
  auto changed = std::make_shared<ExperimentConfig>(*config);
  // The resolved JSON changes only where a value was set, so that it stays in the form of the submission.
  nlohmann::ordered_json& resolved = changed->resolved["searcher"];
  changed->searcher.max_trials = max_trials;
  if (resolved.contains("max_trials")) resolved["max_trials"] = max_trials;
  if (max_time == 0) return changed;
  if (now.max_time) {
    changed->searcher.max_time = max_time;
    resolved["max_time"] = max_time;
  }
  if (!now.max_length) return changed;
  changed->searcher.max_length->count = max_time;
  nlohmann::ordered_json& length = resolved["max_length"];
  if (length.is_object() && length.size() == 1) {
    length.begin().value() = max_time;
  } else {
    length = max_time;
  }
  return changed;
}

}  // namespace det::expconf
