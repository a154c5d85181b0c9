// Reads of one experiment beyond its row: validation history, files of its code archive, preview of its
// search.
#include <map>

#include "common/archive/archive.h"
#include "common/expconf/parse.h"
#include "common/searcher/simulate.h"
#include "master/api/convert/convert.h"
#include "master/api/experiments/experiment.h"
#include "master/api/experiments/reporter.h"
#include "master/db/queries/code_archives.h"
#include "master/db/queries/experiments.h"

namespace det::api {
namespace {

/// Maximum size of a file of a code archive that is shown.
constexpr std::int64_t kMaxShownFile = 8 << 20;

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

/// Nodes by directory ("" is the root). Adds directories that appear only in the paths of files.
std::map<std::string, std::map<std::string, v1::FileNode>> nodes_of(const std::vector<ArchiveItem>& items) {
  std::map<std::string, std::map<std::string, v1::FileNode>> nodes;
  const auto add = [&nodes](const std::string& path, bool directory) -> v1::FileNode& {
    v1::FileNode& node = nodes[parent_of(path)][path];
    node.set_path(path);
    node.set_name(path.substr(path.rfind('/') + 1));
    node.set_is_dir(directory);
    return node;
  };
  for (const ArchiveItem& item : items) {
    for (std::string above = parent_of(item.path); !above.empty(); above = parent_of(above)) add(above, true);
    v1::FileNode& node = add(item.path, item.directory);
    node.set_content_length(item.size);
    if (!item.directory) node.set_content_type("application/octet-stream");
  }
  return nodes;
}

/// Copies the tree below `directory`. The depth is bounded by the limits of the archive.
template <typename Out>
void add_nodes(const std::map<std::string, std::map<std::string, v1::FileNode>>& nodes,
               const std::string& directory, Out* out) {
  const auto found = nodes.find(directory);
  if (found == nodes.end()) return;
  for (const auto& [path, node] : found->second) {
    v1::FileNode* copy = out->add_files();
    *copy = node;
    if (node.is_dir()) add_nodes(nodes, path, copy);
  }
}

}  // namespace

Status ExperimentService::GetExperimentValidationHistory(
    const Caller&, const v1::GetExperimentValidationHistoryRequest& request,
    v1::GetExperimentValidationHistoryResponse* response) {
  const ExperimentId id(request.experiment_id());
  TRY(db::get_experiment(context_.pool, id));
  TRY_ASSIGN(const auto history, db::validation_history(context_.pool, id));
  for (const db::Validation& one : history) {
    v1::ValidationHistoryEntry* entry = response->add_validation_history();
    entry->set_trial_id(static_cast<int>(one.trial.value));
    to_proto(one.reported, entry->mutable_end_time());
    entry->set_searcher_metric(one.metric);
  }
  return {};
}

Status ExperimentService::GetBestSearcherValidationMetric(
    const Caller& caller, const v1::GetBestSearcherValidationMetricRequest& request,
    v1::GetBestSearcherValidationMetricResponse* response) {
  const ExperimentId id(request.experiment_id());
  // Processes of the experiment may call this with an allocation token.
  TRY(admit(context_, caller, {.experiment = id}));
  TRY_ASSIGN(const auto row, db::get_experiment(context_.pool, id));
  if (!row.best_metric) {
    return fail(Code::kNotFound,
                "experiment " + std::to_string(id.value) + " has no validation with the searcher's metric");
  }
  response->set_metric(*row.best_metric);
  return {};
}

Status ExperimentService::GetModelDefTree(const Caller&, const v1::GetModelDefTreeRequest& request,
                                          v1::GetModelDefTreeResponse* response) {
  TRY_ASSIGN(const std::string bytes,
             db::get_code_archive(context_.pool, ExperimentId(request.experiment_id())));
  TRY_ASSIGN(const auto items, check_archive(bytes));
  add_nodes(nodes_of(items), "", response);
  return {};
}

Status ExperimentService::GetModelDefFile(const Caller&, const v1::GetModelDefFileRequest& request,
                                          v1::GetModelDefFileResponse* response) {
  TRY_ASSIGN(const std::string bytes,
             db::get_code_archive(context_.pool, ExperimentId(request.experiment_id())));
  TRY_ASSIGN(std::string file, read_archive_file(bytes, request.path(), kMaxShownFile));
  response->set_file(std::move(file));
  return {};
}

Status ExperimentService::PreviewHPSearch(const Caller&, const v1::PreviewHPSearchRequest& request,
                                          v1::PreviewHPSearchResponse* response) {
  expconf::Defaults defaults = settings_defaults(context_.settings);
  defaults.experiment_seed = request.seed();
  defaults.name = "preview";
  TRY_ASSIGN(const Json config, from_struct(request.config(), "config"));
  TRY_ASSIGN(const auto parsed, expconf::parse(dump_json(config), "config", defaults));
  TRY_ASSIGN(const auto lines, searcher::preview(parsed.config));
  const std::string unit = parsed.config.searcher.time_name();
  for (const searcher::PreviewLine& line : lines) {
    v1::TrialSummary* trials = response->mutable_summary()->add_trials();
    trials->set_count(static_cast<int>(line.trials));
    // Length 0 stands for a trial of full length.
    trials->mutable_unit()->set_max_length(line.length == 0);
    if (line.length == 0) continue;
    trials->mutable_unit()->mutable_name()->set_value(unit);
    trials->mutable_unit()->mutable_value()->set_value(static_cast<int>(line.length));
  }
  to_struct(parsed.config.resolved.at("searcher"), response->mutable_summary()->mutable_config());
  return {};
}

}  // namespace det::api
