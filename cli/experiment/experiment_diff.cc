// `det experiment diff`: differences between two experiments: code, configuration, environment, metrics. The
// order is that of a search for the cause of a different result.
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/experiment/experiment_verbs.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "cli/output/terminal.h"
#include "cli/output/text_diff.h"
#include "common/archive/archive.h"
#include "common/base/secret.h"
#include "common/base/text.h"

namespace det::cli {
namespace {

constexpr std::size_t kMaxShown = 512 << 10;  ///< bytes; larger files are reported without their lines

struct DiffOptions {
  int a = 0, b = 0;
  bool names_only = false;
  Output output;
  void declare(CLI::App& app) {
    app.add_option("A", a, "Id of the first experiment.")->required()->check(kPositive);
    app.add_option("B", b, "Id of the second experiment.")->required()->check(kPositive);
    app.add_flag("--name-only", names_only, "Show only the names of changed files.");
    output.declare_value(app);
  }
};

/// One of the two experiments, as sorted values.
struct Side {
  v1::Experiment experiment;
  std::map<std::string, std::string> files;                ///< path → content
  std::map<std::string, std::string> config, environment;  ///< path.to.key → value
  std::map<std::string, std::string> metrics;  ///< "validation.loss" → last value, of the best trial
};

/// Adds all leaves of `value` as "a.b.c" → text. Lists and empty objects are leaves. nlohmann::json sorts the
/// keys, which have no order on the wire.
void flatten(const nlohmann::json& value, const std::string& path, std::map<std::string, std::string>& out) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, child] : value.items()) flatten(child, path.empty() ? key : path + "." + key, out);
  } else if (!path.empty()) {
    out[path] = value.is_string() ? value.get<std::string>() : dump_json(Json(value));
  }
}

/// True for settings that select where a process runs, as opposed to what it computes.
bool is_environment(const std::string& path) {
  for (const char* part : {"environment.", "resources.", "bind_mounts", "pbs", "slurm"})
    if (path.starts_with(part)) return true;
  return false;
}

/// Downloads and unpacks the model definition. Empty for an experiment without one.
Result<std::map<std::string, std::string>> files_of(Client& client, int experiment) {
  std::map<std::string, std::string> files;
  v1::GetModelDefRequest request;
  request.set_experiment_id(experiment);
  const auto response = client.call(v1::ExperimentService::GetModelDef, request);
  if (!response && response.error().code == Code::kNotFound) return files;  // a configuration alone
  if (!response) return tl::unexpected(response.error());
  TRY_ASSIGN(const std::string bytes, from_base64(response->b64_tgz()));
  if (bytes.empty()) return files;
  TRY_ASSIGN(auto entries, read_archive(bytes));
  for (ArchiveEntry& entry : entries)
    if (!entry.directory) files[entry.path] = std::move(entry.content);
  return files;
}

/// Returns the last value of each metric of the best trial, or of the first one when there is no best.
Result<std::map<std::string, std::string>> metrics_of(Client& client, const v1::Experiment& experiment) {
  std::map<std::string, std::string> metrics;
  int id = experiment.has_best_trial_id() ? experiment.best_trial_id().value() : 0;
  if (id == 0) {
    TRY_ASSIGN(const auto trials, get_trials(client, experiment.id(), Paging{.limit = 1}));
    if (trials.empty()) return metrics;
    id = trials.front().id();
  }
  TRY_ASSIGN(const v1::Trial trial, get_trial(client, id));
  for (const auto& [group, names] : trial.summary_metrics().fields()) {
    for (const auto& [name, summary] : names.struct_value().fields()) {
      const auto& fields = summary.struct_value().fields();
      const auto last = fields.find("last");
      if (last == fields.end() || !last->second.has_number_value()) continue;
      metrics[group + "." + name] = number_text(last->second.number_value());
    }
  }
  return metrics;
}

Result<Side> read_side(Client& client, int id) {
  Side side;
  TRY_ASSIGN(side.experiment, get_experiment(client, id));
  TRY_ASSIGN(side.files, files_of(client, id));
  TRY_ASSIGN(const Json config, to_json(side.experiment.config()));
  std::map<std::string, std::string> all;
  flatten(nlohmann::json(config), "", all);
  for (auto& [path, value] : all)
    (is_environment(path) ? side.environment : side.config)[path] = std::move(value);
  TRY_ASSIGN(side.metrics, metrics_of(client, side.experiment));
  return side;
}

using Values = std::map<std::string, std::string>;

