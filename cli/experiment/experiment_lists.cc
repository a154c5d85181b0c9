// Lists of `det experiment`: experiments, trials, checkpoints.
#include <iostream>

#include "cli/experiment/experiment_verbs.h"
#include "cli/output/download.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "common/base/units.h"

namespace det::cli {
namespace {

struct ExperimentListOptions {
  Output output;
  Paging paging;
  bool all = false, show_project = false;
  void declare(CLI::App& app) {
    app.add_flag("-a,--all", all, "Include archived experiments and experiments of other users.");
    app.add_flag("--show_project,--show-project", show_project, "Show workspace and project.");
    paging.declare(app);
    output.declare_list(app);
  }
};

/// "12.5%", or "N/A" before the first report.
std::string progress_text(const v1::Experiment& experiment) {
  if (!experiment.has_progress()) return "N/A";
  char text[16];
  std::snprintf(text, sizeof text, "%.1f%%", experiment.progress().value() * 100);
  return text;
}

/// "accuracy=0.8213", or "" before the first validation.
std::string metric_text(const std::string& name, const google::protobuf::DoubleValue& value, bool is_set) {
  return is_set ? name + "=" + number_text(value.value()) : "";
}

/// Lists experiments, newest first. Without --all only unarchived ones of the current user.
Status list_experiments(Session& session, const ExperimentListOptions& options) {
  TRY_ASSIGN(Client * client, session.client());
  v1::GetExperimentsRequest request;
  request.set_sort_by(v1::GetExperimentsRequest::SORT_BY_ID);
  request.set_order_by(v1::ORDER_BY_DESC);
  if (!options.all) {
    TRY_ASSIGN(const std::string user, session.user_name());
    request.add_users(user);
    request.mutable_archived()->set_value(false);
  }
  std::vector<v1::Experiment> experiments;
  TRY_ASSIGN(const std::int64_t more,
             each_page(
                 options.paging.resolved(options.output), request,
                 [&](const auto& page) { return client->call(v1::ExperimentService::GetExperiments, page); },
                 [&](const auto& response) {
                   experiments.insert(experiments.end(), response.experiments().begin(),
                                      response.experiments().end());
                 }));
  Table table{.columns = {"ID", "Owner", "Name", "Parent ID", "State", "Progress", "Started", "Ended",
                          "Resource Pool", "Trials", "Metric"},
              .rows = {},
              .wide = {"Parent ID", "Ended", "Resource Pool"},
              .more = more};
  // Without --all the owner is the user.
  if (!options.all) table.wide.emplace_back("Owner");
  if (options.show_project) table.columns.insert(table.columns.end(), {"Workspace", "Project"});
  if (options.all) table.columns.emplace_back("Archived");
  for (const v1::Experiment& each : experiments) {
    std::vector<std::string> row{std::to_string(each.id()),
                                 each.username(),
                                 each.name(),
                                 each.has_forked_from() ? std::to_string(each.forked_from().value()) : "",
                                 state_text(each.state()),
                                 progress_text(each),
                                 time_text(each.start_time(), each.has_start_time()),
                                 time_text(each.end_time(), each.has_end_time()),
                                 each.resource_pool(),
                                 std::to_string(each.num_trials()),
                                 metric_text(each.searcher_metric(), each.best_trial_searcher_metric(),
                                             each.has_best_trial_searcher_metric())};
    if (options.show_project) row.insert(row.end(), {each.workspace_name(), each.project_name()});
    if (options.all) row.push_back(yes_or_no(each.archived()));
    table.rows.push_back(std::move(row));
  }
  return options.output.print(table, [&] { return list_to_json(experiments); });
}

struct CheckpointListOptions : ExperimentOptions {
  int best = 0;
  Output output;
  void declare(CLI::App& app) {
    ExperimentOptions::declare(app);
    app.add_option("--best", best, "Only the N best by the searcher's metric.")->check(kPositive);
    output.declare_list(app);
  }
};

/// Lists the checkpoints of an experiment; with --best only the N best by the searcher's metric.
Status list_checkpoints(Client& client, const CheckpointListOptions& options) {
  TRY_ASSIGN(const v1::Experiment experiment, get_experiment(client, options.id));
  TRY_ASSIGN(auto checkpoints, get_checkpoints(client, options.id));
  if (options.best > 0) {
    checkpoints = best_first(std::move(checkpoints), "", smaller_is_better(experiment.config()));
    if (static_cast<int>(checkpoints.size()) > options.best)
      checkpoints.resize(static_cast<std::size_t>(options.best));
  }
  const std::string metric =
      experiment.searcher_metric().empty() ? "" : " (" + experiment.searcher_metric() + ")";
  Table table{
      {"Trial ID", "# of Batches", "State", "Validation Metric" + metric, "UUID", "Resources"}, {}, {4}};
  for (const v1::Checkpoint& each : checkpoints) {
    std::int64_t size = 0;
    for (const auto& [path, bytes] : each.resources()) size += bytes;
    const auto value = metric_of(each, "");
    table.rows.push_back({std::to_string(each.training().trial_id().value()),
                          std::to_string(each.steps_completed()), state_text(each.state()),
                          value ? number_text(*value) : "", each.uuid(),
                          std::to_string(each.resources().size()) + " files, " + format_bytes(size)});
  }
  return options.output.print(table, [&] { return list_to_json(checkpoints); });
}

struct TrialListOptions : ExperimentOptions {
  Output output;
  Paging paging;
  void declare(CLI::App& app) {
    ExperimentOptions::declare(app);
    paging.declare(app);
    output.declare_list(app);
  }
};

/// Lists the trials of an experiment, with their hyperparameters as JSON.
Status list_trials(Client& client, const TrialListOptions& options) {
  std::int64_t more = 0;
  TRY_ASSIGN(const auto trials,
             get_trials(client, options.id, options.paging.resolved(options.output), &more));
  Table table{.columns = {"Trial ID", "State", "H-Params", "Started", "Ended", "# of Batches", "Metric"},
              .rows = {},
              .wide = {"Ended"},
              .more = more};
  for (const v1::Trial& each : trials) {
    TRY_ASSIGN(const Json hparams, to_json(each.hparams()));
    table.rows.push_back(
        {std::to_string(each.id()), state_text(each.state()), dump_json(hparams),
         time_text(each.start_time(), each.has_start_time()), time_text(each.end_time(), each.has_end_time()),
         std::to_string(each.total_batches_processed()),
         each.has_searcher_metric_value() ? number_text(each.searcher_metric_value().value()) : ""});
  }
  return options.output.print(table, [&] { return list_to_json(trials); });
}

}  // namespace

Command list_verb() { return {{"list", "ls"}, "List experiments.", action(list_experiments)}; }

Command list_trials_verb() {
  return {{"list-trials", "lt"}, "List the trials of an experiment.", action(list_trials)};
}

Command list_checkpoints_verb(std::vector<std::string> names) {
  return {std::move(names), "List the checkpoints of an experiment.", action(list_checkpoints)};
}

}  // namespace det::cli
