// Lists of `det experiment`: experiments, trials, checkpoints.
#include <iostream>

#include "cli/experiment/experiment_verbs.h"
#include "cli/output/download.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "common/base/units.h"

namespace det::cli {
namespace {

struct ExperimentListFlags {
  Output output;
  Paging paging;
  bool all = false, show_project = false;
};

/// "12.5%", or "N/A" before the first report.
std::string progress_text(const v1::Experiment& experiment) {
  if (!experiment.has_progress()) return "N/A";
  char text[16];
  std::snprintf(text, sizeof text, "%.1f%%", experiment.progress().value() * 100);
  return text;
}

/// Lists experiments, newest first. Without --all only unarchived ones of the current user.
Result<int> list_experiments(Session& session, const ExperimentListFlags& flags) {
  TRY_ASSIGN(Client * client, session.client());
  v1::GetExperimentsRequest request;
  request.set_sort_by(v1::GetExperimentsRequest::SORT_BY_ID);
  request.set_order_by(v1::ORDER_BY_DESC);
  if (!flags.all) {
    TRY_ASSIGN(const std::string user, session.user_name());
    request.add_users(user);
    request.mutable_archived()->set_value(false);
  }
  std::vector<v1::Experiment> experiments;
  TRY(each_page(
      flags.paging, request,
      [&](const auto& page) { return client->call(&v1::ExperimentService::Stub::GetExperiments, page); },
      [&](const auto& response) {
        experiments.insert(experiments.end(), response.experiments().begin(), response.experiments().end());
      }));
  Table table{{"ID", "Owner", "Name", "Parent ID", "State", "Progress", "Started", "Ended", "Resource Pool"},
              {}};
  if (flags.show_project) table.columns.insert(table.columns.end(), {"Workspace", "Project"});
  if (flags.all) table.columns.emplace_back("Archived");
  for (const v1::Experiment& each : experiments) {
    std::vector<std::string> row{std::to_string(each.id()),
                                 each.username(),
                                 each.name(),
                                 each.has_forked_from() ? std::to_string(each.forked_from().value()) : "",
                                 state_text(each.state()),
                                 progress_text(each),
                                 time_text(each.start_time(), each.has_start_time()),
                                 time_text(each.end_time(), each.has_end_time()),
                                 each.resource_pool()};
    if (flags.show_project) row.insert(row.end(), {each.workspace_name(), each.project_name()});
    if (flags.all) row.push_back(yes_or_no(each.archived()));
    table.rows.push_back(std::move(row));
  }
  TRY(flags.output.print(table, [&] { return list_to_json(experiments); }));
  return 0;
}

struct CheckpointFlags {
  int id = 0, best = 0;
  Output output;
};

/// Lists the checkpoints of an experiment; with --best only the N best by the searcher's metric.
Result<int> list_checkpoints(Session& session, const CheckpointFlags& flags) {
  TRY_ASSIGN(Client * client, session.client());
  TRY_ASSIGN(const v1::Experiment experiment, get_experiment(*client, flags.id));
  TRY_ASSIGN(auto checkpoints, get_checkpoints(*client, flags.id));
  if (flags.best > 0) {
    checkpoints = best_first(std::move(checkpoints), "", smaller_is_better(experiment.config()));
    if (static_cast<int>(checkpoints.size()) > flags.best)
      checkpoints.resize(static_cast<std::size_t>(flags.best));
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
  TRY(flags.output.print(table, [&] { return list_to_json(checkpoints); }));
  return 0;
}

}  // namespace

Action declare_list(CLI::App& app) {
  auto flags = std::make_shared<ExperimentListFlags>();
  app.add_flag("-a,--all", flags->all, "Also archived ones and those of others.");
  app.add_flag("--show_project,--show-project", flags->show_project, "With workspace and project.");
  flags->paging.declare(app);
  flags->output.declare_list(app);
  return [=](Session& session) { return list_experiments(session, *flags); };
}

/// Lists the trials of an experiment, with their hyperparameters as JSON.
Action declare_list_trials(CLI::App& app) {
  struct Flags {
    int id = 0;
    Output output;
    Paging paging;
  };
  auto flags = std::make_shared<Flags>();
  add_id(app, flags->id, "The experiment's id.");
  flags->paging.declare(app);
  flags->output.declare_list(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const auto trials, get_trials(*client, flags->id, flags->paging));
    Table table{{"Trial ID", "State", "H-Params", "Started", "Ended", "# of Batches"}, {}};
    for (const v1::Trial& each : trials) {
      TRY_ASSIGN(const Json hparams, to_json(each.hparams()));
      table.rows.push_back({std::to_string(each.id()), state_text(each.state()), dump_json(hparams),
                            time_text(each.start_time(), each.has_start_time()),
                            time_text(each.end_time(), each.has_end_time()),
                            std::to_string(each.total_batches_processed())});
    }
    TRY(flags->output.print(table, [&] { return list_to_json(trials); }));
    return 0;
  };
}

Action declare_list_checkpoints(CLI::App& app) {
  auto flags = std::make_shared<CheckpointFlags>();
  add_id(app, flags->id, "The experiment's id.");
  app.add_option("--best", flags->best, "Only the N best by the searcher's metric.")->check(kPositive);
  flags->output.declare_list(app);
  return [=](Session& session) { return list_checkpoints(session, *flags); };
}

}  // namespace det::cli