/// Lists the keys with different values. An absent key has the value "".
Table changed_values(const Values& a, const Values& b, const char* what, const DiffOptions& options) {
  Table table{{what, "Experiment " + std::to_string(options.a), "Experiment " + std::to_string(options.b)},
              {}};
  Values all = a;
  all.insert(b.begin(), b.end());
  const auto at = [](const Values& values, const std::string& key) {
    const auto found = values.find(key);
    return found == values.end() ? std::string() : found->second;
  };
  for (const auto& [key, value] : all) {
    if (a.contains(key) != b.contains(key) || at(a, key) != at(b, key))
      table.rows.push_back({key, at(a, key), at(b, key)});
  }
  return table;
}

/// Adds the colors of `git diff` when standard output is a terminal.
std::string colored(const std::string& diff) {
  if (!wants_color(1)) return diff;
  std::string text;
  for (const std::string& line : split(std::string_view(diff).substr(0, diff.size() - 1), '\n')) {
    const char* color = line.starts_with("@")   ? "\033[36m"
                        : line.starts_with("-") ? "\033[31m"
                        : line.starts_with("+") ? "\033[32m"
                                                : "";
    text += color + line + (*color == '\0' ? "\n" : "\033[0m\n");
  }
  return text;
}

/// Returns the unified diff of one file. Null pointers mean that the file is absent on that side.
std::string file_diff(const std::string& path, const std::string* a, const std::string* b) {
  const std::string head =
      "--- " + (a ? "a/" + path : "/dev/null") + "\n+++ " + (b ? "b/" + path : "/dev/null") + "\n";
  const std::string nothing;
  const std::string &left = a ? *a : nothing, &right = b ? *b : nothing;
  if (std::max(left.size(), right.size()) > kMaxShown || find_bad_utf8(left) || find_bad_utf8(right) ||
      left.find('\0') != std::string::npos || right.find('\0') != std::string::npos)
    return head + "binary or large files differ\n";
  std::string shown;
  // Files come from other users: control characters must not reach the terminal.
  for (const std::string& line : split(unified_diff(left, right), '\n')) shown += printable(line) + "\n";
  shown.pop_back();
  return head + shown;
}

struct FileChange {
  std::string path, how;  ///< how: "added", "removed", "changed"
  std::string text;
};

/// Returns all files that differ, sorted by path.
std::vector<FileChange> changed_files(const Side& a, const Side& b) {
  std::vector<FileChange> changes;
  Values all = a.files;
  all.insert(b.files.begin(), b.files.end());
  for (const auto& [path, content] : all) {
    const auto left = a.files.find(path), right = b.files.find(path);
    const std::string* before = left == a.files.end() ? nullptr : &left->second;
    const std::string* after = right == b.files.end() ? nullptr : &right->second;
    if (before != nullptr && after != nullptr && *before == *after) continue;
    changes.push_back({path,
                       before == nullptr  ? "added"
                       : after == nullptr ? "removed"
                                          : "changed",
                       file_diff(printable(path), before, after)});
  }
  return changes;
}

Json values_json(const Table& table) {
  Json list = Json::array();
  for (const auto& row : table.rows) list.push_back({{"name", row[0]}, {"a", row[1]}, {"b", row[2]}});
  return list;
}

void print_values(const char* title, const Table& table) {
  std::cout << title << (table.rows.empty() ? ": the same\n\n" : ":\n" + shown(table) + "\n");
}

Status diff(Client& client, const DiffOptions& options) {
  TRY_ASSIGN(const Side a, read_side(client, options.a));
  TRY_ASSIGN(const Side b, read_side(client, options.b));
  const std::vector<FileChange> files = changed_files(a, b);
  const Table config = changed_values(a.config, b.config, "Configuration", options);
  const Table environment = changed_values(a.environment, b.environment, "Environment", options);
  const Table metrics = changed_values(a.metrics, b.metrics, "Metric", options);
  if (options.output.structured()) {
    Json code = Json::array();
    for (const FileChange& each : files)
      code.push_back({{"path", each.path}, {"change", each.how}, {"diff", each.text}});
    options.output.print_value({{"a", options.a},
                                {"b", options.b},
                                {"code", code},
                                {"config", values_json(config)},
                                {"environment", values_json(environment)},
                                {"metrics", values_json(metrics)}});
    return {};
  }
  std::cout << "Code" << (files.empty() ? ": the same\n" : ":\n");
  for (const FileChange& each : files)
    std::cout << (options.names_only ? each.how + " " + printable(each.path) + "\n" : colored(each.text));
  std::cout << '\n';
  print_values("Configuration", config);
  print_values("Environment", environment);
  print_values("Metrics (last, of the best trials)", metrics);
  return {};
}

}  // namespace

Command diff_verb() {
  return {{"diff"}, "Compare code, configuration, environment and metrics of two experiments.", action(diff)};
}

}  // namespace det::cli
