// `det experiment describe`: experiments with their trials and workloads, as one JSON value or three tables.
#include <charconv>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/experiment/experiment_verbs.h"
#include "cli/experiment/workloads.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "common/base/files.h"
#include "common/base/text.h"

namespace det::cli {
namespace {

struct ExperimentDescribeOptions {
  std::vector<std::string> ids;
  bool metrics = false;
  Output output;
  std::string directory;
  void declare(CLI::App& app) {
    app.add_option("IDS", ids, "Experiment ids, separated by spaces or commas.")->required();
    app.add_flag("--metrics", metrics, "Include the metrics of all training reports.");
    output.declare(app);
    app.add_option("--outdir", directory, "Write the tables as CSV files to this directory.");
  }
};

struct Described {
  v1::Experiment experiment;
  std::vector<v1::Trial> trials;
};

/// Parses ids that are separated by spaces ("3 4") or commas ("3,4"). Errors: kInvalidArgument.
Result<std::vector<int>> parse_ids(const std::vector<std::string>& words) {
  std::vector<int> ids;
  for (const std::string& word : words) {
    for (const std::string& part : split(word, ',')) {
      int id = 0;
      const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), id);
      if (error != std::errc() || end != part.data() + part.size() || id < 1)
        return fail(Code::kInvalidArgument, "\"" + part + "\" is not an experiment id");
      ids.push_back(id);
    }
  }
  return ids;
}

/// The experiment's JSON with an additional array "trials".
Result<Json> described_to_json(const Described& described) {
  TRY_ASSIGN(Json value, cli::to_json(described.experiment));
  TRY_ASSIGN(value["trials"], list_to_json(described.trials));
  return value;
}

Table experiment_table(const std::vector<Described>& all) {
  Table table{{"ID", "State", "Progress", "Started", "Ended", "Name", "Description", "Archived",
               "Resource Pool", "Labels"},
              {}};
  for (const auto& [experiment, trials] : all) {
    table.rows.push_back(
        {std::to_string(experiment.id()), state_text(experiment.state()),
         experiment.has_progress() ? number_text(experiment.progress().value() * 100) + "%" : "N/A",
         time_text(experiment.start_time(), experiment.has_start_time()),
         time_text(experiment.end_time(), experiment.has_end_time()), experiment.name(),
         experiment.description(), yes_or_no(experiment.archived()), experiment.resource_pool(),
         join({experiment.labels().begin(), experiment.labels().end()}, ", ")});
  }
  return table;
}

Result<Table> trial_table(const std::vector<Described>& all) {
  Table table{{"Trial ID", "Experiment ID", "State", "Started", "Ended", "H-Params"}, {}};
  for (const Described& each : all) {
    for (const v1::Trial& trial : each.trials) {
      TRY_ASSIGN(const Json hparams, cli::to_json(trial.hparams()));
      table.rows.push_back({std::to_string(trial.id()), std::to_string(trial.experiment_id()),
                            state_text(trial.state()), time_text(trial.start_time(), trial.has_start_time()),
                            time_text(trial.end_time(), trial.has_end_time()), dump_json(hparams)});
    }
  }
  return table;
}

/// Prints the tables, or writes each to a CSV file with --outdir.
Status print_tables(const ExperimentDescribeOptions& options,
                    const std::vector<std::pair<std::string, Table>>& tables) {
  if (!options.directory.empty()) TRY(make_directories(options.directory));
  bool first = true;
  for (const auto& [name, table] : tables) {
    if (!options.directory.empty()) {
      TRY(write_file_atomic(options.directory + "/" + name + ".csv", to_csv(table)));
      continue;
    }
    std::cout << (first ? "" : "\n") << options.output.text(table);
    first = false;
  }
  return {};
}

/// Prints below the tables why trials failed, one line per trial. The first line of a reason is the kind of
/// failure; the last of several is the program's own error.
void print_failures(const std::vector<Described>& all) {
  std::string text;
  for (const Described& each : all) {
    for (const v1::Trial& trial : each.trials) {
      const std::vector<std::string> lines = split(trial.exit_reason(), '\n');
      if (lines.empty() || lines.front().empty()) continue;
      text += "Trial " + std::to_string(trial.id()) + ", last failure: " + printable(lines.front()) +
              (lines.size() > 1 ? ": " + printable(lines.back()) : "") + "\n";
    }
  }
  if (!text.empty()) std::cout << "\n" << text;
}

Status describe_experiments(Session& session, const ExperimentDescribeOptions& options) {
  TRY_ASSIGN(const std::vector<int> ids, parse_ids(options.ids));
  TRY_ASSIGN(Client * client, session.client());
  std::vector<Described> all;
  for (const int id : ids) {
    Described described;
    TRY_ASSIGN(described.experiment, get_experiment(*client, id));
    TRY_ASSIGN(described.trials, get_trials(*client, id));
    all.push_back(std::move(described));
  }
  if (options.output.structured()) {
    Json list = Json::array();
    for (const Described& each : all) {
      TRY_ASSIGN(Json value, described_to_json(each));
      list.push_back(std::move(value));
    }
    // One id yields an object, several yield an array.
    options.output.print_value(list.size() == 1 ? list.front() : list);
    return {};
  }
  // Only the tables show workloads: JSON output does not fetch them.
  std::vector<std::pair<int, std::vector<v1::WorkloadContainer>>> workloads;
  for (const Described& each : all) {
    for (const v1::Trial& trial : each.trials) {
      TRY_ASSIGN(auto list, get_workloads(*client, trial.id(), options.metrics));
      workloads.emplace_back(trial.id(), std::move(list));
    }
  }
  TRY_ASSIGN(Table trials, trial_table(all));
  TRY(print_tables(options, {{"experiments", experiment_table(all)},
                             {"trials", std::move(trials)},
                             {"workloads", workload_table(workloads, true)}}));
  if (!options.output.csv && options.directory.empty()) print_failures(all);
  return {};
}

}  // namespace

Command describe_verb() {
  return {{"describe"}, "Show experiments with their trials.", action(describe_experiments)};
}

}  // namespace det::cli
