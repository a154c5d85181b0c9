#include "master/expconf/config.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

namespace det::expconf {
namespace {

/// A dotted name: "model_def", "pkg.module", "Outer.Nested".
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
  if (type == "directory") return container_path;
  if (storage_path.empty()) return host_path;
  // An absolute storage_path replaces host_path; the check saw that it lies below it.
  return (std::filesystem::path(host_path) / storage_path).lexically_normal().string();
}

std::optional<std::pair<std::string, std::string>> ExperimentConfig::trial_class() const {
  if (entrypoint_is_list || entrypoint.size() != 1) return std::nullopt;
  const std::string& text = entrypoint.front();
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  std::string module = text.substr(0, colon), name = text.substr(colon + 1);
  if (!is_dotted_name(module) || !is_dotted_name(name)) return std::nullopt;
  return std::pair(std::move(module), std::move(name));
}

}  // namespace det::expconf
